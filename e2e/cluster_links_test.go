package e2e

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/gamelift/types"

	"github.com/musterhq/muster/internal/porttest"
)

// Game servers host games through three nodes, and the leader is killed. Connections to the others stay open and work through the takeover; the game server
// of the dead node returns to another one, and no game ends.
func TestClusterLinks(t *testing.T) {
	t.Parallel()
	first := startService(t, "--cluster-listen", porttest.Free(t))
	eventually(t, "the node to be ready", func() bool { return ready(t, first) })
	nodes := []*service{first}
	for range 2 {
		n := newService(t, "--cluster-listen", porttest.Free(t), "--join", mustCluster(t, first, "join-token"))
		n.start()
		nodes = append(nodes, n)
	}
	eventually(t, "three nodes to vote", func() bool { return voters(clusterStatus(t, first)) == 3 })
	if leader := nodeOf(t, nodes, clusterStatus(t, first).Leader); leader != first {
		t.Fatal("the first node does not lead")
	}
	p := first.prepare()
	var servers []*bareServer
	var games []string
	for i, n := range nodes {
		eventually(t, "the node to be ready", func() bool { return ready(t, n) })
		s := p.dial("process-"+string(rune('a'+i)), n.address)
		servers, games = append(servers, s), append(games, s.host(t, 2))
	}
	seat := p.mustReserve(games[1], "anna")

	first.kill()
	must(t, servers[1].AcceptPlayer(t.Context(), games[1], seat))
	must(t, servers[2].Heartbeat(t.Context(), true))
	servers[0].options.URL = "ws://" + nodes[1].address
	servers[0].connect()
	must(t, servers[0].Heartbeat(t.Context(), true))
	eventually(t, "the dead node to be given up", func() bool {
		return strings.Contains(nodes[1].logs.String()+nodes[2].logs.String(), "a node has been silent for too long")
	})
	for i, s := range servers {
		must(t, s.Heartbeat(t.Context(), true))
		if got := nodes[2].gameSession(games[i]).Status; got != types.GameSessionStatusActive {
			t.Errorf("game session %d is %s", i+1, got)
		}
	}

	// The node comes back, and takes connections under its next incarnation.
	first.start()
	eventually(t, "the node to be ready", func() bool { return ready(t, first) })
	s := p.dial("process-d", first.address)
	s.host(t, 1)
}
