package hosting

import (
	"github.com/musterhq/muster/internal/domain/search"
	"github.com/musterhq/muster/internal/domain/searchindex"
	"github.com/musterhq/muster/internal/domain/session"
)

// Search examines a batch of the game sessions of a search and reports whether it was the last batch. SearchResults returns what it
// found.
func (v *View) Search(scan *searchindex.Scan) (done bool) { return v.c.Sessions.Search(scan) }

// SearchResults returns the game sessions at some places of a search, with their places. It leaves out those that no longer match, so
// that the answer is true at one moment.
func (v *View) SearchResults(q *searchindex.Query, places []search.Place) ([]session.GameSession, []search.Place) {
	v.SawAll()
	results, kept := make([]session.GameSession, 0, len(places)), make([]search.Place, 0, len(places))
	for _, p := range places {
		r, ok := v.c.Sessions.Game(session.ID(p.ID))
		if !ok {
			continue
		}
		g := v.c.Game(r)
		if g.Status == session.Active && (q.Location == "" || g.Location == q.Location) && q.Filter.Match(g.Row()) {
			results, kept = append(results, *g), append(kept, p)
		}
	}
	return results, kept
}
