package console

import (
	"net/http"
	"net/url"
	"strconv"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/session"
)

// sessionsPage is how many game sessions a page shows.
const sessionsPage = 50

type sessionList struct {
	Fleets   []fleet.Fleet // to choose from
	Fleet    string
	Status   session.Status
	Statuses []session.Status
	Games    []session.GameSession
	Next     string // URL of the next page; empty: this is the last one
}

// gameSessions lists those of one fleet, live and ended, in the order of their creation.
func (d *Door) gameSessions(r *http.Request) (*content, error) {
	query := r.URL.Query()
	x := sessionList{Fleet: query.Get("fleet"), Statuses: []session.Status{session.Activating, session.Active, session.Terminating, session.Terminated}}
	for _, s := range x.Statuses {
		if s.String() == query.Get("status") {
			x.Status = s
		}
	}
	err := d.engine.Read(r.Context(), func(v *cell.View) (err error) {
		x.Fleets, x.Fleet, err = chosenFleet(v, x.Fleet)
		return err
	})
	if err != nil {
		return nil, err
	}
	c := &content{Title: "Game sessions", Section: "game-sessions", page: "sessions", Data: &x, Command: "aws gamelift describe-game-sessions --fleet-id " + shellWord(x.Fleet)}
	if x.Fleet == "" {
		return c, nil
	}
	after := hosting.GamePlace{ID: session.ID(query.Get("after"))}
	if at, err := strconv.ParseInt(query.Get("at"), 10, 64); err == nil {
		after.Created = domain.Time(at)
	}
	games, more, err := d.engine.GameSessions(r.Context(), x.Fleet, hosting.GameFilter{Status: x.Status}, after, sessionsPage)
	if err != nil {
		return nil, err
	}
	if x.Games = games; more {
		last := &games[len(games)-1]
		next := url.Values{"fleet": {x.Fleet}, "after": {string(last.ID)}, "at": {strconv.FormatInt(int64(last.Created), 10)}}
		if x.Status != 0 {
			next.Set("status", x.Status.String())
		}
		x.Next = Prefix + "/game-sessions?" + next.Encode()
	}
	return c, nil
}

// chosenFleet returns fleets to choose from, the oldest ones, and the one that was chosen, which may be any: without a choice the first of them, empty if there is none.
func chosenFleet(v *cell.View, chosen string) (oldest []fleet.Fleet, id string, err error) {
	oldest = v.Fleets(0, "", fleetsPage)
	if chosen == "" && len(oldest) > 0 {
		return oldest, oldest[0].ID, nil
	}
	if _, ok := v.Fleet(chosen); !ok && chosen != "" {
		return nil, "", domain.Refuse(domain.NotFound, "There is no fleet %.100q.", chosen)
	}
	return oldest, chosen, nil
}
