package e2e

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/gamelift/types"

	"github.com/musterhq/muster/internal/waittest"
)

// Game servers host games through three nodes, and the leader is killed. Connections to the others stay open and work through the takeover; the game server
// of the dead node returns to another one, and no game ends.
func TestClusterLinks(t *testing.T) {
	t.Parallel()
	nodes := threeNodes(t)
	leader := nodes[0]
	p := leader.prepare()
	var servers []*bareServer
	var games []string
	for i, n := range nodes {
		s := p.dial("process-"+string(rune('a'+i)), n.address)
		servers, games = append(servers, s), append(games, s.host(t, 2))
	}
	seat := p.mustReserve(games[1], "anna")

	leader.kill()
	must(t, servers[1].AcceptPlayer(t.Context(), games[1], seat))
	must(t, servers[2].Heartbeat(t.Context(), true))
	servers[0].options.URL = "ws://" + nodes[1].address
	servers[0].connect()
	must(t, servers[0].Heartbeat(t.Context(), true))
	waittest.Until(t, "the dead node to be given up", func() bool {
		return strings.Contains(nodes[1].logs.String()+nodes[2].logs.String(), "a node has been silent for too long")
	})
	for i, s := range servers {
		must(t, s.Heartbeat(t.Context(), true))
		if got := nodes[2].gameSession(games[i]).Status; got != types.GameSessionStatusActive {
			t.Errorf("game session %d is %s", i+1, got)
		}
	}

	// The node comes back, and takes connections under its next incarnation.
	leader.start()
	waittest.Until(t, "the node to be ready", func() bool { return ready(t, leader) })
	s := p.dial("process-d", leader.address)
	s.host(t, 1)
}
