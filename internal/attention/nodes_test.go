package attention

import (
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/cluster/node"
)

// finderOf returns a finder at the leader n1 of a cluster with other members.
func finderOf(others ...node.Member) *Finder {
	return New(Config{Cluster: func() node.Status {
		return node.Status{By: "n1", Leader: "n1", Members: append([]node.Member{{ID: "n1"}}, others...)}
	}})
}

// A node without room for changes is named.
func TestNodesWithoutRoom(t *testing.T) {
	items := finderOf(node.Member{ID: "n3", Short: true}).nodes()
	if len(items) != 1 || !strings.HasPrefix(items[0].What, "Node n3 has too little disk space") || items[0].Next == "" {
		t.Errorf("the items are %+v", items)
	}
}

// A node whose clock differs much from the leader's is named, in either direction.
func TestNodesWithOtherClocks(t *testing.T) {
	f := finderOf(node.Member{ID: "n2", Clock: (5*time.Minute + 300*time.Millisecond).Milliseconds()}, node.Member{ID: "n3", Clock: (-6 * time.Second).Milliseconds()})
	items := f.nodes()
	if len(items) != 2 || items[0].What != "The clock of node n2 is 5 minutes ahead of that of n1, which decides." ||
		items[1].What != "The clock of node n3 is 6 seconds behind that of n1, which decides." || items[0].Next == "" {
		t.Errorf("the items are %+v", items)
	}
}

// Nodes with other settings are named with some of these settings, however many there are.
func TestNodesWithOtherSettings(t *testing.T) {
	f := finderOf(node.Member{ID: "n2", Differs: []string{"people"}}, node.Member{ID: "n3", Differs: strings.Fields("a b c d e f g h i j")})
	items := f.nodes()
	if len(items) != 2 || items[0].What != "Node n2 differs from the leader, n1, in these settings: people." ||
		items[1].What != "Node n3 differs from the leader, n1, in these settings: a, b, c, d, e, f, g, h and 2 more." || items[0].Next == "" {
		t.Errorf("the items are %+v", items)
	}
	if items := New(Config{}).nodes(); len(items) != 0 {
		t.Errorf("without a cluster: %+v", items)
	}
}
