package service

import (
	"maps"
	"sync"

	"github.com/musterhq/muster/internal/gamelift"
	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/operator"
	"github.com/musterhq/muster/internal/policy"
)

// actions are what policies can allow or deny, with the roles that may do it, as the doors say.
var actions = sync.OnceValue(func() map[policy.Action]identity.Roles {
	all := map[policy.Action]identity.Roles{}
	for _, of := range []func() map[policy.Action]identity.Roles{gamelift.Actions, operator.Actions} {
		maps.Copy(all, of())
	}
	return all
})

// rolesOf returns the roles that may take an action.
func rolesOf(a policy.Action) (identity.Roles, bool) {
	may, ok := actions()[a]
	return may, ok
}
