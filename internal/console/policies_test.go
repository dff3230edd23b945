package console

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/audit"
	"github.com/musterhq/muster/internal/domain/access"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/people"
	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/policy"
)

const looks = `{"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "gamelift:List*", "Resource": "*"}]}`

// An administrator writes a policy, attaches it, tests its effect, changes and detaches it. Mistakes are shown at their places. Other roles see and change nothing.
func TestPoliciesOfTheConsole(t *testing.T) {
	x := newDesk(t)
	x.withKeys()
	x.config.RolesOf = func(policy.Action) (identity.Roles, bool) { return identity.MayLook, true }
	admin := x.signedInAs("ADMIN")
	x.wantPage(x.get(Prefix+"/policies", admin), http.StatusOK, "There are no policies", `href="/console/do/create-policy"`, `href="/console/access"`, "muster policies list")
	x.wantPage(x.get(Prefix+"/do/create-policy", admin), http.StatusOK, "The document is valid.", "muster policies create NAME NAME.json")
	for _, other := range []string{"LOOK", "RUN"} {
		for _, page := range []string{"policies", "access", "policies?format=json"} {
			x.wantPage(x.get(Prefix+"/"+page, x.signedInAs(other)), http.StatusForbidden, "Only access keys of the role admin may see")
		}
		x.wantPage(x.send(x.signedInAs(other), "create-policy", "name", "p", "body", looks, "reason", "x"), http.StatusForbidden, "needs the role admin")
	}

	wrong := strings.Replace(looks, "Allow", "Perhaps", 1)
	x.wantPage(x.send(admin, "create-policy", "name", "looks", "body", wrong, "reason", ""), http.StatusUnprocessableEntity, "Nothing was changed.", `data-line="1"`, "Statement[0].Effect", "<mark>")
	x.wantPage(x.send(admin, "create-policy", "name", "", "body", looks, "reason", ""), http.StatusUnprocessableEntity, "Name is empty; it is required.")
	x.wantPage(x.send(admin, "create-policy", "name", "a/b", "body", looks, "reason", ""), http.StatusUnprocessableEntity, "want a name of 1 to 128 letters")
	x.done(x.send(admin, "create-policy", "name", "looks", "body", looks, "reason", "for support"), "policies/looks?done=create-policy")
	x.wantPage(x.get(Prefix+"/policies/looks", admin), http.StatusOK, "Nothing: the policy is not in force.", "gamelift:List*", "muster policies show looks")
	x.wantPage(x.get(Prefix+"/policies/none", admin), http.StatusNotFound, "there is no policy")
	x.wantAudit(0, audit.Document{Who: "ADMIN", Door: audit.DoorConsole, Address: "192.0.2.1", What: "create-policy", Reason: "for support", Outcome: "done"})

	check := func(body, site string) *http.Response {
		r := httptest.NewRequest("POST", Prefix+"/policies/check", strings.NewReader(url.Values{"body": {body}}.Encode()))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Sec-Fetch-Site", site)
		r.AddCookie(admin)
		w := httptest.NewRecorder()
		x.ServeHTTP(w, r)
		return w.Result()
	}
	x.wantPage(check(wrong, "same-origin"), http.StatusOK, "The document is not valid.", "Statement[0].Effect")
	x.wantPage(check("<script>", "same-origin"), http.StatusOK, "The document is not valid.", "<mark><script></mark>")
	x.wantPage(check(looks, "same-origin"), http.StatusOK, "The document is valid.")
	x.wantPage(check(looks, "cross-site"), http.StatusForbidden)

	x.wantPage(x.get(Prefix+"/do/attach-policy/looks", admin), http.StatusOK, `<option value="role:backend">`, `<option value="host:*">`, "muster policies attach looks TARGET")
	x.wantPage(x.send(admin, "attach-policy/looks", "target", "role:owner", "reason", "x"), http.StatusUnprocessableEntity, "owner")
	x.done(x.send(admin, "attach-policy/looks", "target", "role:backend", "reason", "x"), "policies/looks?done=attach-policy")
	x.done(x.send(admin, "attach-policy/looks", "target", "group:level designers/a", "reason", "x"), "policies/looks?done=attach-policy")
	x.wantPage(x.get(Prefix+"/policies/looks", admin), http.StatusOK, "role:backend", "group:level designers/a", "Detach")
	x.wantPage(x.send(admin, "delete-policy/looks", "confirm", "looks", "reason", "x"), http.StatusUnprocessableEntity, "detach it first")

	ask := func(who, action string, more ...string) *http.Response {
		q := url.Values{"who": {who}, "action": {action}}
		for i := 0; i < len(more); i += 2 {
			q.Set(more[i], more[i+1])
		}
		return x.get(Prefix+"/access?"+q.Encode(), admin)
	}
	x.wantPage(ask("role:backend", "gamelift:ListFleets"), http.StatusOK, "ALLOWED", "Statement 1 of policy looks allows it.", `href="/console/policies/looks"`)
	x.wantPage(ask("role:backend", "gamelift:CreateFleet", "source", "192.0.2.1", "tags", "env=prod"), http.StatusOK, "DENIED", "No statement allows it", "muster access explain role:backend gamelift:CreateFleet", "--source-ip 192.0.2.1", "--tag 'env=prod'")
	x.wantPage(ask("role:backend", "gamelift:Nothing"), http.StatusOK, "want a full name")
	x.wantPage(ask("role:backend", "gamelift:ListFleets", "resource", "fleet-1"), http.StatusOK, "want an ARN")

	page := x.get(Prefix+"/do/change-policy/looks", admin)
	changed := strings.Replace(looks, "List", "Describe", 1)
	seen := x.seen(page)
	x.wantPage(x.send(admin, "change-policy/looks", "body", changed, "reason", "x", "seen", "version 7"), http.StatusUnprocessableEntity, "It was changed after this form was made.")
	x.done(x.send(admin, "change-policy/looks", "body", changed, "reason", "x", "seen", seen), "policies/looks?done=change-policy")
	var p access.Policy
	x.read(func(v *cell.View) { p, _ = v.Policy("looks") })
	if p.Version != 2 || p.Text != changed {
		t.Errorf("the policy is %+v", p)
	}
	x.done(x.send(admin, "detach-policy/looks/role:backend", "reason", "x"), "policies/looks?done=detach-policy")
	x.done(x.send(admin, "detach-policy/looks/group:level%20designers/a", "reason", "x"), "policies/looks?done=detach-policy")
	x.wantPage(x.get(Prefix+"/do/detach-policy/looks/role:backend", admin), http.StatusNotFound, "is not attached to")
	x.done(x.send(admin, "delete-policy/looks", "confirm", "looks", "reason", "x"), "policies?done=delete-policy")
}

// A form shows its object, so it opens only for administrators whose policies allow the change, if only administrators see the object's page.
func TestFormsOfWhatAdministratorsSee(t *testing.T) {
	x := newDesk(t)
	ring := x.withKeys()
	admin := x.signedInAs("ADMIN")
	x.send(admin, "create-key", "name", "lobby", "role", "backend", "reason", "x")
	x.send(admin, "create-policy", "name", "looks", "body", looks, "reason", "x")
	x.do(&people.StartSession{SignIn: people.SignIn{ID: "signin-00000000-0000-4000-8000-000000000001", Kind: people.Browser, Provider: "corp", Subject: "ann", Name: "lobby's Ann", Roles: access.Roles(access.ReadOnly)}, Valid: time.Hour, Check: time.Hour})
	x.keys.Publish(keysNamed("ADMIN", access.Admin, "BOUND", access.Admin, "LOOK", access.ReadOnly, "RUN", access.Backend))
	err := x.keys.PublishPolicies([]access.Policy{{Name: "p", Text: `{"Version": "2012-10-17", "Statement": {"Effect": "Allow", "Action": "muster:Console.Look", "Resource": "*"}}`}},
		[]access.PolicyAttachment{{Policy: "p", Target: access.Target{Kind: access.KeyTarget, Name: "BOUND"}}})
	if err != nil {
		t.Fatal(err)
	}
	made, err := ring.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	id := made[0].ID
	for _, form := range []string{"limit-key/" + id, "revoke-key/" + id, "change-policy/looks", "attach-policy/looks", "delete-policy/looks", "create-policy", "create-key", "end-sign-in/signin-00000000-0000-4000-8000-000000000001"} {
		x.wantPage(x.get(Prefix+"/do/"+form, admin), http.StatusOK)
		for key, why := range map[string]string{"LOOK": "needs the role admin", "RUN": "needs the role admin", "BOUND": "is not authorized to perform"} {
			page := x.get(Prefix+"/do/"+form, x.signedInAs(key))
			shown := text(t, page)
			if page.StatusCode != http.StatusForbidden || !strings.Contains(shown, why) || strings.Contains(shown, "lobby") || strings.Contains(shown, "gamelift:List") {
				t.Errorf("%s got the form %s: %d %s", key, form, page.StatusCode, shown)
			}
		}
	}
	if hits := x.hitsOf("lobby", x.signedInAs("BOUND")); len(hits) > 0 {
		t.Errorf("a search found %+v", hits)
	}
	if hits := x.hitsOf("lobby", admin); len(hits) != 1 {
		t.Errorf("the administrator's search found %+v", hits)
	}
}

// A form changes the limits of a key, and warns when that would lock the person out.
func TestLimitsOfKeysInTheConsole(t *testing.T) {
	x := newDesk(t)
	ring := x.withKeys()
	admin := x.signedInAs("ADMIN")
	x.send(admin, "create-key", "name", "lobby", "role", "backend", "reason", "x")
	var id string
	x.read(func(v *cell.View) { id = v.AccessKeys()[0].ID })
	limit := "limit-key/" + id
	page := x.get(Prefix+"/do/"+limit, admin)
	seen := x.seen(page)
	x.wantPage(x.get(Prefix+"/keys", admin), http.StatusOK, "/console/do/limit-key/"+id)
	for _, bad := range [][]string{{"soon", ""}, {"0d", ""}, {"2020-01-01T00:00:00Z", ""}, {"", "192.0.2.0/40"}} {
		x.wantPage(x.send(admin, limit, "expires", bad[0], "sources", bad[1], "reason", "x", "seen", seen), http.StatusUnprocessableEntity)
	}
	x.done(x.send(admin, limit, "expires", "30d", "sources", "192.0.2.0/24\n198.51.100.7", "reason", "leaves", "seen", seen), "keys?done=limit-key")
	key, ok := ring.Find(id)
	if !ok || key.Expires.IsZero() || len(key.Sources()) != 2 {
		t.Errorf("the key is %+v", key)
	}
	x.wantPage(x.send(admin, limit, "expires", "", "sources", "", "reason", "x", "seen", seen), http.StatusUnprocessableEntity, "It was changed after this form was made.")
	x.done(x.send(admin, limit, "expires", "", "sources", "", "reason", "x", "seen", x.seen(x.get(Prefix+"/do/"+limit, admin))), "keys?done=limit-key")
	if key, _ := ring.Find(id); !key.Expires.IsZero() || len(key.Sources()) != 0 {
		t.Errorf("the key is %+v, want it without limits", key)
	}
	x.wantPage(x.send(x.signedInAs("RUN"), limit, "expires", "1d", "reason", "x"), http.StatusForbidden, "needs the role admin")
}
