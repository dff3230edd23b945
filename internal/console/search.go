package console

import (
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/search"
	"github.com/musterhq/muster/internal/domain/searchindex"
	"github.com/musterhq/muster/internal/domain/session"
)

// searchMax is the maximum length of a filter or a sort expression in bytes, as in the API.
const searchMax = 1024

// searchPage is a search for ACTIVE game sessions in the language of SearchGameSessions.
type searchPage struct {
	Fleets       []fleet.Fleet // to choose from
	Fleet        string
	Filter, Sort string
	Mistakes     []mistake
	Attributes   []string // completions in the boxes
	Table        *table
}

// mistake says where a filter or an order is invalid.
type mistake struct {
	Box                 string // filter or sort
	Before, At, Message string // text before the mistake, and from it on
}

// mistakeIn converts the error of a parser into a mistake.
func mistakeIn(box, written string, err error) mistake {
	m := mistake{Box: box, Before: written, Message: err.Error()}
	if wrong, ok := errors.AsType[*search.SyntaxError](err); ok {
		all := []rune(written)
		at := min(wrong.At, len(all))
		m.Before, m.At = string(all[:at]), string(all[at:])
	}
	return m
}

// foundGameList lists the ACTIVE game sessions of a fleet that match a filter, in an order.
var foundGameList = list[session.GameSession]{
	name: "game-sessions-found", label: "Game sessions", most: sessionsPage, empty: "No active game session matches.",
	columns: gameSessionColumns("game-session", "name", "taken", "seats", "location", "address", "properties", "created"),
	rows: func(d *Door, r *http.Request, query url.Values, most int) ([]session.GameSession, url.Values, error) {
		x, q, err := d.searchOf(r, query)
		switch {
		case err != nil || x.Fleet == "":
			return nil, nil, err
		case len(x.Mistakes) > 0 && isExport(r):
			return nil, nil, domain.Refuse(domain.Invalid, "%s: %s", x.Mistakes[0].Box, x.Mistakes[0].Message)
		case len(x.Mistakes) > 0: // the page marks them
			return nil, nil, nil
		}
		if after := query.Get("after"); after != "" {
			start, at, ok := search.ParseCursor(after)
			if !ok {
				return nil, nil, domain.Refuse(domain.Invalid, "after is none that a page of this console gave.")
			}
			q.Order.Start, q.After = start, &at
		}
		q.Most = most
		page, err := d.engine.SearchGameSessions(r.Context(), q)
		if err != nil || page.Next == nil {
			return page.Games, nil, err
		}
		return page.Games, url.Values{"fleet": {x.Fleet}, "after": {search.Cursor(q.Order.Start, *page.Next)}}, nil
	},
}

// searchOf parses a search from a query.
func (d *Door) searchOf(r *http.Request, query url.Values) (x *searchPage, q searchindex.Query, err error) {
	x = &searchPage{Fleet: query.Get("fleet"), Filter: strings.TrimSpace(query.Get("filter")), Sort: strings.TrimSpace(query.Get("sort")), Attributes: search.Attributes()}
	if len(x.Filter) > searchMax || len(x.Sort) > searchMax {
		return nil, q, domain.Refuse(domain.Invalid, "The filter and the order have at most %d bytes each.", searchMax)
	}
	if x.Fleets, x.Fleet, err = d.chosenFleet(r, x.Fleet); err != nil {
		return nil, q, err
	}
	q.Fleet = x.Fleet
	if x.Filter != "" {
		if q.Filter, err = search.ParseFilter(x.Filter); err != nil {
			x.Mistakes = append(x.Mistakes, mistakeIn("filter", x.Filter, err))
		}
	}
	if x.Sort != "" {
		if q.Order, err = search.ParseOrder(x.Sort); err != nil {
			x.Mistakes = append(x.Mistakes, mistakeIn("sort", x.Sort, err))
		}
	}
	return x, q, nil
}

// searchGames is the page of a search.
func (d *Door) searchGames(r *http.Request, t *table) (*content, error) {
	x, _, err := d.searchOf(r, r.URL.Query())
	if err != nil {
		return nil, err
	}
	x.Table = t
	command := terminal("aws gamelift search-game-sessions --fleet-id "+shellWord(x.Fleet), option{"--filter-expression", x.Filter, ""}, option{"--sort-expression", x.Sort, ""})
	return &content{Title: "Search for game sessions", Section: "game-sessions", page: "search", Data: x, Command: command}, nil
}
