package matcher

import "sort"

// ageList has tickets by age, oldest first, in chunks, so that a removal from a long list moves little.
type ageList struct {
	chunks  [][]int32
	tickets int
	players int32
}

// chunkMax is the most tickets in a chunk.
const chunkMax = 256

// place returns where a ticket is or belongs.
func (m *Matcher) place(l *ageList, slot int32) (chunk, at int) {
	chunk = len(l.chunks)
	if n := len(l.chunks); n > 0 {
		last := l.chunks[n-1]
		if m.older(last[len(last)-1], slot) {
			return n, 0 // the usual case: it is the youngest
		}
		chunk = sort.Search(n, func(i int) bool {
			c := l.chunks[i]
			return !m.older(c[len(c)-1], slot)
		})
	}
	if chunk == len(l.chunks) {
		return chunk, 0
	}
	c := l.chunks[chunk]
	return chunk, sort.Search(len(c), func(i int) bool { return !m.older(c[i], slot) })
}

func (m *Matcher) insert(l *ageList, slot int32) {
	l.tickets++
	l.players += m.pool.tickets[slot].players
	chunk, at := m.place(l, slot)
	if chunk == len(l.chunks) {
		if chunk > 0 && len(l.chunks[chunk-1]) < chunkMax {
			l.chunks[chunk-1] = append(l.chunks[chunk-1], slot)
		} else {
			l.chunks = append(l.chunks, []int32{slot})
		}
		return
	}
	c := append(l.chunks[chunk], 0)
	copy(c[at+1:], c[at:])
	c[at] = slot
	l.chunks[chunk] = c
	if len(c) > chunkMax {
		half := len(c) / 2
		l.chunks = append(l.chunks, nil)
		copy(l.chunks[chunk+1:], l.chunks[chunk:])
		l.chunks[chunk+1] = append([]int32(nil), c[half:]...)
		l.chunks[chunk] = c[:half]
	}
}

func (m *Matcher) take(l *ageList, slot int32) {
	l.tickets--
	l.players -= m.pool.tickets[slot].players
	chunk, at := m.place(l, slot)
	c := l.chunks[chunk]
	copy(c[at:], c[at+1:])
	l.chunks[chunk] = c[:len(c)-1]
	if len(c) == 1 {
		copy(l.chunks[chunk:], l.chunks[chunk+1:])
		l.chunks[len(l.chunks)-1] = nil
		l.chunks = l.chunks[:len(l.chunks)-1]
	}
}

// firstAfter returns the place of the oldest ticket that started after an instant, or at it if including.
func (m *Matcher) firstAfter(l *ageList, start int64, including bool) (chunk, at int) {
	after := func(slot int32) bool {
		s := int64(m.pool.tickets[slot].start)
		return s > start || including && s == start
	}
	chunk = sort.Search(len(l.chunks), func(i int) bool {
		c := l.chunks[i]
		return after(c[len(c)-1])
	})
	if chunk == len(l.chunks) {
		return chunk, 0
	}
	c := l.chunks[chunk]
	return chunk, sort.Search(len(c), func(i int) bool { return after(c[i]) })
}

// at returns the ticket at a place, and the next place; false past the end.
func (l *ageList) at(chunk, i int) (slot int32, ok bool) {
	if chunk >= len(l.chunks) {
		return 0, false
	}
	return l.chunks[chunk][i], true
}

func (l *ageList) next(chunk, i int) (int, int) {
	if i+1 < len(l.chunks[chunk]) {
		return chunk, i + 1
	}
	return chunk + 1, 0
}
