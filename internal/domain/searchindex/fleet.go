package searchindex

import (
	"slices"
	"sort"
)

// fleet is the index of one fleet: blocks in the order of the ring.
type fleet struct {
	set        *Set
	blocks     []*block // each from its first mark up to the next one's; the first block begins at zero
	names      *dictionary
	locations  *dictionary
	properties map[string]*dictionary
}

func newFleet(x *Set) *fleet {
	return &fleet{set: x, names: newDictionary(), locations: newDictionary(), properties: map[string]*dictionary{}}
}

// mark is a place on the ring. Two game sessions may have the same hash, by chance or by maliciously chosen ids; the reference
// distinguishes them.
type mark struct {
	hash uint64
	ref  uint32
}

func (a mark) before(b mark) bool {
	return a.hash < b.hash || a.hash == b.hash && a.ref < b.ref
}

// find returns the block whose part of the ring contains a mark.
func (f *fleet) find(at mark) int {
	return sort.Search(len(f.blocks), func(i int) bool { return at.before(f.blocks[i].first) }) - 1
}

// roomFor returns the block for a mark, with a free row.
func (f *fleet) roomFor(at mark) *block {
	if len(f.blocks) == 0 {
		f.blocks = append(f.blocks, newBlock(f, mark{}))
	}
	i := f.find(at)
	if f.blocks[i].count == rows {
		f.split(i)
		i = f.find(at)
	}
	return f.blocks[i]
}

// split moves the second half of a full block into a new one.
func (f *fleet) split(i int) {
	b := f.blocks[i]
	marks := make([]mark, 0, rows)
	for row := range b.live.all() {
		marks = append(marks, b.mark(row))
	}
	slices.SortFunc(marks, func(a, b mark) int {
		if a.before(b) {
			return -1
		}
		return 1
	})
	right := newBlock(f, marks[len(marks)/2])
	var moving bits
	for row := range b.live.all() {
		moving.set(row, !b.mark(row).before(right.first))
	}
	b.move(&moving, right)
	f.blocks = slices.Insert(f.blocks, i+1, right)
}

// tidy joins small blocks with a neighbour, so that scans of a fleet that shrinks become faster.
func (f *fleet) tidy(at mark) {
	i := f.find(at)
	switch {
	case f.blocks[i].count == 0 && len(f.blocks) == 1:
		f.blocks = nil
	case f.blocks[i].count > rows/4:
	case i+1 < len(f.blocks) && f.blocks[i].count+f.blocks[i+1].count <= rows/2:
		f.join(i)
	case i > 0 && f.blocks[i-1].count+f.blocks[i].count <= rows/2:
		f.join(i - 1)
	}
}

// join moves all of the next block into block i.
func (f *fleet) join(i int) {
	right := f.blocks[i+1]
	moving := right.live
	right.move(&moving, f.blocks[i])
	f.blocks = slices.Delete(f.blocks, i+1, i+2)
}

// property returns the dictionary of a property's values.
func (f *fleet) property(key string) *dictionary {
	d := f.properties[key]
	if d == nil {
		d = newDictionary()
		f.properties[key] = d
	}
	return d
}
