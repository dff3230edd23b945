// Package catalog stores small sets of records that are found by identifier and listed in creation order: aliases, builds, groups.
// Snapshots contain no indexes; they are rebuilt from the records.
package catalog

import (
	"github.com/musterhq/muster/internal/domain/sorted"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/chunk"
)

// Place is a record's place in creation order; equal times are ordered by identifier.
type Place struct {
	Created domain.Time
	ID      string
}

func (a Place) before(b Place) bool {
	if a.Created != b.Created {
		return a.Created < b.Created
	}
	return a.ID < b.ID
}

// Catalog is a table of records with its indexes. A record's place never changes.
type Catalog[T any] struct {
	chunk.Table[T]
	place func(*T) Place
	byID  map[string]chunk.Ref[T]
	order sorted.Set[entry]
}

type entry struct {
	Place
	ref chunk.AnyRef // not a Ref[T]: so one tree is compiled for the catalogs of all records
}

// New returns an empty Catalog; place returns the place of a record.
func New[T any](place func(*T) Place) *Catalog[T] {
	return &Catalog[T]{
		place: place, byID: map[string]chunk.Ref[T]{},
		order: sorted.NewSet(func(a, b entry) bool { return a.before(b.Place) }),
	}
}

// Find finds a record by its identifier.
func (c *Catalog[T]) Find(id string) (chunk.Ref[T], bool) {
	r, ok := c.byID[id]
	return r, ok
}

// Put stores a record, or replaces the one with its identifier.
func (c *Catalog[T]) Put(record T) chunk.Ref[T] {
	at := c.place(&record)
	r, ok := c.byID[at.ID]
	if !ok {
		r, _ = c.Add()
		c.index(at, r)
	}
	*c.Mut(r) = record
	return r
}

func (c *Catalog[T]) index(at Place, r chunk.Ref[T]) {
	c.byID[at.ID] = r
	c.order.Set(entry{at, r.Any()})
}

// Drop removes a record and its entries in the indexes.
func (c *Catalog[T]) Drop(r chunk.Ref[T]) {
	at := c.place(c.Get(r))
	delete(c.byID, at.ID)
	c.order.Delete(entry{Place: at})
	c.Remove(r)
}

// From yields the records in creation order, beginning after a place.
func (c *Catalog[T]) From(after Place, yield func(*T) bool) {
	c.order.Ascend(entry{Place: after}, func(e entry) bool {
		return !after.before(e.Place) || yield(c.Get(chunk.Ref[T](e.ref)))
	})
}

// Restore rebuilds the indexes from the records, after a snapshot was loaded.
func (c *Catalog[T]) Restore() {
	for r, record := range c.All() {
		c.index(c.place(record), r)
	}
}
