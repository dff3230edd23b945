// Package sorted has ordered sets and maps. The trees are tidwall/btree's, without its locks, because the cell has one writer, and
// readers only while the writer is excluded.
//
// The types are interfaces to shorten compilation. A package that mentions the state, even indirectly, compiles each method of each
// generic type in it again; with the trees themselves in the state, these were 2,500 functions for each of eleven packages outside the
// core.
package sorted

import "github.com/tidwall/btree"

// Set has values in the order of its less function.
type Set[T any] = interface {
	Len() int
	Get(key T) (value T, found bool)
	Set(value T) (previous T, replaced bool)
	Delete(key T) (previous T, deleted bool)
	Min() (value T, found bool)
	Ascend(pivot T, visit func(value T) bool)
	Descend(pivot T, visit func(value T) bool)
	Scan(visit func(value T) bool)
	Reverse(visit func(value T) bool)
}

// NewSet returns an empty set. less(a, b) reports whether a comes before b; values of which neither comes first are equal.
func NewSet[T any](less func(a, b T) bool) Set[T] {
	return btree.NewBTreeGOptions(less, btree.Options{NoLocks: true})
}

// Key is the type constraint of a map's keys.
type Key interface{ ~string | ~uint64 }

// Map has values by key, in the order of the keys.
type Map[K Key, V any] = interface {
	Len() int
	Get(key K) (value V, found bool)
	Set(key K, value V) (previous V, replaced bool)
	Delete(key K) (previous V, deleted bool)
	Min() (key K, value V, found bool)
	Ascend(pivot K, visit func(key K, value V) bool)
	Scan(visit func(key K, value V) bool)
	Values() []V
}

func NewMap[K Key, V any]() Map[K, V] { return btree.NewMap[K, V](0) }
