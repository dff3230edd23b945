package sessionapi

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/search"
	"github.com/musterhq/muster/internal/domain/searchindex"
)

const (
	// searchPageMax is the documented maximum of a search page.
	searchPageMax = 20
	// searchPageBytes ends a page early if its game sessions have a lot of matchmaking data.
	searchPageBytes = 1 << 20
)

type searchSessionsRequest struct {
	FleetID          string `json:"fleetId"`
	AliasID          string `json:"aliasId"`
	Location         string `json:"location"`
	FilterExpression string `json:"filterExpression"`
	SortExpression   string `json:"sortExpression"`
	MaxResult        int    `json:"maxResult"` // 0: a full page
	NextToken        string `json:"nextToken"`
}

func (in *searchSessionsRequest) check(c *checks) {
	c.fleet(in.FleetID, in.AliasID)
	c.form("location", in.Location, locationForm, "1 to 64 letters, digits and dashes")
	c.text("filterExpression", in.FilterExpression, textMax)
	c.text("sortExpression", in.SortExpression, textMax)
	if in.MaxResult < 0 || in.MaxResult > 255 {
		c.add(invalid("maxResult", in.MaxResult, "0 to 255; a page holds 20 at most"))
	}
	c.text("nextToken", in.NextToken, 2*textMax)
}

type searchSessionsAnswer struct {
	SessionConfigs []sessionConfig `json:"sessionConfigs"`
	NextToken      string          `json:"nextToken"` // "" on the last page
}

// searchSessions finds the active game sessions of a fleet that match a filter.
func (d *Door) searchSessions(ctx context.Context, r *request, in *searchSessionsRequest) (*searchSessionsAnswer, error) {
	q, err := in.query()
	if err != nil {
		return nil, err
	}
	f, err := d.fleetOf(ctx, in.FleetID, in.AliasID)
	if err != nil {
		return nil, err
	}
	q.Fleet = f.ID
	if _, ok := f.HasLocation(q.Location); !ok && q.Location != "" {
		return nil, invalid("location", in.Location, "one of the fleet's locations: "+locationNames(&f))
	}
	out := &searchSessionsAnswer{SessionConfigs: []sessionConfig{}}
	if f.Status != fleet.Active {
		return out, nil
	}
	page, err := d.engine.SearchGameSessions(ctx, q)
	if err != nil {
		return nil, err
	}
	bytes := 0
	for i := range page.Games {
		if bytes += len(page.Games[i].MatchmakerData); bytes > searchPageBytes && i > 0 {
			page.Next = &page.Places[i-1]
			break
		}
		config := configOf(&page.Games[i])
		if r.principal.Maker() != 0 {
			config.MatchmakingData = "" // it names all players with their attributes
		}
		out.SessionConfigs = append(out.SessionConfigs, config)
	}
	if page.Next != nil {
		out.NextToken = in.token(search.Cursor(q.Order.Start, *page.Next))
	}
	return out, nil
}

// query parses everything except the fleet.
func (in *searchSessionsRequest) query() (q searchindex.Query, err error) {
	q = searchindex.Query{Location: in.Location, Most: searchPageMax}
	if in.MaxResult > 0 {
		q.Most = min(in.MaxResult, searchPageMax)
	}
	if in.FilterExpression != "" {
		if q.Filter, err = search.ParseFilter(in.FilterExpression); err != nil {
			return q, invalidExpression("filterExpression", in.FilterExpression, err)
		}
	}
	if in.SortExpression != "" {
		if q.Order, err = search.ParseOrder(in.SortExpression); err != nil {
			return q, invalidExpression("sortExpression", in.SortExpression, err)
		}
	}
	if in.NextToken == "" {
		if q.Order.Attribute == search.None {
			q.Order.Start = rand.Uint64() // so that players who search at the same time find different game sessions first
		}
		return q, nil
	}
	if cursor, ok := in.cursor(); ok {
		if start, after, ok := search.ParseCursor(cursor); ok {
			q.Order.Start, q.After = start, &after
			return q, nil
		}
	}
	return q, invalid("nextToken", in.NextToken, "one that SearchSessions answered to the same fields")
}

// invalidExpression reports where an expression is invalid, in the words of its parser: "character 8: got '=', want …".
func invalidExpression(field, text string, err error) *Problem {
	p := invalid(field, text, "")
	p.Message = field + ": " + err.Error()
	if at, ok := errors.AsType[*search.SyntaxError](err); ok {
		p.Expected = at.Want
	}
	return p
}

// A token has the place where the next page begins, after a digest of the place and the request. The digest detects mistakes, not
// forgeries, since a forger could request that page anyway.
const digestBytes = 8

func (in *searchSessionsRequest) token(cursor string) string {
	return base64.RawURLEncoding.EncodeToString(append(in.digest(cursor), cursor...))
}

func (in *searchSessionsRequest) cursor() (string, bool) {
	raw, err := base64.RawURLEncoding.DecodeString(in.NextToken)
	if err != nil || len(raw) < digestBytes {
		return "", false
	}
	cursor := string(raw[digestBytes:])
	return cursor, string(raw[:digestBytes]) == string(in.digest(cursor))
}

func (in *searchSessionsRequest) digest(cursor string) []byte {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %q %q %q %q", in.FleetID, in.AliasID, in.Location, in.FilterExpression, in.SortExpression, cursor))
	return sum[:digestBytes]
}
