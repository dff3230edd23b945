package e2e

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/gamelift"

	"github.com/musterhq/muster/internal/porttest"
	"github.com/musterhq/muster/internal/waittest"
)

// Nodes of two releases serve one load, with a node of either release as the leader, and each of them is killed while it follows and while it leads. An empty node of each release joins
// them, and gets a snapshot. At the end every node has the same state, which agrees with the journal, and the same ended records.
//
// MUSTER_PREVIOUS names the binary to upgrade from, such as that of the last release; all nodes are then upgraded. Without it, the upgrade is from this build to one with a later level
// of the data, and the test ends with one upgraded node: TestRollingUpgrade covers the rest.
func TestUpgradeUnderLoad(t *testing.T) {
	t.Parallel()
	const reservation = 20 * time.Second
	previous, next := os.Getenv("MUSTER_PREVIOUS"), musterBinary
	if previous == "" {
		previous, next = musterBinary, nextRelease(t)
	}
	node := func(binary string, args ...string) *service {
		t.Helper()
		n := newService(t, append([]string{"--cluster-listen", porttest.Free(t), "--reservation", reservation.String(), "--ended-linger", "3s", "--snapshot-every", "1MiB"}, args...)...)
		n.binary = binary
		n.start()
		return n
	}
	nodes := []*service{node(previous)}
	allReady := func() {
		t.Helper()
		for _, n := range nodes {
			waittest.Until(t, "the node to be ready", func() bool { return ready(t, n) })
		}
		waittest.Until(t, "all nodes to vote and to be up to date", func() bool {
			s := clusterStatus(t, nodes[0])
			for _, m := range s.Members {
				if m.Role == "observer" || m.Missing {
					return false
				}
			}
			return s.Leader != "" && len(s.Members) == len(nodes)
		})
	}
	join := func(binary string) {
		t.Helper()
		nodes = append(nodes, node(binary, "--join", mustCluster(t, nodes[0], "join-token")))
		allReady()
	}
	allReady()
	join(previous)
	join(previous)

	p := (&service{t: t, address: throughAny(t, nodes[:3]), data: nodes[0].data, logs: nodes[0].logs})
	p.client = p.apiWith("any", "any")
	at := p.prepare()
	at.queue("queue")
	_, err := p.client.CreateGameSessionQueue(t.Context(), &gamelift.CreateGameSessionQueueInput{Name: aws.String("nowhere")})
	must(t, err)
	h := newHistory(at, reservation)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	work := h.start(ctx, 3, 6, 12)
	more := func() { // the load goes on
		t.Helper()
		h.mu.Lock()
		want := len(h.order) + 10
		h.mu.Unlock()
		waittest.Until(t, "the load to go on", func() bool {
			h.mu.Lock()
			defer h.mu.Unlock()
			return len(h.order) >= want
		})
	}
	killed := func(n *service) {
		t.Helper()
		more()
		n.kill()
		h.run.Add(1)
		more()
		n.start()
		allReady()
		more()
	}
	for i, n := range nodes[:3] {
		n.stop()
		n.binary = next
		n.start()
		h.run.Add(1)
		allReady()
		more()
		for j, n := range nodes[:3] {
			handOver(t, n)
			killed(nodes[(j+1)%3]) // follows
			killed(n)              // leads
		}
		if i < 2 { // of two releases: one node of each may join
			h.outgrowLog(t, nodes)
			join([]string{previous, next}[i])
			nodes[3].untilLogged("a snapshot of the leader has replaced this node's journal")
			mustCluster(t, nodes[0], "remove", idOf(t, nodes[3]))
			nodes[3].kill()
			nodes = nodes[:3]
			allReady()
		}
		if os.Getenv("MUSTER_PREVIOUS") == "" {
			break
		}
	}
	time.Sleep(time.Second)
	stop()
	work.Wait()
	h.check(t)
	sameEverywhere(t, nodes)
}

// outgrowLog writes until a joining node needs a snapshot: until every node has one, and no longer keeps all entries.
func (h *history) outgrowLog(t *testing.T, nodes []*service) {
	t.Helper()
	saved := regexp.MustCompile(`msg="snapshot saved" entry=([2-9]|\d\d)\d{3} `)
	data := strings.Repeat("x", 16<<10)
	for i := 0; slices.ContainsFunc(nodes, func(n *service) bool { return !saved.MatchString(n.logs.String()) }); i++ {
		id := fmt.Sprintf("large-%d-%d", h.run.Load(), i)
		_, err := untilAnswered(t.Context(), func(ctx context.Context) (*gamelift.StartGameSessionPlacementOutput, error) {
			return h.api.StartGameSessionPlacement(ctx, &gamelift.StartGameSessionPlacementInput{GameSessionQueueName: aws.String("nowhere"), PlacementId: &id, MaximumPlayerSessionCount: aws.Int32(2), GameSessionData: &data})
		})
		must(t, err)
		_, err = untilAnswered(t.Context(), func(ctx context.Context) (*gamelift.StopGameSessionPlacementOutput, error) {
			return h.api.StopGameSessionPlacement(ctx, &gamelift.StopGameSessionPlacementInput{PlacementId: &id})
		})
		must(t, err)
	}
}

// throughAny returns an address that leads each connection to a node that accepts it.
func throughAny(t *testing.T, nodes []*service) string {
	t.Helper()
	address := porttest.Free(t)
	l, err := net.Listen("tcp", address)
	must(t, err)
	t.Cleanup(func() { l.Close() })
	to := make([]string, len(nodes))
	for i, n := range nodes {
		to[i] = n.address
	}
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return // closed
			}
			go func() {
				defer in.Close()
				for _, i := range rand.Perm(len(to)) {
					out, err := net.Dial("tcp", to[i])
					if err != nil {
						continue
					}
					defer out.Close()
					go func() {
						_, _ = io.Copy(out, in) // either end may go at any time
						out.Close()
					}()
					_, _ = io.Copy(in, out)
					return
				}
			}()
		}
	}()
	return address
}

// handOver makes a node the leader, and tries again while the cluster is too busy.
func handOver(t *testing.T, n *service) {
	t.Helper()
	to := idOf(t, n)
	waittest.Until(t, "the node to lead", func() bool {
		_, err := clusterCommand(t, n, "hand-over", to)
		return err == nil || clusterStatus(t, n).Leader == to
	})
}

// idOf returns the id of a node in its cluster.
func idOf(t *testing.T, n *service) string {
	t.Helper()
	for _, m := range clusterStatus(t, n).Members {
		if m.Address == n.args[1] {
			return m.ID
		}
	}
	t.Fatalf("no node is at %s", n.args[1])
	return ""
}

// sameEverywhere compares the data of nodes without load. Backups at all of them build on each other, so that each state is compared with the state of another node and the
// journal between them.
func sameEverywhere(t *testing.T, nodes []*service) {
	t.Helper()
	// A placement gives its id to the game session of its first attempt, and to that of the second if the first ends before it is active. If the first one is still in memory
	// then, it is dropped. Followers store records earlier, so they may have it in their archive, where the second one hides it.
	attempt := regexp.MustCompile(`"placement":"[^"]+".*"activated_at":null`)
	ended := func(n *service) []string {
		lines := strings.Split(n.command("export", "--data", n.data, "--to", "-", "--rate", "64MiB"), "\n")
		lines = slices.DeleteFunc(lines, func(line string) bool { return attempt.MatchString(line) || strings.HasSuffix(line, " records") })
		slices.Sort(lines)
		return lines
	}
	var differ string
	t.Cleanup(func() {
		if t.Failed() && differ != "" {
			t.Logf("records of what has ended that not all nodes have:\n%s", differ)
		}
	})
	waittest.Until(t, "all nodes to have the same records of what has ended", func() bool {
		first := ended(nodes[0])
		differ = ""
		for i, n := range nodes[1:] {
			if other := ended(n); !slices.Equal(other, first) {
				differ += fmt.Sprintf("the first node alone: %q\nnode %d alone: %q\n", without(first, other), i+2, without(other, first))
			}
		}
		return differ == ""
	})
	dir := filepath.Join(t.TempDir(), "backups") + "/"
	for i := range 2 * len(nodes) {
		n := nodes[i%len(nodes)]
		createLocation(t, "custom-backup-"+string(rune('a'+i)), n, nodes[(i+1)%len(nodes)])
		n.command("backup", "--data", n.data, "--to", dir)
		if out := n.command("restore", "--verify", dir); !strings.Contains(out, "The backup is intact") || i > 0 && !strings.Contains(out, "replayed") {
			t.Errorf("backup %d: %s", i, out)
		}
	}
}

// without returns the lines that others does not have. Both are sorted.
func without(lines, others []string) (left []string) {
	for _, line := range lines {
		if _, ok := slices.BinarySearch(others, line); !ok {
			left = append(left, line)
		}
	}
	return left
}
