package gameclient

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/fxamacker/cbor/v2"
)

// cloud is the service as the SDK sees it: an endpoint that returns the test's answers and records the requests.
type cloud struct {
	t *testing.T
	*httptest.Server
	answers map[string]func(in members) (out members, exception string)

	mu    sync.Mutex
	asked []asked
}

type members = map[string]any

type asked struct {
	operation string
	in        members
}

func newCloud(t *testing.T) *cloud {
	c := &cloud{t: t, answers: map[string]func(members) (members, string){}}
	c.Server = httptest.NewServer(http.HandlerFunc(c.serve))
	t.Cleanup(c.Close)
	return c
}

func (c *cloud) serve(w http.ResponseWriter, r *http.Request) {
	if !strings.Contains(r.Header.Get("Authorization"), "Credential=key-1/") {
		c.t.Errorf("a request without the caller's signature: %v", r.Header)
	}
	operation := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client has gone
	}
	in := members{}
	if err := cbor.Unmarshal(body, &in); err != nil {
		c.t.Errorf("%s: %v", operation, err)
	}
	c.mu.Lock()
	c.asked = append(c.asked, asked{operation, plain(in).(members)})
	answer := c.answers[operation]
	c.mu.Unlock()
	out, exception := members(nil), "UnknownOperationException"
	if answer != nil {
		out, exception = answer(in)
	}
	w.Header().Set("Smithy-Protocol", "rpc-v2-cbor")
	w.Header().Set("Content-Type", "application/cbor")
	if exception != "" {
		out = members{"__type": "com.amazonaws.gamelift#" + exception, "Message": "the cloud says no", "message": "the cloud says no"}
		w.WriteHeader(map[string]int{"InternalServiceException": 500, "UnknownOperationException": 404}[exception] | 400)
	}
	encoded, err := cbor.Marshal(out)
	if err != nil {
		c.t.Errorf("%s: %v", operation, err)
	}
	_, _ = w.Write(encoded)
}

// plain converts decoded maps, whose keys are of any type, to maps with string keys.
func plain(value any) any {
	switch v := value.(type) {
	case map[string]any:
		out := members{}
		for key, x := range v {
			out[key] = plain(x)
		}
		return out
	case map[any]any:
		out := members{}
		for key, x := range v {
			out[key.(string)] = plain(x)
		}
		return out
	case []any:
		for i := range v {
			v[i] = plain(v[i])
		}
	}
	return value
}

// answer sets the answer of an operation.
func (c *cloud) answer(operation string, out members) {
	c.on(operation, func(members) (members, string) { return out, "" })
}

func (c *cloud) refuse(operation, exception string) {
	c.on(operation, func(members) (members, string) { return nil, exception })
}

func (c *cloud) on(operation string, answer func(members) (members, string)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answers[operation] = answer
}

// operations returns the names of the requested operations, in order.
func (c *cloud) operations() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var names []string
	for _, a := range c.asked {
		names = append(names, a.operation)
	}
	return strings.Join(names, " ")
}

// last returns the last request.
func (c *cloud) last() asked {
	c.t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.asked) == 0 {
		c.t.Fatal("nothing was asked")
	}
	return c.asked[len(c.asked)-1]
}

func (c *cloud) config() aws.Config {
	return aws.Config{
		Region: "us-east-1", BaseEndpoint: aws.String(c.URL), RetryMaxAttempts: 1,
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "key-1", SecretAccessKey: "secret"}, nil
		}),
	}
}

// client returns a client without pauses.
func (c *cloud) client(connector Connector) *Client {
	return New(c.config(), connector, func(o *Options) {
		o.PollInterval = time.Millisecond
		o.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	})
}

// wire is a connector that remembers where it was sent.
type wire struct {
	mu        sync.Mutex
	seats     []Seat
	open      bool
	fail      error         // of the next attempts
	hold      chan struct{} // attempts wait for it
	connected chan Seat
}

func (w *wire) Connect(ctx context.Context, seat Seat) error {
	w.mu.Lock()
	w.seats = append(w.seats, seat)
	fail, hold := w.fail, w.hold
	w.mu.Unlock()
	if hold != nil {
		select {
		case <-hold:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if fail != nil {
		return fail
	}
	w.mu.Lock()
	w.open = true
	w.mu.Unlock()
	if w.connected != nil {
		w.connected <- seat
	}
	return nil
}

func (w *wire) Disconnect(context.Context) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.open {
		return errors.New("not open")
	}
	w.open = false
	return nil
}

const (
	testGame = "arn:aws:gamelift:us-east-1::gamesession/fleet-1/custom-home/gsess-1"
	testSeat = "psess-1"
)

var created = time.UnixMilli(1_767_628_249_123).UTC()

// game returns a game session as the cloud describes it.
func game(change members) members {
	g := members{
		"GameSessionId": testGame, "Name": "Debug", "CreatorId": "ann", "FleetId": "fleet-1", "Location": "custom-home", "Status": "ACTIVE",
		"IpAddress": "127.0.0.1", "DnsName": "host.example", "Port": 7777, "CurrentPlayerSessionCount": 1, "MaximumPlayerSessionCount": 4,
		"PlayerSessionCreationPolicy": "ACCEPT_ALL", "GameProperties": []members{{"Key": "level", "Value": "arena"}},
		"GameSessionData": "data", "MatchmakerData": "{}", "CreationTime": epoch(created),
	}
	for key, value := range change {
		g[key] = value
	}
	return g
}

func epoch(at time.Time) cbor.Tag {
	return cbor.Tag{Number: 1, Content: float64(at.UnixMilli()) / 1000}
}

func seat(change members) members {
	p := members{
		"PlayerSessionId": testSeat, "PlayerId": "ann", "GameSessionId": testGame, "Status": "RESERVED",
		"IpAddress": "127.0.0.1", "DnsName": "host.example", "Port": 7777, "CreationTime": epoch(created),
	}
	for key, value := range change {
		p[key] = value
	}
	return p
}
