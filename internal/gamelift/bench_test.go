package gamelift

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/gamelift"

	"github.com/musterhq/muster/internal/callstats"
	"github.com/musterhq/muster/internal/signin"
)

// sink is a response that costs nothing.
type sink struct{ header http.Header }

func (s *sink) Header() http.Header         { return s.header }
func (s *sink) Write(p []byte) (int, error) { return len(p), nil }
func (s *sink) WriteHeader(int)             {}

type rewinding struct{ strings.Reader }

func (*rewinding) Close() error { return nil }

// BenchmarkCreatePlayerSession measures a whole request except for the network and the core: route, verify, decode, check, encode.
func BenchmarkCreatePlayerSession(b *testing.B) {
	in := &gamelift.CreatePlayerSessionInput{GameSessionId: examplePlayerSession.GameSessionId, PlayerId: aws.String("p1")}
	for name, c := range map[string]codec{"json": jsonCodec{}, "cbor": cborCodec{}} {
		b.Run(name, func(b *testing.B) {
			v := newVerifier()
			h := NewHandler(&Service{}, Config{Keys: v.keys, Now: v.now, Log: slog.New(slog.NewTextHandler(io.Discard, &slog.HandlerOptions{Level: slog.LevelError})),
				Calls: callstats.New(), Signins: signin.New(signin.Config{}).Door("api")})
			replace(b, h, serve("CreatePlayerSession", play, reserveExample))
			body := string(c.appendOutput(nil, wirePlans{}.plan(reflect.TypeOf(in).Elem()), reflect.ValueOf(in).Elem()))
			r := httptest.NewRequest(http.MethodPost, "http://muster.example:8080/", nil)
			if name == "cbor" {
				r = httptest.NewRequest(http.MethodPost, "http://muster.example:8080/service/GameLift/operation/CreatePlayerSession", nil)
				r.Header.Set("Smithy-Protocol", rpcProtocol)
				r.Header.Set("Accept", "application/cbor")
				r.Header.Set("Amz-Sdk-Invocation-Id", "6a0e4c0e-8a57-4d9a-8d1b-7f102b1e0c7a")
				r.Header.Set("Amz-Sdk-Request", "attempt=1; max=3")
			} else {
				r.Header.Set("X-Amz-Target", "GameLift.CreatePlayerSession")
			}
			r.Header.Set("Content-Type", c.contentType()[0])
			r.ContentLength = int64(len(body))
			sign(b, r, body, keysForTest()["AKCLIENT"], "gamelift", "eu-central-1", signedAt)
			reader := new(rewinding)
			r.Body = reader
			w := &sink{header: http.Header{}}
			b.ReportAllocs()
			for b.Loop() {
				reader.Reset(body)
				h.ServeHTTP(w, r)
			}
			if w.header.Get("X-Amzn-Errortype") != "" {
				b.Fatal(w.header)
			}
		})
	}
}
