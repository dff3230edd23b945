package partners

import (
	"context"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/playerflow"
	"github.com/musterhq/muster/internal/playerapi/calls"
	"github.com/musterhq/muster/internal/playerapi/objects"
	"github.com/musterhq/muster/internal/playerapi/principal"
)

// GameSearchRequest starts a game's search for more players.
type GameSearchRequest struct {
	GameInstanceID string `json:"game_instance_id,omitempty" maxLength:"64"`
	Queue          string `json:"queue,omitempty" maxLength:"128" doc:"A matchmaking configuration; empty: the one that created the game. Required for a game that no matchmaking configuration created."`
	Slots          int32  `json:"slots,omitempty" minimum:"0" maximum:"1000" doc:"How many players are wanted; 0: as many as there is room for."`

	Teams map[string]string `json:"teams,omitempty" doc:"By player: the team of the rule set, where no match has put the player into one, or it is another one by now. Not needed where the rule set has one team."`
}

// GameSearchAnswer is the search.
type GameSearchAnswer struct {
	MatchmakingID string `json:"matchmaking_id" doc:"The id of the backfill ticket."`
	Queue         string `json:"queue"`
	ExpiresAt     string `json:"expires_at" format:"date-time"`
}

// GameSearchEndedAnswer is the search that ended.
type GameSearchEndedAnswer struct {
	MatchmakingID string `json:"matchmaking_id,omitempty" doc:"Absent when there was none."`
}

func (d *door) declareBackfill() {
	calls.Partner(d.realm, "Game.EnterMatchmaking", "The game searches for more players. A second search replaces the first. No player's keys change.", d.gameEntersMatchmaking)
	calls.Partner(d.realm, "Game.LeaveMatchmaking", "Ends the search of a game for players. It has no effect if the game does not search.",
		func(ctx context.Context, _ string, body *OneGameRequest) (*GameSearchEndedAnswer, error) {
			instance, err := principal.Of(ctx).InstanceFor(body.GameInstanceID)
			if err != nil {
				return nil, err
			}
			cmd := playerflow.LeaveBackfill{Instance: instance}
			err = d.State.Do(ctx, &cmd)
			return &GameSearchEndedAnswer{cmd.Ticket}, err
		})
}

func (d *door) gameEntersMatchmaking(ctx context.Context, request string, body *GameSearchRequest) (*GameSearchAnswer, error) {
	instance, err := principal.Of(ctx).InstanceFor(body.GameInstanceID)
	if err != nil {
		return nil, err
	}
	cmd := playerflow.EnterBackfill{Instance: instance, Ticket: domain.BackfillID(idOf("backfill", objects.ID(instance), request)), Queue: body.Queue, Slots: body.Slots, Teams: body.Teams}
	if err := d.State.Do(ctx, &cmd); err != nil {
		return nil, err
	}
	return &GameSearchAnswer{cmd.Made.ID, cmd.Made.Configuration, objects.Stamp(cmd.Made.TimeoutAt)}, nil
}
