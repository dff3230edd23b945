package objects

import (
	"maps"
	"slices"

	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/session"
)

// JoinabilityOf parses the name; an unknown name gives 0.
func JoinabilityOf(name string) flow.Joinability {
	all := []flow.Joinability{flow.Open, flow.InviteOnly, flow.Closed}
	if i := slices.IndexFunc(all, func(j flow.Joinability) bool { return j.String() == name }); i >= 0 {
		return all[i]
	}
	return 0
}

// ReconnectOf parses the name; an unknown name gives 0.
func ReconnectOf(name string) flow.Reconnect {
	for _, r := range []flow.Reconnect{flow.ReconnectOff, flow.ReconnectOptional, flow.ReconnectRequired} {
		if r.String() == name {
			return r
		}
	}
	return 0
}

// PropertiesOf lists game properties in the order of their keys.
func PropertiesOf(named map[string]string) (all []session.Property) {
	for _, key := range slices.Sorted(maps.Keys(named)) {
		all = append(all, session.Property{Key: key, Value: named[key]})
	}
	return all
}
