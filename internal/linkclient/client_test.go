package linkclient

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/gorilla/websocket"

	"github.com/musterhq/muster/internal/frames/framestest"
)

// service answers each request with 200 and the length of its message, and does what the action's name says.
type service struct{ *websocket.Conn }

func (c service) serve() {
	c.SetPongHandler(func(payload string) error {
		c.write(`{"Action":"Pong` + payload + `"}`)
		return nil
	})
	framestest.Listen(c.Conn, c.answer)
}

func (c service) write(text string) { _ = c.WriteMessage(websocket.TextMessage, []byte(text)) }

func (c service) answer(message []byte) {
	var r struct{ Action, RequestId string }
	if json.Unmarshal(message, &r) != nil {
		c.write(`{"Action":"Garbage"}`)
		return
	}
	switch r.Action {
	case "Push":
		c.write(`{"Action":"CreateGameSession","GameSessionId":"arn:g","MaximumPlayerSessionCount":4,"GameProperties":{"a":"` + strings.Repeat("x", 100_000) + `"}}`)
	case "Close":
		_ = c.WriteMessage(websocket.CloseMessage, websocket.FormatCloseMessage(1011, "why"))
		return
	case "Lose":
		_ = c.NetConn().Close()
		return
	case "Ping":
		_ = c.WriteMessage(websocket.PingMessage, []byte("p"))
	case "Fail":
		c.write(`{"Action":"Fail","RequestId":"` + r.RequestId + `","StatusCode":404,"ErrorMessage":"no \"it\""}`)
		return
	}
	c.write(`{"Action":"` + r.Action + `","RequestId":"` + r.RequestId + `","StatusCode":200}`)
}

func dial(t *testing.T, opt Options) *Client {
	t.Helper()
	var up websocket.Upgrader
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("Authorization") != "token" {
			http.Error(w, "no token", http.StatusForbidden)
			return
		}
		if c, err := up.Upgrade(w, r, nil); err == nil {
			go service{c}.serve()
		}
	}))
	t.Cleanup(s.Close)
	opt.URL = "ws" + strings.TrimPrefix(s.URL, "http") + "/path"
	if opt.Token == "" {
		opt.Token = "token"
	}
	c, err := Dial(t.Context(), opt)
	if err != nil {
		if r, ok := errors.AsType[*RefusedError](err); ok && opt.Token != "token" {
			if r.Status != http.StatusForbidden || r.Body != "no token" {
				t.Errorf("refused with %+v", r)
			}
			return nil
		}
		t.Fatal(err)
	}
	t.Cleanup(c.Drop)
	return c
}

func TestRefused(t *testing.T) {
	if dial(t, Options{Token: "wrong"}) != nil {
		t.Error("connected with a wrong token")
	}
}

// A public URL such as https://muster.example.com names no port.
func TestDefaultPort(t *testing.T) {
	for url, want := range map[string]string{
		"wss://muster.example.com": "muster.example.com:443", "ws://muster.example.com/path": "muster.example.com:80", "wss://[::1]": "[::1]:443", "ws://127.0.0.1:8080": "127.0.0.1:8080",
	} {
		got := ""
		_, err := Dial(t.Context(), Options{URL: url, Dial: func(_ context.Context, _, address string) (net.Conn, error) {
			got = address
			return nil, net.ErrClosed
		}})
		if got != want || !errors.Is(err, net.ErrClosed) {
			t.Errorf("%s: got %q %v, want %q", url, got, err, want)
		}
	}
}

func TestRequestsAndPushes(t *testing.T) {
	pushes := make(chan string, 10)
	c := dial(t, Options{OnPush: func(_ *Client, p Push) {
		if p.Action == "CreateGameSession" {
			g, err := p.GameSession()
			if err != nil || g.GameSessionId != p.GameSessionID() || len(g.GameProperties["a"]) != 100_000 {
				t.Errorf("push of %d bytes: %+v %v", len(p.Raw), g.GameSessionId, err)
			}
		}
		pushes <- p.Action
	}})
	ctx := context.Background()
	if err := c.Activate(ctx, 7777, "/log"); err != nil {
		t.Error(err)
	}
	for _, step := range []struct{ action, push string }{{"Push", "CreateGameSession"}, {"Ping", "Pongp"}} {
		if _, err := c.Do(ctx, step.action, ""); err != nil {
			t.Error(err)
		}
		if got := <-pushes; got != step.push {
			t.Errorf("after %s: got push %q, want %q", step.action, got, step.push)
		}
	}
	if err := c.Text("no json"); err != nil {
		t.Error(err)
	}
	if got := <-pushes; got != "Garbage" {
		t.Errorf("after garbage: got %q", got)
	}
	_, err := c.Do(ctx, "Fail", "")
	if s, ok := errors.AsType[*StatusError](err); !ok || s.Status != 404 || s.Message != `no "it"` {
		t.Errorf("Fail gave %v", err)
	}
	var all sync.WaitGroup
	for range 1000 {
		all.Add(1)
		c.Go("AcceptPlayerSession", PlayerMembers("g", "p"), func(a Answer, err error) {
			if err != nil || a.Status != 200 {
				t.Errorf("got %+v, %v", a, err)
			}
			all.Done()
		})
	}
	all.Wait()
	if err := c.Text(`{"Action":"HeartbeatServerProcess","RequestId":"nobody waits"}`); err != nil {
		t.Error(err)
	}
	if _, err := c.DoWithID(ctx, "same", "x", `"y":"`+strings.Repeat("z", 70_000)+`"`); err != nil {
		t.Error(err)
	}
}

func TestHowConnectionsEnd(t *testing.T) {
	for action, check := range map[string]func(error) bool{
		"Close": func(err error) bool {
			e, ok := errors.AsType[*CloseError](err)
			return ok && e.Code == 1011 && e.Reason == "why"
		},
		"Lose": func(err error) bool { _, frame := errors.AsType[*CloseError](err); return err != nil && !frame },
	} {
		ended := make(chan error, 1)
		c := dial(t, Options{OnClose: func(_ *Client, err error) { ended <- err }})
		if _, err := c.Do(context.Background(), action, ""); !check(err) {
			t.Errorf("%s: the waiting request got %v", action, err)
		}
		if err := <-ended; !check(err) {
			t.Errorf("%s: OnClose got %v", action, err)
		}
		if _, err := c.Do(context.Background(), action, ""); !check(err) {
			t.Errorf("%s: a late request got %v", action, err)
		}
	}
}
