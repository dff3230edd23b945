package gamelift

import (
	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/policy"
)

// actionPrefix precedes the name of an operation in policies.
const actionPrefix = "gamelift:"

// Actions returns the actions of this door, with the roles that may take them.
func Actions() map[policy.Action]identity.Roles {
	all := map[policy.Action]identity.Roles{}
	for name, op := range compiledOperations() {
		all[policy.MustBe(actionPrefix+name)] = op.access
	}
	return all
}
