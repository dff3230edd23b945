package e2e

import (
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/porttest"
)

// Every node reports a node with a wrong clock, until its clock is correct.
func TestClocksOfNodesAreCompared(t *testing.T) {
	t.Parallel()
	if !shiftable {
		t.Skip("the test knows the clock of amd64 only")
	}
	leader := startService(t, "--cluster-listen", porttest.Free(t))
	eventually(t, "the node to be ready", func() bool { return ready(t, leader) })
	follower := newService(t, "--cluster-listen", porttest.Free(t), "--join", mustCluster(t, leader, "join-token"))
	follower.start()
	eventually(t, "both nodes to vote", func() bool { return voters(clusterStatus(t, leader)) == 2 })
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
			eventually(t, "the overview to name the node", func() bool {
				items := wantsAttention(t, at)
				return strings.Contains(items, "The clock of node "+id+" is ") && strings.Contains(items, words)
			})
		}
	}
	must(t, setClock(follower.cmd.Process, 0))
	eventually(t, "the overview to name no node", func() bool { return !strings.Contains(wantsAttention(t, follower), "The clock of node ") })
}
