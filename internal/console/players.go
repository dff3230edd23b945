package console

import (
	"errors"
	"net/http"
	"regexp"
	"strings"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/engine"
)

// playerSessions is how many player sessions the page of a player shows.
const playerSessions = 100

type playerPage struct {
	Flow     *explanation // what player flow knows; nil: nothing
	Sessions []hosting.PlayerSession
	More     bool
}

// player shows where a player is and was. Any text may be a player's id, so one without a trace is no error.
func (d *Door) player(r *http.Request) (*content, error) {
	id := r.PathValue("id")
	var x playerPage
	var err error
	x.Sessions, x.More, err = d.engine.PlayersNamed(r.Context(), id, engine.PlayerPlace{}, playerSessions)
	if err != nil {
		return nil, err
	}
	x.Flow, err = d.explain(r.Context(), "player", id)
	if _, refused := errors.AsType[*domain.Refusal](err); refused { // player flow is off, or does not know the player
		x.Flow, err = nil, nil
	}
	return &content{Title: "Player " + id, Section: "players", page: "player", Data: &x, Command: "aws gamelift describe-player-sessions --player-id " + shellWord(id)}, err
}

// plainWord matches what a shell takes as one word without quotes.
var plainWord = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.:/@-]*$`)

// shellWord writes an id for a command that people copy into a terminal: players and game servers choose some ids, and must not choose a command with them.
func shellWord(id string) string {
	if plainWord.MatchString(id) {
		return id
	}
	return "'" + strings.ReplaceAll(id, "'", `'\''`) + "'"
}
