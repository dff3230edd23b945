package playerapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"sync"
	"testing"

	"github.com/gorilla/websocket"

	"github.com/musterhq/muster/internal/frames/framestest"
	"github.com/musterhq/muster/internal/service"
	"github.com/musterhq/muster/internal/settings"
)

// running is a service with player flow, and hand-written clients.
type running struct {
	t       *testing.T
	address string
	base    string // address with the prefix of the API
	stop    func()
}

func run(t *testing.T, change func(*settings.Settings)) *running {
	t.Helper()
	s := settings.Defaults()
	s.Listen, s.Data, s.Dev, s.PlayerFlow, s.PlayerLoginsPerAddress = "127.0.0.1:0", t.TempDir(), true, true, 0
	if change != nil {
		change(&s)
	}
	x, err := service.Start(t.Context(), s, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	stop := sync.OnceFunc(func() {
		if err := x.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	return &running{t, x.Addr().String(), x.Addr().String() + "/playerflow/v1/", stop}
}

type answer = map[string]any

// call calls a realm; want is the HTTP status.
func (x *running) call(want int, path, token, body string) answer {
	x.t.Helper()
	o := x.try(want, path, token, body)
	if o == nil {
		x.t.FailNow()
	}
	return o
}

// try is call for goroutines other than the test's: on failure it reports the error and returns an empty answer.
func (x *running) try(want int, path, token, body string) answer {
	x.t.Helper()
	r, err := http.NewRequestWithContext(x.t.Context(), http.MethodPost, "http://"+x.base+path, bytes.NewReader([]byte(body)))
	if err != nil {
		x.t.Error(err)
		return nil
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+token)
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		x.t.Error(err)
		return nil
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		x.t.Error(err)
		return nil
	}
	var o answer
	if err := json.Unmarshal(text, &o); err != nil || response.StatusCode != want {
		x.t.Errorf("%s %s: status %d, want %d: %s", path, body, response.StatusCode, want, text)
		return nil
	}
	return o
}

func loginBody(player string) string {
	return `{"provider": "dev", "token": "{\"player_id\":\"` + player + `\"}"}`
}

// login logs a player in and returns the access token.
func (x *running) login(player string) string {
	x.t.Helper()
	return x.call(http.StatusOK, "player/Session.Login", "", loginBody(player))["access_token"].(string)
}

// frames are those of one stream, with its close code.
type frames struct {
	got  chan answer
	code chan int
}

func newFrames() *frames { return &frames{got: make(chan answer, 1000), code: make(chan int, 1)} }

func (f *frames) read(socket *websocket.Conn) {
	f.code <- framestest.Listen(socket, func(message []byte) {
		var o answer
		_ = json.Unmarshal(message, &o)
		f.got <- o
	})
}

// stream opens a stream.
func (x *running) stream(token string) *frames {
	x.t.Helper()
	f := newFrames()
	socket, _, err := websocket.DefaultDialer.Dial("ws://"+x.base+"player/stream",
		http.Header{"Authorization": {"Bearer " + token}, "Sec-WebSocket-Protocol": {"playerflow.v1"}})
	if err != nil {
		x.t.Fatal(err)
	}
	x.t.Cleanup(func() { _ = socket.NetConn().Close() })
	go f.read(socket)
	return f
}

// next returns the next frame of a type and skips those before it.
func (x *running) next(f *frames, kind string) answer {
	x.t.Helper()
	for {
		select {
		case o := <-f.got:
			if o["type"] == kind {
				return o
			}
		case code := <-f.code:
			f.code <- code
			select { // what came before the end
			case o := <-f.got:
				if o["type"] == kind {
					return o
				}
				continue
			default:
			}
			x.t.Fatalf("closed with %d before %s", code, kind)
		case <-x.t.Context().Done():
			x.t.Fatalf("no %s came", kind)
		}
	}
}

// number formats a number of an answer.
func number(of any) string { return strconv.FormatFloat(of.(float64), 'f', -1, 64) }
