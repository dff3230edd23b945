package e2e

import (
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/porttest"
	"github.com/musterhq/muster/internal/waittest"
)

// Every node and muster cluster status report a node without room for changes.
func TestANodeWithoutRoomIsNamed(t *testing.T) {
	t.Parallel()
	leader := startService(t, "--cluster-listen", porttest.Free(t))
	waittest.Until(t, "the node to be ready", func() bool { return ready(t, leader) })
	follower := newService(t, "--cluster-listen", porttest.Free(t), "--join", mustCluster(t, leader, "join-token"), "--disk-reserve", "1000000GiB")
	follower.launch()
	waittest.Until(t, "the overview to name the node", func() bool { return strings.Contains(wantsAttention(t, leader), " has too little disk space") })
	if status := mustCluster(t, leader, "status"); !strings.Contains(status, "no room  ") {
		t.Errorf("muster cluster status prints\n%s", status)
	}
}
