// Package catalog stores small sets of records that are found by identifier and listed in creation order: aliases, builds, groups.
// Snapshots contain no indexes; they are rebuilt from the records.
package catalog

import (
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/chunk"
	"github.com/musterhq/muster/internal/domain/quota"
	"github.com/musterhq/muster/internal/domain/sorted"
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

// Catalog is a table of records with its indexes. A record's place never changes. It is an interface for the reason that chunk.Table is one.
type Catalog[T any] = interface {
	chunk.Table[T]

	// Find finds a record by its identifier.
	Find(id string) (chunk.Ref[T], bool)

	// Put stores a record, or replaces the one with its identifier.
	Put(T) chunk.Ref[T]

	// Drop removes a record and its entries in the indexes.
	Drop(chunk.Ref[T])

	// Since yields the records in creation order, beginning after a place.
	Since(after Place, yield func(*T) bool)

	// Page copies up to limit records for which keep is true, in creation order, beginning after a place; a nil keep means all.
	Page(after Place, limit int, keep func(*T) bool) []T

	// Held counts the records by their holders; nil for records that have none.
	Held() *quota.Held

	// Restore rebuilds the indexes from the records, after a snapshot was loaded.
	Restore()
}

type catalog[T any] struct {
	chunk.Table[T]
	place func(*T) Place
	byID  map[string]chunk.Ref[T]
	order sorted.Set[entry]

	holder func(*T) quota.Holder // nil: records have none
	held   *quota.Held
}

type entry struct {
	Place
	ref chunk.AnyRef // not a Ref[T]: so one tree is compiled for the catalogs of all records
}

// New returns an empty Catalog; place returns the place of a record.
func New[T any](place func(*T) Place) Catalog[T] {
	return &catalog[T]{
		Table: chunk.New[T](), place: place, byID: map[string]chunk.Ref[T]{},
		order: newOrder(),
	}
}

// NewHeld returns an empty Catalog that counts its records by their holders.
func NewHeld[T any](place func(*T) Place, holder func(*T) quota.Holder) Catalog[T] {
	return &catalog[T]{
		Table: chunk.New[T](), place: place, byID: map[string]chunk.Ref[T]{},
		order: newOrder(), holder: holder, held: &quota.Held{},
	}
}

// newOrder is a separate function, and not inlined, so that the tree is compiled here and not in each package that makes a catalog.
//
//go:noinline
func newOrder() sorted.Set[entry] {
	return sorted.NewSet(func(a, b entry) bool { return a.before(b.Place) })
}

func (c *catalog[T]) Find(id string) (chunk.Ref[T], bool) {
	r, ok := c.byID[id]
	return r, ok
}

func (c *catalog[T]) Put(record T) chunk.Ref[T] {
	at := c.place(&record)
	r, ok := c.byID[at.ID]
	if !ok {
		r, _ = c.Add()
		c.index(at, r)
	} else {
		c.letGo(c.Get(r))
	}
	*c.Mut(r) = record
	c.hold(c.Get(r))
	return r
}

func (c *catalog[T]) Held() *quota.Held { return c.held }

func (c *catalog[T]) hold(record *T) {
	if c.holder != nil {
		c.held.Add(c.holder(record), 0)
	}
}

func (c *catalog[T]) letGo(record *T) {
	if c.holder != nil {
		c.held.Remove(c.holder(record), 0)
	}
}

func (c *catalog[T]) index(at Place, r chunk.Ref[T]) {
	c.byID[at.ID] = r
	c.order.Set(entry{at, r.Any()})
}

func (c *catalog[T]) Drop(r chunk.Ref[T]) {
	at := c.place(c.Get(r))
	c.letGo(c.Get(r))
	delete(c.byID, at.ID)
	c.order.Delete(entry{Place: at})
	c.Remove(r)
}

func (c *catalog[T]) Since(after Place, yield func(*T) bool) {
	c.order.Ascend(entry{Place: after}, func(e entry) bool {
		return !after.before(e.Place) || yield(c.Get(chunk.Ref[T](e.ref)))
	})
}

func (c *catalog[T]) Restore() {
	for r, record := range c.All() {
		c.index(c.place(record), r)
		c.hold(record)
	}
}

func (c *catalog[T]) Page(after Place, limit int, keep func(*T) bool) []T {
	var page []T
	c.Since(after, func(record *T) bool {
		if keep == nil || keep(record) {
			page = append(page, *record)
		}
		return len(page) < limit
	})
	return page
}
