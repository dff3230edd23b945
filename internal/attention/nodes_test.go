package attention

import (
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/cluster/node"
)

// Nodes with other settings are named with some of them, however many there are.
func TestNodesWithOtherSettings(t *testing.T) {
	f := New(Config{Differing: func() []node.Differing {
		return []node.Differing{{Node: "n2", Leader: "n1", Settings: []string{"people"}}, {Node: "n3", Leader: "n1", Settings: strings.Fields("a b c d e f g h i j")}}
	}})
	items := f.nodes()
	if len(items) != 2 || items[0].What != "Node n2 differs from the leader, n1, in these settings: people." ||
		items[1].What != "Node n3 differs from the leader, n1, in these settings: a, b, c, d, e, f, g, h and 2 more." || items[0].Next == "" {
		t.Errorf("the items are %+v", items)
	}
	if items := New(Config{}).nodes(); len(items) != 0 {
		t.Errorf("without a cluster: %+v", items)
	}
}
