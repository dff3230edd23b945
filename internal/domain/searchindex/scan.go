package searchindex

import "github.com/musterhq/muster/internal/domain/search"

type Query struct {
	Fleet    string
	Location string // empty: all of the fleet
	Filter   search.Filter
	Order    search.Order
	After    *search.Place // the page begins after it; nil: with the first result
	Most     int           // results wanted
}

// Scan examines the game sessions of a fleet in steps and keeps the first ones in the query's order. Between two steps, game sessions may
// be added, removed and changed. A session that exists unchanged throughout is evaluated exactly once.
type Scan struct {
	query Query
	root  *test // of the filter; nil: all are selected
	best  collector
	legs  []leg // remaining parts of the ring
	step  int   // blocks examined under one lock

	asked, chosen bits // scratch

	labels   labelState // from which the found places were made
	restarts int
}

// leg is a part of the ring: from a mark up to another, or up to the end.
type leg struct {
	from, to mark
	whole    bool // to the end
}

// labelState determines whether labels from an earlier step are still comparable.
type labelState struct {
	values     *dictionary
	relabelled int
}

// stepTerms is the number of comparisons with blocks in a step: some 30 µs.
const stepTerms = 128

// restartsMax is how often a scan may start again because compared labels were redistributed. After that, it blocks the writer until it
// is done.
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
	if s.query.After != nil { // earlier pages have all results before it
		from.hash += uint64(s.query.After.Number)
	}
	if from.hash >= start.hash {
		s.legs = []leg{{from: from, whole: true}, {to: start}}
	} else {
		s.legs = []leg{{from: from, to: start}}
	}
}

// Games gives a scan access to its owner's records.
type Games interface {
	GameRef(id string) (ref uint32, ok bool)
	GameID(ref uint32) string
}

// Step examines a batch of game sessions and reports whether it was the last. The caller must exclude the writer.
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

// bindOrder finds the labels by which texts are sorted. It reports whether the results so far were sorted by outdated labels.
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

// block examines one block and reports whether it was the last one.
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

// choose finds the rows that the filter selects and that may be among the first results. Once the page is full, few rows of a block are
// among the first, and the filter is evaluated only for these. Reading a text's label takes several times as long as comparing its
// number, so in that case a selective filter is evaluated first.
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

// pass evaluates the filter for the chosen rows.
func (s *Scan) pass(b *block) {
	if s.root != nil && !s.chosen.empty() {
		s.asked = s.chosen
		s.root.run(b, &s.asked, &s.chosen)
	}
}

// Found returns the results in their order.
func (s *Scan) Found() []search.Place {
	places := make([]search.Place, len(s.best.found))
	for i := range s.best.found {
		places[i] = s.best.found[i].place(s.query.Order)
	}
	return places
}
