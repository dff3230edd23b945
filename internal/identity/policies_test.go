package identity

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/domain/access"
	"github.com/musterhq/muster/internal/policy"
)

func allowing(action string) string {
	return `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"` + action + `","Resource":"*"}]}`
}

func denying(action string) string { return strings.Replace(allowing(action), "Allow", "Deny", 1) }

// laws are policies and where they are attached, for one test.
type laws struct {
	all      []access.Policy
	attached []access.PolicyAttachment
}

func (l *laws) add(name, text string, to ...access.Target) {
	l.all = append(l.all, access.Policy{Name: name, Text: text, Version: 1})
	for _, t := range to {
		l.attached = append(l.attached, access.PolicyAttachment{Policy: name, Target: t})
	}
}

func (l *laws) publish(t *testing.T, keys *Keys) {
	t.Helper()
	if err := keys.PublishPolicies(l.all, l.attached); err != nil {
		t.Fatal(err)
	}
}

func ofKey(id string) access.Target  { return access.Target{Kind: access.KeyTarget, Name: id} }
func ofRole(r Role) access.Target    { return access.Target{Kind: access.RoleTarget, Name: r.String()} }
func ofGroup(g string) access.Target { return access.Target{Kind: access.GroupTarget, Name: g} }
func may(k AccessKey, a string) error {
	p := k.Principal("192.0.2.1")
	return p.MayDoAll(policy.MustBe(a))
}

func mustFind(t *testing.T, keys *Keys, id string) AccessKey {
	t.Helper()
	key, ok := keys.Find(id)
	if !ok {
		t.Fatalf("key %s is not found", id)
	}
	return key
}

// Policies of a key and of its role apply together. A change of them ends the connections of this key, but not those of other keys.
func TestPoliciesOfKeys(t *testing.T) {
	keys := newTestKeys(t, access.Key{ID: "CI", Role: Admin, Account: DefaultAccount}, access.Key{ID: "OPS", Role: Admin, Account: DefaultAccount}, access.Key{ID: "LOBBY", Role: Backend})
	var l laws
	before, ops := mustFind(t, keys, "CI"), mustFind(t, keys, "OPS")
	if err := may(before, "gamelift:DeleteFleet"); err != nil {
		t.Errorf("without policies: %v", err)
	}
	l.add("describe", allowing("gamelift:Describe*"), ofKey("CI"))
	l.add("unused", allowing("gamelift:*"))
	l.publish(t, keys)
	ci := mustFind(t, keys, "CI")
	if cause := context.Cause(before.Life()); !errors.Is(cause, ErrPolicies) || ci.Life().Err() != nil || ops.Life().Err() != nil {
		t.Errorf("the life from before ended with %v, the new one with %v, that of another key with %v", cause, ci.Life().Err(), ops.Life().Err())
	}
	if err := may(ci, "gamelift:DescribeBuild"); err != nil {
		t.Errorf("what is allowed: %v", err)
	}
	want := "User: arn:aws:iam::000000000000:user/admin/CI is not authorized to perform: gamelift:DeleteFleet on resource: * because no identity-based policy allows the gamelift:DeleteFleet action"
	if err := may(ci, "gamelift:DeleteFleet"); err == nil || err.Error() != want {
		t.Errorf("what no policy allows:\n%v, want\n%s", err, want)
	}

	l.add("no-builds", denying("gamelift:DescribeBuild"), ofRole(Admin))
	l.publish(t, keys)
	ci2, ops2 := mustFind(t, keys, "CI"), mustFind(t, keys, "OPS")
	want = "on resource: * with an explicit deny in statement 1 of policy no-builds"
	if err := may(ci2, "gamelift:DescribeBuild"); err == nil || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("what the role may not: %v, want %s", err, want)
	}
	if may(ops2, "gamelift:ListFleets") == nil || ops.Life().Err() == nil {
		t.Error("a role with a policy allows what no policy allows, or what a key of it has opened goes on")
	}
	if lobby := mustFind(t, keys, "LOBBY"); lobby.SetOf() != nil {
		t.Error("a key of another role has policies")
	}

	l.publish(t, keys)
	keys.Publish([]access.Key{{ID: "CI", Role: Admin, Account: DefaultAccount}, {ID: "LOBBY", Role: Backend}})
	if again := mustFind(t, keys, "CI"); again != ci2 || again.Life().Err() != nil {
		t.Error("a key became another one without a change")
	}
	l.all[0].Text = allowing("gamelift:List*")
	l.publish(t, keys)
	if err := may(mustFind(t, keys, "CI"), "gamelift:ListFleets"); err != nil || ci2.Life().Err() == nil {
		t.Errorf("after a new text: %v; the life before: %v", err, ci2.Life().Err())
	}
	l.attached = nil
	l.publish(t, keys)
	if ci := mustFind(t, keys, "CI"); ci.SetOf() != nil || may(ci, "gamelift:DeleteFleet") != nil {
		t.Error("a policy that was detached is in force")
	}
}

// A policy that this program cannot read denies everything, whatever others allow.
func TestUnreadablePolicy(t *testing.T) {
	keys := newTestKeys(t, access.Key{ID: "CI", Role: Admin})
	var l laws
	l.add("all", allowing("*"), ofKey("CI"))
	l.add("later", allowing("gamelift:ActionOfALaterRelease"), ofKey("CI"))
	if err := keys.PublishPolicies(l.all, l.attached); err == nil || !strings.Contains(err.Error(), "policy later: Statement[0].Action") {
		t.Errorf("unreadable: %v", err)
	}
	if err := may(mustFind(t, keys, "CI"), "gamelift:ListFleets"); err == nil || !strings.Contains(err.Error(), "policy later") {
		t.Errorf("with an unreadable policy: %v", err)
	}
}

// Temporary credentials have the policies of the key that issued them, whatever their role. Those of people have the policies of their groups.
func TestPoliciesOfSessions(t *testing.T) {
	x := newIssuer(t)
	x.ChangeSignIns(map[string]SignIn{"signin-1": {access.Roles(Admin), []string{"designers"}}}, nil)
	own, lower := x.issue("a", Backend, time.Hour), x.issue("b", ReadOnly, time.Hour)
	person := x.Issue(Session{Source: FromPerson, SignIn: "signin-1", Holder: "sso/ann", Name: "ann", Role: Admin, Account: DefaultAccount}, time.Hour)
	with := func(c Credentials) AccessKey {
		key, err := x.With(c.pair())
		if err != nil {
			t.Fatal(err)
		}
		return key
	}
	before := with(own)
	var l laws
	l.add("lobby", allowing("*"), ofKey("LOBBY"))
	l.add("no-sessions", denying("gamelift:CreateGameSession"), ofRole(Backend))
	l.add("no-fleets", denying("gamelift:DescribeFleet*"), ofRole(ReadOnly))
	l.add("designers", allowing("gamelift:ListFleets"), ofGroup("designers"))
	l.publish(t, x.Keys)
	if !errors.Is(context.Cause(before.Life()), ErrPolicies) {
		t.Error("the life of a session from before goes on")
	}
	for what, c := range map[string]struct {
		of     Credentials
		action string
		denied bool
	}{
		"allowed to the key":                 {own, "gamelift:ListFleets", false},
		"denied to its role":                 {own, "gamelift:CreateGameSession", true},
		"denied to another role":             {own, "gamelift:DescribeFleetEvents", false},
		"allowed to the key, in a role":      {lower, "gamelift:ListFleets", false},
		"denied to the role of the key":      {lower, "gamelift:CreateGameSession", true},
		"denied to the role of the session":  {lower, "gamelift:DescribeFleetEvents", true},
		"allowed to the group of the person": {person, "gamelift:ListFleets", false},
		"not allowed to the group":           {person, "gamelift:ListBuilds", true},
	} {
		if err := may(with(c.of), c.action); (err != nil) != c.denied {
			t.Errorf("%s: %v", what, err)
		}
	}
	was := with(person)
	x.ChangeSignIns(map[string]SignIn{"signin-1": {Roles: access.Roles(Admin)}}, nil)
	if is := with(person); !errors.Is(context.Cause(was.Life()), ErrPolicies) || is.SetOf() != nil {
		t.Errorf("a person who left a group: the life ended with %v, the policies are %v", context.Cause(was.Life()), is.SetOf())
	}
}

// Principals without policies must cost nothing, and those with as many as can be attached less than a microsecond.
func BenchmarkMayDo(b *testing.B) {
	for name, n := range map[string]int{"without policies": 0, "with one": 1, "with ten of ten statements": 10} {
		b.Run(name, func(b *testing.B) {
			keys := newTestKeys(b, access.Key{ID: "CI", Role: Backend, Account: DefaultAccount})
			var l laws
			for i := range n {
				statement := `{"Effect":"Allow","Action":"gamelift:Register*","Resource":"arn:aws:gamelift:*:*:fleet/fleet-` + string(rune('a'+i)) + `*","Condition":{"IpAddress":{"aws:SourceIp":"192.0.2.0/24"}}}`
				l.add(string(rune('a'+i)), `{"Version":"2012-10-17","Statement":[`+strings.Repeat(statement+",", n-1)+statement+`]}`, ofKey("CI"))
			}
			if err := keys.PublishPolicies(l.all, l.attached); err != nil {
				b.Fatal(err)
			}
			key, _ := keys.Find("CI")
			by := key.Principal("192.0.2.7")
			q := policy.Request{Action: policy.MustBe("gamelift:RegisterCompute"), Resource: "arn:aws:gamelift:us-east-1:000000000000:fleet/fleet-" + string(rune('a'+max(n-1, 0))) + "1b2c3d4"}
			b.ReportAllocs()
			for b.Loop() {
				if err := by.MayDo(q); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
