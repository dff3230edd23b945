package e2e

import (
	"bufio"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/porttest"
)

// TestClusterCommandsAsRoot: what root does with the data directory of a stopped node leaves everything to the user that the service runs as, who could
// not start it otherwise.
func TestClusterCommandsAsRoot(t *testing.T) {
	t.Parallel()
	s := startAsUser(t)
	s.key("admin")
	alone := slices.Clone(s.args)
	s.args = append(s.args, "--cluster-listen", porttest.Free(t))
	s.start()
	s.stop()
	out, err := clusterCommand(t, s, "recover", "--yes", "somebody")
	if err == nil {
		t.Fatalf("recovered without a confirmation: %s", out)
	}
	_, id, _ := strings.Cut(out, "This node, ")
	id, _, _ = strings.Cut(id, ",")
	mustCluster(t, s, "recover", "--yes", id)
	s.checkOwner()
	s.start()
	s.stop()
	mustCluster(t, s, "leave")
	s.checkOwner()
	s.args = alone
	s.start()
}

// TestClusterRecoverInterrupted: an interrupt at the question for the confirmation ends the command, and nothing has changed.
func TestClusterRecoverInterrupted(t *testing.T) {
	t.Parallel()
	s := startNodes(t, 1, func(cluster ...string) *service { return newService(t, cluster...) })[0]
	s.stop()
	cmd := exec.CommandContext(t.Context(), musterBinary, "cluster", "recover", "--data", s.data)
	cmd.Env = cleanEnvironment()
	in, err := cmd.StdinPipe()
	must(t, err)
	defer in.Close()
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	lines := bufio.NewReader(out)
	for question := ""; !strings.Contains(question, "Type the id"); { // the question has no line feed
		question, err = lines.ReadString(',')
		must(t, err)
	}
	must(t, cmd.Process.Signal(os.Interrupt))
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case err := <-ended:
		if err == nil {
			t.Error("an interrupted command succeeds")
		}
	case <-time.After(patience):
		t.Error("the command waits for an answer after an interrupt")
		must(t, cmd.Process.Kill())
	}
	s.start()
}
