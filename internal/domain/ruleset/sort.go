package ruleset

import (
	"cmp"
	"slices"
)

// SortKey is the value by which a ticket is sorted.
type SortKey struct {
	Missing bool // no value: after all others, in both directions
	Number  float64
	Text    string
}

// Anchor has what a Sort reads of the ticket around which others are sorted.
type Anchor struct {
	key   string // of a map: the one that is read from all tickets
	value SortKey
}

// Anchored prepares the anchor; party has the values of each of its players.
func (s *Sort) Anchored(party [][]Value) Anchor {
	var a Anchor
	if s.Kind == Map {
		a.key = s.favourite(party)
	}
	a.value = s.value(a.key, party)
	return a
}

// Key returns a ticket's key for an anchor; party has the values of each of its players.
func (s *Sort) Key(a Anchor, party [][]Value) SortKey {
	k := s.value(a.key, party)
	if !s.Distance || k.Missing {
		return k
	}
	if a.value.Missing {
		return SortKey{Missing: true}
	}
	k.Number = Difference(k.Number, a.value.Number, false)
	return k
}

// Compare orders keys by the rule's direction: negative if a ticket with the key a comes first.
func (s *Sort) Compare(a, b SortKey) int {
	switch {
	case a.Missing || b.Missing:
		return sign(a.Missing) - sign(b.Missing)
	case s.Descending:
		return b.compare(a)
	default:
		return a.compare(b)
	}
}

func (k SortKey) compare(other SortKey) int {
	return cmp.Or(cmp.Compare(k.Number, other.Number), cmp.Compare(k.Text, other.Text))
}

// favourite returns the key with the highest or lowest value in a party's maps; of several such keys the smallest.
func (s *Sort) favourite(party [][]Value) (key string) {
	var keys []string
	for _, values := range party {
		for _, e := range values[s.Column].Map {
			keys = append(keys, e.Key)
		}
	}
	slices.Sort(keys)
	best, found := 0.0, false
	for _, candidate := range slices.Compact(keys) {
		x, _ := s.aggregate(party, candidate)
		if !found || s.MapKey == MaxValue && x > best || s.MapKey == MinValue && x < best {
			key, best, found = candidate, x, true
		}
	}
	return key
}

// value returns a party's value. For strings it is the smallest or largest according to the aggregation, else the first player's,
// because strings have no average.
func (s *Sort) value(key string, party [][]Value) SortKey {
	if s.Kind != String {
		x, ok := s.aggregate(party, key)
		return SortKey{Missing: !ok, Number: x}
	}
	k := SortKey{Missing: true}
	for _, values := range party {
		v := &values[s.Column]
		switch {
		case v.Kind == None:
		case k.Missing || s.Party == Min && v.Text < k.Text || s.Party == Max && v.Text > k.Text:
			k = SortKey{Text: v.Text}
		}
	}
	return k
}

// aggregate reduces the players' numbers, or their maps' numbers under a key, to one.
func (s *Sort) aggregate(party [][]Value, key string) (x float64, ok bool) {
	var numbers []float64
	for _, values := range party {
		switch v := &values[s.Column]; v.Kind {
		case Number:
			numbers = append(numbers, v.Number)
		case Map:
			if x, ok := v.Lookup(key); ok {
				numbers = append(numbers, x)
			}
		}
	}
	if len(numbers) == 0 {
		return 0, false
	}
	x = s.Party.Of(numbers)
	return x, finite(x)
}
