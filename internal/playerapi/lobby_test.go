package playerapi

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/clientaddress"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/edge"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/engine/enginetest"
	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/keyring"
	"github.com/musterhq/muster/internal/playerapi/authentication"
	"github.com/musterhq/muster/internal/playerapi/objects"
	"github.com/musterhq/muster/internal/webhook"
)

// behindTLS trusts a proxy at any address to have taken TLS off.
var behindTLS = edge.Transport{Proxies: clientaddress.NewProxies(netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")), BehindTLS: true}

// lobby is a cell with player flow and the door in front of it, on a clock that the test moves.
type lobby struct {
	testing.TB
	door *Door
	keys *keyring.Ring

	mu  sync.Mutex
	now time.Time
}

func newLobby(t testing.TB, change func(*Config)) *lobby {
	t.Helper()
	return newLobbyWith(t, engine.Config{}, change)
}

// newLobbyWith opens a lobby on an engine with some settings of its own.
func newLobbyWith(t testing.TB, with engine.Config, change func(*Config)) *lobby {
	t.Helper()
	x := &lobby{TB: t, now: time.Now()}
	if with.Cell.PlayerFlow.Flow == nil {
		with.Cell = cellOf(flow.DefaultConfig())
	}
	with.Now = x.clock
	e := enginetest.Open(t, with)
	secret, err := identity.OpenCellSecret(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if x.keys, err = keyring.Open(t.Context(), keyring.Config{Engine: e, Secret: secret}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(x.keys.Close)
	c := Config{Engine: e, Secret: x.keys.CellSecret(), Keys: x.keys, Providers: map[string]authentication.Provider{"dev": authentication.Development{}}, Webhooks: webhook.Targets{Loopback: true}, Log: slog.New(slog.DiscardHandler), now: x.clock}
	if change != nil {
		change(&c)
	}
	x.door = NewDoor(c)
	x.door.Lead()
	t.Cleanup(x.door.Close)
	return x
}

func cellOf(players flow.Config) cell.Config {
	c := cell.DefaultConfig()
	c.PlayerFlow.Flow = &players
	return c
}

func (x *lobby) clock() time.Time {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.now
}

func (x *lobby) pass(d time.Duration) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.now = x.now.Add(d)
}

// call makes one call of a player; headers come in pairs.
func (x *lobby) call(token, name, body string, headers ...string) (int, map[string]any) {
	x.Helper()
	return x.send(x.door.Player(), token, objects.PlayerPrefix+name, body, headers...)
}

func (x *lobby) send(to http.Handler, token, path, body string, headers ...string) (int, map[string]any) {
	x.Helper()
	r := httptest.NewRequestWithContext(x.Context(), http.MethodPost, path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.RemoteAddr = "127.0.0.1:1"
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	to.ServeHTTP(w, r)
	var o map[string]any
	if err := json.Unmarshal(w.Body.Bytes(), &o); err != nil {
		x.Fatalf("%s: %d %q: %v", path, w.Code, w.Body, err)
	}
	return w.Code, o
}

func devLogin(player string) string {
	token, _ := json.Marshal(map[string]string{"player_id": player})
	body, _ := json.Marshal(map[string]string{"provider": "dev", "token": string(token)})
	return string(body)
}

func (x *lobby) login(player string) (token string) {
	x.Helper()
	status, o := x.call("", "Session.Login", devLogin(player))
	token, _ = o["access_token"].(string)
	if status != http.StatusOK || token == "" {
		x.Fatalf("login of %s: %d %v", player, status, o)
	}
	return token
}

// wants fails the test unless a call is answered with a status and a code; "" is for success.
func (x *lobby) wants(status int, code string) func(int, map[string]any) map[string]any {
	x.Helper()
	return func(got int, o map[string]any) map[string]any {
		x.Helper()
		if c, _ := o["code"].(string); got != status || c != code {
			x.Errorf("got %d %v, want %d %s", got, o, status, code)
		}
		return o
	}
}
