package e2e

import (
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/gamelift"

	"github.com/musterhq/muster/internal/cluster/node"
	"github.com/musterhq/muster/internal/porttest"
	"github.com/musterhq/muster/internal/waittest"
)

// clusterCommand runs muster cluster on a node's machine.
func clusterCommand(t *testing.T, at *service, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), musterBinary, append([]string{"cluster", args[0], "--data", at.data}, args[1:]...)...)
	cmd.Env = cleanEnvironment()
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

func mustCluster(t *testing.T, at *service, args ...string) string {
	t.Helper()
	out, err := clusterCommand(t, at, args...)
	if err != nil {
		t.Fatalf("muster cluster %s: %v: %s", strings.Join(args, " "), err, out)
	}
	return out
}

func clusterStatus(t *testing.T, at *service) (s node.Status) {
	t.Helper()
	must(t, json.Unmarshal([]byte(mustCluster(t, at, "status", "--json")), &s))
	return s
}

func voters(s node.Status) (n int) {
	for _, m := range s.Members {
		if m.Role != "observer" {
			n++
		}
	}
	return n
}

// threeNodes starts a cluster of three nodes with these arguments, and returns them, the leader first.
func threeNodes(t *testing.T, args ...string) []*service {
	t.Helper()
	return startNodes(t, 3, func(cluster ...string) *service { return newService(t, append(cluster, args...)...) })
}

// startNodes starts a cluster of n nodes, and returns them, the leader first. node makes one with the cluster's arguments.
func startNodes(t *testing.T, n int, node func(cluster ...string) *service) []*service {
	t.Helper()
	first := node("--cluster-listen", porttest.Free(t))
	first.start()
	waittest.Until(t, "the node to be ready", func() bool { return ready(t, first) })
	nodes := []*service{first}
	for len(nodes) < n {
		next := node("--cluster-listen", porttest.Free(t), "--join", mustCluster(t, first, "join-token"))
		next.start()
		nodes = append(nodes, next)
	}
	waittest.Until(t, "all nodes to vote", func() bool { return voters(clusterStatus(t, first)) == n })
	for _, x := range nodes {
		waittest.Until(t, "the node to be ready", func() bool { return ready(t, x) })
	}
	id := ""
	waittest.Until(t, "a node to lead", func() bool { id = clusterStatus(t, first).Leader; return id != "" })
	leader := nodeOf(t, nodes, id) // on a busy machine an election may have made it another one
	return append([]*service{leader}, others(nodes, leader)...)
}

// joined starts a node that joins a cluster.
func joined(t *testing.T, member *service, args ...string) *service {
	t.Helper()
	n := newService(t, append([]string{"--cluster-listen", porttest.Free(t), "--join", mustCluster(t, member, "join-token")}, args...)...)
	n.start()
	return n
}

// createLocation creates a location at one node, and checks for it at another one.
func createLocation(t *testing.T, name string, at, next *service) {
	t.Helper()
	_, err := at.client.CreateLocation(t.Context(), &gamelift.CreateLocationInput{LocationName: aws.String(name)})
	must(t, err)
	wantLocation(t, name, next)
}

func wantLocation(t *testing.T, name string, at *service) {
	t.Helper()
	all, err := at.client.ListLocations(t.Context(), &gamelift.ListLocationsInput{})
	must(t, err)
	for _, l := range all.Locations {
		if *l.LocationName == name {
			return
		}
	}
	t.Errorf("%s is missing at %s", name, at.address)
}

func ready(t *testing.T, s *service) bool {
	t.Helper()
	answer, err := http.Get(s.url() + "/readyz")
	if err != nil {
		return false
	}
	answer.Body.Close()
	return answer.StatusCode == http.StatusOK
}

// The commands of the guide to clusters, on three nodes: a single machine's data become a cluster's, which grows, hands over, loses its leader, and shrinks
// to a single machine again.
func TestClusterCommands(t *testing.T) {
	t.Parallel()
	first := startService(t)
	if out, err := clusterCommand(t, first, "status"); err == nil || !strings.Contains(out, "--cluster-listen") {
		t.Errorf("the status of a single machine: %v, %s", err, out)
	}
	createLocation(t, "custom-single", first, first)
	first.stop()
	first.args = []string{"--cluster-listen", porttest.Free(t)}
	first.start()
	waittest.Until(t, "the node to be ready", func() bool { return ready(t, first) })
	wantLocation(t, "custom-single", first)

	nodes := []*service{first}
	for range 2 {
		nodes = append(nodes, joined(t, nodes[len(nodes)-1]))
	}
	waittest.Until(t, "three nodes to vote", func() bool { return voters(clusterStatus(t, first)) == 3 })
	for _, n := range nodes {
		waittest.Until(t, "the node to be ready", func() bool { return ready(t, n) })
	}
	for i, n := range nodes {
		createLocation(t, "custom-"+string(rune('a'+i)), n, nodes[(i+1)%3])
	}

	var before node.Status
	after := ""
	waittest.Until(t, "a hand-over", func() bool { // which a busy cluster may give up
		var err error
		before = clusterStatus(t, nodes[2])
		after, err = clusterCommand(t, nodes[1], "hand-over")
		return err == nil
	})
	if strings.Contains(after, "leader   "+before.Leader) {
		t.Errorf("%s handed over, and leads:\n%s", before.Leader, after)
	}
	leader := nodeOf(t, nodes, clusterStatus(t, first).Leader)
	leader.kill()
	left := others(nodes, leader)
	createLocation(t, "custom-d", left[0], left[1])
	s := clusterStatus(t, left[1])
	waittest.Until(t, "the outlook to warn", func() bool {
		return strings.Contains(clusterStatus(t, left[0]).Outlook, "1 of 3 voters are missing")
	})
	leader.start()
	waittest.Until(t, "the node to be back", func() bool { return ready(t, leader) })
	wantLocation(t, "custom-d", leader)

	moveAll(t, nodes)
	createLocation(t, "custom-e", nodes[1], nodes[2])
	wantLocation(t, "custom-d", nodes[0])
	s = clusterStatus(t, left[1])

	// The leader is removed, the last two shrink to one, which leaves the cluster.
	gone := nodeOf(t, nodes, s.Leader)
	left = others(nodes, gone)
	mustCluster(t, left[0], "remove", s.Leader)
	gone.kill()
	s = clusterStatus(t, left[0])
	if len(s.Members) != 2 {
		t.Fatalf("after the removal of one node: %+v", s)
	}
	last := nodeOf(t, left, s.Leader)
	for _, m := range s.Members {
		if m.ID != s.Leader {
			mustCluster(t, last, "remove", m.ID)
		}
	}
	last.stop()
	if out, err := exec.CommandContext(t.Context(), musterBinary, "serve", "--dev", "--data", last.data, "--listen", last.address).CombinedOutput(); err == nil || !strings.Contains(string(out), "cluster") {
		t.Errorf("a node's directory as that of a single machine: %v, %s", err, out)
	}
	mustCluster(t, last, "leave")
	last.args = nil
	last.start()
	wantLocation(t, "custom-d", last)
}

// A survivor of a lost majority continues alone once the operator confirms that.
func TestClusterRecover(t *testing.T) {
	t.Parallel()
	nodes := startNodes(t, 2, func(cluster ...string) *service { return newService(t, cluster...) })
	first, second := nodes[0], nodes[1]
	createLocation(t, "custom-a", first, second)
	first.kill()
	waittest.Until(t, "the survivor not to be ready", func() bool { return !ready(t, second) })
	second.stop()
	out, err := clusterCommand(t, second, "recover", "--yes", "somebody")
	if err == nil || !strings.Contains(out, "nothing has changed") || !strings.Contains(out, "It cannot know") {
		t.Errorf("recovered without a confirmation: %v, %s", err, out)
	}
	_, id, _ := strings.Cut(out, "This node, ")
	id, _, _ = strings.Cut(id, ",")
	mustCluster(t, second, "recover", "--yes", id)
	second.start()
	waittest.Until(t, "the survivor to be ready", func() bool { return ready(t, second) })
	wantLocation(t, "custom-a", second)
	createLocation(t, "custom-b", second, second)
}

// nodeOf returns the one whose data directory is that of the node.
// moveAll starts all nodes again at other addresses. The first is told where the others are, and that is enough.
func moveAll(t *testing.T, nodes []*service) {
	t.Helper()
	ids := map[string]string{} // by address
	for _, m := range clusterStatus(t, nodes[0]).Members {
		ids[m.Address] = m.ID
	}
	for _, n := range nodes {
		n.kill()
	}
	now := map[string]string{} // addresses by id
	for _, n := range nodes {
		id := ids[n.args[1]]
		now[id], n.args = porttest.Free(t), slices.Clone(n.args)
		n.args[1] = now[id]
		n.start()
		if ready(t, n) {
			t.Errorf("node %s is ready, and reaches no other one", id)
		}
	}
	self := ""
	for id, address := range now {
		if address == nodes[0].args[1] {
			self = id
		}
	}
	if out, err := clusterCommand(t, nodes[0], "locate", self, "127.0.0.1:1"); err == nil || !strings.Contains(out, "is this one") {
		t.Errorf("a node was told where it is itself: %v, %s", err, out)
	}
	for id, address := range now {
		if id != self {
			mustCluster(t, nodes[0], "locate", id, address)
		}
	}
	for _, n := range nodes {
		waittest.Until(t, "the node to be ready", func() bool { return ready(t, n) })
	}
	waittest.Until(t, "the members to have their new addresses", func() bool {
		s := clusterStatus(t, nodes[0])
		return len(s.Members) == len(now) && !slices.ContainsFunc(s.Members, func(m node.Member) bool { return m.Address != now[m.ID] })
	})
}

func nodeOf(t *testing.T, nodes []*service, id string) *service {
	t.Helper()
	for _, n := range nodes {
		content, err := os.ReadFile(filepath.Join(n.data, "cluster.json"))
		must(t, err)
		if strings.Contains(string(content), strconv.Quote(id)) {
			return n
		}
	}
	t.Fatalf("no node is %s", id)
	return nil
}

func others(nodes []*service, without *service) (left []*service) {
	for _, n := range nodes {
		if n != without {
			left = append(left, n)
		}
	}
	return left
}
