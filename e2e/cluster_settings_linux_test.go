package e2e

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/porttest"
	"github.com/musterhq/muster/internal/waittest"
)

// Nodes whose settings differ from the leader's are named with the differences, at every node and as long as they differ. Settings that belong to one node do not count, nor do the paths of its files.
func TestSettingsOfNodesAreCompared(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	configOf := func(node, text string) string {
		path := filepath.Join(dir, node+".json")
		replaceFile(t, path, text)
		return path
	}
	peopleOf := func(node, text string) string {
		path := filepath.Join(dir, node+"-people.json")
		replaceFile(t, path, text)
		return path
	}
	settings := func(node, limit, people string) string {
		return `{"limit-fleets": ` + limit + `, "notify-events": "https://hooks.invalid/s3cret-` + node + `", "people": "` + peopleOf(node, people) + `", "log-events": 1` + limit + `}`
	}
	const none, some = `{}`, `{"own": {"off": true}}`
	leader := startService(t, "--cluster-listen", porttest.Free(t), "--config", configOf("n1", settings("n1", "7", none)))
	waittest.Until(t, "the node to be ready", func() bool { return ready(t, leader) })
	follower := newService(t, "--cluster-listen", porttest.Free(t), "--join", mustCluster(t, leader, "join-token"), "--config", configOf("n2", settings("n2", "8", some)))
	follower.start()
	waittest.Until(t, "both nodes to vote", func() bool { return voters(clusterStatus(t, leader)) == 2 })

	differs := func() (all []string) {
		for _, m := range clusterStatus(t, follower).Members {
			all = append(all, m.Differs...)
		}
		return all
	}
	waittest.Until(t, "the leader to know the settings of both", func() bool { return slices.Equal(differs(), []string{"limit-fleets", "notify-events", "people"}) })
	status := mustCluster(t, follower, "status")
	if !strings.Contains(status, "differs from the leader in: limit-fleets, notify-events, people") || strings.Contains(status, "s3cret") {
		t.Errorf("muster cluster status prints\n%s", status)
	}
	for _, at := range []*service{leader, follower} {
		if items := wantsAttention(t, at); !strings.Contains(items, "in these settings: limit-fleets, notify-events, people.") {
			t.Errorf("%s: the overview has %s", at.address, items)
		}
	}

	configOf("n2", strings.ReplaceAll(settings("n2", "7", none), "s3cret-n2", "s3cret-n1"))
	follower.command("reload", "--data", follower.data)
	waittest.Until(t, "nothing to differ", func() bool { return len(differs()) == 0 })
	if items := wantsAttention(t, follower); strings.Contains(items, "differs from the leader") {
		t.Errorf("after the reload the overview has %s", items)
	}
	peopleOf("n2", some) // the same path, another content
	follower.command("reload", "--data", follower.data)
	waittest.Until(t, "the file to differ", func() bool { return slices.Equal(differs(), []string{"people"}) })
}

// wantsAttention returns the attention items in the overview of a service.
func wantsAttention(t *testing.T, at *service) string {
	t.Helper()
	return strings.Join(strings.Fields(at.command("top", "--once", "--data", at.data, "--listen", at.address)), " ") // it breaks lines
}
