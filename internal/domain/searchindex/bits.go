package searchindex

import (
	"iter"
	mathbits "math/bits"
)

// rows is the number of game sessions in a block: small enough that a fleet with one game session needs little memory, large enough that
// the cost per block is negligible.
const (
	rows  = 512
	words = rows / 64
)

// bits has one bit for each row of a block.
type bits [words]uint64

func (b *bits) set(row int, on bool) {
	if on {
		b[row/64] |= 1 << (row % 64)
	} else {
		b[row/64] &^= 1 << (row % 64)
	}
}

func (b *bits) has(row int) bool { return b[row/64]>>(row%64)&1 != 0 }

func (b *bits) empty() bool {
	var any uint64
	for _, w := range b {
		any |= w
	}
	return any == 0
}

func (b *bits) all() iter.Seq[int] {
	return func(yield func(int) bool) {
		for w, word := range b {
			for ; word != 0; word &= word - 1 {
				if !yield(w*64 + mathbits.TrailingZeros64(word)) {
					return
				}
			}
		}
	}
}
