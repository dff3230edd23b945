package flow

import (
	"hash/maphash"

	"github.com/musterhq/muster/internal/domain/chunk"
)

// index finds the records of a table by a key.
type index[K comparable, T any] struct {
	refs  chunk.Index
	seed  maphash.Seed
	table chunk.Table[T]
	has   func(*T, K) bool // reports whether a record has the key
}

func newIndex[K comparable, T any](table chunk.Table[T], has func(*T, K) bool) *index[K, T] {
	return &index[K, T]{seed: maphash.MakeSeed(), table: table, has: has}
}

func (x *index[K, T]) hash(key K) uint64 { return maphash.Comparable(x.seed, key) }

func (x *index[K, T]) is(key K) func(chunk.AnyRef) bool {
	return func(r chunk.AnyRef) bool { return x.has(x.table.Get(chunk.Ref[T](r)), key) }
}

func (x *index[K, T]) len() int { return x.refs.Len() }

func (x *index[K, T]) find(key K) (chunk.Ref[T], bool) {
	r := x.refs.Find(x.hash(key), x.is(key))
	return chunk.Ref[T](r), r != 0
}

// put adds a record, which has the key. Another one that has it is not found any more, and returned; 0 if there is none.
func (x *index[K, T]) put(key K, r chunk.Ref[T]) (replaced chunk.Ref[T]) {
	return chunk.Ref[T](x.refs.Put(maphash.Comparable(x.seed, key), r.Any(), func(r chunk.AnyRef) bool { return x.has(x.table.Get(chunk.Ref[T](r)), key) }))
}

// remove removes the record that has the key, which must still have it.
func (x *index[K, T]) remove(key K) {
	x.refs.Remove(x.hash(key), x.is(key))
}

// rebuild finds the keys of all records of the table.
func (x *index[K, T]) rebuild(key func(*T) K) {
	x.refs = chunk.Index{}
	x.refs.Expect(x.table.Len())
	for r, record := range x.table.All() {
		x.put(key(record), r)
	}
}
