package node_test

import (
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/cluster/node"
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/waittest"
)

// trio returns the members of a cluster of three voters, the first of which leads.
func trio(t *testing.T, first *member, dirs ...string) (a, b, c *member) {
	t.Helper()
	first.until("office", func(s node.Status) bool { return s.Leader == first.ID() })
	b, c = start(t, options(dirs[0], first.token())), start(t, options(dirs[1], first.token()))
	first.until("three voters", func(s node.Status) bool { leaders, voters, _ := roles(s); return leaders == 1 && voters == 2 })
	return first, b, c
}

// A leader without room for changes hands over to a node with room before a write fails.
func TestLeaderWithoutRoom(t *testing.T) {
	var short atomic.Bool
	a, b, _ := trio(t, startWith(t, options(t.TempDir(), ""), 0, func() error {
		if short.Load() {
			return errors.New("no space left on the disk of the data directory")
		}
		return nil
	}), t.TempDir(), t.TempDir())
	short.Store(true)
	b.until("another leader", func(s node.Status) bool { return s.Leader != "" && s.Leader != a.ID() })
	waittest.Until(t, "b takes commands", func() bool {
		err := b.Do(t.Context(), &hosting.CreateLocation{Name: "custom-1"})
		if err != nil && !domain.IsRefused(err, domain.Overloaded) {
			t.Fatal(err)
		}
		return err == nil
	})
	short.Store(false)
}

// Before the nodes have had time to report to the next leader, its status does not advise to remove them.
func TestStatusAfterHandOver(t *testing.T) {
	a, b, c := trio(t, start(t, options(t.TempDir(), "")), t.TempDir(), t.TempDir())
	for _, next := range []*member{b, c, a, b, c, a} {
		s, err := a.Change(t.Context(), node.Change{Do: node.HandOver, Node: next.ID()})
		if err != nil {
			t.Fatal(err)
		}
		missing := slices.ContainsFunc(s.Members, func(m node.Member) bool { return m.Missing })
		if strings.Contains(s.Outlook, "missing") || missing && !strings.Contains(s.Outlook, "has not heard from") {
			t.Errorf("%s leads since a moment ago: %s, %+v", next.ID(), s.Outlook, s.Members)
		}
	}
}

// A node whose vote was taken does not ask for it again.
func TestDemotedNodesStayObservers(t *testing.T) {
	a, _, c := trio(t, start(t, options(t.TempDir(), "")), t.TempDir(), t.TempDir())
	waittest.Until(t, "c has voted", c.Data().Voted)
	if _, err := a.Change(t.Context(), node.Change{Do: node.Demote, Node: c.ID()}); err != nil {
		t.Fatal(err)
	}
	c.until("its demotion", func(s node.Status) bool { _, _, observers := roles(s); return observers == 1 })
	time.Sleep(1500 * time.Millisecond) // it would ask twice a second
	if _, voters, observers := roles(a.Status()); voters != 1 || observers != 1 {
		t.Errorf("%d voters and %d observers beside the leader, want 1 and 1", voters, observers)
	}
}

// The status of the leader says why an observer has no vote, and so does the refusal to give it one.
func TestWhyAnObserverHasNoVote(t *testing.T) {
	a, _, c := trio(t, start(t, options(t.TempDir(), "")), t.TempDir(), t.TempDir())
	gone := c.ID()
	c.end()
	d := start(t, options(t.TempDir(), a.token()))
	o := options(t.TempDir(), a.token())
	o.Observer = true
	e := start(t, o)
	noVote := func(s node.Status, id string) string {
		at := slices.IndexFunc(s.Members, func(m node.Member) bool { return m.ID == id })
		if at < 0 {
			return "no member"
		}
		return s.Members[at].NoVote
	}
	a.until("the reason of the node that waits", func(s node.Status) bool { return strings.Contains(noVote(s, d.ID()), gone+" is missing") })
	a.until("the reason of the observer", func(s node.Status) bool { return strings.Contains(noVote(s, e.ID()), "--observer") })
	if _, err := d.Change(t.Context(), node.Change{Do: node.Promote, Node: d.ID()}); !domain.IsRefused(err, domain.Conflict) || !strings.Contains(err.Error(), gone+" is missing") {
		t.Errorf("promoted while a voter was missing: %v", err)
	}
	if _, err := a.Change(t.Context(), node.Change{Do: node.Remove, Node: gone}); err != nil {
		t.Fatal(err)
	}
	a.until("no reason", func(s node.Status) bool { return noVote(s, d.ID()) == "" && noVote(s, a.ID()) == "" })
}

// A node that moves again is found at its present address, even by a node that remembers the previous one.
func TestMovedTwice(t *testing.T) {
	if testing.Short() {
		t.Skip("see TestMovedWithoutAMajority")
	}
	dir := t.TempDir()
	a, b, c := trio(t, start(t, options(t.TempDir(), "")), dir, t.TempDir())
	lead := func(m *member) {
		t.Helper()
		if _, err := m.Change(t.Context(), node.Change{Do: node.HandOver, Node: m.ID()}); err != nil {
			t.Fatal(err)
		}
		m.until("office", func(s node.Status) bool { return s.Leader == m.ID() })
	}
	present := func(at *member) {
		t.Helper()
		at.until("the moved node", func(s node.Status) bool {
			return slices.ContainsFunc(s.Members, func(x node.Member) bool {
				return x.ID == b.ID() && x.Address == b.Addr().String() && !x.Missing && x.Version+x.URL == "" && x.Level > 0
			})
		})
	}
	for _, at := range []*member{c, a} {
		lead(at)
		b.end()
		b = start(t, options(dir, ""))
		present(at)
	}
	lead(c)
	present(c)
	b.create("custom-x")
	a.sees("custom-x")
}

// All nodes return with other addresses. It is enough to tell one of them the addresses of the others.
func TestAllMoved(t *testing.T) {
	if testing.Short() {
		t.Skip("see TestMovedWithoutAMajority")
	}
	dirs := []string{t.TempDir(), t.TempDir(), t.TempDir()}
	a, b, c := trio(t, start(t, options(dirs[0], "")), dirs[1], dirs[2])
	a.create("custom-1")
	all := []**member{&a, &b, &c}
	for _, m := range all {
		(*m).end()
	}
	for i, m := range all {
		*m = start(t, options(dirs[i], ""))
	}
	for i, m := range []*member{b, c} { // the last one when the others have a leader already
		if _, err := a.Change(t.Context(), node.Change{Do: node.Locate, Node: m.ID(), Address: m.Addr().String()}); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			a.until("a leader", func(s node.Status) bool { return s.Leader != "" })
		}
	}
	for _, at := range all {
		(*at).until("the new addresses", func(s node.Status) bool {
			return s.Leader != "" && !slices.ContainsFunc(all, func(m **member) bool {
				return !slices.ContainsFunc(s.Members, func(x node.Member) bool { return x.ID == (*m).ID() && x.Address == (*m).Addr().String() && !x.Missing })
			})
		})
	}
	c.create("custom-2")
	for _, m := range all {
		(*m).sees("custom-1")
		(*m).sees("custom-2")
	}
}

func TestLocateRefuses(t *testing.T) {
	a := start(t, options(t.TempDir(), ""))
	b := start(t, options(t.TempDir(), a.token()))
	for _, x := range []struct {
		node, address string
		reason        domain.Reason
		says          string
	}{
		{"unknown", "10.0.0.1:8090", domain.NotFound, `"unknown"`},
		{a.ID(), "10.0.0.1:8090", domain.Invalid, "is this one"},
		{b.ID(), "10.0.0.1", domain.Invalid, `"10.0.0.1"`},
		{b.ID(), "", domain.Invalid, `""`},
	} {
		a.until("the member", func(s node.Status) bool { return len(s.Members) == 2 })
		_, err := a.Change(t.Context(), node.Change{Do: node.Locate, Node: x.node, Address: x.address})
		if !domain.IsRefused(err, x.reason) || !strings.Contains(err.Error(), x.says) {
			t.Errorf("node %q at %q: %v; want %v with %q", x.node, x.address, err, x.reason, x.says)
		}
	}
}
