package node_test

import (
	"context"
	"slices"
	"sync"
	"testing"

	"github.com/musterhq/muster/internal/cluster/node"
	"github.com/musterhq/muster/internal/domain/cell"
)

// TestAnotherNodeDemotesTheLeader: a leader hands over and loses its vote at another node's request. That node closes its connection to the leader once it hears of the next
// leader, so the answer is lost. Reads make that happen soon.
func TestAnotherNodeDemotesTheLeader(t *testing.T) {
	a, b, c := trio(t, start(t, options(t.TempDir(), "")), t.TempDir(), t.TempDir())
	all := []*member{a, b, c}
	ctx, stop := context.WithCancel(t.Context())
	var reading sync.WaitGroup
	defer reading.Wait()
	defer stop()
	for _, m := range all {
		for range 8 {
			reading.Go(func() {
				for ctx.Err() == nil {
					_ = m.Read(ctx, func(*cell.View) error { return nil }) // may be given up
				}
			})
		}
	}
	for range 3 {
		leader := a.until("a leader", func(s node.Status) bool { return s.Leader != "" }).Leader
		asked := all[slices.IndexFunc(all, func(m *member) bool { return m.ID() != leader })]
		s, err := asked.Change(t.Context(), node.Change{Do: node.Demote, Node: leader})
		if err != nil || s.Leader == leader {
			t.Fatalf("%s loses its vote at the wish of %s: %+v, %v", leader, asked.ID(), s, err)
		}
		asked.until("its vote is back", func(s node.Status) bool {
			_, _ = asked.Change(t.Context(), node.Change{Do: node.Promote, Node: leader}) // refused until it has caught up
			_, voters, _ := roles(s)
			return voters == 2
		})
	}
}
