package engine

import (
	"context"

	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/search"
	"github.com/musterhq/muster/internal/domain/searchindex"
	"github.com/musterhq/muster/internal/domain/session"
)

// SearchGameSessions finds up to q.Most ACTIVE game sessions of a fleet. next is the place behind which the next page
// begins, and nil when there is none. A page may be shorter than wanted although there is a next one: game sessions
// that changed while they were looked for are left out.
func (e *Engine) SearchGameSessions(ctx context.Context, q searchindex.Query) (page []session.GameSession, next *search.Place, err error) {
	wanted := q.Most
	q.Most++ // one more tells whether there is a next page
	scan := searchindex.NewScan(q)
	for done := false; !done; {
		err := e.Read(ctx, func(v *cell.View) error { done = v.Search(scan); return nil })
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return nil, nil, err
		}
	}
	places := scan.Found()
	if len(places) > wanted {
		places = places[:wanted]
		next = &places[wanted-1]
	}
	err = e.Read(ctx, func(v *cell.View) error { page = v.SearchResults(&q, places); return nil })
	return page, next, err
}
