package gameclient

import (
	"context"
	"encoding/json"
)

// CreatePartyRequest is how a party begins. The zero value is a party that friends join by invite or code.
type CreatePartyRequest struct {
	Attributes  json.RawMessage `json:"attributes,omitempty"` // a JSON object
	Joinability Joinability     `json:"joinability,omitempty"`
	MembersMax  int             `json:"max_members,omitempty"`
	OnExisting  OnExisting      `json:"on_existing,omitempty"`
}

// OnExisting says what happens to a player who is in a party already.
type OnExisting string

// What may happen.
const (
	OnExistingSwitch OnExisting = "SWITCH" // out of the old one and into the new one in one step; the default
	OnExistingFail   OnExisting = "FAIL"   // ALREADY_IN_PARTY
)

// PartyPreferences are changes to a party; nil leaves a thing as it is. Nobody is ready afterwards.
type PartyPreferences struct {
	Queue       *string         `json:"queue,omitempty"`
	Regions     *[]string       `json:"regions,omitempty"`
	Joinability Joinability     `json:"joinability,omitempty"`
	Attributes  json.RawMessage `json:"attributes,omitempty"`
}

// PlayerPreferences are changes to what a player's client says about itself; nil leaves a thing as it is.
type PlayerPreferences struct {
	LatencyMilliseconds map[string]int  `json:"latency_ms,omitempty"` // to regions, as measured
	Attributes          json.RawMessage `json:"attributes,omitempty"`
	ClientVersion       *string         `json:"client_version,omitempty"`
}

type object = map[string]any

// party makes a call that answers with the party as it is now; nil when the player is in none.
func (p *Player) party(ctx context.Context, name string, body any) (*Party, error) {
	var answer struct {
		Party *Party `json:"party"`
	}
	err := p.call(ctx, "Party."+name, body, &answer)
	return answer.Party, err
}

// CreateParty makes a party that this player leads.
func (p *Player) CreateParty(ctx context.Context, r CreatePartyRequest) (*Party, error) {
	return p.party(ctx, "CreateParty", r)
}

// Party asks for the party as it is now. Without one the error has the code NOT_IN_PARTY.
func (p *Player) Party(ctx context.Context) (*Party, error) {
	return p.party(ctx, "GetParty", object{})
}

// JoinParty goes to a party that is open, or to which the player is invited; out of another one, unless OnExistingFail says not to.
func (p *Player) JoinParty(ctx context.Context, party string, existing ...OnExisting) (*Party, error) {
	return p.party(ctx, "JoinPartyById", withExisting(object{"party_id": party}, existing))
}

// JoinPartyByCode goes to the party whose code a friend has told.
func (p *Player) JoinPartyByCode(ctx context.Context, code string, existing ...OnExisting) (*Party, error) {
	return p.party(ctx, "JoinPartyByInviteCode", withExisting(object{"code": code}, existing))
}

func withExisting(body object, existing []OnExisting) object {
	if len(existing) > 0 {
		body["on_existing"] = existing[len(existing)-1]
	}
	return body
}

// Invite invites a player into the party, who is told by OnPartyInviteReceived. It returns the id of the invite.
func (p *Player) Invite(ctx context.Context, player string) (string, error) {
	var answer struct {
		ID string `json:"invite_id"`
	}
	err := p.call(ctx, "Party.SendInvite", object{"player_id": player}, &answer)
	return answer.ID, err
}

// CancelInvite takes an invite back.
func (p *Player) CancelInvite(ctx context.Context, invite string) error {
	_, err := p.party(ctx, "CancelInvite", object{"invite_id": invite})
	return err
}

// Respond accepts an invite or declines it. It returns the party that the player is in then.
func (p *Player) Respond(ctx context.Context, invite string, accept bool, existing ...OnExisting) (*Party, error) {
	return p.party(ctx, "RespondToInvite", withExisting(object{"invite_id": invite, "accept": accept}, existing))
}

// Invites are those that the player can answer.
func (p *Player) Invites(ctx context.Context) ([]Invite, error) {
	var answer struct {
		Invites []Invite `json:"invites"`
	}
	err := p.call(ctx, "Party.ListInvites", object{}, &answer)
	return answer.Invites, err
}

// LeaveParty goes out of the party, and of its search. A game goes on.
func (p *Player) LeaveParty(ctx context.Context) error {
	_, err := p.party(ctx, "LeaveParty", object{})
	return err
}

// Kick takes another member out of the party; for leaders.
func (p *Player) Kick(ctx context.Context, player string) (*Party, error) {
	return p.party(ctx, "KickPlayer", object{"player_id": player})
}

// Promote makes another member a leader; for leaders.
func (p *Player) Promote(ctx context.Context, player string) (*Party, error) {
	return p.party(ctx, "PromoteLeader", object{"player_id": player})
}

// SetReady says whether this player is ready for a search. Not to be ready ends one.
func (p *Player) SetReady(ctx context.Context, ready bool) (*Party, error) {
	return p.party(ctx, "SetReady", object{"ready": ready})
}

// SetPartyPreferences changes what the party wants; for leaders.
func (p *Player) SetPartyPreferences(ctx context.Context, r PartyPreferences) (*Party, error) {
	return p.party(ctx, "SetPartyPreferences", r)
}

// SetPreferences changes what this client says about itself, such as the latencies that it has measured.
func (p *Player) SetPreferences(ctx context.Context, r PlayerPreferences) error {
	_, err := p.party(ctx, "SetPlayerPreferences", r)
	return err
}

// RotateInviteCode gives the party another code; for leaders.
func (p *Player) RotateInviteCode(ctx context.Context) (*Party, error) {
	return p.party(ctx, "RotateInviteCode", object{})
}

// DisbandParty ends the party for all its members; for leaders.
func (p *Player) DisbandParty(ctx context.Context) error {
	_, err := p.party(ctx, "DisbandParty", object{})
	return err
}
