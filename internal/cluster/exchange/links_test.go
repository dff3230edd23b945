package exchange_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/waittest"
)

// TestLinksOutliveTheLeader: game servers are connected to every node. The leader dies: connections to the others are not affected. Those to the
// dead node count as lost once the next leader has given it up, and move to another one.
func TestLinksOutliveTheLeader(t *testing.T) {
	nodes := newCluster(t)
	do := func(n *node, cmd kernel.Command) {
		t.Helper()
		if err := n.Do(t.Context(), cmd); err != nil {
			t.Fatalf("%T at %s: %v", cmd, n.id, err)
		}
	}
	do(nodes[0], &hosting.CreateFleet{Fleet: fleet.Fleet{ID: "fleet-1", Region: "us-east-1", Name: "dev"}, Locations: []string{"custom-first"}})
	do(nodes[0], &hosting.RegisterCompute{Compute: fleet.Compute{FleetID: "fleet-1", Name: "host", Location: "custom-first", IPAddress: "127.0.0.1"}})
	key := func(i int) fleet.Key {
		return fleet.Key{Fleet: "fleet-1", Compute: "host", Process: fmt.Sprint("server-", i)}
	}
	for i, n := range nodes {
		if err := n.there.Begun(t.Context()); err != nil {
			t.Fatal(err)
		}
		do(n, &hosting.ConnectProcess{Process: key(i), Link: uint64(i + 1), Node: n.there.Node()})
	}
	linked := func(i int) (p fleet.Process) {
		t.Helper()
		if err := nodes[1].Read(t.Context(), func(v *cell.View) error { p, _ = v.Process(key(i)); return nil }); err != nil {
			t.Fatal(err)
		}
		return p
	}
	if err := nodes[0].journal.HandOver(t.Context(), "n2"); err != nil {
		t.Fatal(err)
	}
	waittest.Until(t, "n2 is in office", func() bool { return nodes[1].journal.Status().InOffice })
	if err := nodes[1].journal.HandOver(t.Context(), "n1"); err != nil {
		t.Fatal(err)
	}
	dead := nodes[0].there.Node()
	for i := range nodes {
		if p := linked(i); !p.Linked || p.Link != uint64(i+1) {
			t.Fatalf("after two planned changes of the leader %s is linked %t by link %d", p.Key, p.Linked, p.Link)
		}
	}
	nodes[0].close(t)
	for i := 1; i < 3; i++ {
		if p := linked(i); !p.Linked {
			t.Errorf("the leader died, and %s has lost its link", p.Key)
		}
	}
	waittest.Until(t, "the link to the dead node is lost", func() bool { return !linked(0).Linked })
	if p := linked(0); p.LostBy == 0 || p.State == fleet.Ended {
		t.Errorf("the process behind the dead node is %s, to be back by %d", p.State, p.LostBy)
	}
	err := nodes[1].Do(t.Context(), &hosting.ConnectProcess{Process: key(0), Link: 8, Node: dead})
	if r, ok := errors.AsType[*domain.Refusal](err); !ok || r.Reason != domain.NodeLost {
		t.Errorf("a connection to the dead node: %v, want NodeLost", err)
	}
	do(nodes[1], &hosting.ConnectProcess{Process: key(0), Link: 9, Node: nodes[2].there.Node()})
	for i := range nodes {
		if p := linked(i); !p.Linked || p.LostBy != 0 {
			t.Errorf("at last %s is linked %t", p.Key, p.Linked)
		}
	}
	for _, n := range nodes[1:] {
		if n.drops.Load() != 0 {
			t.Errorf("%s has dropped its connections", n.id)
		}
	}
}
