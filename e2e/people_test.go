package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/people/providertest"
)

// peopleFile returns the settings of a provider whose group dev may do everything.
func peopleFile(t *testing.T, p *providertest.Provider) string {
	t.Helper()
	secret := filepath.Join(t.TempDir(), "secret")
	must(t, os.WriteFile(secret, []byte(p.Secret+"\n"), 0o600))
	text, err := json.Marshal(map[string]any{"providers": []any{map[string]any{
		"name": "studio", "title": "The studio", "issuer": p.URL, "clientId": p.ClientID, "clientSecretFile": secret, "roles": map[string][]string{"admin": {"dev"}},
	}}})
	must(t, err)
	path := filepath.Join(t.TempDir(), "people.json")
	must(t, os.WriteFile(path, text, 0o600))
	return path
}

// People sign in with a real browser, one through an identity provider, one with a passkey of a virtual authenticator. The steps are in console/people.js.
func TestPeopleInABrowser(t *testing.T) {
	t.Parallel()
	needBrowser(t)
	s, _ := startProduction(t, "--people", peopleFile(t, providertest.New(t)))
	id, secret := s.key("admin")
	remote := func(args ...string) string {
		said, err := s.remote(id, secret, args...)
		must(t, err)
		return said
	}
	browse(t, "people.js", []string{"MUSTER_URL=" + s.url()}, func(line string) (string, bool) {
		switch line {
		case "enrol":
			link, _, _ := strings.Cut(remote("people", "add", "bob", "--group", "readonly", "--reason", "new in the team"), "\n")
			return "done " + link, true
		case "signed-in":
			var sessions []struct{ ID, Name, Person, Provider string }
			must(t, json.Unmarshal([]byte(remote("people", "sessions", "--json")), &sessions))
			names := map[string]string{}
			for _, x := range sessions {
				names[x.Name] = x.Provider
				if x.Name == "bob" {
					remote("people", "end-session", x.ID, "--reason", "a laptop was lost")
				}
			}
			if len(names) != 2 || names["bob"] != "muster" || names["ann@example.com"] != "studio" {
				t.Errorf("the sessions are %v", sessions)
			}
			entry := remote("audit", "--json", "--what", "people/end-sessions")
			if !strings.Contains(entry, "a laptop was lost") {
				t.Errorf("the audit log has %q", entry)
			}
			if entries := remote("audit", "--json", "--door", "sign-in"); !strings.Contains(entries, "studio/ann") || !strings.Contains(entries, "AddPasskey") {
				t.Errorf("the audit log has %s", entries)
			}
		default:
			return "", false
		}
		return "done", true
	})
	if list := remote("people", "list"); !strings.Contains(list, "bob") || !strings.Contains(list, "readonly") {
		t.Errorf("the list of people: %s", list)
	}
}

// Only administrators add, change and remove the installation's own people over the network.
func TestPeopleCommands(t *testing.T) {
	t.Parallel()
	s, _ := startProduction(t)
	id, secret := s.key("admin")
	people := func(args ...string) string {
		t.Helper()
		said, err := s.remote(id, secret, append([]string{"people"}, args...)...)
		must(t, err)
		return said
	}
	link := func(said string) string {
		t.Helper()
		at, _, _ := strings.Cut(said, "\n")
		if !strings.Contains(at, "/signin/enrol") {
			t.Fatalf("no link for a passkey: %s", said)
		}
		return at
	}
	first := link(people("add", "ann", "--group", "admin"))
	if second := link(people("enrol", "ann")); second == first {
		t.Error("the second link is the first one")
	}
	people("groups", "ann", "--group", "readonly", "--reason", "she moved")
	if list := people("list"); !strings.Contains(list, "ann") || !strings.Contains(list, "readonly") || strings.Contains(list, "admin") {
		t.Errorf("the list is %s", list)
	}
	for _, wrong := range [][]string{{"add", "ann", "--group", "admin"}, {"groups", "bob", "--group", "admin"}, {"enrol", "bob"}, {"remove-passkey", "ann", "AAAA"}, {"end-session", "signin-none"}} {
		if said, err := s.remote(id, secret, append([]string{"people"}, wrong...)...); err == nil && wrong[0] != "end-session" { // one that has ended is what was asked for
			t.Errorf("muster people %v: %s", wrong, said)
		}
	}
	for _, vague := range [][]string{{"groups", "ann"}, {"groups", "ann", "--none", "--group", "admin"}, {"groups", "ann", "--group", ""}} {
		if said, err := s.remote(id, secret, append([]string{"people"}, vague...)...); err == nil || !strings.Contains(said, "--group") {
			t.Errorf("muster people %q: %v, %s", vague, err, said)
		}
	}
	typed := people("add", "tom", "--group", "backend", "--group", "readonyl")
	if !strings.Contains(typed, `group "readonyl"`) || !strings.Contains(typed, "readonly") || strings.Contains(typed, "cannot sign in") {
		t.Errorf("a person in a group that nothing names: %s", typed)
	}
	if said := people("groups", "tom", "--group", "readonyl"); !strings.Contains(said, `group "readonyl"`) || !strings.Contains(said, "tom has no role and cannot sign in") {
		t.Errorf("a person without a role: %s", said)
	}
	if said := people("groups", "tom", "--none"); !strings.Contains(said, "is in no group") || !strings.Contains(said, "cannot sign in") {
		t.Errorf("a person without a group: %s", said)
	}
	if said := people("add", "eve"); !strings.Contains(said, "eve has no role and cannot sign in") {
		t.Errorf("a new person without a group: %s", said)
	}
	if said := people("add", "pam", "--group", "admin"); strings.Contains(said, "muster:") {
		t.Errorf("nothing is wrong with the group admin, but: %s", said)
	}
	reader, readersSecret := s.key("readonly")
	if said, err := s.remote(reader, readersSecret, "people", "add", "mallory", "--group", "admin"); err == nil {
		t.Errorf("a reader adds people: %s", said)
	}
	people("remove", "ann", "--reason", "she left")
	if list := people("list"); strings.Contains(list, "ann") {
		t.Errorf("who was removed is on the list: %s", list)
	}
}
