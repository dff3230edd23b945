package engine

import (
	"context"

	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/search"
	"github.com/musterhq/muster/internal/domain/searchindex"
	"github.com/musterhq/muster/internal/domain/session"
)

// SearchPage is a page of a search.
type SearchPage struct {
	Games  []session.GameSession
	Places []search.Place // of Games in the search's order
	Next   *search.Place  // after which the next page begins; nil: this is the last one
}

// SearchGameSessions finds up to q.Most ACTIVE game sessions of a fleet. A page may be shorter than q.Most although another follows,
// because game sessions that changed during the search are left out.
func (e *Engine) SearchGameSessions(ctx context.Context, q searchindex.Query) (page SearchPage, err error) {
	wanted := q.Most
	q.Most++ // one more, to see whether there is a next page
	var scan *searchindex.Scan
	cells := uint64(0)
	for done := false; !done; {
		err := e.Read(ctx, func(v *cell.View) error {
			if e.cells != cells { // positions in an earlier cell are meaningless in this one
				cells, scan = e.cells, searchindex.NewScan(q)
			}
			done = v.Search(scan)
			return nil
		})
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return page, err
		}
	}
	places := scan.Found()
	if len(places) > wanted {
		places = places[:wanted]
		page.Next = &places[wanted-1]
	}
	err = e.Read(ctx, func(v *cell.View) error { page.Games, page.Places = v.SearchResults(&q, places); return nil })
	return page, err
}
