package cell

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/capacity"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/hosts"
	"github.com/musterhq/muster/internal/domain/kernel"
)

func hostKey(n int) []byte { return []byte(fmt.Sprintf("%032d", n)) }

// refused runs a command that must be refused for a reason, and returns why.
func (w *world) refusedFor(want domain.Reason, cmd kernel.Command) string {
	w.t.Helper()
	err := w.do(cmd)
	refusal, _ := errors.AsType[*domain.Refusal](err)
	if refusal == nil || refusal.Reason != want {
		w.t.Fatalf("%T: %v, want %v", cmd, err, want)
	}
	return refusal.Detail
}

// Hosts can join the home location of fleets before the first of them exists, and while one is replaced.
func TestHostsJoinBeforeTheFleet(t *testing.T) {
	w := newWorld(t, DefaultConfig())
	w.must(&kernel.RaiseLevel{To: kernel.Level})
	token := &hosts.IssueToken{ID: "t", Hash: "h", Location: "us-east-1", Uses: 9, Valid: time.Hour}
	w.refusedFor(domain.NotFound, token)
	w.must(&hosting.CreateBuild{Build: fleet.Build{ID: "build-1", Region: "us-east-1", Storage: fleet.Storage{Bucket: "b", Key: "k"}}})
	w.refusedFor(domain.NotFound, &hosts.IssueToken{ID: "u", Hash: "h", Location: "eu-west-1", Uses: 9, Valid: time.Hour})
	w.must(token)
	id := w.join(1)
	w.attach(id)
	w.must(&hosting.CreateFleet{Fleet: fleet.Fleet{
		ID: testFleet, Region: "us-east-1", Managed: &fleet.Managed{Build: "build-1"}, Runtime: &fleet.Runtime{Launches: []fleet.Launch{{Path: "/local/game/server", Copies: 2}}},
	}})
	w.must(&capacity.Plan{})
	v := w.cell.View()
	if all := v.Assignments(testFleet, "us-east-1"); len(all) != 1 || all[0].Host != id {
		t.Errorf("the fleet has %+v", all)
	}
}

// hostHall makes a fleet of a build with a desired number of hosts, and a join token for its location.
func hostHall(t *testing.T, desired int32) *world {
	t.Helper()
	config := DefaultConfig()
	w := newWorld(t, config)
	w.must(&kernel.RaiseLevel{To: kernel.Level})
	w.must(&hosting.CreateLocation{Name: testLocation, Region: "us-east-1"})
	w.must(&hosting.CreateBuild{Build: fleet.Build{ID: "build-1", Region: "us-east-1", Storage: fleet.Storage{Bucket: "b", Key: "k"}}})
	w.must(&hosting.CreateFleet{Locations: []string{testLocation}, Fleet: fleet.Fleet{
		ID: testFleet, Region: "us-east-1", Managed: &fleet.Managed{Build: "build-1"}, Runtime: &fleet.Runtime{Launches: []fleet.Launch{{Path: "/local/game/server", Copies: 2}}},
	}})
	w.want(desired, 10)
	w.must(&hosts.IssueToken{ID: "t", Hash: "h", Location: testLocation, Uses: 9, Valid: time.Hour})
	return w
}

func (w *world) join(n int) string {
	w.t.Helper()
	cmd := &hosts.Join{Token: "t", Hash: "h", Name: fmt.Sprint("rack-", n), Key: hostKey(n)}
	w.must(cmd)
	return cmd.Host.ID
}

func (w *world) attach(id string) {
	w.t.Helper()
	w.must(&hosts.Attach{Host: id, Signed: w.now, IP: "10.0.0.1"})
}

func TestHostJoinTokens(t *testing.T) {
	w := hostHall(t, 0)
	issue := func(x hosts.IssueToken) *hosts.IssueToken {
		if x.ID == "" {
			x.ID = "x"
		}
		x.Hash = "h"
		if x.Uses == 0 {
			x.Uses = 1
		}
		if x.Valid == 0 {
			x.Valid = time.Hour
		}
		return &x
	}
	w.refusedFor(domain.Invalid, issue(hosts.IssueToken{}))
	w.refusedFor(domain.Invalid, issue(hosts.IssueToken{Location: testLocation, Uses: hosts.UsesMax + 1}))
	w.refusedFor(domain.Invalid, issue(hosts.IssueToken{Location: testLocation, Valid: hosts.ValidMax + time.Second}))
	w.refusedFor(domain.NotFound, issue(hosts.IssueToken{Location: "custom-none"}))
	w.refusedFor(domain.NotFound, issue(hosts.IssueToken{Fleet: "fleet-none"}))
	w.refusedFor(domain.Invalid, issue(hosts.IssueToken{Fleet: testFleet, Location: "custom-none"}))
	w.must(issue(hosts.IssueToken{Fleet: testFleet}))
	w.must(issue(hosts.IssueToken{Fleet: testFleet})) // a repeat

	bad := []hosts.Join{
		{Token: "none", Hash: "h", Name: "a", Location: testLocation, Key: hostKey(1)},
		{Token: "x", Hash: "wrong", Name: "a", Location: testLocation, Key: hostKey(1)},
	}
	why := map[string]bool{}
	for i := range bad {
		why[w.refusedFor(domain.NotFound, &bad[i])] = true
	}
	w.refusedFor(domain.Invalid, &hosts.Join{Token: "x", Hash: "h", Name: "a", Key: hostKey(1)})                             // no location
	w.refusedFor(domain.Invalid, &hosts.Join{Token: "x", Hash: "h", Name: "a", Location: "custom-none", Key: hostKey(1)})    // not of the fleet
	w.refusedFor(domain.Invalid, &hosts.Join{Token: "x", Hash: "h", Name: "a b", Location: testLocation, Key: hostKey(1)})   // name
	w.refusedFor(domain.Invalid, &hosts.Join{Token: "x", Hash: "h", Name: "a", Location: testLocation, Key: hostKey(1)[1:]}) // key
	w.refusedFor(domain.Invalid, &hosts.Join{Token: "t", Hash: "h", Name: "a", Location: "custom-other", Key: hostKey(1)})   // the token's is another
	join := &hosts.Join{Token: "x", Hash: "h", Name: "a", Location: testLocation, Key: hostKey(1)}
	w.must(join)
	again := &hosts.Join{Token: "x", Hash: "h", Name: "a", Location: testLocation, Key: hostKey(1)}
	w.must(again) // the answer was lost; the token is used up
	if again.Host.ID != join.Host.ID || join.Host.Fleet != testFleet {
		t.Errorf("joined as %+v, then as %+v", join.Host, again.Host)
	}
	why[w.refusedFor(domain.NotFound, &hosts.Join{Token: "x", Hash: "h", Name: "b", Location: testLocation, Key: hostKey(2)})] = true
	w.refusedFor(domain.Conflict, &hosts.Join{Token: "t", Hash: "h", Name: "a", Key: hostKey(2)}) // the name of another host
	w.refusedFor(domain.Conflict, &hosts.Join{Token: "t", Hash: "h", Name: "b", Key: hostKey(1)}) // the key of another host

	w.must(issue(hosts.IssueToken{ID: "y", Fleet: testFleet, Location: testLocation}))
	v := w.cell.View()
	if all := v.HostTokens(); len(all) != 2 || all[0].ID != "t" || all[1].ID != "y" {
		t.Errorf("tokens %+v: want t and y; x is used up", all)
	}
	w.must(&hosts.RevokeToken{ID: "y"})
	w.refusedFor(domain.NotFound, &hosts.RevokeToken{ID: "y"})
	why[w.refusedFor(domain.NotFound, &hosts.Join{Token: "y", Hash: "h", Name: "b", Key: hostKey(2)})] = true
	w.now = w.now.Add(time.Hour)
	why[w.refusedFor(domain.NotFound, &hosts.Join{Token: "t", Hash: "h", Name: "b", Key: hostKey(2)})] = true
	if len(why) != 1 {
		t.Errorf("bad tokens are told apart: %v", why)
	}
	for i := range hosts.TokensMax {
		w.must(issue(hosts.IssueToken{ID: fmt.Sprint("n", i), Location: testLocation}))
	}
	w.refusedFor(domain.LimitExceeded, issue(hosts.IssueToken{ID: "one-more", Location: testLocation}))
	w.wantCount("host_join_tokens", hosts.TokensMax, hosts.TokensMax)
	if err := w.checkRestarts(); err != nil {
		t.Error(err)
	}
}

func TestLimitOfHosts(t *testing.T) {
	w := hostHall(t, 0)
	w.must(&hosts.IssueToken{ID: "many", Hash: "h", Location: testLocation, Uses: hosts.UsesMax, Valid: hosts.ValidMax})
	join := func(n int) *hosts.Join {
		return &hosts.Join{Token: "many", Hash: "h", Name: fmt.Sprint("n", n), Key: hostKey(n)}
	}
	for n := range hosts.HostsMax {
		if _, err := w.cell.Execute(join(n), &kernel.Env{Now: w.now, Number: 1, Seed: domain.UUID{byte(n), byte(n >> 8)}}); err != nil {
			t.Fatal(err)
		}
	}
	_, err := w.cell.Execute(&hosts.Join{Token: "t", Hash: "h", Name: "more", Key: hostKey(-1)}, &kernel.Env{Now: w.now, Number: 1, Seed: domain.UUID{1, 1, 1}})
	if r, _ := errors.AsType[*domain.Refusal](err); r == nil || r.Reason != domain.LimitExceeded {
		t.Errorf("one host too many: %v", err)
	}
	w.wantCount("hosts", hosts.HostsMax, hosts.HostsMax)

	v := w.cell.View()
	all := v.Hosts()
	for _, i := range []int{5, 3} {
		w.now++
		w.must(&hosts.Revoke{Host: all[i].ID})
	}
	for i, forgotten := range []int{5, 3} {
		w.must(&hosts.Join{Token: "t", Hash: "h", Name: fmt.Sprint("more", i), Key: hostKey(-1 - i)})
		v := w.cell.View()
		_, first := v.Host(all[forgotten].ID)
		_, later := v.Host(all[3].ID)
		if first || later != (forgotten == 5) {
			t.Errorf("after %d hosts more the record of the one that was revoked first is there: %v, and that of the other: %v", i+1, first, later)
		}
		w.wantCount("hosts", hosts.HostsMax, hosts.HostsMax)
	}
	w.refusedFor(domain.LimitExceeded, &hosts.Join{Token: "t", Hash: "h", Name: "too-many", Key: hostKey(-3)})
	w.restart()
	w.wantCount("hosts", hosts.HostsMax, hosts.HostsMax)
}

// A signature is good for one connection: a copy is refused, and so is one of a clock that was set back.
func TestHostSignatures(t *testing.T) {
	w := hostHall(t, 0)
	id := w.join(1)
	w.must(&hosts.Attach{Host: id, Signed: 1000, IP: "10.0.0.1"})
	w.refusedFor(domain.Conflict, &hosts.Attach{Host: id, Signed: 1000, IP: "10.0.0.1"})
	w.refusedFor(domain.Conflict, &hosts.Attach{Host: id, Signed: 999, IP: "10.0.0.1"})
	w.refusedFor(domain.Invalid, &hosts.Attach{Host: id, Signed: 1001})
	w.refusedFor(domain.NotFound, &hosts.Attach{Host: "none", Signed: 1001, IP: "10.0.0.1"})
	w.must(&hosts.Attach{Host: id, Signed: 1001, IP: "10.0.0.1"})
	w.must(&hosts.Revoke{Host: "rack-1", By: "ops"})
	w.must(&hosts.Revoke{Host: id, By: "others"}) // again
	w.refusedFor(domain.Conflict, &hosts.Attach{Host: id, Signed: 1002, IP: "10.0.0.1"})
	w.refusedFor(domain.Conflict, &hosts.Drain{Host: id})
	v := w.cell.View()
	if h, _ := v.Host(id); h.RevokedBy != "ops" || !h.Silent() {
		t.Errorf("revoked: %+v", h)
	}
	w.join(1) // the name and the key are free again
	w.must(&hosts.Drain{Host: "rack-1"})
	if err := w.checkRestarts(); err != nil {
		t.Error(err)
	}
}

// The audit log describes the host that a command changes, not one that was revoked before and had the same name.
func TestAuditedHostIsTheOneThatChanges(t *testing.T) {
	w := hostHall(t, 0)
	w.join(1)
	w.must(&hosts.Revoke{Host: "rack-1"})
	want := w.join(1)
	if _, id, record := (&subjects{w.cell}).Describe(&hosts.Drain{Host: "rack-1"}); id != want || record.(*hosts.Host).Revoked != 0 {
		t.Errorf("the log has host %s, %+v; want %s", id, record, want)
	}
	if kind, id, record := (&subjects{w.cell}).Describe(&hosts.Drain{Host: "none"}); kind != "host" || id != "none" || record != nil {
		t.Errorf("the log has %s %s, %+v", kind, id, record)
	}
}

// A joined host serves a fleet of a build; one that falls silent is replaced, and one that is revoked is gone at once.
func TestJoinedHostsServeAFleet(t *testing.T) {
	w := hostHall(t, 1)
	first, second := w.join(1), w.join(2)
	if got := w.plan(); got != "" {
		t.Errorf("hosts that have never connected serve: %q", got)
	}
	w.attach(first)
	w.must(&hosts.Describe{Host: first, Version: "1", Ports: 100, MemoryMB: 1000})
	if got := w.plan(); got != first {
		t.Errorf("the fleet has %q, want %s", got, first)
	}
	v := w.cell.View()
	if f, name, ok := v.Serves(first); !ok || f != testFleet || name != "rack-1" {
		t.Errorf("it serves %s as %s", f, name)
	}
	if _, _, ok := v.Serves(second); ok {
		t.Error("the free host serves a fleet")
	}
	w.advance(hosts.SilentAfter - time.Second)
	w.attach(second)
	w.must(&hosts.Keep{Hosts: []string{first, "none"}})
	w.advance(hosts.SilentAfter - time.Second)
	if got := w.plan(); got != first {
		t.Errorf("the fleet has %q, want %s, which was heard in time", got, first)
	}
	w.must(&hosts.Keep{Hosts: []string{second}})
	w.advance(time.Second)
	w.plan()
	if got := w.plan(); got != second {
		t.Errorf("the fleet has %q, want %s in the place of the silent one", got, second)
	}
	w.attach(first)
	w.must(&hosts.Drain{Host: second})
	w.plan()
	if got := w.plan(); got != first {
		t.Errorf("the fleet has %q, want %s in the place of the drained one", got, first)
	}
	w.must(&hosts.Drain{Host: second, Undo: true})
	w.must(&hosts.Revoke{Host: first})
	v = w.cell.View()
	if _, there := v.Compute(testFleet, "rack-1"); there {
		t.Error("the compute of a revoked host is still there")
	}
	if got := w.plan(); got != second {
		t.Errorf("the fleet has %q, want %s in the place of the revoked one", got, second)
	}
	w.must(&hosts.Leave{Host: second})
	if err := w.checkRestarts(); err != nil {
		t.Error(err)
	}
}

// A host that is bound to an ANYWHERE fleet is a compute of it from its first connection.
func TestHostOfAnAnywhereFleet(t *testing.T) {
	w := hostHall(t, 0)
	w.must(&hosting.CreateFleet{Locations: []string{testLocation}, Fleet: fleet.Fleet{ID: "fleet-any", Region: "us-east-1"}})
	w.must(&hosts.IssueToken{ID: "any", Hash: "h", Fleet: "fleet-any", Location: testLocation, Uses: 9, Valid: time.Hour})
	join := &hosts.Join{Token: "any", Hash: "h", Name: "rack-1", Key: hostKey(1)}
	w.must(join)
	id := join.Host.ID
	w.attach(id)
	v := w.cell.View()
	if f, name, ok := v.Serves(id); !ok || f != "fleet-any" || name != "rack-1" {
		t.Errorf("it serves %s as %s", f, name)
	}
	was, _ := v.Compute("fleet-any", "rack-1")
	w.must(&hosts.Attach{Host: id, Signed: w.now + 1, IP: "10.0.0.2"})
	v = w.cell.View()
	if is, _ := v.Compute("fleet-any", "rack-1"); is.IPAddress != "10.0.0.2" || is.Registration != was.Registration {
		t.Errorf("with another address: %+v, before %+v", is, was)
	}
	w.must(&hosts.Drain{Host: id})
	v = w.cell.View()
	if x, _ := v.Compute("fleet-any", "rack-1"); !x.Draining() {
		t.Error("the compute of a drained host is not drained")
	}
	w.refusedFor(domain.Conflict, &hosts.Join{Token: "any", Hash: "h", Name: "rack-1", Key: hostKey(2)})
	w.must(&hosting.RegisterCompute{Compute: fleet.Compute{FleetID: "fleet-any", Name: "rack-2", Location: testLocation, IPAddress: "10.0.0.3"}})
	w.refusedFor(domain.Conflict, &hosts.Join{Token: "any", Hash: "h", Name: "rack-2", Key: hostKey(2)}) // it would take over a compute
	w.must(&hosts.Revoke{Host: id})
	v = w.cell.View()
	if _, there := v.Compute("fleet-any", "rack-1"); there {
		t.Error("the compute of a revoked host is still there")
	}
}
