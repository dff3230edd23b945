package e2e

import (
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/waittest"
)

// Every node reports a node with a wrong clock, until its clock is correct.
func TestClocksOfNodesAreCompared(t *testing.T) {
	t.Parallel()
	if !shiftable {
		t.Skip("the test knows the clock of amd64 only")
	}
	nodes := startNodes(t, 2, func(cluster ...string) *service { return newService(t, cluster...) })
	leader, follower := nodes[0], nodes[1]
	id := ""
	for _, m := range clusterStatus(t, leader).Members {
		if m.Role == "voter" {
			id = m.ID
		}
	}

	for _, ahead := range []time.Duration{20 * time.Second, -20 * time.Second} {
		must(t, setClock(follower.cmd.Process, ahead))
		words := "s ahead of that of "
		if ahead < 0 {
			words = "s behind that of "
		}
		for _, at := range []*service{leader, follower} {
			waittest.Until(t, "the overview to name the node", func() bool {
				items := wantsAttention(t, at)
				return strings.Contains(items, "The clock of node "+id+" is ") && strings.Contains(items, words)
			})
		}
	}
	must(t, setClock(follower.cmd.Process, 0))
	waittest.Until(t, "the overview to name no node", func() bool { return !strings.Contains(wantsAttention(t, follower), "The clock of node ") })
}
