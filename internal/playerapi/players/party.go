package players

import (
	"context"
	"strings"

	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/playerflow"
	"github.com/musterhq/muster/internal/playerapi/calls"
	"github.com/musterhq/muster/internal/playerapi/objects"
	"github.com/musterhq/muster/internal/playerapi/principal"
	"github.com/musterhq/muster/internal/playerapi/problem"
	"github.com/musterhq/muster/internal/playerapi/rates"
)

// PartyAnswer is the party after the call; absent if the player is in none.
type PartyAnswer struct {
	Party *objects.Party `json:"party,omitempty"`
	Flow  objects.Stand  `json:"flow"`
}

// InviteAnswer is the new invite, and the party.
type InviteAnswer struct {
	InviteID string         `json:"invite_id"`
	Party    *objects.Party `json:"party,omitempty"`
	Flow     objects.Stand  `json:"flow"`
}

// InvitesAnswer lists the invites that the player can answer.
type InvitesAnswer struct {
	Invites []objects.Invite `json:"invites"`
	Party   *objects.Party   `json:"party,omitempty"`
	Flow    objects.Stand    `json:"flow"`
}

// OnExisting determines what happens to a player who is already in a party.
type OnExisting struct {
	OnExisting string `json:"on_existing,omitempty" enum:"SWITCH,FAIL" doc:"SWITCH, the default, leaves the old party in the same commit; FAIL refuses with ALREADY_IN_PARTY."`
}

func (o OnExisting) fail() bool { return o.OnExisting == "FAIL" }

// CreatePartyRequest makes a party of one.
type CreatePartyRequest struct {
	Attributes  *objects.Object `json:"attributes,omitempty"`
	Joinability string          `json:"joinability,omitempty" enum:"OPEN,INVITE_ONLY,CLOSED"`
	MaxMembers  int32           `json:"max_members,omitempty" minimum:"1" maximum:"100"`
	OnExisting
}

// JoinPartyByIDRequest joins a party.
type JoinPartyByIDRequest struct {
	PartyID string `json:"party_id" maxLength:"64"`
	OnExisting
}

// JoinPartyByCodeRequest joins the party with a code.
type JoinPartyByCodeRequest struct {
	Code string `json:"code" minLength:"1" maxLength:"16" doc:"In small letters or capitals; spaces and hyphens do not count."`
	OnExisting
}

// PlayerRequest is about another player.
type PlayerRequest struct {
	PlayerID string `json:"player_id" minLength:"1" maxLength:"128"`
}

// InviteRequest is about an invite.
type InviteRequest struct {
	InviteID string `json:"invite_id" maxLength:"64"`
}

// RespondToInviteRequest accepts or declines an invite.
type RespondToInviteRequest struct {
	InviteID string `json:"invite_id" maxLength:"64"`
	Accept   bool   `json:"accept"`
	OnExisting
}

// SetReadyRequest sets whether the player is ready for a search.
type SetReadyRequest struct {
	Ready bool `json:"ready"`
}

// SetPartyPreferencesRequest changes the given fields.
type SetPartyPreferencesRequest struct {
	Queue       *string         `json:"queue,omitempty" maxLength:"128"`
	Regions     *[]string       `json:"regions,omitempty" maxItems:"32"`
	Joinability string          `json:"joinability,omitempty" enum:"OPEN,INVITE_ONLY,CLOSED"`
	Attributes  *objects.Object `json:"attributes,omitempty"`
}

// SetPlayerPreferencesRequest changes the given fields.
type SetPlayerPreferencesRequest struct {
	LatencyMS     *map[string]int32 `json:"latency_ms,omitempty" doc:"To regions, as the client measured them."`
	Attributes    *objects.Object   `json:"attributes,omitempty"`
	ClientVersion *string           `json:"client_version,omitempty" maxLength:"64"`
}

func (d *door) declareParty() {
	calls.Player(d.realm, "Party.CreateParty", rates.Party, "Makes a party; the player leads it.",
		func(ctx context.Context, by *playerflow.Caller, body *CreatePartyRequest) (*PartyAnswer, error) {
			if err := problem.CheckSize("attributes", body.Attributes, objects.PartyAttributesMax); err != nil {
				return nil, err
			}
			cmd := playerflow.CreateParty{
				Caller: *by, ID: flow.PartyID(objects.NewID()), Joinability: objects.JoinabilityOf(body.Joinability), MembersMax: body.MaxMembers, FailOnExisting: body.fail(),
			}
			if body.Attributes != nil {
				cmd.Attributes = string(*body.Attributes)
			}
			return d.partyAfter(ctx, &cmd.Caller, d.createParty(ctx, &cmd))
		})
	calls.Player(d.realm, "Party.GetParty", rates.Other, "The party of the player.",
		func(ctx context.Context, by *playerflow.Caller, _ *calls.None) (*PartyAnswer, error) {
			answer, err := d.partyNow(ctx, by.Player)
			if err == nil && answer.Party == nil {
				return nil, problem.New(flow.NotInParty, "player %s is in no party", by.Player)
			}
			return answer, err
		})
	calls.Player(d.realm, "Party.JoinPartyById", rates.Party, "Joins a party that is open, or to which the player is invited.",
		func(ctx context.Context, by *playerflow.Caller, body *JoinPartyByIDRequest) (*PartyAnswer, error) {
			party, err := problem.ParseID[flow.PartyID]("party_id", body.PartyID)
			if err != nil {
				return nil, err
			}
			cmd := playerflow.JoinParty{Caller: *by, Party: party, FailOnExisting: body.fail()}
			return d.partyAfter(ctx, &cmd.Caller, d.joinParty(ctx, &cmd, "ID"))
		})
	calls.Player(d.realm, "Party.JoinPartyByInviteCode", rates.Code, "Joins a party by its invite code.", d.joinByCode)
	calls.Player(d.realm, "Party.SendInvite", rates.Invite, "Invites a player into the party.",
		func(ctx context.Context, by *playerflow.Caller, body *PlayerRequest) (*InviteAnswer, error) {
			if wait, ok := d.Buckets.TakeFor(rates.InvitePair, by.Player+"\x00"+body.PlayerID, principal.Of(ctx).Answer.Header()); !ok {
				return nil, problem.Later(flow.RateLimited, wait, "too many invites to one player")
			}
			cmd := playerflow.SendInvite{Caller: *by, ID: flow.InviteID(objects.NewID()), Target: body.PlayerID}
			answer, err := d.partyAfter(ctx, &cmd.Caller, d.sendInvite(ctx, &cmd))
			if err != nil {
				return nil, err
			}
			return &InviteAnswer{objects.ID(flow.InviteID(cmd.Made)), answer.Party, answer.Flow}, nil
		})
	calls.Player(d.realm, "Party.CancelInvite", rates.Party, "Takes an invite back.",
		func(ctx context.Context, by *playerflow.Caller, body *InviteRequest) (*PartyAnswer, error) {
			invite, err := problem.ParseID[flow.InviteID]("invite_id", body.InviteID)
			if err != nil {
				return nil, err
			}
			cmd := playerflow.CancelInvite{Caller: *by, Invite: invite}
			return d.partyAfter(ctx, &cmd.Caller, d.State.Do(ctx, &cmd))
		})
	calls.Player(d.realm, "Party.RespondToInvite", rates.Party, "Accepts an invite, or declines it.",
		func(ctx context.Context, by *playerflow.Caller, body *RespondToInviteRequest) (*PartyAnswer, error) {
			invite, err := problem.ParseID[flow.InviteID]("invite_id", body.InviteID)
			if err != nil {
				return nil, err
			}
			if body.Accept {
				cmd := playerflow.JoinParty{Caller: *by, Invite: invite, FailOnExisting: body.fail()}
				return d.partyAfter(ctx, &cmd.Caller, d.joinParty(ctx, &cmd, "INVITE"))
			}
			cmd := playerflow.DeclineInvite{Caller: *by, Invite: invite}
			return d.partyAfter(ctx, &cmd.Caller, d.State.Do(ctx, &cmd))
		})
	calls.Player(d.realm, "Party.ListInvites", rates.Other, "The invites that the player can answer.",
		func(ctx context.Context, by *playerflow.Caller, _ *calls.None) (*InvitesAnswer, error) {
			s, err := d.State.Snapshot(ctx, by.Player)
			return &InvitesAnswer{s.Invites, s.Party, standOfSnapshot(&s)}, err
		})
	calls.Player(d.realm, "Party.LeaveParty", rates.LeaveParty, "Leaves the party.",
		func(ctx context.Context, by *playerflow.Caller, _ *calls.None) (*PartyAnswer, error) {
			cmd := playerflow.LeaveParty{Caller: *by}
			return d.partyAfter(ctx, &cmd.Caller, d.State.Do(ctx, &cmd))
		})
	calls.Player(d.realm, "Party.KickPlayer", rates.Party, "Takes another member out of the party.",
		func(ctx context.Context, by *playerflow.Caller, body *PlayerRequest) (*PartyAnswer, error) {
			cmd := playerflow.KickPlayer{Caller: *by, Target: body.PlayerID}
			return d.partyAfter(ctx, &cmd.Caller, d.State.Do(ctx, &cmd))
		})
	calls.Player(d.realm, "Party.PromoteLeader", rates.Party, "Makes another member the leader.",
		func(ctx context.Context, by *playerflow.Caller, body *PlayerRequest) (*PartyAnswer, error) {
			cmd := playerflow.PromoteLeader{Caller: *by, Target: body.PlayerID}
			return d.partyAfter(ctx, &cmd.Caller, d.State.Do(ctx, &cmd))
		})
	calls.Player(d.realm, "Party.SetReady", rates.Party, "Says whether the player is ready; not to be ready ends a search.",
		func(ctx context.Context, by *playerflow.Caller, body *SetReadyRequest) (*PartyAnswer, error) {
			cmd := playerflow.SetReady{Caller: *by, Ready: body.Ready}
			return d.partyAfter(ctx, &cmd.Caller, d.State.Do(ctx, &cmd))
		})
	calls.Player(d.realm, "Party.SetPartyPreferences", rates.Party, "Changes the preferences of the party. Its members are no longer ready.", d.setPartyPreferences)
	calls.Player(d.realm, "Party.SetPlayerPreferences", rates.Party, "Changes the attributes that the player's client sets for itself.", d.setPlayerPreferences)
	calls.Player(d.realm, "Party.RotateInviteCode", rates.Party, "Gives the party another code.",
		func(ctx context.Context, by *playerflow.Caller, _ *calls.None) (*PartyAnswer, error) {
			cmd := playerflow.RotateInviteCode{Caller: *by}
			return d.partyAfter(ctx, &cmd.Caller, d.State.Do(ctx, &cmd))
		})
	calls.Player(d.realm, "Party.DisbandParty", rates.Party, "Ends the party for all its members.",
		func(ctx context.Context, by *playerflow.Caller, _ *calls.None) (*PartyAnswer, error) {
			cmd := playerflow.DisbandParty{Caller: *by}
			return d.partyAfter(ctx, &cmd.Caller, d.State.Do(ctx, &cmd))
		})
}

// spoken returns a code in the core's form, because players read codes to each other and type them in various ways.
func spoken(code string) string {
	return strings.ToUpper(strings.NewReplacer(" ", "", "-", "").Replace(code))
}

// joinByCode also counts failures by address, because codes are short enough to guess.
func (d *door) joinByCode(ctx context.Context, by *playerflow.Caller, body *JoinPartyByCodeRequest) (*PartyAnswer, error) {
	address := principal.Of(ctx).Address
	if wait, ok := d.Buckets.Open(rates.CodeAddress, address); !ok {
		return nil, problem.Later(flow.RateLimited, wait, "too many wrong codes from one address")
	}
	cmd := playerflow.JoinParty{Caller: *by, Code: spoken(body.Code), FailOnExisting: body.fail()}
	err := d.joinParty(ctx, &cmd, "CODE")
	if err != nil && flow.CodeOf(err) == flow.PartyNotFound {
		d.Buckets.Take(rates.CodeAddress, address)
	}
	return d.partyAfter(ctx, &cmd.Caller, err)
}

func (d *door) setPartyPreferences(ctx context.Context, by *playerflow.Caller, body *SetPartyPreferencesRequest) (*PartyAnswer, error) {
	if err := problem.CheckSize("attributes", body.Attributes, objects.PartyAttributesMax); err != nil {
		return nil, err
	}
	if body.Regions != nil {
		if err := problem.CheckRegions(*body.Regions); err != nil {
			return nil, err
		}
	}
	cmd := playerflow.SetPartyPreferences{Caller: *by, Queue: body.Queue, Regions: body.Regions, Joinability: objects.JoinabilityOf(body.Joinability), Attributes: body.Attributes.Text()}
	return d.partyAfter(ctx, &cmd.Caller, d.State.Do(ctx, &cmd))
}

func (d *door) setPlayerPreferences(ctx context.Context, by *playerflow.Caller, body *SetPlayerPreferencesRequest) (*PartyAnswer, error) {
	if err := problem.CheckSize("attributes", body.Attributes, objects.PlayerAttributesMax); err != nil {
		return nil, err
	}
	cmd := playerflow.SetPlayerPreferences{Caller: *by, Attributes: body.Attributes.Text(), ClientVersion: body.ClientVersion}
	if body.LatencyMS != nil {
		latencies, err := problem.Latencies(*body.LatencyMS)
		if err != nil {
			return nil, err
		}
		cmd.Latencies = &latencies
	}
	return d.partyAfter(ctx, &cmd.Caller, d.State.Do(ctx, &cmd))
}

// partyAfter returns the answer to an executed call, with the state of the player directly after it.
func (d *door) partyAfter(ctx context.Context, by *playerflow.Caller, err error) (*PartyAnswer, error) {
	if err != nil {
		return nil, err
	}
	answer, err := d.partyNow(ctx, by.Player)
	if err != nil {
		return nil, err
	}
	answer.Flow = objects.StandOf(by.Flow)
	if answer.Party != nil && answer.Party.PartyID != answer.Flow.Keys.PartyID {
		answer.Party = nil // the player has left it by now
	}
	return answer, nil
}

func (d *door) partyNow(ctx context.Context, player string) (*PartyAnswer, error) {
	answer := &PartyAnswer{}
	err := d.State.Read(ctx, func(v *cell.View) error {
		s, _ := v.Record(player)
		answer.Flow = objects.StandOf(s)
		if p, ok := v.Party(s.Keys.Party); ok {
			answer.Party = objects.PartyOf(&p)
		}
		return nil
	})
	return answer, err
}
