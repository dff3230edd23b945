package playerapi

import (
	"context"
	"encoding/json"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/frames/framestest"
	"github.com/musterhq/muster/internal/playerapi/objects"
)

// Players' events are posted over TLS or stay on the machine, as with hooks.
func TestSubscriptionsGoOverTLS(t *testing.T) {
	x := newLobby(t, func(c *Config) { c.Dev = true })
	const subscribe = objects.PartnerPrefix + "Events.Subscribe"
	for _, url := range []string{"https://backend.example/players?key=1", "http://127.0.0.1:1/players", "http://localhost:1"} {
		x.wants(200, "")(x.send(x.door.Partner(), "", subscribe, `{"url":"`+url+`"}`))
	}
	for _, url := range []string{"http://backend.example/players", "http://169.254.169.254/", "ftp://backend.example", "backend", "https://"} {
		o := x.wants(400, "INVALID_ARGUMENT")(x.send(x.door.Partner(), "", subscribe, `{"url":"`+url+`"}`))
		if m, _ := o["message"].(string); !strings.HasPrefix(m, `url: "`+url+`", want`) || !strings.Contains(m, "https") {
			t.Errorf("%s: %v", url, o)
		}
	}
	o := x.wants(400, "INVALID_ARGUMENT")(x.send(x.door.Partner(), "", subscribe, `{"url":"https://ann:secret@backend.example"}`))
	if m, _ := o["message"].(string); strings.Contains(m, "secret") {
		t.Errorf("the answer repeats the password: %v", m)
	}
}

// refusing is the key of a connection's context that says whether its messages are refused.
type refusing struct{}

// A subscription whose receiver takes nothing lapses, visibly for all backends; a new subscription gets the gap.
func TestLapsedSubscription(t *testing.T) {
	var down atomic.Bool
	down.Store(true)
	messages := make(chan map[string]any, 100)
	receiver := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Context().Value(refusing{}).(bool) {
			w.Header().Set("Connection", "close")
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		var m map[string]any
		_ = json.NewDecoder(r.Body).Decode(&m)
		messages <- m
	}))
	// A message that was sent while the receiver was down may be read only after it is up again. The receiver refuses it all the same.
	receiver.Config.ConnContext = func(ctx context.Context, _ net.Conn) context.Context {
		return context.WithValue(ctx, refusing{}, down.Load())
	}
	receiver.Start()
	defer receiver.Close()
	var log safeLog
	x := newLobby(t, func(c *Config) { c.Dev, c.Log = true, slog.New(slog.NewTextHandler(&log, nil)) })
	partner := httptest.NewServer(x.door.Partner())
	defer partner.Close()
	const id, subscribe, list = "X-Request-Id", objects.PartnerPrefix + "Events.Subscribe", objects.PartnerPrefix + "Events.List"
	hook := `{"url":"` + receiver.URL + `"}`
	posted := x.wants(200, "")(x.send(x.door.Partner(), "", subscribe, hook, id, "posted"))["subscription_id"].(string)
	streamed := x.wants(200, "")(x.send(x.door.Partner(), "", subscribe, "{}", id, "streamed"))
	if streamed["lapsed_at"] != nil {
		t.Errorf("a new one: %v", streamed)
	}
	stream := func() (*websocket.Conn, *http.Response, error) {
		return websocket.DefaultDialer.Dial("ws"+strings.TrimPrefix(partner.URL, "http")+streamed["stream_path"].(string),
			http.Header{"Sec-WebSocket-Protocol": {"playerflow.events.v1"}})
	}
	streams := func() int {
		t.Helper()
		socket, answer, err := stream()
		if err == nil {
			_ = socket.NetConn().Close()
		}
		return answer.StatusCode
	}
	field := func(name string) map[string]any {
		t.Helper()
		all := map[string]any{}
		for _, s := range x.wants(200, "")(x.send(x.door.Partner(), "", list, "{}"))["subscriptions"].([]any) {
			all[s.(map[string]any)["subscription_id"].(string)] = s.(map[string]any)[name]
		}
		return all
	}
	party := func(player string) {
		t.Helper()
		x.wants(200, "")(x.call(x.login(player), "Party.CreateParty", "{}"))
	}
	party("ann")
	for sub, at := range field("lapses_at") {
		if at == nil {
			t.Errorf("%s waits for ever", sub)
		}
	}
	if got := streams(); got != 101 {
		t.Errorf("the stream: %d", got)
	}
	x.pass(7*24*time.Hour + time.Second)
	if err := x.door.state.Do(t.Context(), &kernel.Tick{}); err != nil {
		t.Fatal(err)
	}
	for sub, at := range field("lapsed_at") {
		if at == nil {
			t.Fatalf("%s goes on", sub)
		}
	}
	if got := streams(); got != http.StatusGone {
		t.Errorf("the stream of one that has lapsed: %d, want 410", got)
	}
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(x.door.Collectors()...)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	lapsed := 0.0
	for _, f := range families {
		if f.GetName() == "muster_flow_subscription_lapsed" {
			for _, m := range f.GetMetric() {
				lapsed += m.GetGauge().GetValue()
			}
		}
	}
	if lapsed != 2 {
		t.Errorf("the metric says that %v have lapsed", lapsed)
	}
	for range 2 { // the log is written behind the commit
		log.await(t, "subscription of players' events lapses")
	}

	down.Store(false)
	o := x.wants(200, "")(x.send(x.door.Partner(), "", subscribe, hook, id, "posted"))
	if o["subscription_id"] != posted || o["lapsed_at"] == nil {
		t.Errorf("it goes on: %v", o)
	}
	if o := x.wants(200, "")(x.send(x.door.Partner(), "", subscribe, hook, id, "posted")); o["lapsed_at"] != nil {
		t.Errorf("a repeat: %v", o)
	}
	if m := <-messages; m["missed"] == 0.0 || len(m["events"].([]any)) != 0 {
		t.Errorf("the first message: %v, want a gap", m)
	}
	party("dia")
	if m := <-messages; m["missed"] != 0.0 || len(m["events"].([]any)) == 0 {
		t.Errorf("the next message: %v, want events and no gap", m)
	}
	x.wants(200, "")(x.send(x.door.Partner(), "", subscribe, "{}", id, "streamed"))
	lines, closed := make(chan string, 100), make(chan int, 1)
	socket, _, err := stream()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = socket.NetConn().Close() }()
	go func() { closed <- framestest.Listen(socket, func(message []byte) { lines <- string(message) }) }()
	for gaps := 0; ; {
		var line string
		select {
		case line = <-lines:
		case code := <-closed:
			t.Fatalf("the stream ended with %d, %d gaps were told", code, gaps)
		}
		if strings.Contains(line, `"type":"gap"`) {
			gaps++
			party("eve")
		}
		if strings.Contains(line, `"eve"`) {
			if gaps != 1 {
				t.Errorf("the gap was told %d times", gaps)
			}
			break
		}
	}
}

// safeLog is a log that is read while it is written.
type safeLog struct {
	mu   sync.Mutex
	text strings.Builder
	more chan struct{} // closed with the next line
}

func (l *safeLog) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.more != nil {
		close(l.more)
		l.more = nil
	}
	return l.text.Write(b)
}

func (l *safeLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// await waits until the log contains a text, and removes it.
func (l *safeLog) await(t *testing.T, text string) {
	t.Helper()
	for {
		l.mu.Lock()
		before, after, found := strings.Cut(l.text.String(), text)
		if found {
			l.text.Reset()
			l.text.WriteString(before + after)
			l.mu.Unlock()
			return
		}
		if l.more == nil {
			l.more = make(chan struct{})
		}
		more := l.more
		l.mu.Unlock()
		select {
		case <-more:
		case <-t.Context().Done():
			t.Fatalf("the log never says %q", text)
		}
	}
}
