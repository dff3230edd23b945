package e2e

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/gamelift"
	"github.com/aws/aws-sdk-go-v2/service/gamelift/types"

	"github.com/musterhq/muster/internal/porttest"
	"github.com/musterhq/muster/internal/waittest"
)

// Each node of a cluster reloads its own settings. The leader's limits on records apply, so a change at another node takes effect once that node leads.
func TestReloadInACluster(t *testing.T) {
	t.Parallel()
	files := make([]string, 2)
	var nodes []*service
	for i := range files {
		files[i] = filepath.Join(t.TempDir(), "muster.json")
		replaceFile(t, files[i], `{"limit-locations": 2}`)
		args := []string{"--cluster-listen", porttest.Free(t), "--config", files[i]}
		if i > 0 {
			args = append(args, "--join", mustCluster(t, nodes[0], "join-token"))
		}
		n := newService(t, args...)
		n.start()
		nodes = append(nodes, n)
		waittest.Until(t, "the node to be ready", func() bool { return ready(t, n) })
	}
	waittest.Until(t, "both nodes to vote", func() bool { return voters(clusterStatus(t, nodes[0])) == 2 })
	leads := func(i int) {
		t.Helper()
		if clusterStatus(t, nodes[i]).Leader != idOf(t, nodes[i]) {
			handOver(t, nodes[i])
		}
		waittest.Until(t, "the node to decide", func() bool { return clusterStatus(t, nodes[i]).Leader == idOf(t, nodes[i]) })
	}
	made := 0
	create := func(at *service) error {
		_, err := at.client.CreateLocation(t.Context(), &gamelift.CreateLocationInput{LocationName: aws.String(fmt.Sprint("custom-", made))})
		if err == nil {
			made++
		}
		return err
	}
	wantFull := func(at *service) {
		t.Helper()
		if err := create(at); !isError[*types.LimitExceededException](err) {
			t.Errorf("location %d at %s: %v, want it refused by the limit", made, at.address, err)
		}
	}
	leads(0)
	must(t, create(nodes[0]))
	must(t, create(nodes[1]))
	wantFull(nodes[1])

	replaceFile(t, files[1], `{"limit-locations": 3, "log-level": "debug"}`)
	if out := nodes[1].command("reload", "--data", nodes[1].data); !strings.Contains(out, "limit-locations: 2 → 3") || !strings.Contains(out, "log-level: info → debug") {
		t.Errorf("the node that does not decide: %s", out)
	}
	leads(0)           // still, unless the machine is so busy that there was an election
	wantFull(nodes[1]) // the other node leads, and has another limit
	if out := nodes[0].command("reload", "--data", nodes[0].data); strings.Contains(out, "limit-locations") {
		t.Errorf("the other node, whose file did not change: %s", out)
	}
	leads(1)
	must(t, create(nodes[0])) // by the limit of the current leader
	wantFull(nodes[0])

	replaceFile(t, files[0], `{"limit-locations": 3}`)
	nodes[0].command("reload", "--data", nodes[0].data)
	leads(0)
	wantFull(nodes[1]) // what exists stays, and both nodes have the same limit
}
