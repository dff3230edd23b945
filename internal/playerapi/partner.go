package playerapi

import (
	"context"
	"crypto/sha256"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/placement"
	"github.com/musterhq/muster/internal/domain/session"
	"github.com/musterhq/muster/internal/playerapi/authentication"
	"github.com/musterhq/muster/internal/playerapi/objects"
)

// IssueLoginTicketRequest is for a player whom the backend has authenticated.
type IssueLoginTicketRequest struct {
	PlayerID    string `json:"player_id" minLength:"1" maxLength:"128"`
	DisplayName string `json:"display_name,omitempty" maxLength:"64"`
	TTLMS       int64  `json:"ttl_ms,omitempty" minimum:"0" maximum:"300000" doc:"0: a minute."`
	SingleUse   *bool  `json:"single_use,omitempty" doc:"Unless it is false, the ticket is good for one login."`
}

// LoginTicketAnswer is what the player shows to Session.Login with the provider backend.
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
	Players []FlowSnapshot `json:"players"`
	Unknown []string       `json:"unknown" doc:"Players of whom nothing is known."`
}

// MakeGameRequest is a match that the studio has made.
type MakeGameRequest struct {
	Players []SeatRequest `json:"players" minItems:"1" maxItems:"200"`
	Queue   string        `json:"queue" minLength:"1" maxLength:"256" doc:"The game session queue that finds a host."`

	MaxPlayers int32             `json:"max_players,omitempty" minimum:"0" maximum:"1000" doc:"0: as many as there are players."`
	Reconnect  string            `json:"reconnect,omitempty" enum:"OFF,OPTIONAL,REQUIRED"`
	Name       string            `json:"name,omitempty" maxLength:"1024"`
	Data       string            `json:"game_session_data,omitempty" maxLength:"262144"`
	Properties map[string]string `json:"game_properties,omitempty"`
	Attributes *Object           `json:"attributes,omitempty"`
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

// PlayerAttributesRequest is what the studio says about a player; it overrides what the client says.
type PlayerAttributesRequest struct {
	PlayerID   string `json:"player_id" minLength:"1" maxLength:"128"`
	Attributes Object `json:"attributes"`
}

// BlocksRequest is with whom a player wants neither invites nor a common party.
type BlocksRequest struct {
	PlayerID string   `json:"player_id" minLength:"1" maxLength:"128"`
	Blocked  []string `json:"blocked" maxItems:"1000"`
}

func (d *partnersDoor) declarePartner() {
	declarePartner(d.realm, "Identity.IssueLoginTicket", "Lets a player log in whom the backend has authenticated.", d.issueLoginTicket)
	declarePartner(d.realm, "Flow.GetPlayers", "How players stand: one consistent read.", d.getPlayers)
	declarePartner(d.realm, "Flow.CreateGameInstance", "A match that the studio has made: all players are moved in one commit, or none.", d.makeGame)
	declarePartner(d.realm, "Flow.ShutDownParty", "Ends a party for all its members.",
		func(ctx context.Context, _ string, body *ShutDownPartyRequest) (*None, error) {
			party, err := parseID("party_id", "pty-", body.PartyID)
			if err == nil {
				err = principalOf(ctx).BackendOnly()
			}
			if err != nil {
				return nil, err
			}
			d.State.Log.Info("party shut down", "party", body.PartyID, "by", principalOf(ctx).ID, "reason", body.Reason)
			return &None{}, d.State.Do(ctx, &cell.ShutDownParty{Party: party})
		})
	declarePartner(d.realm, "Flow.SetPlayerAttributes", "What the studio says about a player, such as skill.",
		func(ctx context.Context, _ string, body *PlayerAttributesRequest) (*None, error) {
			err := principalOf(ctx).BackendOnly()
			if err == nil {
				err = checkSize("attributes", &body.Attributes, playerAttributesMax)
			}
			if err != nil {
				return nil, err
			}
			return &None{}, d.State.Do(ctx, &cell.SetPlayerAttributes{Player: body.PlayerID, Attributes: string(body.Attributes)})
		})
	declarePartner(d.realm, "Flow.SetBlocks", "Invites and joins between these players are refused.",
		func(ctx context.Context, _ string, body *BlocksRequest) (*None, error) {
			if err := principalOf(ctx).BackendOnly(); err != nil {
				return nil, err
			}
			return &None{}, d.State.Do(ctx, &cell.SetBlocks{Player: body.PlayerID, Blocked: body.Blocked})
		})
}

func (d *partnersDoor) issueLoginTicket(ctx context.Context, _ string, body *IssueLoginTicketRequest) (*LoginTicketAnswer, error) {
	if err := principalOf(ctx).BackendOnly(); err != nil {
		return nil, err
	}
	life := time.Duration(body.TTLMS) * time.Millisecond
	if life == 0 {
		life = time.Minute
	}
	ticket, hash := authentication.NewTicket(body.PlayerID)
	cmd := cell.IssueLoginTicket{
		Hash: hash, Player: body.PlayerID, DisplayName: body.DisplayName, Life: life, Once: body.SingleUse == nil || *body.SingleUse,
	}
	if err := d.State.Do(ctx, &cmd); err != nil {
		return nil, err
	}
	return &LoginTicketAnswer{ticket, objects.Stamp(cmd.Ticket.Until)}, nil
}

func (d *partnersDoor) getPlayers(ctx context.Context, _ string, body *PlayersRequest) (*PlayersAnswer, error) {
	if err := principalOf(ctx).BackendOnly(); err != nil {
		return nil, err
	}
	answer := &PlayersAnswer{Players: []FlowSnapshot{}, Unknown: []string{}}
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

func (d *partnersDoor) makeGame(ctx context.Context, request string, body *MakeGameRequest) (*MadeGameAnswer, error) {
	err := principalOf(ctx).BackendOnly()
	if err == nil {
		err = checkSize("attributes", body.Attributes, partyAttributesMax)
	}
	if err != nil {
		return nil, err
	}
	plan := cell.GamePlan{
		ID: newID(), Queue: body.Queue, PlayersMax: body.MaxPlayers, Reconnect: reconnectOf(body.Reconnect), Name: body.Name, Data: body.Data,
	}
	if request != "" {
		// A repeat of the request is about the same game instance, however long after.
		sum := sha256.Sum256([]byte("make-game\x00" + principalOf(ctx).ID + "\x00" + request))
		plan.ID = version4(domain.UUID(sum[:16]))
	}
	if plan.PlayersMax == 0 {
		plan.PlayersMax = int32(len(body.Players))
	}
	if body.Attributes != nil {
		plan.Attributes = string(*body.Attributes)
	}
	for _, x := range body.Players {
		plan.Players = append(plan.Players, cell.PlannedPlayer{Player: x.PlayerID, Team: x.Team, Data: x.Data})
		latencies, err := latenciesOf(x.LatencyMS)
		if err != nil {
			return nil, err
		}
		for _, l := range latencies {
			plan.Latencies = append(plan.Latencies, placement.Latency{Player: x.PlayerID, Location: l.Region, Milliseconds: float32(l.Milliseconds)})
		}
	}
	plan.Properties = propertiesOf(body.Properties)
	cmd := cell.MakeGame{Plan: plan}
	if err := d.State.Do(ctx, &cmd); err != nil {
		return nil, err
	}
	return &MadeGameAnswer{objects.GameInstanceID(cmd.Instance.ID), cmd.Instance.Status.String()}, nil
}

func reconnectOf(name string) flow.Reconnect {
	for _, r := range []flow.Reconnect{flow.ReconnectOff, flow.ReconnectOptional, flow.ReconnectRequired} {
		if r.String() == name {
			return r
		}
	}
	return 0
}

func propertiesOf(named map[string]string) (all []session.Property) {
	for _, key := range sortedKeys(named) {
		all = append(all, session.Property{Key: key, Value: named[key]})
	}
	return all
}
