package cell

import (
	"github.com/musterhq/muster/internal/domain/catalog"
	"github.com/musterhq/muster/internal/domain/fleet"
)

// Alias returns an alias.
func (v *View) Alias(id string) (fleet.Alias, bool) {
	return found(v, v.c.fleets.Aliases, id, func(a *fleet.Alias) uint64 { return a.Changed })
}

// ResolveAlias is the id of the fleet that an alias stands for now, or a refusal: there is no such alias, or it is a
// terminal one. The fleet itself may be gone.
func (v *View) ResolveAlias(id string) (fleetID string, err error) {
	v.sawAll()
	return v.c.resolveAlias(id)
}

// Aliases returns up to limit aliases that keep allows, in creation order, beginning behind a place.
func (v *View) Aliases(after catalog.Place, limit int, keep func(*fleet.Alias) bool) []fleet.Alias {
	return listed(v, v.c.fleets.Aliases, after, limit, keep)
}

// Build returns a build.
func (v *View) Build(id string) (fleet.Build, bool) {
	return found(v, v.c.fleets.Builds, id, func(b *fleet.Build) uint64 { return b.Changed })
}

// Builds returns up to limit builds that keep allows, in creation order, beginning behind a place.
func (v *View) Builds(after catalog.Place, limit int, keep func(*fleet.Build) bool) []fleet.Build {
	return listed(v, v.c.fleets.Builds, after, limit, keep)
}

// found copies a record of a catalog; changed tells the number of its last change.
func found[T any](v *View, c *catalog.Catalog[T], id string, changed func(*T) uint64) (record T, ok bool) {
	r, ok := c.Find(id)
	if !ok {
		v.sawAll()
		return record, false
	}
	v.saw(changed(c.Get(r)))
	return *c.Get(r), true
}

// listed copies up to limit records of a catalog that keep allows, beginning behind a place.
func listed[T any](v *View, c *catalog.Catalog[T], after catalog.Place, limit int, keep func(*T) bool) []T {
	v.sawAll()
	var page []T
	c.From(after, func(record *T) bool {
		if keep == nil || keep(record) {
			page = append(page, *record)
		}
		return len(page) < limit
	})
	return page
}
