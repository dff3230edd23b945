package playerapi_test

import (
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/domain/access"
	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/keyring"
	"github.com/musterhq/muster/internal/service"
	"github.com/musterhq/muster/internal/settings"
)

// Outside of development the realms of trusted servers and operators are not on the port of players, and require a key of
// their role. No player logs in by name alone.
func TestRealmsAreApart(t *testing.T) {
	s := settings.Defaults()
	s.Listen, s.Data, s.PlayerFlow, s.PartnerListen, s.OperatorListen = "127.0.0.1:0", t.TempDir(), true, "127.0.0.1:0", "127.0.0.1:0"
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
	backend, admin, client := key(identity.Backend), key(identity.Admin), key(identity.Client)
	main, partner, operator := x.Addr().String(), x.Beside()[0], x.Beside()[1]
	const issue, audit = "partner/Identity.IssueLoginTicket", "operator/Operator.Audit"
	for _, c := range []struct {
		address, call, token, body string
		want                       int
	}{
		{partner, issue, backend, `{"player_id":"ann"}`, 200},
		{partner, issue, admin, `{"player_id":"ann"}`, 200},
		{partner, issue, client, `{"player_id":"ann"}`, 403},
		{partner, issue, backend + "x", `{"player_id":"ann"}`, 401},
		{partner, issue, "", `{"player_id":"ann"}`, 401},
		{partner, issue, "pgs_gi-00000000-0000-4000-8000-000000000000_abc", `{"player_id":"ann"}`, 401},
		{partner, audit, admin, `{"reason":"test"}`, 404},
		{operator, audit, admin, `{"reason":"test"}`, 200},
		{operator, audit, admin, `{}`, 400},
		{operator, audit, backend, `{"reason":"test"}`, 403},
		{main, issue, backend, `{"player_id":"ann"}`, 404},
		{main, audit, admin, `{"reason":"test"}`, 404},
		{main, "player/Session.Login", "", `{"provider":"dev","token":"{\"player_id\":\"ann\"}"}`, 400},
	} {
		r, _ := http.NewRequest(http.MethodPost, "http://"+c.address+"/playerflow/v1/"+c.call, strings.NewReader(c.body))
		r.Header.Set("Content-Type", "application/json")
		if c.token != "" {
			r.Header.Set("Authorization", "Bearer "+c.token)
		}
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		said, _ := io.ReadAll(answer.Body)
		answer.Body.Close()
		if answer.StatusCode != c.want {
			t.Errorf("%s with %.10q: status %d, want %d", c.call, c.token, answer.StatusCode, c.want)
		}
		if realm, _, _ := strings.Cut(c.call, "/"); c.want == 404 && !strings.Contains(string(said), "it is served at --"+realm+"-listen") {
			t.Errorf("%s at another listener: %s", c.call, said)
		}
	}
}
