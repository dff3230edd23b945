package gamelift

import (
	"context"
	"math/rand/v2"

	"github.com/aws/aws-sdk-go-v2/service/gamelift"
	"github.com/aws/aws-sdk-go-v2/service/gamelift/types"

	"github.com/musterhq/muster/internal/domain/excerpt"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/search"
	"github.com/musterhq/muster/internal/domain/searchindex"
	"github.com/musterhq/muster/internal/domain/session"
)

// searchPageMax is the documented maximum of a search page.
const searchPageMax = 20

// SearchGameSessions finds the ACTIVE game sessions of a fleet that match a filter. Its results include every change answered
// before, unlike the cloud's, whose index lags behind.
func (s *Service) SearchGameSessions(ctx context.Context, in *gamelift.SearchGameSessionsInput) (*gamelift.SearchGameSessionsOutput, error) {
	q, err := searchQuery(in)
	if err != nil {
		return nil, err
	}
	if q.Fleet, err = s.oneFleet(ctx, in.FleetId, in.AliasId); err != nil {
		return nil, err
	}
	f, err := s.fleetByID(ctx, q.Fleet)
	if err != nil {
		return nil, err
	}
	if _, ok := f.HasLocation(q.Location); !ok && q.Location != "" {
		return nil, invalid("Location: fleet %s has no location %q", f.ID, excerpt.Short(q.Location))
	}
	out := &gamelift.SearchGameSessionsOutput{GameSessions: []types.GameSession{}}
	if f.Status != fleet.Active {
		return out, nil
	}
	page, err := s.engine.SearchGameSessions(ctx, q)
	if err != nil {
		return nil, err
	}
	if n := pageOfBytes(page.Games); n < len(page.Games) {
		page.Games, page.Next = page.Games[:n], &page.Places[n-1]
	}
	out.GameSessions = wires(page.Games, func(g *session.GameSession) types.GameSession { return seenGameSession(ctx, g) })
	if page.Next != nil {
		out.NextToken = pageToken("SearchGameSessions", in, search.Cursor(q.Order.Start, *page.Next))
	}
	return out, nil
}

// searchQuery parses everything except the fleet.
func searchQuery(in *gamelift.SearchGameSessionsInput) (q searchindex.Query, err error) {
	q = searchindex.Query{Location: value(in.Location), Most: pageSize(in.Limit, searchPageMax)}
	if in.FilterExpression != nil {
		if q.Filter, err = search.ParseFilter(*in.FilterExpression); err != nil {
			return q, invalid("FilterExpression: %s", err)
		}
	}
	if in.SortExpression != nil {
		if q.Order, err = search.ParseOrder(*in.SortExpression); err != nil {
			return q, invalid("SortExpression: %s", err)
		}
	}
	cursor, err := pageCursor("SearchGameSessions", in, in.NextToken)
	switch {
	case err != nil:
		return q, err
	case cursor != "":
		start, after, ok := search.ParseCursor(cursor)
		if !ok {
			return q, invalid("NextToken is from another version of Muster") // the token was intact but has another form
		}
		q.Order.Start, q.After = start, &after
	case q.Order.Attribute == search.None:
		q.Order.Start = rand.Uint64() // players who search at the same time get different game sessions
	}
	return q, nil
}
