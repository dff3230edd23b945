package operator

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/attention"
	"github.com/musterhq/muster/internal/domain/access"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/engine/enginetest"
	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/keyring"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/secretrotation"
)

// Each request has one action of the table of actions, is for the roles that calls says, and is refused to a principal whose policies deny the action.
func TestEveryRequestAsksThePolicies(t *testing.T) {
	e := enginetest.Open(t, engine.Config{Cell: cell.DefaultConfig()})
	secret, err := identity.OpenCellSecret(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	ring, err := keyring.Open(t.Context(), keyring.Config{Engine: e, Secret: secret, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer ring.Close()
	secrets, err := secretrotation.Open(t.Context(), secretrotation.Config{Engine: e, Secret: secret.Kept("", nil), Changed: func() {}, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer secrets.Close()
	secrets.Lead()
	defer secrets.Rest()
	var by identity.Principal
	door := NewDoor(Config{
		Engine: e, Keys: ring, Secrets: secrets, Attention: attention.New(attention.Config{Engine: e}), Log: slog.New(slog.DiscardHandler), Private: func(*http.Request) bool { return true },
		RolesOf:      func(policy.Action) (identity.Roles, bool) { return 0, false },
		Authenticate: func(*http.Request, []byte) (identity.Principal, int, error) { return by, http.StatusOK, nil },
	})
	ask := func(pattern string) (int, string) {
		method, path, _ := strings.Cut(pattern, " ")
		path = strings.NewReplacer("{kind}", "fleet", "{id...}", "a", "{id}", "a", "{name}", "a", "{host}", "a", "{number}", "9").Replace(path)
		r := httptest.NewRequest(method, Prefix+path, strings.NewReader("{}"))
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		door.ServeHTTP(w, r)
		return w.Code, w.Body.String()
	}
	for _, cmd := range []kernel.Command{
		&hosting.CreateLocation{Name: "custom-a"}, &hosting.CreateFleet{Fleet: fleet.Fleet{ID: "fleet-1", Region: "us-east-1", Account: "1", Name: "f"}, Locations: []string{"custom-a"}},
		&hosting.CreateAlias{Alias: fleet.Alias{ID: "alias-1", Region: "us-east-1", Account: "1", Name: "live", Fleet: "fleet-1"}},
	} {
		if err := e.Do(t.Context(), cmd); err != nil {
			t.Fatal(err)
		}
	}
	for request, resource := range map[string]string{
		"POST computes/rotate-token?fleet=fleet-1&compute=a {}":             "fleet/fleet-1",
		`POST rollouts {"alias":"live","to":"arn:x:fleet/fleet-1"}`:         "alias/alias-1 fleet/fleet-1",
		`POST rollouts/undo {"alias":"arn:aws:gamelift:x:y:alias/alias-1"}`: "alias/alias-1",
		`POST hosts/tokens {"fleet":"fleet-1"}`:                             "fleet/fleet-1",
	} {
		for part := range strings.FieldsSeq(resource) {
			by = principal(t, e.Now, identity.Admin, `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"*","Resource":"*"},{"Effect":"Deny","Action":"*","Resource":"arn:aws:gamelift:*:*:`+part+`"}]}`)
			words := strings.SplitN(request, " ", 3)
			r := httptest.NewRequest(words[0], Prefix+words[1], strings.NewReader(words[2]))
			r.Header.Set("Content-Type", "application/json")
			w := httptest.NewRecorder()
			if door.ServeHTTP(w, r); w.Code != http.StatusForbidden || !strings.Contains(w.Body.String(), "arn:aws:gamelift:us-east-1:1:"+part+" with an explicit deny") {
				t.Errorf("%s with %s denied: %d %s", request, part, w.Code, w.Body)
			}
		}
	}
	used := map[string]bool{}
	for pattern, c := range calls {
		used[c.action.String()] = true
		for _, role := range []identity.Role{identity.Admin, identity.Backend, identity.Client, identity.ReadOnly} {
			by = principal(t, e.Now, role, "")
			if code, body := ask(pattern); (code == http.StatusForbidden) == c.may.Allow(role) || code == http.StatusMethodNotAllowed {
				t.Errorf("%s as %s: %d %s", pattern, role, code, body)
			}
		}
		statement := `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"*","Resource":"*"},{"Effect":"Deny","Action":"%s","Resource":"*"}]}`
		by = principal(t, e.Now, identity.Admin, fmt.Sprintf(statement, c.action))
		code, body := ask(pattern)
		if want := "is not authorized to perform: " + c.action.String() + " on resource: * with an explicit deny in statement 2 of policy p"; code != http.StatusForbidden || !strings.Contains(body, want) {
			t.Errorf("%s, denied: %d %s, want 403 and %q", pattern, code, body, want)
		}
		by = principal(t, e.Now, identity.Admin, strings.Replace(fmt.Sprintf(statement, "gamelift:*"), "Deny", "Allow", 1))
		if code, body := ask(pattern); code == http.StatusForbidden {
			t.Errorf("%s, allowed: %d %s", pattern, code, body)
		}
	}
	for pattern, second := range seconds {
		by = principal(t, e.Now, identity.Admin, `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"*","Resource":"*"},{"Effect":"Deny","Action":"`+second.String()+`","Resource":"*"}]}`)
		if code, body := ask(pattern); code != http.StatusForbidden || !strings.Contains(body, "is not authorized to perform: "+second.String()) {
			t.Errorf("%s, whose second action is denied: %d %s", pattern, code, body)
		}
	}
	for _, name := range policy.Actions() {
		if strings.HasPrefix(name, "muster:Service.") && !used[name] {
			t.Errorf("no request is %s", name)
		}
	}
}

// An unknown door is refused: an empty list would mean that nothing has happened there.
func TestAuditOfADoorThatIsNone(t *testing.T) {
	if _, err := AuditFilter(url.Values{"door": {"sign_in"}}); err == nil || !strings.Contains(err.Error(), `door "sign_in": want one of`) {
		t.Errorf("got %v", err)
	}
	if f, err := AuditFilter(url.Values{"door": {"sign-in"}}); err != nil || f.Door != "sign-in" {
		t.Errorf("got %+v, %v", f, err)
	}
}

// principal returns a caller with a role, and with a policy if there is a document.
func principal(t *testing.T, now func() time.Time, role identity.Role, document string) identity.Principal {
	t.Helper()
	secret, err := identity.OpenCellSecret(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	keys := identity.NewKeys(secret, now)
	keys.Publish([]access.Key{{ID: "MUSTX", Role: role, Account: identity.DefaultAccount}})
	if document != "" {
		err := keys.PublishPolicies([]access.Policy{{Name: "p", Text: document}}, []access.PolicyAttachment{{Policy: "p", Target: access.Target{Kind: access.KeyTarget, Name: "MUSTX"}}})
		if err != nil {
			t.Fatal(err)
		}
	}
	key, _ := keys.Find("MUSTX")
	return key.Principal("192.0.2.1")
}
