package playerapi_test

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/gorilla/websocket"

	"github.com/musterhq/muster/internal/domain/access"
	"github.com/musterhq/muster/internal/frames/framestest"
	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/keyring"
	"github.com/musterhq/muster/internal/service"
	"github.com/musterhq/muster/internal/settings"
)

// Streams of the partner realm need the same credentials as its calls; a game server gets notices only about its own game.
func TestWhoMayListen(t *testing.T) {
	s := settings.Defaults()
	s.Listen, s.Data, s.PlayerFlow, s.PartnerListen = "127.0.0.1:0", t.TempDir(), true, "127.0.0.1:0"
	x, err := service.Start(t.Context(), s, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer x.Stop(t.Context())
	key := func(role identity.Role) string {
		k, err := x.Keys().Create(t.Context(), access.Actor{}, keyring.New{Role: role})
		if err != nil {
			t.Fatal(err)
		}
		return k.ID + "." + k.Secret
	}
	backend, client := key(identity.Backend), key(identity.Client)
	const own, other = "gi-00000000-0000-4000-8000-000000000001", "gi-00000000-0000-4000-8000-000000000002"
	server := "pgs_" + own + "_" + x.Keys().CellSecret().PartnerToken(own)
	for _, c := range []struct {
		path, token string
		want        int
	}{
		{"stream", "", 401},
		{"stream?game_instance_id=" + own, "pgs_" + own + "_guessed", 401},
		{"stream?game_instance_id=" + own, client, 403},
		{"stream?game_instance_id=" + other, server, 403},
		{"stream", server, 404}, // an authorised caller learns that it does not exist
		{"stream", backend, 400},
		{"stream?game_instance_id=" + own, backend, 404},
		{"stream?game_session_id=nobody", backend, 404},
		{"stream?after_seq=x", server, 400},
		{"events", "", 401},
		{"events?subscription_id=evs-00000000-0000-4000-8000-000000000001", server, 403},
		{"events?subscription_id=evs-00000000-0000-4000-8000-000000000001", backend, 404},
		{"events", backend, 400},
	} {
		_, answer, err := websocket.DefaultDialer.Dial("ws://"+x.Beside()[0]+"/playerflow/v1/partner/"+c.path, http.Header{
			"Authorization": {"Bearer " + c.token}, "Sec-WebSocket-Protocol": {"playerflow.partner.v1, playerflow.events.v1"},
		})
		if err == nil || answer.StatusCode != c.want {
			t.Errorf("%s with %.10q: %v, want %d", c.path, c.token, answer, c.want)
		}
	}
	plain, err := http.Get("http://" + x.Beside()[0] + "/playerflow/v1/partner/stream")
	if err != nil {
		t.Fatal(err)
	}
	plain.Body.Close()
	if plain.StatusCode != http.StatusUpgradeRequired {
		t.Errorf("without an upgrade: %s", plain.Status)
	}
}

// A stream ends with the access key that it was opened with.
func TestRevokedKeyHearsNothing(t *testing.T) {
	t.Parallel()
	s := settings.Defaults()
	s.Listen, s.Data, s.PlayerFlow, s.PartnerListen = "127.0.0.1:0", t.TempDir(), true, "127.0.0.1:0"
	s.PlayerFlowConfig = filepath.Join(t.TempDir(), "flow.json")
	if err := os.WriteFile(s.PlayerFlowConfig, []byte(`{"SessionServiceConfig":{"pingInterval":"1s"}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	x, err := service.Start(t.Context(), s, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer x.Stop(t.Context())
	key, err := x.Keys().Create(t.Context(), access.Actor{}, keyring.New{Role: identity.Backend, Name: ""})
	if err != nil {
		t.Fatal(err)
	}
	base, token := x.Beside()[0], "Bearer "+key.ID+"."+key.Secret
	r, _ := http.NewRequest(http.MethodPost, "http://"+base+"/playerflow/v1/partner/Events.Subscribe", strings.NewReader("{}"))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", token)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	var made struct {
		StreamPath string `json:"stream_path"`
	}
	err = json.NewDecoder(answer.Body).Decode(&made)
	answer.Body.Close()
	if err != nil {
		t.Fatal(err)
	}
	socket, _, err := websocket.DefaultDialer.Dial("ws://"+base+made.StreamPath,
		http.Header{"Authorization": {token}, "Sec-WebSocket-Protocol": {"playerflow.events.v1"}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := x.Keys().Revoke(t.Context(), access.Actor{}, key.ID, true); err != nil {
		t.Fatal(err)
	}
	if code := framestest.Listen(socket, func([]byte) {}); code != 4401 {
		t.Errorf("the stream was closed with %d", code)
	}
}

// taker records whether a receiver has every event up to a last one.
type taker struct {
	mu     sync.Mutex
	last   float64
	wrong  string
	ends   int
	over   chan struct{} // closed after the wanted number of ended parties
	wanted int
}

func (k *taker) take(e map[string]any) {
	k.mu.Lock()
	defer k.mu.Unlock()
	no, ok := e["no"].(float64)
	switch {
	case !ok || no <= k.last:
		return
	case no != k.last+1 && k.wrong == "":
		k.wrong = fmt.Sprintf("%v comes behind %v", no, k.last)
	}
	k.last = no
	if e["type"] == "OnRemovedFromParty" {
		if k.ends++; k.ends == k.wanted {
			close(k.over)
		}
	}
}

func (k *taker) listen(c *websocket.Conn) {
	framestest.Listen(c, func(message []byte) {
		var e map[string]any
		_ = json.Unmarshal(message, &e)
		if k.take(e); e["type"] == "OnPartyChanged" {
			_ = c.WriteMessage(websocket.TextMessage, fmt.Appendf(nil, `{"type":"ack","no":%v}`, e["no"]))
		}
	})
}

// Many players act at once. One of two subscriptions uses a webhook that fails occasionally, the other streams that are
// lost again and again: both deliver every event, in order.
func TestEveryEventReachesTheStudio(t *testing.T) {
	x := run(t, func(s *settings.Settings) { s.PlayerLogins = 0 })
	call := func(token, name, body string) answer { return x.try(http.StatusOK, name, token, body) }
	const players = 20
	posted := &taker{over: make(chan struct{}), wanted: players}
	streamed := &taker{over: make(chan struct{}), wanted: players}
	messages := 0
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if messages++; messages == 2 { // one message at a time
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		var message struct{ Events []map[string]any }
		if err := json.NewDecoder(r.Body).Decode(&message); err != nil {
			t.Error(err)
		}
		for _, e := range message.Events {
			posted.take(e)
		}
	}))
	defer receiver.Close()
	call("", "partner/Events.Subscribe", `{"url":"`+receiver.URL+`"}`)
	made := call("", "partner/Events.Subscribe", `{}`)

	listen := func() (*websocket.Conn, *http.Response, error) {
		return websocket.DefaultDialer.Dial("ws://"+x.address+made["stream_path"].(string), http.Header{"Sec-WebSocket-Protocol": {"playerflow.events.v1"}})
	}
	lost := make(chan struct{})
	go func() { // the stream is lost, and opened again behind what was acknowledged
		defer close(lost)
		for range 5 {
			socket, _, err := listen()
			if err != nil {
				t.Error(err)
				return
			}
			done := make(chan struct{})
			go func() { defer close(done); streamed.listen(socket) }()
			list := call("", "partner/Events.List", `{}`)["subscriptions"].([]any)
			if len(list) != 2 {
				t.Errorf("the list: %v", list)
			}
			_ = socket.NetConn().Close()
			<-done
		}
	}()
	var all sync.WaitGroup
	for i := range players {
		all.Go(func() {
			token, _ := call("", "player/Session.Login", fmt.Sprintf(`{"provider":"dev","token":"{\"player_id\":\"p-%d\"}"}`, i))["access_token"].(string)
			call(token, "player/Party.CreateParty", `{}`)
			for ready := range 4 {
				call(token, "player/Party.SetReady", fmt.Sprintf(`{"ready":%t}`, ready%2 == 0))
			}
			call(token, "player/Party.LeaveParty", `{}`)
		})
	}
	all.Wait()
	<-lost
	socket, _, err := listen()
	if err != nil {
		t.Fatal(err)
	}
	go streamed.listen(socket)
	shown, err := http.Get("http://" + x.address + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	page, _ := io.ReadAll(shown.Body)
	shown.Body.Close()
	if n := strings.Count(string(page), "muster_flow_events_waiting{"); n != 2 {
		t.Errorf("/metrics has %d subscriptions:\n%s", n, page)
	}
	for name, k := range map[string]*taker{"webhook": posted, "stream": streamed} {
		<-k.over
		k.mu.Lock()
		if k.wrong != "" {
			t.Errorf("by the %s %s", name, k.wrong)
		}
		k.mu.Unlock()
	}
}
