package e2e

import (
	"slices"
	"strings"
	"testing"

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
