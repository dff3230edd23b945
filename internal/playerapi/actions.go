package playerapi

import (
	"strings"

	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/playerapi/authentication"
	"github.com/musterhq/muster/internal/playerapi/objects"
	"github.com/musterhq/muster/internal/policy"
)

// Actions returns the actions of trusted servers and operators of player flow, with the roles that may take them. Players have no access keys, and no policies.
func Actions() map[policy.Action]identity.Roles {
	all := map[policy.Action]identity.Roles{}
	for _, name := range policy.Actions() {
		room, _, _ := strings.Cut(strings.TrimPrefix(name, "muster:"), ".")
		switch room {
		case "Operator":
			all[policy.MustBe(name)] = identity.MayAdminister
		case "Events", "Flow", "Game", "Identity":
			all[policy.MustBe(name)] = identity.MayOperate
		}
	}
	for _, path := range readCalls {
		all[policy.MustBe(authentication.ActionOf(path))] |= 1 << identity.ReadOnly
	}
	return all
}

// actionOf returns the action of the call with a path.
func actionOf(path string) (policy.Action, bool) {
	if !strings.HasPrefix(path, objects.PartnerPrefix) && !strings.HasPrefix(path, objects.OperatorPrefix) {
		return 0, false
	}
	return policy.Of(authentication.ActionOf(path))
}
