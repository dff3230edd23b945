package service

import (
	"testing"

	"github.com/musterhq/muster/internal/policy"
)

// Explanations say which roles may take any action.
func TestEveryActionHasRoles(t *testing.T) {
	for _, name := range policy.Actions() {
		if may, ok := rolesOf(policy.MustBe(name)); !ok || may == 0 {
			t.Errorf("nobody may take the action %s", name)
		}
	}
}
