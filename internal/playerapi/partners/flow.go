package partners

import (
	"cmp"
	"context"
	"time"

	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/placement"
	"github.com/musterhq/muster/internal/domain/playerflow"
	"github.com/musterhq/muster/internal/playerapi/authentication"
	"github.com/musterhq/muster/internal/playerapi/calls"
	"github.com/musterhq/muster/internal/playerapi/objects"
	"github.com/musterhq/muster/internal/playerapi/principal"
	"github.com/musterhq/muster/internal/playerapi/problem"
)

// IssueLoginTicketRequest is for a player whom the backend has authenticated.
type IssueLoginTicketRequest struct {
	PlayerID    string `json:"player_id" minLength:"1" maxLength:"128"`
	DisplayName string `json:"display_name,omitempty" maxLength:"64"`
	TTLMS       int64  `json:"ttl_ms,omitempty" minimum:"0" maximum:"300000" doc:"0: a minute."`
	SingleUse   *bool  `json:"single_use,omitempty" doc:"Unless it is false, the ticket is good for one login."`
}

// LoginTicketAnswer has the ticket for Session.Login with the provider backend.
type LoginTicketAnswer struct {
	LoginTicket string `json:"login_ticket"`
	ExpiresAt   string `json:"expires_at" format:"date-time"`
}

// PlayersRequest names players.
type PlayersRequest struct {
	PlayerIDs []string `json:"player_ids" minItems:"1" maxItems:"200"`
}

// PlayersAnswer is one consistent read.
type PlayersAnswer struct {
	Players []objects.FlowSnapshot `json:"players"`
	Unknown []string               `json:"unknown" doc:"Unknown players."`
}

// MakeGameRequest is a match that the studio has made.
type MakeGameRequest struct {
	Players []SeatRequest `json:"players" minItems:"1" maxItems:"200"`
	Queue   string        `json:"queue" minLength:"1" maxLength:"256" doc:"The game session queue that finds a host."`

	MaxPlayers int32             `json:"max_players,omitempty" minimum:"0" maximum:"1000" doc:"0: as many as there are players."`
	Reconnect  string            `json:"reconnect,omitempty" enum:"OFF,OPTIONAL,REQUIRED"`
	Name       string            `json:"name,omitempty" maxLength:"1024"`
	Data       string            `json:"game_session_data,omitempty" maxLength:"65536" doc:"The body as a whole has at most 64 KiB."`
	Properties map[string]string `json:"game_properties,omitempty"`
	Attributes *objects.Object   `json:"attributes,omitempty"`
}

// SeatRequest is one player of a match.
type SeatRequest struct {
	PlayerID  string           `json:"player_id" minLength:"1" maxLength:"128"`
	Team      string           `json:"team,omitempty" maxLength:"128"`
	Data      string           `json:"player_data,omitempty" maxLength:"2048"`
	LatencyMS map[string]int32 `json:"latency_ms,omitempty"`
}

// MadeGameAnswer is the game instance.
type MadeGameAnswer struct {
	GameInstanceID string `json:"game_instance_id"`
	Status         string `json:"status" enum:"PENDING,ACTIVE,ENDING,ENDED"`
}

// ShutDownPartyRequest ends a party.
type ShutDownPartyRequest struct {
	PartyID string `json:"party_id" maxLength:"64"`
	Reason  string `json:"reason,omitempty" maxLength:"256"`
}

// PlayerAttributesRequest sets the studio's attributes of a player, which override the client's.
type PlayerAttributesRequest struct {
	PlayerID   string         `json:"player_id" minLength:"1" maxLength:"128"`
	Attributes objects.Object `json:"attributes"`
}

// BlocksRequest lists players with whom a player wants neither invites nor a common party.
type BlocksRequest struct {
	PlayerID string   `json:"player_id" minLength:"1" maxLength:"128"`
	Blocked  []string `json:"blocked" maxItems:"1000"`
}

func (d *door) declarePartner() {
	calls.Partner(d.realm, "Identity.IssueLoginTicket", "Makes a login ticket for a player whom the backend has authenticated.", d.issueLoginTicket)
	calls.Partner(d.realm, "Flow.GetPlayers", "The state of players in one consistent read.", d.getPlayers)
	calls.Partner(d.realm, "Flow.CreateGameInstance", "A match that the studio has made: all players are moved in one commit, or none.", d.makeGame)
	calls.Partner(d.realm, "Flow.ShutDownParty", "Ends a party for all its members.",
		func(ctx context.Context, _ string, body *ShutDownPartyRequest) (*calls.None, error) {
			party, err := problem.ParseID[flow.PartyID]("party_id", body.PartyID)
			if err == nil {
				err = principal.Of(ctx).BackendOnly()
			}
			if err != nil {
				return nil, err
			}
			d.State.Log.Info("party shut down", "party", body.PartyID, "principal", principal.Of(ctx).ID, "reason", body.Reason)
			return &calls.None{}, d.State.Do(ctx, &playerflow.ShutDownParty{Party: party})
		})
	calls.Partner(d.realm, "Flow.SetPlayerAttributes", "What the studio says about a player, such as skill.",
		func(ctx context.Context, _ string, body *PlayerAttributesRequest) (*calls.None, error) {
			err := principal.Of(ctx).BackendOnly()
			if err == nil {
				err = problem.CheckSize("attributes", &body.Attributes, objects.PlayerAttributesMax)
			}
			if err != nil {
				return nil, err
			}
			return &calls.None{}, d.State.Do(ctx, &playerflow.SetPlayerAttributes{Player: body.PlayerID, Attributes: string(body.Attributes)})
		})
	calls.Partner(d.realm, "Flow.SetBlocks", "Invites and joins between these players are refused.",
		func(ctx context.Context, _ string, body *BlocksRequest) (*calls.None, error) {
			if err := principal.Of(ctx).BackendOnly(); err != nil {
				return nil, err
			}
			return &calls.None{}, d.State.Do(ctx, &playerflow.SetBlocks{Player: body.PlayerID, Blocked: body.Blocked})
		})
}

func (d *door) issueLoginTicket(ctx context.Context, _ string, body *IssueLoginTicketRequest) (*LoginTicketAnswer, error) {
	if err := principal.Of(ctx).BackendOnly(); err != nil {
		return nil, err
	}
	life := cmp.Or(time.Duration(body.TTLMS)*time.Millisecond, time.Minute)
	ticket, hash := authentication.NewTicket(body.PlayerID)
	cmd := playerflow.IssueLoginTicket{
		Hash: hash, Player: body.PlayerID, DisplayName: body.DisplayName, Life: life, Once: body.SingleUse == nil || *body.SingleUse,
	}
	if err := d.State.Do(ctx, &cmd); err != nil {
		return nil, err
	}
	return &LoginTicketAnswer{ticket, objects.Stamp(cmd.Ticket.Until)}, nil
}

func (d *door) getPlayers(ctx context.Context, _ string, body *PlayersRequest) (*PlayersAnswer, error) {
	if err := principal.Of(ctx).BackendOnly(); err != nil {
		return nil, err
	}
	answer := &PlayersAnswer{Players: []objects.FlowSnapshot{}, Unknown: []string{}}
	err := d.State.Read(ctx, func(v *cell.View) error {
		for _, player := range body.PlayerIDs {
			if s, ok := v.FlowOf(player, d.State.Instant()); ok {
				answer.Players = append(answer.Players, d.State.Objects.SnapshotForOthers(&s, d.State.Instant()))
			} else {
				answer.Unknown = append(answer.Unknown, player)
			}
		}
		return nil
	})
	return answer, err
}

func (d *door) makeGame(ctx context.Context, request string, body *MakeGameRequest) (*MadeGameAnswer, error) {
	err := principal.Of(ctx).BackendOnly()
	if err == nil {
		err = problem.CheckSize("attributes", body.Attributes, objects.PartyAttributesMax)
	}
	if err != nil {
		return nil, err
	}
	plan := playerflow.GamePlan{
		ID: flow.InstanceID(idOf("make-game", principal.Of(ctx).ID, request)), Queue: body.Queue, PlayersMax: body.MaxPlayers, Reconnect: objects.ReconnectOf(body.Reconnect), Name: body.Name, Data: body.Data,
	}
	plan.PlayersMax = cmp.Or(plan.PlayersMax, int32(len(body.Players)))
	if body.Attributes != nil {
		plan.Attributes = string(*body.Attributes)
	}
	for _, x := range body.Players {
		plan.Players = append(plan.Players, playerflow.PlannedPlayer{Player: x.PlayerID, Team: x.Team, Data: x.Data})
		latencies, err := problem.Latencies(x.LatencyMS)
		if err != nil {
			return nil, err
		}
		for _, l := range latencies {
			plan.Latencies = append(plan.Latencies, placement.Latency{Player: x.PlayerID, Location: l.Region, Milliseconds: float32(l.Milliseconds)})
		}
	}
	plan.Properties = objects.PropertiesOf(body.Properties)
	cmd := playerflow.MakeGame{Plan: plan}
	if err := d.State.Do(ctx, &cmd); err != nil {
		return nil, err
	}
	return &MadeGameAnswer{objects.ID(cmd.Instance.ID), cmd.Instance.Status.String()}, nil
}
