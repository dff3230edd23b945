package console

import (
	"errors"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/engine"
)

// playerSessionsPage is how many player sessions a page shows.
const playerSessionsPage = 100

type playerPage struct {
	Flow     *explanation // what player flow knows of the player; nil: nothing
	Sessions *table
	Events   link
}

// playerSessionList lists the player sessions of a player, live and ended.
var playerSessionList = list[hosting.PlayerSession]{
	name: "player-sessions", label: "Player sessions", most: playerSessionsPage, empty: "No player session in the last 30 days.",
	columns: []column[hosting.PlayerSession]{
		{name: "player-session", head: "Player session", value: func(p *hosting.PlayerSession) value { return words(p.ID.String()) }},
		{name: "status", head: "Status", value: func(p *hosting.PlayerSession) value { return state(p.Status.String()) }},
		{name: "game-session", head: "Game session", value: func(p *hosting.PlayerSession) value {
			return shortened(tail(p.GameID), string(p.GameID), "game-session/"+escaped(string(p.GameID)))
		}},
		{name: "fleet", head: "Fleet", hidden: true, value: func(p *hosting.PlayerSession) value { return linked(p.FleetID, "fleets/"+escaped(p.FleetID)) }},
		{name: "address", head: "Address", value: func(p *hosting.PlayerSession) value { return address(p.DNSName, p.IPAddress, p.Port) }},
		{name: "created", head: "Created", value: func(p *hosting.PlayerSession) value { return instant(p.Created) }},
		{name: "connected", head: "Connected", hidden: true, value: func(p *hosting.PlayerSession) value { return instant(p.Accepted) }},
		{name: "ended", head: "Ended", value: func(p *hosting.PlayerSession) value { return instant(p.Ended) }},
	},
	rows: func(d *Door, r *http.Request, query url.Values, most int) ([]hosting.PlayerSession, url.Values, error) {
		return playerSessionRows(query, func(from engine.PlayerPlace) ([]hosting.PlayerSession, bool, error) {
			return d.engine.PlayersNamed(r.Context(), r.PathValue("player"), from, most)
		})
	},
}

// playerSessions is the page of this list alone.
func (d *Door) playerSessions(r *http.Request, t *table) (*content, error) {
	id := r.PathValue("player")
	x := &listWithBack{t, link{"Player " + id, Prefix + "/player/" + escaped(id)}}
	return &content{Title: "Player sessions of " + id, Section: "players", page: "list-with-back", Data: x, Command: playerCommand(id)}, nil
}

func playerCommand(id string) string {
	return "aws gamelift describe-player-sessions --player-id " + shellWord(id)
}

// player shows where a player is and was. Any text may be a player's id, so an unknown one is not an error.
func (d *Door) player(r *http.Request) (*content, error) {
	id := r.PathValue("player")
	x := playerPage{Events: eventsLink("player", id)}
	var err error
	if x.Sessions, err = playerSessionList.beginning(d, r, Prefix+"/player-sessions/"+escaped(id)); err != nil {
		return nil, err
	}
	x.Flow, err = d.explain(r.Context(), "player", id, false)
	if _, refused := errors.AsType[*domain.Refusal](err); refused { // player flow is off, or does not know the player
		x.Flow, err = nil, nil
	}
	return &content{Title: "Player " + id, Section: "players", page: "player", Data: &x, Command: playerCommand(id)}, err
}

// plainWord matches text that a shell takes as one word without quotes.
var plainWord = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.:/@-]*$`)

// shellWord quotes an id for a command that people copy into a terminal. Players and game servers choose some ids, which must not inject commands.
func shellWord(id string) string {
	if plainWord.MatchString(id) {
		return id
	}
	return "'" + strings.ReplaceAll(id, "'", `'\''`) + "'"
}
