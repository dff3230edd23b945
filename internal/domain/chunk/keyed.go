package chunk

import "hash/maphash"

// Keyed finds the records of a table by a key that each record contains. A record must have its key when it is added, and still have it when it
// is removed.
type Keyed[K comparable, T any] struct {
	refs  Index
	seed  maphash.Seed
	table Table[T]
	has   func(*T, K) bool // reports whether a record has the key
}

// NewKeyed returns an empty index of the records of a table.
func NewKeyed[K comparable, T any](table Table[T], has func(*T, K) bool) *Keyed[K, T] {
	return &Keyed[K, T]{seed: maphash.MakeSeed(), table: table, has: has}
}

func (x *Keyed[K, T]) hash(key K) uint64 { return maphash.Comparable(x.seed, key) }

func (x *Keyed[K, T]) is(key K) func(AnyRef) bool {
	return func(r AnyRef) bool { return x.has(x.table.Get(Ref[T](r)), key) }
}

// Len returns the number of indexed records.
func (x *Keyed[K, T]) Len() int { return x.refs.Len() }

// Expect makes room for n records in an empty index.
func (x *Keyed[K, T]) Expect(n int) { x.refs.Expect(n) }

// Find finds the record that has the key.
func (x *Keyed[K, T]) Find(key K) (Ref[T], bool) {
	r := x.refs.Find(x.hash(key), x.is(key))
	return Ref[T](r), r != 0
}

// Put adds a record that has the key. If another record has the key, Put replaces it in the index and returns it; otherwise it returns 0.
func (x *Keyed[K, T]) Put(key K, r Ref[T]) (replaced Ref[T]) {
	return Ref[T](x.refs.Put(x.hash(key), r.Any(), x.is(key)))
}

// Remove removes the record that has the key, which must still have it.
func (x *Keyed[K, T]) Remove(key K) {
	x.refs.Remove(x.hash(key), x.is(key))
}

// Rebuild indexes all records of the table.
func (x *Keyed[K, T]) Rebuild(key func(*T) K) {
	x.refs = Index{}
	x.refs.Expect(x.table.Len())
	for r, record := range x.table.All() {
		x.Put(key(record), r)
	}
}
