package service

import (
	"testing"

	"github.com/musterhq/muster/internal/agentlink"
	"github.com/musterhq/muster/internal/policy"
)

// Explanations say which roles may take any action. Agents of hosts have none.
func TestEveryActionHasRoles(t *testing.T) {
	for _, name := range policy.Actions() {
		if may, ok := rolesOf(policy.MustBe(name)); !ok || may == 0 && policy.MustBe(name) != agentlink.ConnectAction {
			t.Errorf("nobody may take the action %s", name)
		}
	}
}
