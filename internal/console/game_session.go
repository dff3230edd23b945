package console

import (
	"net/http"
	"net/url"
	"strconv"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/excerpt"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/session"
	"github.com/musterhq/muster/internal/engine"
)

// Bounds of the page of a game session.
const (
	playersPage = 100
	dataShown   = 2000 // bytes of the data that it was created with
)

// gameView is the page of a game session.
type gameView struct {
	*explanation
	Game    session.GameSession
	Address string
	Data    string
	Players *table
}

// playersInGame lists the player sessions of the game session in the path, the oldest first.
var playersInGame = list[hosting.PlayerSession]{
	name: "player-sessions", label: "Players", most: playersPage, empty: "No player session.",
	columns: []column[hosting.PlayerSession]{
		{name: "player", head: "Player", value: func(p *hosting.PlayerSession) value { return linked(p.Player, "player/"+escaped(p.Player)) }},
		{name: "status", head: "Status", value: func(p *hosting.PlayerSession) value { return state(p.Status.String()) }},
		{name: "player-session", head: "Player session", value: func(p *hosting.PlayerSession) value { return words(p.ID.String()) }},
		{name: "data", head: "Data", hidden: true, value: func(p *hosting.PlayerSession) value { return words(p.Data) }},
		{name: "created", head: "Reserved", value: func(p *hosting.PlayerSession) value { return instant(p.Created) }},
		{name: "connected", head: "Connected", value: func(p *hosting.PlayerSession) value { return instant(p.Accepted) }},
		{name: "ended", head: "Ended", value: func(p *hosting.PlayerSession) value { return instant(p.Ended) }},
	},
	offers: func(p *hosting.PlayerSession) []offered { return []offered{eventsOfRow("player", p.Player)} },
	rows: func(d *Door, r *http.Request, query url.Values, most int) ([]hosting.PlayerSession, url.Values, error) {
		return playerSessionRows(query, func(from engine.PlayerPlace) ([]hosting.PlayerSession, bool, error) {
			return d.engine.PlayersIn(r.Context(), session.ID(r.PathValue("id")), 0, from, most)
		})
	},
}

// playerSessionRows returns the player sessions from the place in a query on, and the place of the next ones.
func playerSessionRows(query url.Values, read func(from engine.PlayerPlace) (all []hosting.PlayerSession, more bool, err error)) ([]hosting.PlayerSession, url.Values, error) {
	from := engine.PlayerPlace{Created: place(query).Created}
	if after := query.Get("after"); after != "" {
		id, err := domain.ParseID[domain.PlayerSessionID](after)
		if err != nil {
			return nil, nil, domain.Refuse(domain.Invalid, "after is none that a page of this console gave.")
		}
		from.ID = id
	}
	all, more, err := read(from)
	if err != nil || !more {
		return all, nil, err
	}
	last := &all[len(all)-1]
	return all, since(last.Created, last.ID.String()), nil
}

// gamePlayers is the page of this list alone.
func (d *Door) gamePlayers(r *http.Request, t *table) (*content, error) {
	id := r.PathValue("id")
	x := &listWithBack{t, link{"Game session " + tail(session.ID(id)), Prefix + "/game-session/" + escaped(id)}}
	return &content{Title: "Players of " + tail(session.ID(id)), Section: "game-sessions", page: "list-with-back", Data: x, Command: "aws gamelift describe-player-sessions --game-session-id " + shellWord("arn:aws:gamelift:REGION::gamesession/"+id)}, nil
}

// gameSession is the page of a game session.
func (d *Door) gameSession(r *http.Request) (*content, error) {
	c, err := d.explanation(r, "game-session")
	if err != nil {
		return nil, err
	}
	x := &gameView{explanation: c.Data.(*explanation)}
	if x.Game, err = d.engine.GameSession(r.Context(), session.ID(x.ID)); err != nil {
		return nil, err
	}
	if x.Game.IPAddress != "" || x.Game.DNSName != "" {
		a := address(x.Game.DNSName, x.Game.IPAddress, x.Game.Port)
		x.Address = a.Text
	}
	if x.Data = x.Game.Data; len(x.Data) > dataShown {
		x.Data = excerpt.Begin(x.Data, dataShown) + "… (" + strconv.Itoa(len(x.Game.Data)) + " bytes)"
	}
	if x.Players, err = playersInGame.beginning(d, r, Prefix+"/players-in/"+escaped(x.ID)); err != nil {
		return nil, err
	}
	c.page, c.Data = "game-session", x
	return c, nil
}
