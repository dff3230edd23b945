package hosting

import (
	"github.com/musterhq/muster/internal/domain/catalog"
	"github.com/musterhq/muster/internal/domain/fleet"
)

// Alias returns an alias.
func (v *View) Alias(id string) (fleet.Alias, bool) {
	return found(v, v.c.Fleets.Aliases, id, func(a *fleet.Alias) uint64 { return a.Changed })
}

// ResolveAlias returns the id of the fleet that an alias points to now. It refuses an alias that does not exist or is terminal. The fleet
// itself may be gone.
func (v *View) ResolveAlias(id string) (fleetID string, err error) {
	v.SawAll()
	return v.c.resolveAlias(id)
}

// Aliases returns up to limit aliases for which keep is true, in creation order, beginning after a place.
func (v *View) Aliases(after catalog.Place, limit int, keep func(*fleet.Alias) bool) []fleet.Alias {
	v.SawAll()
	return v.c.Fleets.Aliases.Page(after, limit, keep)
}

// Build returns a build.
func (v *View) Build(id string) (fleet.Build, bool) {
	return found(v, v.c.Fleets.Builds, id, func(b *fleet.Build) uint64 { return b.Changed })
}

// Builds returns up to limit builds for which keep is true, in creation order, beginning after a place.
func (v *View) Builds(after catalog.Place, limit int, keep func(*fleet.Build) bool) []fleet.Build {
	v.SawAll()
	return v.c.Fleets.Builds.Page(after, limit, keep)
}

// Manifests returns the manifests of all files in the service's own store that a build or a fleet needs, in no particular order and with
// duplicates.
func (v *View) Manifests() (all []string) {
	v.SawAll()
	v.c.Fleets.Builds.Since(catalog.Place{}, func(b *fleet.Build) bool {
		if b.Manifest != "" {
			all = append(all, b.Manifest)
		}
		return true
	})
	v.c.Fleets.FleetsFrom(0, "", func(f *fleet.Fleet) bool {
		if f.Managed != nil && f.Managed.Manifest != "" {
			all = append(all, f.Managed.Manifest)
		}
		return true
	})
	return all
}

// found copies a record of a catalog; changed returns the number of its last change.
func found[T any](v *View, c catalog.Catalog[T], id string, changed func(*T) uint64) (record T, ok bool) {
	r, ok := c.Find(id)
	if !ok {
		v.SawAll()
		return record, false
	}
	v.Saw(changed(c.Get(r)))
	return *c.Get(r), true
}
