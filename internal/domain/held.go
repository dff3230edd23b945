package domain

// Held counts the bytes of records of one kind in memory, in all and for each Maker. The zero value is empty.
type Held struct {
	total int64
	by    map[Maker]int64
}

// Add adds the bytes of a new record, or a negative number for a removed one.
func (h *Held) Add(m Maker, bytes int) {
	h.total += int64(bytes)
	if m == 0 {
		return
	}
	if h.by == nil {
		h.by = map[Maker]int64{}
	}
	if h.by[m] += int64(bytes); h.by[m] == 0 {
		delete(h.by, m)
	}
}

// Bytes returns the sum of all.
func (h *Held) Bytes() int64 { return h.total }

// Room refuses bytes beyond the limit, or beyond the half of it that one Maker may use.
func (h *Held) Room(m Maker, bytes int, most int64, what string) error {
	if h.total+int64(bytes) > most {
		return Refuse(Overloaded, "%s hold %d bytes; the limit is %d", what, h.total, most)
	}
	if mine := h.by[m]; m != 0 && mine+int64(bytes) > most/2 {
		return Refuse(Overloaded, "%s of this access key hold %d bytes; it may have %d", what, mine, most/2)
	}
	return nil
}
