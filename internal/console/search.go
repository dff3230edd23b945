package console

import (
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/search"
	"github.com/musterhq/muster/internal/domain/searchindex"
	"github.com/musterhq/muster/internal/domain/session"
)

// searchMax is how many bytes a filter or an order has at most, as in the API.
const searchMax = 1024

// searchPage is a search for ACTIVE game sessions in the language of SearchGameSessions.
type searchPage struct {
	Fleets       []fleet.Fleet // to choose from
	Fleet        string
	Filter, Sort string
	Mistakes     []mistake
	Attributes   []string // that the boxes complete
	Games        []session.GameSession
	Next         string // URL of the next page; empty: this is the last one
}

// mistake says where a filter or an order is invalid.
type mistake struct {
	Box                 string // filter or sort
	Before, At, Message string // what was written before the mistake, and from there on
}

// mistakeIn returns the mistake that a parser found in a text.
func mistakeIn(box, written string, err error) mistake {
	m := mistake{Box: box, Before: written, Message: err.Error()}
	if wrong, ok := errors.AsType[*search.SyntaxError](err); ok {
		all := []rune(written)
		at := min(wrong.At, len(all))
		m.Before, m.At = string(all[:at]), string(all[at:])
	}
	return m
}

// searchGames finds the ACTIVE game sessions of a fleet that match a filter, in an order.
func (d *Door) searchGames(r *http.Request) (*content, error) {
	query := r.URL.Query()
	x := searchPage{Fleet: query.Get("fleet"), Filter: strings.TrimSpace(query.Get("filter")), Sort: strings.TrimSpace(query.Get("sort")), Attributes: search.Attributes()}
	if len(x.Filter) > searchMax || len(x.Sort) > searchMax {
		return nil, domain.Refuse(domain.Invalid, "The filter and the order have at most %d bytes each.", searchMax)
	}
	err := d.engine.Read(r.Context(), func(v *cell.View) (err error) {
		x.Fleets, x.Fleet, err = chosenFleet(v, x.Fleet)
		return err
	})
	if err != nil {
		return nil, err
	}
	command := "aws gamelift search-game-sessions --fleet-id " + shellWord(x.Fleet)
	q := searchindex.Query{Fleet: x.Fleet, Most: sessionsPage}
	if x.Filter != "" {
		command += " --filter-expression " + shellWord(x.Filter)
		if q.Filter, err = search.ParseFilter(x.Filter); err != nil {
			x.Mistakes = append(x.Mistakes, mistakeIn("filter", x.Filter, err))
		}
	}
	if x.Sort != "" {
		command += " --sort-expression " + shellWord(x.Sort)
		if q.Order, err = search.ParseOrder(x.Sort); err != nil {
			x.Mistakes = append(x.Mistakes, mistakeIn("sort", x.Sort, err))
		}
	}
	c := &content{Title: "Search for game sessions", Section: "game-sessions", page: "search", Data: &x, Command: command}
	if len(x.Mistakes) > 0 || x.Fleet == "" {
		return c, nil
	}
	if after := query.Get("after"); after != "" {
		start, place, ok := search.ParseCursor(after)
		if !ok {
			return nil, domain.Refuse(domain.Invalid, "after is none that a page of this console gave.")
		}
		q.Order.Start, q.After = start, &place
	}
	page, err := d.engine.SearchGameSessions(r.Context(), q)
	if err != nil {
		return nil, err
	}
	if x.Games = page.Games; page.Next != nil {
		x.Next = Prefix + "/game-sessions/search?" + url.Values{"fleet": {x.Fleet}, "filter": {x.Filter}, "sort": {x.Sort}, "after": {search.Cursor(q.Order.Start, *page.Next)}}.Encode()
	}
	return c, nil
}
