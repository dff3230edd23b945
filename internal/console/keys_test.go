package console

import (
	"cmp"
	"html"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/audit"
	"github.com/musterhq/muster/internal/domain/access"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/keyring"
	"github.com/musterhq/muster/internal/settings"
)

// withKeys gives a desk the access keys of its state.
func (x *desk) withKeys() *keyring.Ring {
	x.t.Helper()
	ring, err := keyring.Open(x.t.Context(), keyring.Config{Engine: x.engine, Secret: x.secret})
	if err != nil {
		x.t.Fatal(err)
	}
	x.t.Cleanup(ring.Close)
	x.config.Keyring = ring
	return ring
}

// A key can be revoked whatever its name, which other programs choose.
func TestKeysWithSpacesInTheirNames(t *testing.T) {
	x := newDesk(t)
	ring := x.withKeys()
	admin := x.signedInAs("ADMIN")
	for _, name := range []string{" lobby ", "  ", ""} {
		key, err := ring.Create(t.Context(), access.Actor{}, keyring.New{Role: access.Backend, Name: name})
		if err != nil {
			t.Fatal(err)
		}
		confirm := cmp.Or(strings.TrimSpace(name), key.ID)
		x.done(x.send(admin, "revoke-key/"+key.ID, "confirm", confirm, "reason", "x"), "keys?done=revoke-key")
	}
}

// An administrator creates a key, sees its secret once, and revokes it; the audit log and the list have it without the secret.
func TestKeysOfTheConsole(t *testing.T) {
	x := newDesk(t)
	ring := x.withKeys()
	admin := x.signedInAs("ADMIN")
	good := []string{"name", "Ann's laptop", "role", "backend", "reason", "she is new"}
	x.wantPage(x.get(Prefix+"/keys", admin), http.StatusOK, "There is no access key.", `href="/console/do/create-key"`)
	x.wantPage(x.get(Prefix+"/do/create-key", admin), http.StatusOK, "muster keys create --role readonly --name NAME")
	x.wantPage(x.send(admin, "create-key", "name", "", "role", "backend", "reason", "x"), http.StatusUnprocessableEntity, "Name is empty; it is required.")
	x.wantPage(x.send(admin, "create-key", "name", "a", "role", "backend", "reason", ""), http.StatusUnprocessableEntity, "Reason is empty; it is required.")
	x.wantPage(x.send(admin, "create-key", "name", "a", "role", "owner", "reason", "x"), http.StatusUnprocessableEntity, `Role is "owner"; want one of those that the form offers.`)
	for _, other := range []string{"LOOK", "RUN"} {
		x.wantPage(x.send(x.signedInAs(other), "create-key", good...), http.StatusForbidden, "needs the role admin")
		for _, page := range []string{"keys", "settings", "keys?format=json", "settings?format=csv"} {
			x.wantPage(x.get(Prefix+"/"+page, x.signedInAs(other)), http.StatusForbidden, "Only access keys of the role admin may see")
		}
	}

	made := x.send(admin, "create-key", good...)
	page := html.UnescapeString(text(t, made))
	var keys []access.Key
	x.read(func(v *cell.View) { keys = v.AccessKeys() })
	if made.StatusCode != http.StatusOK || made.Header.Get("Cache-Control") != "no-store" || len(keys) != 1 {
		t.Fatalf("%d, %d keys: %s", made.StatusCode, len(keys), page)
	}
	key, secret := keys[0], x.secret.AccessKeySecret(keys[0].ID)
	if key.Name != "Ann's laptop" || key.Role != access.Backend || key.CreatedBy != (access.Actor{Principal: "ADMIN", Address: "192.0.2.1", Door: "console"}) {
		t.Errorf("made %+v", key)
	}
	if !strings.Contains(page, key.ID) || !strings.Contains(page, secret) || strings.Contains(page, "sse-connect") {
		t.Errorf("the page has no secret, or does not stay: %s", page)
	}
	if _, ok := ring.Find(key.ID); !ok {
		t.Error("the key is not valid")
	}
	x.wantPage(x.send(admin, "create-key", good...), http.StatusUnprocessableEntity, "Was the form sent twice?")
	for _, path := range []string{"/keys", "/keys?format=json", "/audit", "/audit?format=json", "/find?id=" + key.ID} {
		if page := text(t, x.get(Prefix+path, admin)); strings.Contains(page, secret) {
			t.Errorf("%s has the secret", path)
		}
	}
	x.wantPage(x.get(Prefix+"/keys", admin), http.StatusOK, key.ID, "Ann's laptop", "ADMIN, console from 192.0.2.1", `href="/console/do/revoke-key/`+key.ID)
	x.wantAudit(0, audit.Document{Who: "ADMIN", Door: audit.DoorConsole, Address: "192.0.2.1", What: "create-key", Reason: "she is new", Outcome: "done"})

	revoke := "revoke-key/" + key.ID
	x.wantPage(x.send(admin, revoke, "confirm", "Bob", "reason", "lost"), http.StatusUnprocessableEntity, "want Ann's laptop")
	x.wantPage(x.send(x.signedInAs("RUN"), revoke, "confirm", "Ann's laptop", "reason", "lost"), http.StatusForbidden)
	x.done(x.send(admin, revoke, "confirm", "Ann's laptop", "reason", "lost"), "keys?done=revoke-key")
	if _, ok := ring.Find(key.ID); ok {
		t.Error("the revoked key works")
	}
	x.wantPage(x.get(Prefix+"/do/"+revoke, admin), http.StatusBadRequest, "is revoked already")
	x.wantPage(x.get(Prefix+"/do/revoke-key/none", admin), http.StatusNotFound, `There is no access key "none".`)
	if page := text(t, x.get(Prefix+"/keys", admin)); strings.Contains(page, "do/revoke-key") || !strings.Contains(page, ">revoked<") {
		t.Error("the list offers to revoke the key again")
	}
}

// The last key of an administrator stays.
func TestLastAdminKeyStays(t *testing.T) {
	x := newDesk(t)
	ring := x.withKeys()
	key, err := ring.Create(t.Context(), access.Actor{Principal: "test"}, keyring.New{Role: identity.Admin, Name: "the last"})
	if err != nil {
		t.Fatal(err)
	}
	x.wantPage(x.send(x.signedInAs("ADMIN"), "revoke-key/"+key.ID, "confirm", "the last", "reason", "x"), http.StatusUnprocessableEntity, "is the last one with the role admin")
}

// The page of settings has what muster config prints, and the defaults.
func TestSettingsPage(t *testing.T) {
	x := newDesk(t)
	s := settings.Defaults()
	s.MetricsMax, s.Join = 7<<20, "muster-join-secret"
	x.config.Settings = func() []settings.Setting {
		return s.All(func(name string) string {
			if name == "metrics-max" {
				return "--metrics-max"
			}
			return "default"
		})
	}
	admin := x.signedInAs("ADMIN")
	e := x.exported("/settings?format=json", admin)
	i := slices.IndexFunc(e.Rows, func(row map[string]any) bool { return row["setting"] == "metrics-max" })
	if len(e.Rows) != len(x.config.Settings()) || i < 0 || e.Rows[i]["value"] != "7MiB" || e.Rows[i]["default"] != "1GiB" || e.Rows[i]["from"] != "--metrics-max" || e.Rows[i]["form"] != "SIZE" {
		t.Errorf("%d settings: %v", len(e.Rows), e.Rows)
	}
	page := text(t, x.get(Prefix+"/settings", admin))
	if strings.Contains(page, s.Join) || !regexp.MustCompile(`<code>metrics-max</code></th><td>7MiB</td><td>1GiB</td><td>SIZE</td><td>--metrics-max</td>`).MatchString(page) {
		t.Errorf("the page: %s", page)
	}
}
