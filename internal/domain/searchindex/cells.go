package searchindex

import (
	"iter"
	"slices"
)

// cells is the column of one game property in one block: the number of each row's value, 0 where a game session lacks
// it. A rare key has a list, so that game sessions with unique keys do not need a whole column each.
type cells struct {
	used  int
	list  []cell        // of a rare key; in no order
	dense *[rows]uint32 // of a frequent key
}

type cell struct {
	row  uint16
	code uint32
}

// listMax is the number of values above which an array replaces the list; the array then takes at most 64 bytes per value. An array is
// never turned back into a list, because a key that was frequent in a block probably will be again.
const listMax = 32

func (c *cells) at(row int) int {
	return slices.IndexFunc(c.list, func(x cell) bool { return int(x.row) == row })
}

func (c *cells) get(row int) uint32 {
	if c.dense != nil {
		return c.dense[row]
	}
	if i := c.at(row); i >= 0 {
		return c.list[i].code
	}
	return 0
}

// set stores a value; 0 removes it.
func (c *cells) set(row int, code uint32) {
	if c.dense == nil && len(c.list) == listMax {
		c.dense = new([rows]uint32)
		for _, x := range c.list {
			c.dense[x.row] = x.code
		}
		c.list = nil
	}
	if c.dense != nil {
		c.used += count(code) - count(c.dense[row])
		c.dense[row] = code
		return
	}
	i := c.at(row)
	switch {
	case i >= 0 && code == 0:
		c.list = slices.Delete(c.list, i, i+1)
	case i >= 0:
		c.list[i].code = code
	case code != 0:
		c.list = append(c.list, cell{uint16(row), code})
	}
	c.used = len(c.list)
}

func count(code uint32) int {
	if code == 0 {
		return 0
	}
	return 1
}

// taken removes the values of some rows and yields them.
func (c *cells) taken(from *bits) iter.Seq2[int, uint32] {
	return func(yield func(int, uint32) bool) {
		if c.dense == nil {
			for _, x := range slices.Clone(c.list) {
				if from.has(int(x.row)) {
					c.set(int(x.row), 0)
					yield(int(x.row), x.code)
				}
			}
			return
		}
		for row := range from.all() {
			if code := c.dense[row]; code != 0 {
				c.set(row, 0)
				yield(row, code)
			}
		}
	}
}
