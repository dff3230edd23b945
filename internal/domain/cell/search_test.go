package cell

import (
	"fmt"
	"slices"

	"github.com/musterhq/muster/internal/domain/search"
	"github.com/musterhq/muster/internal/domain/searchindex"
	"github.com/musterhq/muster/internal/domain/session"
)

// checkSearch compares the results of searches with a check of each game session.
func checkSearch(c *Cell) error {
	for _, each := range []struct{ filter, order string }{
		{"creationTimeMillis > 0", ""},
		{"hasAvailablePlayerSessions=true", "gameSessionName ASC"},
		{"playerSessionCount > 0 OR maximumSessions < 4", "playerSessionCount DESC"},
		{"NOT (gameSessionProperties.mode = 'duel')", "gameSessionProperties.mode DESC"},
	} {
		filter, err := search.ParseFilter(each.filter)
		if err != nil {
			return err
		}
		q := searchindex.Query{Filter: filter, Most: c.hosting.Sessions.Games.Len() + 1}
		if each.order != "" {
			if q.Order, err = search.ParseOrder(each.order); err != nil {
				return err
			}
		}
		want := map[string][]search.Place{}
		for _, g := range c.hosting.Sessions.Games.All() {
			places := want[g.FleetID]
			if g.Status == session.Active && filter.Match(g.Row()) {
				places = append(places, q.Order.PlaceOf(g.Row()))
			}
			want[g.FleetID] = places // also where nothing is to be found
		}
		for fleetID, places := range want {
			slices.SortFunc(places, q.Order.Compare)
			q.Fleet = fleetID
			scan := searchindex.NewScan(q)
			view := c.View()
			for !view.Search(scan) {
			}
			if got := scan.Found(); !slices.Equal(got, places) {
				return fmt.Errorf("a search in fleet %s for %q in order %q finds %v, want %v", fleetID, each.filter, each.order, got, places)
			}
			if games, _ := view.SearchResults(&q, scan.Found()); len(games) != len(places) {
				return fmt.Errorf("a search in fleet %s for %q has %d results, want %d", fleetID, each.filter, len(games), len(places))
			}
		}
	}
	return nil
}
