package gameclient

import (
	"context"
	"encoding/json"
)

// CreatePartyRequest describes a new party. The zero value uses the service's defaults: friends join by invite or code.
type CreatePartyRequest struct {
	Attributes  json.RawMessage `json:"attributes,omitempty"`  // a JSON object of up to 16 KiB
	Joinability Joinability     `json:"joinability,omitempty"` // empty: the service's default
	MembersMax  int             `json:"max_members,omitempty"` // 1 to 100, up to the service's maximum; 0 means the maximum
	OnExisting  OnExisting      `json:"on_existing,omitempty"` // for a player who is in a party; empty: OnExistingSwitch
}

// OnExisting determines what happens to a player who is already in a party.
type OnExisting string

// The values of OnExisting.
const (
	OnExistingSwitch OnExisting = "SWITCH" // leaves the old party and enters the new one in one step; the default
	OnExistingFail   OnExisting = "FAIL"   // fails with the code ALREADY_IN_PARTY
)

// PartyPreferences are changes to a party. Empty fields leave a preference unchanged. No member is ready after a change.
type PartyPreferences struct {
	Queue       *string         `json:"queue,omitempty"`       // for searches that name none; up to 128 characters
	Regions     *[]string       `json:"regions,omitempty"`     // preferred regions, up to 32
	Joinability Joinability     `json:"joinability,omitempty"` // which players may join
	Attributes  json.RawMessage `json:"attributes,omitempty"`  // a JSON object of up to 16 KiB
}

// PlayerPreferences are changes to what a client reports about its player. Nil fields leave a preference unchanged.
type PlayerPreferences struct {
	LatencyMilliseconds map[string]int  `json:"latency_ms,omitempty"`     // measured round-trip times by region
	Attributes          json.RawMessage `json:"attributes,omitempty"`     // a JSON object of up to 4 KiB
	ClientVersion       *string         `json:"client_version,omitempty"` // of the game; up to 64 characters
}

type object = map[string]any

// party makes a call whose answer contains the party; nil if the player is in none.
func (p *Player) party(ctx context.Context, name string, body any) (*Party, error) {
	var answer struct {
		Party *Party `json:"party"`
	}
	err := p.call(ctx, "Party."+name, body, &answer)
	return answer.Party, err
}

// CreateParty creates a party with this player as leader. Codes of refusals are ALREADY_IN_PARTY, PLAYER_IN_GAME and IN_MATCHMAKING.
func (p *Player) CreateParty(ctx context.Context, r CreatePartyRequest) (*Party, error) {
	return p.party(ctx, "CreateParty", r)
}

// Party requests the party as it is now. Without one, the error has the code NOT_IN_PARTY.
func (p *Player) Party(ctx context.Context) (*Party, error) {
	return p.party(ctx, "GetParty", object{})
}

// JoinParty joins a party that is open, or to which the player is invited. The player leaves another party for it, unless existing is
// OnExistingFail. Codes of refusals are PARTY_NOT_FOUND, PARTY_CLOSED, PARTY_FULL, KICKED_NEEDS_INVITE, ALREADY_IN_PARTY and
// PARTY_CHANGE_LOCKED, among others.
func (p *Player) JoinParty(ctx context.Context, party string, existing ...OnExisting) (*Party, error) {
	return p.party(ctx, "JoinPartyById", withExisting(object{"party_id": party}, existing))
}

// JoinPartyByCode joins the party with this invite code. Case, spaces and hyphens do not matter. It fails as JoinParty does.
func (p *Player) JoinPartyByCode(ctx context.Context, code string, existing ...OnExisting) (*Party, error) {
	return p.party(ctx, "JoinPartyByInviteCode", withExisting(object{"code": code}, existing))
}

func withExisting(body object, existing []OnExisting) object {
	if len(existing) > 0 {
		body["on_existing"] = existing[len(existing)-1]
	}
	return body
}

// Invite invites a player into the party and returns the id of the invite. The player receives OnPartyInviteReceived. Invite does not
// reveal whether the player exists or has blocked this one.
func (p *Player) Invite(ctx context.Context, player string) (string, error) {
	var answer struct {
		ID string `json:"invite_id"`
	}
	err := p.call(ctx, "Party.SendInvite", object{"player_id": player}, &answer)
	return answer.ID, err
}

// CancelInvite cancels an invite. An unknown one has the code INVITE_NOT_FOUND.
func (p *Player) CancelInvite(ctx context.Context, invite string) error {
	_, err := p.party(ctx, "CancelInvite", object{"invite_id": invite})
	return err
}

// Respond accepts or declines an invite. It returns the party that the player is in afterwards. It fails as JoinParty does, or with the
// code INVITE_NOT_FOUND or INVITE_EXPIRED.
func (p *Player) Respond(ctx context.Context, invite string, accept bool, existing ...OnExisting) (*Party, error) {
	return p.party(ctx, "RespondToInvite", withExisting(object{"invite_id": invite, "accept": accept}, existing))
}

// Invites requests the invites that the player can answer.
func (p *Player) Invites(ctx context.Context) ([]Invite, error) {
	var answer struct {
		Invites []Invite `json:"invites"`
	}
	err := p.call(ctx, "Party.ListInvites", object{}, &answer)
	return answer.Invites, err
}

// LeaveParty leaves the party and its search. A running game continues.
func (p *Player) LeaveParty(ctx context.Context) error {
	_, err := p.party(ctx, "LeaveParty", object{})
	return err
}

// Kick removes another member from the party. Only leaders may call it; others get the code NOT_LEADER.
func (p *Player) Kick(ctx context.Context, player string) (*Party, error) {
	return p.party(ctx, "KickPlayer", object{"player_id": player})
}

// Promote makes another member a leader. Only leaders may call it.
func (p *Player) Promote(ctx context.Context, player string) (*Party, error) {
	return p.party(ctx, "PromoteLeader", object{"player_id": player})
}

// SetReady sets whether this player is ready for a search. Unready members end a running search.
func (p *Player) SetReady(ctx context.Context, ready bool) (*Party, error) {
	return p.party(ctx, "SetReady", object{"ready": ready})
}

// SetPartyPreferences changes the preferences of the party. Only leaders may call it.
func (p *Player) SetPartyPreferences(ctx context.Context, r PartyPreferences) (*Party, error) {
	return p.party(ctx, "SetPartyPreferences", r)
}

// SetPreferences changes what this client reports about its player, such as measured latencies.
func (p *Player) SetPreferences(ctx context.Context, r PlayerPreferences) error {
	_, err := p.party(ctx, "SetPlayerPreferences", r)
	return err
}

// RotateInviteCode gives the party a new invite code and invalidates the old one. Only leaders may call it.
func (p *Player) RotateInviteCode(ctx context.Context) (*Party, error) {
	return p.party(ctx, "RotateInviteCode", object{})
}

// DisbandParty ends the party for all members. Only leaders may call it.
func (p *Player) DisbandParty(ctx context.Context) error {
	_, err := p.party(ctx, "DisbandParty", object{})
	return err
}
