package console

import (
	"testing"

	"github.com/musterhq/muster/internal/attention"
)

func TestAttentionLeadsToThePageOfItsObject(t *testing.T) {
	for _, x := range []struct{ kind, id, want string }{
		{"", "", ""},
		{"fleet", "fleet-1", "/console/fleets/fleet-1"},
		{"host", "host-1", "/console/hosts#host-1"},
		{"alias", "alias-1", "/console/aliases#alias-1"},
		{"queue", "a/b", "/console/queues/a%2Fb"},
		{"configuration", "duel", "/console/matchmaking/duel"},
		{"compute", "fleet-1/rack", "/console/compute/fleet-1/rack"},
		{"ticket", "t 1", "/console/ticket/t%201"},
		{"access key", "MUST1", "/console/keys#MUST1"},
		{"something new", "x", ""},
	} {
		if got := new(overview).LinkTo(&attention.Item{Kind: x.kind, ID: x.id}); got != x.want {
			t.Errorf("%s %s leads to %q, want %q", x.kind, x.id, got, x.want)
		}
	}
}
