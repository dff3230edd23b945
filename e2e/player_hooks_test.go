package e2e

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/musterhq/muster/internal/porttest"
)

// hookBackend is a studio's backend that checks the signature of requests, and denies one player a party.
type hookBackend struct {
	t   *testing.T
	url string

	mu     sync.Mutex
	bodies []asked
}

type asked struct {
	signature string
	body      string
}

func newHookBackend(t *testing.T) (*hookBackend, *httptest.Server) {
	b := &hookBackend{t: t}
	server := httptest.NewServer(b)
	t.Cleanup(server.Close)
	b.url = server.URL
	return b, server
}

func (b *hookBackend) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	b.mu.Lock()
	b.bodies = append(b.bodies, asked{r.Header.Get("X-Muster-Signature"), string(body)})
	b.mu.Unlock()
	var q struct {
		Hook string
		Data struct {
			PlayerID string `json:"player_id"`
		}
	}
	_ = json.Unmarshal(body, &q)
	switch {
	case q.Data.PlayerID == "eve":
		_, _ = io.WriteString(w, `{"allow":false,"message":"eve plays alone"}`)
	case q.Hook == "BuildPlayerData":
		_, _ = fmt.Fprintf(w, `{"players":{%q:"skin=3"}}`, q.Data.PlayerID)
	default:
		_, _ = io.WriteString(w, `{"allow":true,"queue":"cup","max_players":4}`)
	}
}

// checkSignatures checks signatures as the guide describes.
func (b *hookBackend) checkSignatures(key string) {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, x := range b.bodies {
		at, signed, ok := strings.Cut(strings.TrimPrefix(x.signature, "t="), ",v1=")
		mac := hmac.New(sha256.New, []byte(key))
		mac.Write([]byte(at + "." + x.body))
		if !ok || signed != hex.EncodeToString(mac.Sum(nil)) {
			b.t.Errorf("signature %q does not fit %s", x.signature, x.body)
		}
	}
	if len(b.bodies) == 0 {
		b.t.Error("no hook was called")
	}
}

// The studio's backend refuses the search of one party and sets the properties of another one's game; a silent backend stops only calls
// whose hook is required.
func TestStudioHooks(t *testing.T) {
	t.Parallel()
	backend, server := newHookBackend(t)
	file := filepath.Join(t.TempDir(), "hooks.json")
	must(t, os.WriteFile(file, fmt.Appendf(nil, `{"url":%q,"hooks":{
		"BeforeCreateParty":{}, "BeforeDirectJoin":{}, "BeforePlayerUpdate":{"on_timeout":"ALLOW"}, "BuildPlayerData":{}}}`, backend.url+"/hooks"), 0o600))
	config := filepath.Join(t.TempDir(), "flow.json")
	must(t, os.WriteFile(config, []byte(`{"GameInstanceServiceConfig":{"directCreate":true,"directJoin":true}}`), 0o600))
	s := startFlow(t, "--player-hooks", file, "--player-flow-config", config)
	players := s.come("ann", "eve")
	ann, eve := players[0], players[1]

	denied := eve.fails("Party.CreateParty", http.StatusForbidden, "PERMISSION_DENIED", object{})
	if denied.at("details", "hook") != "BeforeCreateParty" || denied.at("details", "hook_message") != "eve plays alone" {
		t.Errorf("%v", denied)
	}
	eve.stands("IDLE", "")
	ann.call("Party.CreateParty", object{})
	game := ann.call("GameInstance.CreateGameInstance", object{"attributes": object{"map": "dock"}})
	if game.at("game_instance", "status") != "PENDING" {
		t.Errorf("%v", game)
	}
	eve.fails("GameInstance.JoinGameInstance", http.StatusConflict, "HOST_NOT_READY", object{"game_instance_id": game.at("game_instance", "game_instance_id")})
	ann.call("GameInstance.UpdateGameInstance", object{"attributes": object{"map": "moon"}})
	if got := ann.hears("OnGameInstanceUpdated"); got.at("data", "attributes", "map") != "moon" {
		t.Errorf("%v", got)
	}
	backend.checkSignatures(strings.TrimSpace(s.command("webhook-key", "--data", s.data, "player-hooks")))

	server.Close()
	bob := s.come("bob")[0]
	if o := bob.fails("Party.CreateParty", http.StatusServiceUnavailable, "UNAVAILABLE", object{}); o.at("details", "hook") != "BeforeCreateParty" || o["action"] != "RETRY" {
		t.Errorf("%v", o)
	}
	ann.call("GameInstance.UpdateGameInstance", object{"attributes": object{"map": "mars"}})
	bob.stands("IDLE", "")
}

// The service does not start with an invalid configuration of hooks.
func TestStudioHooksThatMakeNoSense(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "hooks.json")
	must(t, os.WriteFile(file, []byte(`{"url":"http://backend.example","hooks":{"BeforeLunch":{},"BeforeInvite":{}}}`), 0o600))
	out, err := exec.Command(musterBinary, "serve", "--dev", "--player-flow", "--data", t.TempDir(), "--listen", porttest.Free(t), "--player-hooks", file).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "hooks.BeforeLunch") || !strings.Contains(string(out), "want https, or http to this machine") {
		t.Errorf("%v: %s", err, out)
	}
}
