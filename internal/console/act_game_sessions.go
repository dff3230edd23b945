package console

import (
	"context"
	"net/http"
	"strings"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/session"
	"github.com/musterhq/muster/internal/plural"
)

var gameSessionActions = []*action{{
	name: "end-game-session", text: "End game session", done: "The game session was told to end.", section: "game-sessions", object: true, operation: "TerminateGameSession",
	prepare: func(d *Door, r *http.Request, f *form) error {
		g, err := d.engine.GameSession(r.Context(), session.ID(f.ID))
		switch {
		case err != nil:
			return err
		case !g.Live():
			return domain.Refuse(domain.WrongGameStatus, "Game session %s has ended already.", g.ID)
		}
		f.Title = "End game session " + tail(g.ID)
		f.Effect = "It ends for all of its players: " + plural.Of(g.SeatsHeld, "seat is", "seats are") + " taken. It cannot be undone."
		f.Confirm, f.arn = tail(g.ID), g.ID.ARN(g.Region)
		f.Fields = []*field{
			{Name: "mode", Label: "How", Kind: oneOf, Required: true, Value: endByServer, Choices: []pick{
				{endByServer, "ask the game server to end it"}, {endByForce, "now, and have the host's agent kill the server process"},
			}},
		}
		return nil
	},
	command: func(f *form) string {
		return terminal("aws gamelift terminate-game-session", option{"--game-session-id", f.arn, ""}, option{"--termination-mode", f.value("mode"), ""})
	},
	do: func(ctx context.Context, d *Door, by *actor, f *form) (string, error) {
		_, err := d.perform(ctx, by, "TerminateGameSession", map[string]any{"GameSessionId": f.arn, "TerminationMode": f.value("mode")})
		return "game-session/" + escaped(f.ID), err
	},
}}

// The ways to end a game session, in the terms of the service API.
const (
	endByServer = "TRIGGER_ON_PROCESS_TERMINATE"
	endByForce  = "FORCE_TERMINATE"
)

// tail returns the last part of a game session's id, the part that people use.
func tail(id session.ID) string { return string(id)[strings.LastIndexByte(string(id), '/')+1:] }
