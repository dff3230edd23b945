package hosting

import (
	"strings"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/keyvalue"
)

// Tags and values on which the service itself acts.
var (
	ownFleetTags   = keyvalue.Own{fleet.PackingTag: {fleet.Pack, fleet.Spread}}
	ownComputeTags = keyvalue.Own{fleet.DrainTag: {"true", "false"}}
)

// Tagged merges tags; see keyvalue.Merge.
func (c *State) Tagged(own keyvalue.Own, have, add []fleet.Tag) ([]fleet.Tag, error) {
	return keyvalue.Merge(have, add, own, c.Config.TagsMax)
}

// FleetTags returns the tags of a fleet.
func (c *State) FleetTags(id string) (kernel.Tagged, error) {
	r, ok := c.Fleets.Fleet(id)
	if !ok {
		return kernel.Tagged{}, domain.Refuse(domain.NotFound, "fleet %s not found", id)
	}
	f := *c.fleet(r)
	return kernel.Tagged{Tags: f.Tags, Own: ownFleetTags, Store: func(tags []fleet.Tag) kernel.Event { f.Tags = tags; return &FleetChanged{f} }}, nil
}

// LocationTags returns the tags of a custom location.
func (c *State) LocationTags(name string) (kernel.Tagged, error) {
	r, ok := c.Fleets.Location(name)
	if !ok {
		return kernel.Tagged{}, domain.Refuse(domain.NotFound, "location %s not found", name)
	}
	l := *c.Fleets.Locations.Get(r)
	return kernel.Tagged{Tags: l.Tags, Store: func(tags []fleet.Tag) kernel.Event { l.Tags = tags; return &LocationChanged{l} }}, nil
}

// QueueTags returns the tags of a queue.
func (c *State) QueueTags(name string) (kernel.Tagged, error) {
	r, ok := c.Placements.Queue(name)
	if !ok {
		return kernel.Tagged{}, domain.Refuse(domain.NotFound, "queue %s not found", name)
	}
	q := *c.Queue(r)
	return kernel.Tagged{Tags: q.Tags, Store: func(tags []fleet.Tag) kernel.Event { q.Tags = tags; return &QueueChanged{q} }}, nil
}

// ComputeTags returns the tags of a compute, which computeNamed finds.
func (c *State) ComputeTags(id string) (kernel.Tagged, error) {
	r, err := c.computeNamed(id)
	if err != nil {
		return kernel.Tagged{}, err
	}
	x := *c.compute(r)
	return kernel.Tagged{Tags: x.Tags, Own: ownComputeTags, Store: func(tags []fleet.Tag) kernel.Event { x.Tags = tags; return &ComputeRegistered{x} }}, nil
}

// AliasTags returns the tags of an alias.
func (c *State) AliasTags(id string) (kernel.Tagged, error) {
	found, err := c.aliasByID(id)
	if err != nil {
		return kernel.Tagged{}, err
	}
	a := *found
	return kernel.Tagged{Tags: a.Tags, Store: func(tags []fleet.Tag) kernel.Event { a.Tags = tags; return &AliasChanged{a} }}, nil
}

// BuildTags returns the tags of a build.
func (c *State) BuildTags(id string) (kernel.Tagged, error) {
	found, err := c.buildByID(id)
	if err != nil {
		return kernel.Tagged{}, err
	}
	b := *found
	return kernel.Tagged{Tags: b.Tags, Store: func(tags []fleet.Tag) kernel.Event { b.Tags = tags; return &BuildChanged{b} }}, nil
}

// computeNamed finds a compute by "<fleet id>/<name>", or by a name that only one fleet has: the API's ARN of a compute does not contain
// the fleet.
func (c *State) computeNamed(id string) (found fleet.ComputeRef, err error) {
	if f, name, ok := strings.Cut(id, "/"); ok {
		if r, ok := c.Fleets.Compute(f, name); ok {
			return r, nil
		}
	}
	in := ""
	for _, f := range c.Fleets.Fleets.All() {
		r, ok := c.Fleets.Compute(f.ID, id)
		switch {
		case ok && found != 0:
			return 0, domain.Refuse(domain.Invalid, "compute %s is registered in fleets %s and %s; name it as compute/<fleet id>/%s", id, in, f.ID, id)
		case ok:
			found, in = r, f.ID
		}
	}
	if found == 0 {
		return 0, domain.Refuse(domain.NotFound, "compute %s not found", id)
	}
	return found, nil
}
