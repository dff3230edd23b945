package metrics

import (
	"crypto/tls"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/access"
	"github.com/musterhq/muster/internal/domain/matcher"
	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/matchmaker"
	"github.com/musterhq/muster/internal/signin"
)

func door(t *testing.T, dev bool) (*Door, *identity.Keys) {
	t.Helper()
	secret, err := identity.OpenCellSecret(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	keys := identity.NewKeys(secret, time.Now)
	keys.Publish([]access.Key{{ID: "MUSTREADER", Role: access.ReadOnly}, {ID: "MUSTCLIENT", Role: access.Client}})
	return NewDoor(Config{Keys: keys, Dev: dev, Private: func(r *http.Request) bool { return r.TLS != nil }, Log: slog.New(slog.DiscardHandler), Matchmakers: func() []matchmaker.Status {
		return []matchmaker.Status{{Configuration: "ranked", Stats: matcher.Stats{Tickets: 7, CutShort: 3, Exhausted: 2}, PassTook: 1500 * time.Millisecond, RefusedMatches: map[domain.Reason]uint64{domain.Conflict: 4}}}
	}}), keys
}

func ask(d *Door, user, password string) (int, string) {
	return askOver(d, &tls.ConnectionState{}, user, password)
}

func askOver(d *Door, over *tls.ConnectionState, user, password string) (int, string) {
	r := httptest.NewRequest(http.MethodGet, Path, nil)
	r.TLS = over
	if user != "" {
		r.SetBasicAuth(user, password)
	}
	w := httptest.NewRecorder()
	d.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

func TestMatchersAreShown(t *testing.T) {
	d, _ := door(t, true)
	status, text := ask(d, "", "")
	if status != http.StatusOK {
		t.Fatalf("got %d: %s", status, text)
	}
	for _, want := range []string{
		`muster_matchmaking_tickets{matchmaking_configuration="ranked"} 7`,
		`muster_matchmaking_passes_cut_short_total{matchmaking_configuration="ranked"} 3`,
		`muster_matchmaking_searches_out_of_budget_total{matchmaking_configuration="ranked"} 2`,
		`muster_matchmaking_refused_matches_total{matchmaking_configuration="ranked",reason="Conflict"} 4`,
		`muster_matchmaking_last_pass_seconds{matchmaking_configuration="ranked"} 1.5`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

func TestWhoMayLook(t *testing.T) {
	d, keys := door(t, false)
	reader, _ := keys.Find("MUSTREADER")
	client, _ := keys.Find("MUSTCLIENT")
	if status, text := askOver(d, nil, reader.ID, reader.Secret); status != 403 || !strings.Contains(text, "without TLS") {
		t.Errorf("a key that others could read: %d %s", status, text)
	}
	for _, c := range []struct {
		who, user, password string
		want                int
	}{
		{"nobody", "", "", 401}, {"a stranger", "MUSTNONE", "", 401}, {"a wrong secret", reader.ID, client.Secret, 401},
		{"a reader", reader.ID, reader.Secret, 200}, {"a game client", client.ID, client.Secret, 403},
	} {
		if status, text := ask(d, c.user, c.password); status != c.want {
			t.Errorf("%s: got %d %s, want %d", c.who, status, text, c.want)
		}
	}
}

// TestHealthIsNoSignIn: a load balancer asks for the health of a node that is not ready every second or two, and has no key.
func TestHealthIsNoSignIn(t *testing.T) {
	d, _ := door(t, false)
	failed := 0
	d.config.Signins = signin.New(signin.Config{Failed: func(string, string, string, string) { failed++ }}).Door("metrics")
	r := httptest.NewRequest(http.MethodGet, "/readyz", nil)
	if d.Allows(r) || failed != 0 {
		t.Errorf("a caller without a key: %d failed sign-ins", failed)
	}
	r.SetBasicAuth("MUSTREADER", "wrong")
	if d.Allows(r) || failed != 1 {
		t.Errorf("a caller with a wrong secret: %d failed sign-ins", failed)
	}
}
