// Package chunk stores records in small blocks that are copied on write, so that a snapshot can be taken without stopping the writer: Freeze
// costs microseconds, and the frozen blocks do not change while the writer continues.
//
// Measured before the decision: records in blocks of 64 behind 32-bit references took a third of the memory of nested maps and a tenth of
// their garbage collection time.
//
// # How it works
//
// Each block stores the epoch in which it was made or copied. Freeze starts a new epoch and copies the list of blocks: 8 bytes per 64 records,
// 125 KB for a million records. The first write to a block in an epoch copies its 64 records and puts the copy into the table's list; later
// writes in the same epoch change the copy. So a block of a Frozen never changes, and a Frozen needs no lock. Memory grows by the blocks that
// change while a Frozen is in use, at most to twice the table; the garbage collector frees the old blocks afterwards.
//
// # What would break it
//
//   - Writing through a pointer from Get, or through one from Mut after the next Freeze: a snapshot would contain the change, or half of it.
//   - Changing in place what a record points to. A copied block shares it, so slices, maps and pointers in records must be replaced as a
//     whole. A slice that only grows at its end is safe, because the copy keeps its length.
//   - Passing a Ref out of the process, or relying on the order of places: a restored table puts the same records elsewhere.
package chunk

import (
	"iter"
	"math/bits"
)

// size is the number of records in a block: one word of used bits.
const size = 64

// Ref refers to a record of a Table[T] until the record is removed. Zero refers to none. A Ref never leaves the process: events and snapshots
// refer to records by their identifiers.
type Ref[T any] uint32

// Any drops the type of the record.
func (r Ref[T]) Any() AnyRef { return AnyRef(r) }

// AnyRef is a Ref to a record of any type, for data about records of all types, and for records whose type a package must not import.
// Converting it back to a Ref is unchecked: the caller must know the type.
type AnyRef uint32

// Table is a set of records. It allows one writer, and readers only while the writer is excluded, except on a Frozen.
//
// It is an interface because Go compiles every method of a generic type again in each package that sees one, even in an unexported field: with
// a struct here, 25 packages compiled 1,300 functions each. A call costs about a nanosecond more. It is an alias because Go also generates
// functions for the methods of a named interface: 40 packages compiled 380 each.
type Table[T any] = interface {
	// Len, Get and All are those of Frozen. Get's pointer is valid until the next Mut, Add or Remove.
	Len() int
	Get(Ref[T]) *T
	All() iter.Seq2[Ref[T], *T]

	// Mut returns the record for writing. If a Frozen may share its block, Mut first copies the block. Pointers from earlier calls must not be
	// used after Mut, because they may point into the frozen block.
	Mut(Ref[T]) *T

	// Add adds a zero record and returns it for writing. It reuses the most recently freed place first, so that the table stays dense and the
	// place depends only on the order of calls.
	Add() (Ref[T], *T)

	// Remove removes a record; its Ref may be reused.
	Remove(Ref[T])

	// From yields the records after a place, and stores the place of each in *at.
	From(after Ref[T], at *Ref[T]) iter.Seq[*T]

	// Freeze returns the records in their current state. The result may be read from another goroutine while the writer continues.
	Freeze() Frozen[T]
}

// Frozen is a Table at one moment.
type Frozen[T any] = interface {
	// Len is the number of records.
	Len() int

	// Get returns a record, for reading.
	Get(Ref[T]) *T

	// All yields the records in the order of their places.
	All() iter.Seq2[Ref[T], *T]
}

// New returns an empty Table.
func New[T any]() Table[T] { return new(table[T]) }

type block[T any] struct {
	epoch   uint32
	used    uint64
	records [size]T
}

type frozen[T any] struct {
	blocks []*block[T]
	count  int
}

func (f *frozen[T]) Len() int { return f.count }

func (f *frozen[T]) Get(r Ref[T]) *T { return &f.blocks[(r-1)/size].records[(r-1)%size] }

func (f *frozen[T]) All() iter.Seq2[Ref[T], *T] { return each(f.blocks) }

type table[T any] struct {
	frozen[T]
	epoch uint32
	free  []Ref[T]
}

func (t *table[T]) Mut(r Ref[T]) *T {
	i := (r - 1) / size
	b := t.blocks[i]
	if b.epoch != t.epoch {
		c := *b
		c.epoch = t.epoch
		b = &c
		t.blocks[i] = b
	}
	return &b.records[(r-1)%size]
}

func (t *table[T]) Add() (Ref[T], *T) {
	if n := len(t.free); n > 0 {
		r := t.free[n-1]
		t.free = t.free[:n-1]
		rec := t.Mut(r)
		t.blocks[(r-1)/size].used |= 1 << ((r - 1) % size)
		t.count++
		return r, rec
	}
	if n := len(t.blocks); n == 0 || t.blocks[n-1].used == ^uint64(0) {
		t.blocks = append(t.blocks, &block[T]{epoch: t.epoch})
	}
	last := len(t.blocks) - 1
	place := bits.TrailingZeros64(^t.blocks[last].used)
	r := Ref[T](last*size + place + 1)
	rec := t.Mut(r)
	t.blocks[last].used |= 1 << place
	t.count++
	return r, rec
}

func (t *table[T]) Remove(r Ref[T]) {
	var zero T
	*t.Mut(r) = zero
	t.blocks[(r-1)/size].used &^= 1 << ((r - 1) % size)
	t.free = append(t.free, r)
	t.count--
}

func (t *table[T]) From(after Ref[T], at *Ref[T]) iter.Seq[*T] {
	return func(yield func(*T) bool) {
		first := int(after) / size
		if first > len(t.blocks) {
			return
		}
		for r, record := range each(t.blocks[first:]) {
			if *at = r + Ref[T](first*size); *at > after && !yield(record) {
				return
			}
		}
	}
}

func (t *table[T]) Freeze() Frozen[T] {
	t.epoch++
	return &frozen[T]{blocks: append([]*block[T](nil), t.blocks...), count: t.count}
}

func each[T any](blocks []*block[T]) iter.Seq2[Ref[T], *T] {
	return func(yield func(Ref[T], *T) bool) {
		for i, b := range blocks {
			for used := b.used; used != 0; used &= used - 1 {
				place := bits.TrailingZeros64(used)
				if !yield(Ref[T](i*size+place+1), &b.records[place]) {
					return
				}
			}
		}
	}
}
