package sessionapi

import (
	"slices"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/policy"
)

// Every call of this door is an action, and every action of this door is a call.
func TestCallsAreActions(t *testing.T) {
	used := map[string]bool{}
	for _, n := range slices.Concat(nodes, []*node{placementNode, ticketNode, connectedNode, {name: callsName}, {name: eventsName}}) {
		a, ok := actions[n.name]
		if !ok {
			t.Errorf("%s is no action", n.name)
		}
		used[a.String()] = true
		if may, own := Actions()[a]; own && n.in != nil && may != n.access {
			t.Errorf("%s: the roles of its action are not its own", n.name)
		}
	}
	for _, name := range policy.Actions() {
		if strings.HasPrefix(name, "muster:Session.") && !used[name] {
			t.Errorf("no call is %s", name)
		}
	}
}
