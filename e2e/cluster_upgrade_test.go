package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/cluster/node"
	"github.com/musterhq/muster/internal/waittest"
)

// nextRelease builds muster with one more event, of the next level. Only the room with the event and the packages that import it are compiled again.
func nextRelease(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	source, err := filepath.Abs("../internal/domain/answers/events_gen.go")
	must(t, err)
	code, err := os.ReadFile(source)
	must(t, err)
	const list = "var events = []func() kernel.Event{\n"
	changed := strings.Replace(string(code), list, list+"\tkernel.Empty[madeUp],\n", 1) + `
type madeUp struct{}

func (*madeUp) Kind() kernel.Kind       { return 511 }
func (*madeUp) Fields(*wire.Codec)      {}
func (*madeUp) Level() uint             { return kernel.Level + 1 }
`
	replacement := filepath.Join(dir, "events_gen.go")
	must(t, os.WriteFile(replacement, []byte(changed), 0o600))
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{source: replacement}})
	must(t, err)
	must(t, os.WriteFile(filepath.Join(dir, "overlay.json"), overlay, 0o600))
	binary := filepath.Join(dir, "muster")
	cmd := exec.Command("go", "build", "-ldflags=-w", "-overlay", filepath.Join(dir, "overlay.json"), "-o", binary, "../cmd/muster")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off") // as the other binaries
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build the next release: %v\n%s", err, out)
	}
	return binary
}

// Three nodes are upgraded to the next release one after another. The level of the data rises after the last one, and from then on the previous release refuses the data.
func TestRollingUpgrade(t *testing.T) {
	t.Parallel()
	next := nextRelease(t)
	nodes := threeNodes(t)
	before := clusterStatus(t, nodes[0]).Level
	for i, n := range nodes {
		n.stop()
		n.binary = next
		n.start()
		waittest.Until(t, "the node to be ready", func() bool { return ready(t, n) })
		var s node.Status
		waittest.Until(t, "the leader to know the releases", func() bool {
			s = clusterStatus(t, n)
			upgraded := 0
			for _, m := range s.Members {
				if m.Level == before+1 {
					upgraded++
				}
			}
			return upgraded == i+1
		})
		if i < 2 && s.Level != before {
			t.Fatalf("%d of 3 nodes are upgraded, and the data is at level %d, want %d", i+1, s.Level, before)
		}
		createLocation(t, fmt.Sprintf("custom-%d", i), n, nodes[(i+1)%3])
	}
	for _, n := range nodes {
		waittest.Until(t, "the level to rise", func() bool { return clusterStatus(t, n).Level == before+1 })
	}

	last := nodes[2]
	last.stop()
	last.binary = ""
	last.launch()
	select {
	case <-last.exited:
	case <-time.After(patience):
		t.Fatal("the release before goes on with data of the next one")
	}
	said := last.logs.String()
	if code := last.cmd.ProcessState.ExitCode(); code == 0 || !strings.Contains(said, fmt.Sprintf("the data is at level %d, written by a later release", before+1)) {
		t.Errorf("the release before ended with status %d:\n%s", code, last.logs.tail(10))
	}
	last.binary = next
	last.start()
	waittest.Until(t, "the node to be ready", func() bool { return ready(t, last) })
	createLocation(t, "custom-last", last, nodes[0])
}
