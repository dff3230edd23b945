package playerapi_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gorilla/websocket"

	"github.com/musterhq/muster/internal/domain/access"
	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/keyring"
	"github.com/musterhq/muster/internal/logtest"
	"github.com/musterhq/muster/internal/service"
	"github.com/musterhq/muster/internal/settings"
)

// The log, at its most detailed level, contains no credentials, neither accepted nor refused ones. It may contain data that is not secret:
// an access key's id, and the receivers to which messages could not be delivered.
func TestSecretsAreNotLogged(t *testing.T) {
	posted := make(chan struct{}, 100)
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusInternalServerError)
		if r.URL.Path == "/events" {
			select {
			case posted <- struct{}{}:
			default:
			}
		}
	}))
	defer receiver.Close()
	hooks := filepath.Join(t.TempDir(), "hooks.json")
	config := fmt.Sprintf(`{"url":"%s/hook?key=hook-url-secret","hooks":{"BeforeCreateParty":{"on_timeout":"ALLOW"},"BeforeInvite":{"on_timeout":"DENY"}}}`,
		strings.Replace(receiver.URL, "http://", "http://user:hook-password@", 1))
	if err := os.WriteFile(hooks, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	var log logtest.Log
	s := settings.Defaults()
	s.Listen, s.Data, s.PlayerFlow, s.PlayerDevLogins = "127.0.0.1:0", t.TempDir(), true, true
	s.PartnerListen, s.OperatorListen, s.PlayerHooks = "127.0.0.1:0", "127.0.0.1:0", hooks
	s.WebhookAllow = "127.0.0.0/8"
	x, err := service.Start(t.Context(), s, slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})))
	if err != nil {
		t.Fatal(err)
	}
	stopped := false
	defer func() {
		if !stopped {
			_ = x.Stop(t.Context())
		}
	}()
	secrets := map[string]string{"a hook's URL": "hook-url-secret", "a hook's password": "hook-password"}
	call := func(want int, address, path, token, body string) answer {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+address+"/playerflow/v1/"+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		var o answer
		if err != nil || json.Unmarshal(text, &o) != nil || response.StatusCode != want {
			t.Errorf("%s: %d %s, want %d", path, response.StatusCode, text, want)
		}
		if want >= 400 { // nor does a refusal repeat them
			for what, secret := range secrets {
				if bytes.Contains(text, []byte(secret)) {
					t.Errorf("%s: the answer repeats %s: %s", path, what, text)
				}
			}
		}
		return o
	}
	keep := func(what string, of any) string {
		t.Helper()
		secret, _ := of.(string)
		if len(secret) < 8 {
			t.Fatalf("%s: there is none: %q", what, secret)
		}
		secrets[what] = secret
		return secret
	}
	public, partner, operator := x.Addr().String(), x.Beside()[0], x.Beside()[1]
	key := func(role identity.Role) string {
		k, err := x.Keys().Create(t.Context(), access.Actor{}, keyring.New{Role: role})
		if err != nil {
			t.Fatal(err)
		}
		keep("the secret of a key of the role "+string(role), k.Secret)
		return k.ID + "." + k.Secret
	}
	backend, admin := key(identity.Backend), key(identity.Admin)
	id, _, _ := strings.Cut(backend, ".")
	keep("the cell's secret for hooks", x.Keys().CellSecret().WebhookKey("player-hooks"))

	// Valid values.
	ticket := keep("a login ticket", call(200, partner, "partner/Identity.IssueLoginTicket", backend, `{"player_id":"ann"}`)["login_ticket"])
	ticketLogin := fmt.Sprintf(`{"provider":"backend","token":%q}`, ticket)
	token := keep("an access token", call(200, public, "player/Session.Login", "", ticketLogin)["access_token"])
	token = keep("a second access token", call(200, public, "player/Session.Refresh", token, "{}")["access_token"])
	sub := call(200, partner, "partner/Events.Subscribe", backend, `{"url":"`+receiver.URL+`/events?key=events-url-secret"}`)
	keep("the key of a webhook", sub["signing_key"])
	secrets["the URL of a webhook"] = "events-url-secret"
	for _, protocols := range []string{"playerflow.v1, bearer." + token, "nonsense, bearer." + token} {
		socket, _, err := websocket.DefaultDialer.Dial("ws://"+public+"/playerflow/v1/player/stream", http.Header{"Sec-WebSocket-Protocol": {protocols}})
		if err == nil {
			_ = socket.NetConn().Close()
		}
	}
	call(200, public, "player/Session.Login", "", loginBody("bob"))
	call(200, public, "player/Party.CreateParty", token, "{}")
	call(503, public, "player/Party.SendInvite", token, `{"player_id":"bob"}`)
	call(200, operator, "operator/Operator.GetPlayer", admin, `{"player_id":"ann","reason":"a question of support"}`)
	<-posted
	<-posted // again, so the log has heard of the first time

	// Invalid values.
	call(401, public, "player/Session.Login", "", ticketLogin)
	call(401, public, "player/Session.Login", "", `{"provider":"dev","token":"`+keep("a token that is no JSON", "{dev-token-secret")+`"}`)
	call(401, public, "player/Session.Login", "", `{"provider":"backend","token":"`+keep("a token that is no ticket", "eyJhbGciOiJub25lIn0.eyJzdWIiOiJhbm4ifQ.")+`"}`)
	call(400, public, "player/Session.Login", "", `{"provider":"backend","token":"`+ticket+`","token_secret":"`+ticket+`"}`)
	call(400, public, "player/Session.Login", "", `{"provider":"backend","token":"`+ticket)
	call(400, public, "player/Session.Login", "", `{"provider":"backend","token":["`+ticket+`"]}`)
	call(401, public, "player/Session.GetFlow", keep("an access token of nobody", "pfa_nobodys-access-token"), "{}")
	call(401, partner, "partner/Events.List", id+"."+keep("a wrong secret", "a-wrong-secret-of-a-key"), "{}")
	call(401, partner, "partner/Game.Ready", "pgs_gi-00000000-0000-4000-8000-000000000001_"+keep("a guessed token of a game server", "guessed-server-token"), "{}")
	call(403, operator, "operator/Operator.Audit", backend, `{"reason":"test"}`)
	call(400, partner, "partner/Events.Subscribe", backend, `{"url":"https://user:`+keep("a password in a URL", "webhook-password")+`@backend.example"}`)
	refused := newFrames()
	socket, _, err := websocket.DefaultDialer.Dial("ws://"+public+"/playerflow/v1/player/stream",
		http.Header{"Sec-WebSocket-Protocol": {"playerflow.v1, bearer." + secrets["an access token of nobody"]}})
	if err != nil {
		t.Fatal(err)
	}
	go refused.read(socket)
	if code := <-refused.code; code != 4401 {
		t.Errorf("a stream without a valid token is closed with %d, want 4401", code)
	}
	if err := x.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	stopped = true
	text := log.String()
	for what, secret := range secrets {
		if strings.Contains(text, secret) {
			for line := range strings.Lines(text) {
				if strings.Contains(line, secret) {
					t.Errorf("the log has %s: %s", what, line)
				}
			}
		}
	}
	for _, want := range []string{"sign-in failed", "a webhook of players' events does not accept them", "a hook returned no usable answer", "operator call"} {
		if !strings.Contains(text, want) {
			t.Errorf("the log does not say %q; is it the one of the story?", want)
		}
	}
}
