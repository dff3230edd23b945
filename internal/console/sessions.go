package console

import (
	"cmp"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/session"
)

// sessionsPage is how many game sessions a page shows.
const sessionsPage = 50

// gameSessionColumns returns the columns of all lists of game sessions; those in shown are shown by default.
func gameSessionColumns(shown ...string) []column[session.GameSession] {
	all := []column[session.GameSession]{
		{name: "game-session", head: "Game session", value: func(g *session.GameSession) value {
			return shortened(tail(g.ID), string(g.ID), "game-session/"+escaped(string(g.ID)))
		}},
		{name: "name", head: "Name", value: func(g *session.GameSession) value { return words(g.Name) }},
		{name: "status", head: "Status", value: func(g *session.GameSession) value { return state(g.Status.String()) }},
		{name: "taken", head: "Seats taken", value: func(g *session.GameSession) value { return number(g.SeatsHeld) }},
		{name: "seats", head: "Seats", value: func(g *session.GameSession) value { return number(g.PlayersMax) }},
		{name: "fleet", head: "Fleet", value: func(g *session.GameSession) value { return linked(g.FleetID, "fleets/"+escaped(g.FleetID)) }},
		{name: "location", head: "Location", value: func(g *session.GameSession) value { return words(g.Location) }},
		{name: "compute", head: "Compute", value: func(g *session.GameSession) value {
			return linked(g.ComputeName, "compute/"+escaped(g.FleetID+"/"+g.ComputeName))
		}},
		{name: "process", head: "Process", value: func(g *session.GameSession) value { return words(g.ProcessID) }},
		{name: "address", head: "Address", value: func(g *session.GameSession) value { return address(g.DNSName, g.IPAddress, g.Port) }},
		{name: "properties", head: "Properties", value: func(g *session.GameSession) value {
			var all []string
			for _, p := range g.Properties {
				all = append(all, p.Key+" = "+p.Value)
			}
			return several(all)
		}},
		{name: "creator", head: "Creator", value: func(g *session.GameSession) value { return words(g.Creator) }},
		{name: "placement", head: "Placement", value: func(g *session.GameSession) value { return linked(g.Placement, "placement/"+escaped(g.Placement)) }},
		{name: "created", head: "Created", value: func(g *session.GameSession) value { return instant(g.Created) }},
		{name: "activated", head: "Activated", value: func(g *session.GameSession) value { return instant(g.ActivatedAt) }},
		{name: "ended", head: "Ended", value: func(g *session.GameSession) value { return instant(g.Ended) }},
		{name: "cause", head: "Cause of the end", value: func(g *session.GameSession) value { return words(g.Cause.String()) }},
	}
	for i := range all {
		all[i].hidden = !slices.Contains(shown, all[i].name)
	}
	return all
}

// address returns the address to which players connect.
func address(name, ip string, port uint16) value {
	if name == "" && ip == "" {
		return words("")
	}
	return words(net.JoinHostPort(cmp.Or(name, ip), strconv.Itoa(int(port))))
}

// gameSessionList lists the game sessions of one fleet, live and ended, in the order of their creation.
var gameSessionList = list[session.GameSession]{
	name: "game-sessions", label: "Game sessions", most: sessionsPage, empty: "No game session.",
	columns: gameSessionColumns("game-session", "name", "status", "taken", "seats", "location", "compute", "address", "created", "ended"),
	rows: func(d *Door, r *http.Request, query url.Values, most int) ([]session.GameSession, url.Values, error) {
		_, id, err := d.chosenFleet(r, query.Get("fleet"))
		if err != nil || id == "" {
			return nil, nil, err
		}
		status, err := statusOf(query)
		if err != nil {
			return nil, nil, err
		}
		from := place(query)
		games, more, err := d.engine.GameSessions(r.Context(), id, hosting.GameFilter{Status: status}, hosting.GamePlace{Created: from.Created, ID: session.ID(from.ID)}, most)
		if err != nil || !more {
			return games, nil, err
		}
		last := &games[len(games)-1]
		next := since(last.Created, string(last.ID))
		next.Set("fleet", id) // also if the page has chosen the fleet
		return games, next, nil
	},
}

var sessionStatuses = []session.Status{session.Activating, session.Active, session.Terminating, session.Terminated}

// statusOf parses the status of game sessions from a query; 0: any.
func statusOf(query url.Values) (session.Status, error) {
	name := query.Get("status")
	if name == "" {
		return 0, nil
	}
	i := slices.IndexFunc(sessionStatuses, func(s session.Status) bool { return s.String() == name })
	if i < 0 {
		return 0, domain.Refuse(domain.Invalid, "status is %.40q; want one of %v.", name, sessionStatuses)
	}
	return sessionStatuses[i], nil
}

type sessionsView struct {
	Fleets   []fleet.Fleet // to choose from
	Fleet    string
	Status   string
	Statuses []session.Status
	Table    *table
}

// gameSessions is the page of the game sessions of a fleet.
func (d *Door) gameSessions(r *http.Request, t *table) (*content, error) {
	query := r.URL.Query()
	x := sessionsView{Status: query.Get("status"), Statuses: sessionStatuses, Table: t}
	var err error
	x.Fleets, x.Fleet, err = d.chosenFleet(r, query.Get("fleet"))
	return &content{Title: "Game sessions", Section: "game-sessions", page: "sessions", Data: &x, Command: "aws gamelift describe-game-sessions --fleet-id " + shellWord(x.Fleet)}, err
}

// chosenFleet returns the oldest fleets to choose from, and the id of the chosen one, which need not be among them. If none is chosen, it is the
// first; empty if there are no fleets.
func (d *Door) chosenFleet(r *http.Request, chosen string) (oldest []fleet.Fleet, id string, err error) {
	err = d.engine.Read(r.Context(), func(v *cell.View) error {
		oldest = v.Fleets(0, "", fleetsPage)
		if id = chosen; id == "" && len(oldest) > 0 {
			id = oldest[0].ID
		}
		if id == "" {
			return nil
		}
		_, err := fleetNamed(v, id)
		return err
	})
	return oldest, id, err
}
