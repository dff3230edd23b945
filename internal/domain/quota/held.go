package quota

import (
	"cmp"
	"slices"

	"github.com/musterhq/muster/internal/domain"
)

// Amount is a number of records and, where counted, their memory in bytes.
type Amount struct {
	Count int
	Bytes int64
}

// Held counts records of one kind, in total and by Holder. The zero value is empty.
type Held struct {
	total Amount
	by    map[Holder]Amount
}

// Add counts a new record with its bytes.
func (h *Held) Add(by Holder, bytes int) { h.add(by, Amount{1, int64(bytes)}) }

// Remove reverts an Add.
func (h *Held) Remove(by Holder, bytes int) { h.add(by, Amount{-1, -int64(bytes)}) }

// Grow counts a change of a record's size.
func (h *Held) Grow(by Holder, bytes int) { h.add(by, Amount{0, int64(bytes)}) }

func (h *Held) add(by Holder, x Amount) {
	h.total = h.total.plus(x)
	if by == 0 {
		return
	}
	if h.by == nil {
		h.by = map[Holder]Amount{}
	}
	if now := h.by[by].plus(x); now != (Amount{}) {
		h.by[by] = now
	} else {
		delete(h.by, by)
	}
}

func (a Amount) plus(b Amount) Amount { return Amount{a.Count + b.Count, a.Bytes + b.Bytes} }

// Total returns the total.
func (h *Held) Total() Amount { return h.total }

// Bytes returns the total size.
func (h *Held) Bytes() int64 { return h.total.Bytes }

// Of returns what a holder has.
func (h *Held) Of(by Holder) Amount { return h.by[by] }

// Holding is what one holder has.
type Holding struct {
	Holder Holder
	Amount
}

// Highest returns the n holders with the most records.
func (h *Held) Highest(n int) []Holding {
	all := make([]Holding, 0, len(h.by))
	for by, x := range h.by {
		all = append(all, Holding{by, x})
	}
	slices.SortFunc(all, func(a, b Holding) int { return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Holder, b.Holder)) })
	return all[:min(n, len(all))]
}

// Equal reports whether two counts are the same.
func (h *Held) Equal(x *Held) bool {
	if h.total != x.total || len(h.by) != len(x.by) {
		return false
	}
	for by, a := range h.by {
		if x.by[by] != a {
			return false
		}
	}
	return true
}

// Room refuses bytes of a kind beyond the installation's limit, or beyond the part of it that one holder may use: three quarters or, for access keys
// with the role client, which all players of a game share, a half.
func (h *Held) Room(k Kind, by Holder, m domain.Maker, bytes int, most int64) error {
	if has := h.total.Bytes; has+int64(bytes) > most {
		return domain.Refuse(domain.Overloaded, "%s hold %d bytes; the limit is %d", k, has, most)
	}
	share := most - most/4
	if m != 0 {
		share = most / 2
	}
	if has := h.by[by].Bytes; by != 0 && has+int64(bytes) > share {
		refusal := domain.Refuse(domain.Overloaded, "%s of this holder: %d bytes; it may have %d", k, has, share)
		refusal.Quota = k.String()
		return refusal
	}
	return nil
}
