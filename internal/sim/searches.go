package sim

import (
	"fmt"
	"slices"
	"time"

	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/search"
	"github.com/musterhq/muster/internal/domain/searchindex"
	"github.com/musterhq/muster/internal/domain/session"
)

// searcher is a client that reads the results of a search, page by page, while game sessions start, end and change, and the
// service maybe restarts.
type searcher struct {
	query  searchindex.Query
	chosen func(*session.GameSession) bool // the meaning of the filter
	asked  string                          // for messages about a violation

	steady  map[session.ID]search.Place // matched since the search began, always at the same place
	pages   map[session.ID]int          // on how many pages a game session was
	waiting *node                       // a page was read there and is not durable yet
}

// searchersMax is the most searches at a time.
const searchersMax = 3

// filterWish is a filter, and its meaning as a function.
type filterWish struct {
	text  string
	means func(*session.GameSession) bool
}

func (w *World) drawFilter() filterWish {
	mode := fmt.Sprint(w.chance.IntN(3))
	number := int32(w.chance.IntN(4))
	created := w.time().Add(-time.Duration(w.chance.IntN(60)) * time.Second)
	free := func(g *session.GameSession) bool { return g.SeatsHeld < g.PlayersMax && !g.DenyPlayers }
	is := func(g *session.GameSession, key, value string) (same, has bool) {
		i := slices.IndexFunc(g.Properties, func(p session.Property) bool { return p.Key == key })
		return i >= 0 && g.Properties[i].Value == value, i >= 0
	}
	wishes := []filterWish{
		{"", func(*session.GameSession) bool { return true }},
		{"hasAvailablePlayerSessions=true", free},
		{fmt.Sprintf("hasAvailablePlayerSessions = false OR playerSessionCount >= %d", number), func(g *session.GameSession) bool { return !free(g) || g.Seated() >= number }},
		{fmt.Sprintf("playerSessionCount > 0 AND maximumSessions <> %d", number), func(g *session.GameSession) bool { return g.Seated() > 0 && g.PlayersMax != number }},
		{fmt.Sprintf("maximumSessions < %d.5", number), func(g *session.GameSession) bool { return g.PlayersMax <= number }},
		{"gameSessionProperties.mode = '" + mode + "'", func(g *session.GameSession) bool { same, _ := is(g, "mode", mode); return same }},
		{"NOT (gameSessionProperties.mode <> '" + mode + "')", func(g *session.GameSession) bool { same, has := is(g, "mode", mode); return same || !has }},
		{"gameSessionProperties.k1 = 'v' or gameSessionName <> 'game'", func(g *session.GameSession) bool {
			same, _ := is(g, "k1", "v")
			return same || g.Name != "game" && g.Name != ""
		}},
		{fmt.Sprintf("creationTimeMillis > %d", created), func(g *session.GameSession) bool { return g.Created > created }},
	}
	return wishes[w.chance.IntN(len(wishes))]
}

var searchOrders = []string{
	"", "", "creationTimeMillis", "creationTimeMillis DESC", "playerSessionCount DESC", "maximumSessions ASC", "hasAvailablePlayerSessions DESC",
	"gameSessionProperties.mode", "gameSessionProperties.k2 DESC", "gameSessionName DESC", "gameSessionId ASC",
}

// search begins a search, or reads the next page of one.
func (n *node) search() {
	w := n.w
	if len(w.searchers) < searchersMax && w.oneIn(2) {
		if s := w.newSearcher(n); s != nil {
			w.searchers = append(w.searchers, s)
		}
		return
	}
	if len(w.searchers) == 0 {
		return
	}
	i := w.chance.IntN(len(w.searchers))
	s := w.searchers[i]
	if s.waiting == n {
		return
	}
	s.waiting = n
	v := n.seq.Cell().View()
	games, places := s.page(w, &v)
	n.whenDurable(v.Seen(), func() { s.read(w, games, places) })
}

func (w *World) newSearcher(n *node) *searcher {
	v := n.seq.Cell().View()
	f, ok := w.wishes.fleet(&v)
	if !ok {
		return nil
	}
	wish, order := w.drawFilter(), searchOrders[w.chance.IntN(len(searchOrders))]
	s := &searcher{
		query:  searchindex.Query{Fleet: f.ID, Most: 1 + w.chance.IntN(4)},
		chosen: wish.means, asked: fmt.Sprintf("%q in order %q", wish.text, order),
		steady: map[session.ID]search.Place{}, pages: map[session.ID]int{},
	}
	if w.oneIn(3) {
		s.query.Location = w.wishes.locationName()
	}
	var err error
	if wish.text != "" {
		if s.query.Filter, err = search.ParseFilter(wish.text); err != nil {
			w.violated("filter %q: %v", wish.text, err)
		}
	}
	if order == "" {
		s.query.Order.Start = w.chance.Uint64()
	} else if s.query.Order, err = search.ParseOrder(order); err != nil {
		w.violated("order %q: %v", order, err)
	}
	for _, p := range s.all(&v) {
		s.steady[session.ID(p.ID)] = p
	}
	w.counts.Searches++
	return s
}

// all returns the complete present result of the search, by reading each game session.
func (s *searcher) all(v *cell.View) (places []search.Place) {
	games, _, _ := v.GameSessions(s.query.Fleet, hosting.GameFilter{Location: s.query.Location, Status: session.Active}, 0, "", 1<<20)
	for i := range games {
		if s.chosen(&games[i]) {
			places = append(places, s.query.Order.PlaceOf(games[i].Row()))
		}
	}
	slices.SortFunc(places, s.query.Order.Compare)
	return places
}

// page reads a page like the engine, and compares it with the complete result at this moment.
func (s *searcher) page(w *World, v *cell.View) ([]session.GameSession, []search.Place) {
	scan := searchindex.NewScan(s.query)
	for !v.Search(scan) {
	}
	games, places := v.SearchResults(&s.query, scan.Found())
	var want []search.Place
	for _, p := range s.all(v) {
		if len(want) < s.query.Most && (s.query.After == nil || s.query.Order.Compare(*s.query.After, p) < 0) {
			want = append(want, p)
		}
	}
	if !slices.Equal(places, want) || len(games) != len(want) {
		w.violated("a search for %s behind %+v finds %+v, want %+v", s.asked, s.query.After, places, want)
	}
	w.counts.Pages++
	return games, places
}

// read handles a durable page.
func (s *searcher) read(w *World, games []session.GameSession, places []search.Place) {
	s.waiting = nil
	for i := range games {
		w.known.sawGame(&games[i])
		s.pages[games[i].ID]++
	}
	if len(places) == s.query.Most {
		s.query.After = &places[len(places)-1]
		return
	}
	for id := range s.steady {
		if s.pages[id] != 1 {
			w.violated("a search for %s found %s on %d pages, and it was there throughout", s.asked, id, s.pages[id])
		}
	}
	w.searchers = slices.DeleteFunc(w.searchers, func(x *searcher) bool { return x == s })
}

// watchSearches removes game sessions that are no longer steady.
func (w *World) watchSearches(v *cell.View) {
	for _, s := range w.searchers {
		for id, was := range s.steady {
			g, ok := v.GameSession(id)
			if !ok || g.Status != session.Active || !s.chosen(&g) || s.query.Order.PlaceOf(g.Row()) != was {
				delete(s.steady, id)
			}
		}
	}
}
