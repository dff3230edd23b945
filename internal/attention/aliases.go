package attention

import (
	"slices"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/catalog"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/hosting"
)

// aliases are those that lead to no fleet, or to one in which no server process is connected.
func aliases(v *cell.View, agents Agents, now domain.Time) (all []Item) {
	for _, a := range v.Aliases(catalog.Place{}, CatalogMost, func(a *fleet.Alias) bool { return !a.Terminal }) {
		if why, next := AliasOf(v, &a, agents, now); why != "" {
			all = append(all, Item{"Alias " + a.Name + " " + why, next, "alias", a.ID})
		}
	}
	return all
}

// AliasOf says where an alias leads if no game session can start there for lack of server processes, and what to do; otherwise it returns nothing.
func AliasOf(v *cell.View, a *fleet.Alias, agents Agents, now domain.Time) (why, next string) {
	point := "Point the alias to another fleet with aws gamelift update-alias --alias-id " + a.ID + " --routing-strategy Type=SIMPLE,FleetId=FLEET."
	f, ok := v.Fleet(a.Fleet)
	if !ok {
		return "leads to fleet " + a.Fleet + ", which does not exist.", point
	}
	at := "leads to fleet " + f.Name + " (" + f.ID + "), which "
	places := v.Places(f.ID)
	if len(places) == 0 {
		return at + "has no location.", point
	}
	for i := range places {
		if places[i].Hosts.Running() > 0 {
			return "", "" // it is not empty
		}
	}
	wanted := slices.IndexFunc(places, func(p hosting.PlaceCounts) bool { return p.Hosts.Computes > 0 || !wantedElsewhere(&f, p.Location) })
	reason, step := Place(v, &f, &places[max(wanted, 0)], agents, now)
	return at + "is empty: " + reason + ".", point + " Or give the fleet server processes: " + step
}
