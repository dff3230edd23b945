package hosting

import (
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/catalog"
	"github.com/musterhq/muster/internal/domain/fleet"
)

// Rollouts returns the latest rollout of each alias that had one, ordered by the aliases' ids.
func (v *View) Rollouts() []fleet.Rollout {
	v.SawAll()
	return v.c.Fleets.Rollouts.Page(catalog.Place{}, v.c.Fleets.Rollouts.Len(), nil)
}

// RolloutStepEnds returns when the current step of a rollout ends, unless the service is down meanwhile.
func (v *View) RolloutStepEnds(r *fleet.Rollout) domain.Time { return v.c.WallTime(r.StepBy) }

// AliasNamed finds an alias by its id, ARN or name.
func (v *View) AliasNamed(name string) (fleet.Alias, error) {
	v.SawAll()
	a, err := v.c.aliasNamed(name)
	if err != nil {
		return fleet.Alias{}, err
	}
	return *a, nil
}

// AliasFleets returns both fleets of the latest rollout of an alias, because an earlier request for the alias may have created its game session in
// either. It also returns the fleet that gets the next one in a location; "" if no rollout splits the alias now.
func (v *View) AliasFleets(alias, location string) (both []string, next string) {
	v.SawAll()
	r, ok := v.c.rollout(alias)
	if !ok {
		return nil, ""
	}
	if r.Shares() {
		next = v.c.nextFleet(&r, location)
	}
	return []string{r.From, r.To}, next
}
