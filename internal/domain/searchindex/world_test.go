package searchindex

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/musterhq/muster/internal/domain/search"
)

// world has an index and the plain records that it indexes.
type world struct {
	*rand.Rand
	index *Set
	games map[uint32]*game
	refs  map[string]uint32
	free  []uint32
	made  int
	deep  string // the last text; each comes between the one before and all above, until there is no room for labels
	same  bool   // all game sessions have the same mark
}

type game struct {
	Session
	properties map[string]string
}

const testFleet = "fleet-1"

func newWorld(seed uint64) *world {
	return &world{Rand: rand.New(rand.NewPCG(seed, 1)), index: New(), games: map[uint32]*game{}, refs: map[string]uint32{}}
}

func (w *world) GameRef(id string) (uint32, bool) { ref, ok := w.refs[id]; return ref, ok }
func (w *world) GameID(ref uint32) string         { return w.games[ref].ID }

func pick[T any](w *world, of ...T) T { return of[w.IntN(len(of))] }

// text returns a value of a property: one of a few common values, or a rare one.
func (w *world) text() string {
	switch w.IntN(5) {
	case 0:
		return fmt.Sprintf("own-%d", w.IntN(1000))
	case 1:
		if len(w.deep) > 90 {
			w.deep = "m"
		}
		w.deep += "a"
		return w.deep
	case 2:
		return strings.Repeat("x", w.IntN(3))
	default:
		return pick(w, "a", "b", "c", "ü", "it's")
	}
}

func (w *world) setProperties(g *game) {
	g.properties = map[string]string{}
	for range w.IntN(4) {
		g.properties[pick(w, "mode", "mode", "map", "elo", fmt.Sprintf("key-%d", w.IntN(100)))] = w.text()
	}
	g.Properties = maps.All(g.properties)
}

// add adds a game session; one whose id begins with "fixed" never changes.
func (w *world) add(kind string) uint32 {
	w.made++
	ref := uint32(len(w.games) + len(w.free) + 1)
	if n := len(w.free); n > 0 {
		ref, w.free = w.free[n-1], w.free[:n-1]
	}
	location := pick(w, "custom-a", "custom-b")
	g := &game{Session: Session{
		ID: fmt.Sprintf("%s/%s/%s-%d", testFleet, location, kind, w.made), Fleet: testFleet, Location: location,
		Players: w.Int32N(5), SeatsKept: w.Int32N(2), PlayersMax: w.Int32N(5), DenyPlayers: w.IntN(5) == 0, Created: 1_700_000_000_000 + w.Int64N(50),
	}}
	w.rename(g)
	w.setProperties(g)
	w.games[ref], w.refs[g.ID] = g, ref
	at := mark{search.Mark(g.ID), ref}
	if w.same {
		at.hash = 7
	}
	w.index.add(at, g.Session)
	return ref
}

func (w *world) rename(g *game) {
	if g.Name = w.text(); w.IntN(10) == 0 {
		g.Name = strings.Repeat("ü", 300) + g.Name // only its beginning determines its order
	}
}

// change changes a game session that is not fixed, or adds one.
func (w *world) change() {
	ref := 1 + w.Uint32N(uint32(len(w.games)+len(w.free))+1)
	g := w.games[ref]
	if g == nil || w.IntN(8) == 0 {
		w.add("moving")
		return
	}
	if strings.Contains(g.ID, "fixed") {
		return
	}
	was := g.Session
	switch w.IntN(6) {
	case 0:
		w.remove(ref)
	case 1:
		w.rename(g)
		w.index.Change(ref, was, g.Session, false)
	case 2:
		w.setProperties(g)
		w.index.Change(ref, was, g.Session, true)
	case 3:
		g.PlayersMax, g.DenyPlayers = w.Int32N(5), !g.DenyPlayers
		w.index.Change(ref, was, g.Session, false)
	default:
		g.Players, g.SeatsKept = w.Int32N(5), w.Int32N(2)
		w.index.SetPlayers(ref, g.Players, g.SeatsKept)
	}
}

// respread redistributes all labels, as happens when there is no room for another one.
func (w *world) respread() {
	if f := w.index.fleets[testFleet]; f != nil && w.IntN(3) == 0 {
		f.names.relabel()
		for _, d := range f.properties {
			d.relabel()
		}
	}
}

func (w *world) remove(ref uint32) {
	g := w.games[ref]
	w.index.Remove(ref, g.Session)
	delete(w.games, ref)
	delete(w.refs, g.ID)
	w.free = append(w.free, ref)
}

func (g *game) row() search.Row {
	return search.Row{
		ID: g.ID, Name: g.Name, Players: g.Players, SeatsKept: g.SeatsKept, PlayersMax: g.PlayersMax, DenyPlayers: g.DenyPlayers, Created: g.Created,
		Property: func(key string) (string, bool) { v, ok := g.properties[key]; return v, ok },
	}
}

// filter returns a random filter expression.
func (w *world) filter(depth int) string {
	if depth > 0 {
		switch w.IntN(5) {
		case 0, 1:
			return w.filter(depth-1) + " AND " + w.filter(depth-1)
		case 2:
			return "(" + w.filter(depth-1) + " OR " + w.filter(depth-1) + ")"
		case 3:
			return "NOT (" + w.filter(depth-1) + ")"
		}
	}
	quoted := func() string { return "'" + strings.ReplaceAll(w.text(), "'", `\'`) + "'" }
	switch w.IntN(6) {
	case 0:
		return "hasAvailablePlayerSessions" + pick(w, "=", "<>") + pick(w, "true", "false")
	case 1:
		return pick(w, "playerSessionCount", "maximumSessions") + pick(w, "=", "<>", "<", ">", "<=", ">=") + pick(w, "0", "2", "2.5", "4", "-1")
	case 2:
		return fmt.Sprintf("creationTimeMillis%s%d", pick(w, "<", ">", "<>"), 1_700_000_000_000+w.IntN(50))
	case 3:
		return "gameSessionName" + pick(w, "=", "<>") + quoted()
	case 4:
		return fmt.Sprintf("gameSessionId%s'%s-%d'", pick(w, "=", "<>"), pick(w, "fixed", "moving"), w.IntN(50))
	default:
		return "gameSessionProperties." + pick(w, "mode", "map", "elo", "key-1", "nobody") + pick(w, "=", "<>") + quoted()
	}
}

func (w *world) order() search.Order {
	a := search.Attribute(w.IntN(int(search.HasAvailablePlayerSessions) + 1))
	o := search.Order{Attribute: a, Descending: w.IntN(2) == 0}
	switch a {
	case search.None:
		o = search.Order{Start: w.Uint64()}
	case search.Property:
		o.Key = pick(w, "mode", "elo", "key-1", "nobody")
	}
	return o
}

// naive returns the places of a search's results by reading each game session.
func (w *world) naive(q Query) (places []search.Place) {
	for _, g := range w.games {
		if r := g.row(); (q.Location == "" || g.Location == q.Location) && q.Filter.Match(r) {
			places = append(places, q.Order.PlaceOf(r))
		}
	}
	slices.SortFunc(places, q.Order.Compare)
	return places
}

// page runs one search and calls between between its steps.
func (w *world) page(q Query, between func()) []search.Place {
	s := NewScan(q)
	s.step = 1 // block; there are few
	for !s.Step(w.index, w) {
		between()
	}
	return s.Found()
}
