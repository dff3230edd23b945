package service

import (
	"maps"
	"sync"

	"github.com/musterhq/muster/internal/agentlink"
	"github.com/musterhq/muster/internal/cloudwatch"
	"github.com/musterhq/muster/internal/console"
	"github.com/musterhq/muster/internal/gamelift"
	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/metrics"
	"github.com/musterhq/muster/internal/operator"
	"github.com/musterhq/muster/internal/playerapi"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/serverlink"
	"github.com/musterhq/muster/internal/sessionapi"
	"github.com/musterhq/muster/internal/sts"
)

// actions returns every action that policies can allow or deny, with the roles that may take it. Each door contributes
// its own.
var actions = sync.OnceValue(func() map[policy.Action]identity.Roles {
	all := map[policy.Action]identity.Roles{}
	for _, of := range []func() map[policy.Action]identity.Roles{gamelift.Actions, operator.Actions, cloudwatch.Actions, sts.Actions, sessionapi.Actions, playerapi.Actions} {
		maps.Copy(all, of())
	}
	all[policy.MustBe(metrics.ActionName)], all[policy.MustBe(console.LookAction)], all[serverlink.ConnectAction] = identity.MayLook, identity.MayLook, identity.MayOperate
	all[policy.MustBe(console.ClusterAction)] = identity.MayAdminister
	all[agentlink.ConnectAction] = 0 // no role: agents have none
	return all
})

// rolesOf returns the roles that may take an action.
func rolesOf(a policy.Action) (identity.Roles, bool) {
	may, ok := actions()[a]
	return may, ok
}
