package hosting

import (
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/kernel"
)

// applyCatalog applies events that change one record without affecting counts or indexes of others.
func (c *State) applyCatalog(event kernel.Event) {
	number := c.Touch()
	switch e := event.(type) {
	case *AliasChanged:
		a := e.Alias
		a.Changed = number
		c.Fleets.Aliases.Put(a)
	case *AliasRemoved:
		r, _ := c.Fleets.Aliases.Find(e.ID)
		c.Fleets.Aliases.Drop(r)
		c.forgetRollout(e.ID)
	case *BuildChanged:
		b := e.Build
		b.Changed = number
		c.Fleets.Builds.Put(b)
	case *BuildStored:
		b := c.build(e.ID)
		b.Manifest, b.Size, b.Changed = e.Manifest, e.Size, number
		c.Fleets.Builds.Put(b)
	case *BuildFailed:
		b := c.build(e.ID)
		b.Failure, b.Changed = e.Reason, number
		c.Fleets.Builds.Put(b)
	case *BuildRemoved:
		r, _ := c.Fleets.Builds.Find(e.ID)
		c.Fleets.Builds.Drop(r)
	}
}

// build returns a copy of an existing build.
func (c *State) build(id string) fleet.Build {
	r, _ := c.Fleets.Builds.Find(id)
	return *c.Fleets.Builds.Get(r)
}
