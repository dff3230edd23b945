package gameserver

import (
	"context"
	"errors"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// A permanent error is reported at once, with the service's reason. The official SDK on its own would retry for three minutes.
func TestConnectFailsAtOnce(t *testing.T) {
	answer := func(status int, text string) *httptest.Server {
		return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, text, status) }))
	}
	untrusted := httptest.NewUnstartedServer(http.NotFoundHandler())
	untrusted.Config.ErrorLog = log.New(io.Discard, "", 0)
	untrusted.StartTLS()
	plain := answer(http.StatusForbidden, "plain")
	for name, c := range map[string]struct {
		url  string
		want error
		says string
	}{
		"wrong token":    {answer(http.StatusForbidden, "the auth token is not one of compute DesktopPC").URL, ErrUnauthorized, "is not one of compute DesktopPC"},
		"no token":       {answer(http.StatusUnauthorized, "who are you").URL, ErrUnauthorized, "who are you"},
		"another server": {answer(http.StatusNotFound, "no such page").URL, ErrWrongEndpoint, "no such page"},
		"a web page":     {answer(http.StatusOK, "<html>").URL, ErrWrongEndpoint, "<html>"},
		"untrusted":      {untrusted.URL, ErrWrongEndpoint, "certificate"},
		"no TLS there":   {"wss" + strings.TrimPrefix(plain.URL, "http"), ErrWrongEndpoint, "TLS"},
	} {
		t.Run(name, func(t *testing.T) {
			o := Options{WebSocketURL: strings.Replace(c.url, "http", "ws", 1), AuthToken: "secret-token", FleetID: "fleet-1", HostID: "pc", Port: 7777,
				Logger: slog.New(slog.DiscardHandler)}
			for range 2 { // and may be tried again
				err := New(o).Start(t.Context())
				if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) || !strings.HasPrefix(err.Error(), "gameserver: Start: ") {
					t.Errorf("got %v, want %v with %q", err, c.want, c.says)
				}
				if refused, ok := errors.AsType[*ConnectError](err); !ok || refused.URL != o.WebSocketURL {
					t.Errorf("%v holds no ConnectError of %s", err, o.WebSocketURL)
				}
				if strings.Contains(err.Error(), "secret-token") {
					t.Errorf("the token is in the error: %v", err)
				}
			}
		})
	}
}

func TestHostNamesThatDoNotExist(t *testing.T) {
	for _, c := range []struct {
		err  error
		want error
	}{
		{&net.OpError{Op: "dial", Err: &net.DNSError{Err: "no such host", Name: "muster.example", IsNotFound: true}}, ErrWrongEndpoint},
		{&net.OpError{Op: "dial", Err: &net.DNSError{Err: "server misbehaving", Name: "muster.example", IsTemporary: true}}, ErrUnavailable},
		{&net.OpError{Op: "dial", Err: errors.New("connection refused")}, ErrUnavailable},
	} {
		if got := (&ConnectError{Err: c.err}).kind(); got != c.want {
			t.Errorf("%v: got %v, want %v", c.err, got, c.want)
		}
	}
}

// A service that is not there yet is asked again, and every attempt is logged.
func TestConnectWaitsForTheService(t *testing.T) {
	var asked atomic.Int32
	var said strings.Builder
	ctx, cancel := context.WithCancel(t.Context())
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Sec-WebSocket-Version") == "13" {
			t.Error("the SDK connects to a service that refuses")
		}
		if asked.Add(1) == 2 {
			cancel()
		}
		http.Error(w, "the service is stopping", http.StatusServiceUnavailable)
	}))
	defer service.Close()
	o := Options{WebSocketURL: strings.Replace(service.URL, "http", "ws", 1), AuthToken: "t", FleetID: "fleet-1", HostID: "pc", Port: 7777, ProcessID: "p"}
	err := awaitService(ctx, o, slog.New(slog.NewTextHandler(&said, nil)))
	if !errors.Is(err, context.Canceled) || asked.Load() != 2 {
		t.Errorf("asked %d times: %v", asked.Load(), err)
	}
	for _, want := range []string{"attempt=1", "retry_in=1s", "503", "the service is stopping"} {
		if !strings.Contains(said.String(), want) {
			t.Errorf("the log lacks %q:\n%s", want, said.String())
		}
	}
}

// Until a deadline of the caller, and not longer, a service that does not answer is waited for. Then another Server may try.
func TestConnectToAPortThatIsSilent(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	o := Options{WebSocketURL: "ws://" + silent.Addr().String(), AuthToken: "t", FleetID: "fleet-1", HostID: "pc", Port: 7777, Logger: slog.New(slog.DiscardHandler)}
	for range 20 {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		err := New(o).Start(ctx)
		cancel()
		if !errors.Is(err, ErrUnavailable) || !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), o.WebSocketURL) {
			t.Fatalf("got %v, want ErrUnavailable, the deadline and the URL", err)
		}
	}
}

func TestCloudIsNotAsked(t *testing.T) {
	for url, want := range map[string]bool{
		"wss://muster.example.com": true, "ws://10.0.0.5:8080": true, "wss://us-west-2.api.amazongamelift.com": true,
		"wss://abc.execute-api.us-west-2.amazonaws.com/prod": false, "wss://x.amazonaws.com.cn": false,
	} {
		if o := (Options{WebSocketURL: url}); o.canAsk() != want {
			t.Errorf("%s: asked %t, want %t", url, !want, want)
		}
	}
}

// While the SDK connects, what goes wrong is a warning; the service's words are kept.
func TestAttemptsOfTheSDKAreLogged(t *testing.T) {
	var said strings.Builder
	l := &sdkLog{log: slog.New(slog.NewTextHandler(&said, nil))}
	l.Debugf("Error when try connect to %s: %s", "a:1", errors.New("before"))
	l.connecting.Store(true)
	l.Debugf("Request header %s:%s", "Authorization", "secret")
	l.Debugf("Error when try connect to %s: %s", "a:1", errors.New("connection refused"))
	l.Debugf("Response body is: %s", []byte("wrong token\n"))
	if text := said.String(); strings.Contains(text, "before") || strings.Contains(text, "secret") || !strings.Contains(text, "connection refused") ||
		!strings.Contains(text, "wrong token") || *l.reason.Load() != "wrong token" {
		t.Errorf("the log says %s", text)
	}
}
