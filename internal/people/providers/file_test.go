package providers

import (
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/domain/access"
)

func TestMistakesInTheFile(t *testing.T) {
	const good = `"name":"okta","issuer":"https://id.example.com","clientId":"m","roles":{"admin":["ops"]}`
	for text, want := range map[string]string{
		`{"provider":[]}`:                   "unknown field",
		`{} {}`:                             "nothing after",
		`{"recheck":"1s"}`:                  "recheck",
		`{"session":"never"}`:               "session",
		`{"own":{"roles":{"god":["ops"]}}}`: "own.roles",
		`{"providers":[{}]}`:                "name",
		`{"providers":[{` + strings.Replace(good, "okta", "muster", 1) + `}]}`:                           "not muster",
		`{"providers":[{` + strings.Replace(good, "okta", "A/B", 1) + `}]}`:                              "lower-case",
		`{"providers":[{` + strings.Replace(good, "https", "http", 1) + `}]}`:                            "https URL",
		`{"providers":[{` + strings.Replace(good, "example.com", "example.com?x=1", 1) + `}]}`:           "without a query",
		`{"providers":[{` + strings.Replace(good, `"admin":["ops"]`, "", 1) + `}]}`:                      "no person can sign in",
		`{"providers":[{` + strings.Replace(good, "ops", "", 1) + `}]}`:                                  "roles.admin",
		`{"providers":[{` + good + `,"clientSecretFile":"a","clientSecretEnv":"b"}]}`:                    "at most one",
		`{"providers":[{` + good + `,"parameters":{"state":"x"}}]}`:                                      "parameters.state",
		`{"providers":[{` + good + `},{` + good + `,"groupPrefix":"x:"}]}`:                               "name of another",
		`{"providers":[{` + good + `},{` + strings.Replace(good, "okta", "other", 1) + `}]}`:             "groupPrefix",
		`{"providers":[` + strings.TrimSuffix(strings.Repeat(`{`+good+`},`, providersMax+1), ",") + `]}`: "at most 16",
		`{"providers":[{` + good + `,"title":"` + strings.Repeat("x", 200) + `"}]}`:                      "title",
	} {
		if _, err := parse([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.120s: %v; want an error with %q", text, err, want)
		}
	}
	f, err := parse([]byte(`{"providers":[{` + good + `}],"recheck":"1m"}`))
	if err != nil || len(f.Providers) != 1 || f.Recheck != time.Minute || f.Session != DefaultSession {
		t.Fatalf("%+v, %v", f, err)
	}
	if got := f.Providers[0].Roles.Of([]string{"dev", "ops"}); got != access.Roles(access.Admin) {
		t.Errorf("the roles are %v", got)
	}
	if got := f.Own.Of([]string{"readonly", "backend"}); got != access.Roles(access.ReadOnly, access.Backend) {
		t.Errorf("the roles of the cell's own people are %v", got)
	}
}

func TestClaimAt(t *testing.T) {
	claims := map[string]any{"groups": []any{"a"}, "realm_access": map[string]any{"roles": []any{"b"}}, "https://acme/groups.v1": []any{"c"}, "none": nil}
	for name, want := range map[string]bool{"groups": true, "realm_access.roles": true, "https://acme/groups.v1": true, "none": false, "realm_access.none": false, "groups.x": false, "": false} {
		if _, ok := claimAt(claims, name); ok != want {
			t.Errorf("%q is there: %t", name, ok)
		}
	}
	p := Provider{groupsClaim: "groups", groupPrefix: "x:"}
	if groups, found, err := p.groups(claims); err != nil || !found || strings.Join(groups, " ") != "x:a" {
		t.Errorf("%q %t %v", groups, found, err)
	}
	if _, _, err := p.groups(map[string]any{"_claim_names": map[string]any{"groups": "src1"}}); err == nil {
		t.Error("groups that the provider left out are taken for none")
	}
}
