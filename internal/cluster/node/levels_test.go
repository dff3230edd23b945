package node_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/cluster/link"
	"github.com/musterhq/muster/internal/cluster/node"
	"github.com/musterhq/muster/internal/cluster/trust"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/waittest"
)

// TestLevels: the leader knows the level of each member's release while all are reachable. The status shows the levels. A node of an earlier release is not admitted.
func TestLevels(t *testing.T) {
	first := start(t, options(t.TempDir(), ""))
	o := options(t.TempDir(), first.token())
	o.Observer = true
	second := start(t, o)
	s := first.until("the levels", func(s node.Status) bool {
		for _, m := range s.Members {
			if m.Level != kernel.Level {
				return false
			}
		}
		return len(s.Members) == 2
	})
	if s.Level != kernel.Level {
		t.Errorf("the data is at level %d", s.Level)
	}
	if lowest, complete := first.Levels(); lowest != kernel.Level || !complete {
		t.Errorf("the members are at level %d, complete %t", lowest, complete)
	}
	if _, complete := second.Levels(); complete {
		t.Error("a node that does not lead knows all levels")
	}
	second.end()
	waittest.Until(t, "the levels are incomplete without a member", func() bool { _, complete := first.Levels(); return !complete })

	token, err := trust.ParseToken(first.token())
	if err != nil {
		t.Fatal(err)
	}
	request, err := json.Marshal(map[string]any{"token": token.ID, "secret": token.Secret.Text(), "node": "old", "address": "127.0.0.1:1", "level": kernel.Level - 1})
	if err != nil {
		t.Fatal(err)
	}
	answer, err := link.Join(t.Context(), token, nil, request)
	if err != nil || !strings.Contains(string(answer), "start a later release") {
		t.Errorf("a node of an earlier release: %s, %v", answer, err)
	}
}
