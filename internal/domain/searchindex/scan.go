package searchindex

import "github.com/musterhq/muster/internal/domain/search"

// Query is what a search asks for.
type Query struct {
	Fleet    string
	Location string // empty: all of the fleet
	Filter   search.Filter
	Order    search.Order
	After    *search.Place // the page begins behind it; nil: with the first one
	Most     int           // results wanted
}

// Scan passes over the game sessions of a fleet in steps, and keeps the first ones in the query's order. Between two steps
// game sessions may come, go and change. One that is there throughout, and for as long is what it is, is judged
// once and rightly.
type Scan struct {
	query Query
	root  *test // of the filter; nil: all are chosen
	best  collector
	legs  []leg // of the ring that are left
	step  int   // blocks passed over under one lock

	asked, chosen bits // scratch

	labels   labelState // that the found places are made with
	restarts int
}

// leg is a part of the ring: from a mark up to another, or to the end.
type leg struct {
	from, to mark
	whole    bool // to the end
}

// labelState tells whether labels from an earlier step can still be compared.
type labelState struct {
	values     *dictionary
	relabelled int
}

// stepTerms is how many comparisons a step makes with blocks: some 30 µs.
const stepTerms = 128

// restartsMax is how often a scan begins again because the labels it had compared were spread anew. After that it holds
// the writer up until it is done.
const restartsMax = 4

// NewScan prepares a search.
func NewScan(q Query) *Scan {
	s := &Scan{query: q, step: max(1, stepTerms/(q.Filter.Terms+2))}
	if q.Filter.Root != nil {
		root := newTest(q.Filter.Root)
		s.root = &root
	}
	s.begin()
	return s
}

func (s *Scan) begin() {
	s.best = collector{order: s.query.Order, turn: turnOf(s.query.Order), most: s.query.Most}
	s.legs = []leg{{whole: true}}
	if s.query.Order.Attribute != search.None {
		return
	}
	start := mark{hash: s.query.Order.Start}
	from := start
	if s.query.After != nil { // all before it is on pages that were read
		from.hash += uint64(s.query.After.Number)
	}
	if from.hash >= start.hash {
		s.legs = []leg{{from: from, whole: true}, {to: start}}
	} else {
		s.legs = []leg{{from: from, to: start}}
	}
}

// Games is what a scan asks its owner about game sessions.
type Games interface {
	GameRef(id string) (ref uint32, ok bool)
	GameID(ref uint32) string
}

// Step passes over some game sessions and reports whether that was all. It is called while the writer is kept out.
func (s *Scan) Step(x *Set, games Games) (done bool) {
	f := x.fleets[s.query.Fleet]
	if f == nil {
		return true
	}
	location := uint32(0)
	if s.query.Location != "" {
		var ok bool
		if location, ok = f.locations.codes[s.query.Location]; !ok {
			return true
		}
	}
	if s.root != nil {
		s.root.bind(f, s.query.Fleet, games)
	}
	if s.bindOrder(f) {
		s.begin()
		s.restarts++
	}
	s.best.bind(f, s.query.After, games)
	for n := 0; n < s.step || s.restarts > restartsMax; n++ {
		if s.block(f, location) {
			return true
		}
	}
	return false
}

// bindOrder finds the labels that texts are sorted by. It reports whether what was found is sorted by others.
func (s *Scan) bindOrder(f *fleet) (stale bool) {
	var values *dictionary
	switch s.query.Order.Attribute {
	case search.GameSessionName:
		values = f.names
	case search.Property:
		values = f.properties[s.query.Order.Key]
	}
	if values == nil && s.labels.values == nil {
		return false
	}
	now := labelState{values: values}
	if values != nil {
		now.relabelled = values.relabelled
	}
	stale = now != s.labels && len(s.best.found) > 0
	s.labels = now
	return stale
}

// block passes over one block and reports whether it was the last one.
func (s *Scan) block(f *fleet, location uint32) (done bool) {
	at := s.legs[0]
	i := f.find(at.from)
	b := f.blocks[i]
	last := i+1 == len(f.blocks)
	within := b.live
	if b.first != at.from {
		for row := range b.live.all() {
			if b.mark(row).before(at.from) {
				within.set(row, false)
			}
		}
	}
	if !at.whole && (last || at.to.before(f.blocks[i+1].first)) {
		for row := range b.live.all() {
			if !b.mark(row).before(at.to) {
				within.set(row, false)
			}
		}
	}
	if location != 0 {
		equal(&b.locations, location, false, &within, &within)
	}
	s.choose(f, b, &within)
	s.best.offerAll(b, &s.chosen)

	if !last {
		s.legs[0].from = f.blocks[i+1].first
	}
	if last || !at.whole && !s.legs[0].from.before(at.to) {
		s.legs = s.legs[1:]
	}
	return len(s.legs) == 0 || s.best.beyond(s.legs[0].from.hash)
}

// choose finds the rows that the filter chooses and that may be among the first ones. When the page is full already, few
// of a block are among the first, and the filter is asked about those alone. To look up what a text is sorted by takes
// several times as long as to compare its number, so there a filter that few pass is asked first.
func (s *Scan) choose(f *fleet, b *block, within *bits) {
	s.chosen = *within
	bounded := s.best.full() || s.best.after != nil
	filterFirst := bounded && s.root != nil && s.best.values != nil && s.root.uses <= len(f.blocks)*rows/8
	if filterFirst {
		s.pass(b)
	}
	if bounded && !s.chosen.empty() {
		s.asked = s.chosen
		s.best.reach(b, &s.asked, &s.chosen)
	}
	if !filterFirst {
		s.pass(b)
	}
}

// pass asks the filter about the chosen rows.
func (s *Scan) pass(b *block) {
	if s.root != nil && !s.chosen.empty() {
		s.asked = s.chosen
		s.root.run(b, &s.asked, &s.chosen)
	}
}

// Found are the results in their order.
func (s *Scan) Found() []search.Place {
	places := make([]search.Place, len(s.best.found))
	for i := range s.best.found {
		places[i] = s.best.found[i].place(s.query.Order)
	}
	return places
}
