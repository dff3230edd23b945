package gameclient

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"
)

// EventType is the type of an event.
type EventType string

// The types of events, with the fields of an Event that they set in addition to Seq, At, Type and Data. A later service may have
// more types; ignore unknown ones.
const (
	// OnSync: Snapshot replaces all earlier state. It comes if the client has missed more events than the service keeps.
	OnSync EventType = "OnSync"

	OnGameSessionChanged EventType = "OnGameSessionChanged" // the keys have changed: Flow, Cause, AllowedActions
	OnSessionReplaced    EventType = "OnSessionReplaced"    // another device has logged in as this player
	OnSessionExpiring    EventType = "OnSessionExpiring"    // the login expires within 60 s; the Player refreshes it

	OnPartyChanged         EventType = "OnPartyChanged"         // Party, Change
	OnAddedToParty         EventType = "OnAddedToParty"         // PartyID
	OnRemovedFromParty     EventType = "OnRemovedFromParty"     // PartyID, Reason
	OnPartyMemberPresence  EventType = "OnPartyMemberPresence"  // PartyID, PlayerID, MemberOnline
	OnPartyInviteReceived  EventType = "OnPartyInviteReceived"  // Invite: see Player.Respond
	OnPartyInviteCancelled EventType = "OnPartyInviteCancelled" // Invite, Reason
	OnPartyInviteResponse  EventType = "OnPartyInviteResponse"  // Invite, Accepted, PlayerID

	OnEnteredMatchmaking     EventType = "OnEnteredMatchmaking"     // Search
	OnMatchmakingStatus      EventType = "OnMatchmakingStatus"      // Search
	OnMatchFound             EventType = "OnMatchFound"             // SearchID, MatchID, Deadline, PlayersCount: see Player.AnswerMatch
	OnMatchAcceptanceChanged EventType = "OnMatchAcceptanceChanged" // SearchID, AcceptedCount, PendingCount, Declined
	OnMatchmakingResumed     EventType = "OnMatchmakingResumed"     // Search, Reason
	OnLeftMatchmaking        EventType = "OnLeftMatchmaking"        // SearchID, Reason
	OnMatchmakingFailed      EventType = "OnMatchmakingFailed"      // SearchID, Reason

	OnAddedToGame                   EventType = "OnAddedToGame"                   // GameInstanceID, MatchID, Team, Reconnect, Attributes
	OnHostConnectionDetailsReceived EventType = "OnHostConnectionDetailsReceived" // GameInstanceID, Host, Cause: connect
	OnFailedToAllocateGameInstance  EventType = "OnFailedToAllocateGameInstance"  // GameInstanceID, Reason, Requeued
	OnGameMembershipChanged         EventType = "OnGameMembershipChanged"         // GameInstanceID, Old, New, ReconnectDeadline
	OnReconnectAvailable            EventType = "OnReconnectAvailable"            // GameInstanceID, Reconnect, Deadline, CanDecline, HostSuspect
	OnGameInstanceUpdated           EventType = "OnGameInstanceUpdated"           // GameInstanceID, Attributes
	OnGameEnded                     EventType = "OnGameEnded"                     // GameInstanceID, EndReason, Result
	OnRemovedFromGame               EventType = "OnRemovedFromGame"               // GameInstanceID, Reason, Result

	OnPenaltyApplied EventType = "OnPenaltyApplied" // Lock
	OnPenaltyLifted  EventType = "OnPenaltyLifted"  // Lock
	OnMaintenance    EventType = "OnMaintenance"    // StartsAt, Message

	OnAllowedActionsChanged EventType = "OnAllowedActionsChanged" // AllowedActions, when they change without the keys
)

// Event is something that has happened to a player. Its Type decides which fields are set.
type Event struct {
	Seq  uint64          // from 1; rises by one with each event of the player, over all devices; an OnSync has that of the last event
	At   time.Time       // when it happened, by the service's clock
	Type EventType       // a service may know more of them
	Data json.RawMessage // the complete data of the event, for fields that this package does not know

	Snapshot *Snapshot    // of OnSync
	Flow     *Flow        // of OnGameSessionChanged
	Host     *HostDetails // of OnHostConnectionDetailsReceived
	EventData
}

// EventData contains the fields of events. The constants of EventType say which ones an event sets; the others are zero.
type EventData struct {
	Cause          string   `json:"cause"`           // what changed the keys, or caused the connection details: ALLOCATED, RESENT, RECONNECT, TAKEOVER
	Reason         string   `json:"reason"`          // such as KICKED, TIMEOUT or HOST_LOST; a service may know more of them
	AllowedActions []string `json:"allowed_actions"` // as in Snapshot

	PartyID      string      `json:"party_id"`  // "pty-…"
	PlayerID     string      `json:"player_id"` // the other player of the event
	Party        *Party      `json:"party"`     // after the change
	Change       PartyChange `json:"change"`    // of OnPartyChanged
	Invite       *Invite     `json:"invite"`    // of the events about invites
	Accepted     bool        `json:"accepted"`  // the other player has accepted the invite
	MemberOnline bool        `json:"online"`    // the member of the party is online

	Search        *Search   `json:"ticket"`         // after the change
	SearchID      string    `json:"matchmaking_id"` // for AnswerMatch
	MatchID       string    `json:"match_id"`       // of the match that was found
	Deadline      time.Time `json:"deadline"`       // for the answer to a match, or for the return into a game
	PlayersCount  int       `json:"players_count"`  // in the match
	AcceptedCount int       `json:"accepted_count"` // players who have accepted the match
	PendingCount  int       `json:"pending_count"`  // players who have not answered
	Declined      bool      `json:"declined"`       // a player has declined the match

	GameInstanceID    string           `json:"game_instance_id"`   // "gi-…"
	Team              string           `json:"team"`               // the player's team in the match
	Reconnect         string           `json:"reconnect"`          // OFF, OPTIONAL or REQUIRED
	Requeued          bool             `json:"requeued"`           // the search continues
	Old               MembershipStatus `json:"old"`                // before the change
	New               MembershipStatus `json:"new"`                // after the change
	ReconnectDeadline time.Time        `json:"reconnect_deadline"` // the end of the kept seat; zero: none
	CanDecline        bool             `json:"can_decline"`        // DeclineReconnect is allowed
	HostSuspect       bool             `json:"host_suspect"`       // the service has lost contact with the game server
	EndReason         string           `json:"end_reason"`         // why the game has ended
	Attributes        json.RawMessage  `json:"attributes"`         // the game's JSON object
	Result            json.RawMessage  `json:"result"`             // the game server's JSON object; nil if it sent none

	Lock     *Lock     `json:"lock"`      // the penalty
	StartsAt time.Time `json:"starts_at"` // of the maintenance
	Message  string    `json:"message"`   // for players
}

// PartyChange is a change of a party.
type PartyChange struct {
	Kind     string `json:"kind"`      // CREATED, JOINED, LEFT, KICKED, LEADER, READY, PREFERENCES, ATTRIBUTES, CODE
	PlayerID string `json:"player_id"` // the member that changed, with LEADER the new leader; empty if the whole party did
}

// readEvent reads one frame of the stream, or one event of a poll.
func readEvent(text []byte) (Event, error) {
	var frame struct {
		Seq  uint64          `json:"seq"`
		At   time.Time       `json:"ts"`
		Type EventType       `json:"type"`
		Data json.RawMessage `json:"data"`
	}
	if err := json.Unmarshal(text, &frame); err != nil {
		return Event{}, err
	}
	e := Event{Seq: frame.Seq, At: frame.At, Type: frame.Type, Data: frame.Data}
	switch e.Type {
	case OnSync:
		e.Snapshot = &Snapshot{}
		return e, json.Unmarshal(e.Data, e.Snapshot)
	case OnGameSessionChanged:
		e.Flow = &Flow{}
		_ = json.Unmarshal(e.Data, e.Flow)
		e.Flow.Seq = e.Seq
	case OnHostConnectionDetailsReceived:
		e.Host = &HostDetails{}
		_ = json.Unmarshal(e.Data, e.Host)
	}
	// Fields that a later service sends in another form stay zero and are in Data. To reject the event would block
	// all later ones.
	_ = json.Unmarshal(e.Data, &e.EventData)
	return e, nil
}

// eventsMax is how many events may wait for the game. If there are more, the Player drops them and requests an OnSync, which contains
// the whole state.
const eventsMax = 1000

// errGap makes the stream resume after the last event that was received.
var errGap = errors.New("the numbers of the events have a gap")

// take queues an event for the game, each once, in order.
func (p *Player) take(e Event) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case e.Type == OnSync:
		p.events, p.whole = p.events[:0], false // it replaces them
		p.flow = e.Snapshot.Flow
	case e.Seq <= p.last || p.whole:
		return nil // received before, or about to be replaced by an OnSync
	case e.Seq != p.last+1:
		return fmt.Errorf("%w: %d after %d", errGap, e.Seq, p.last)
	case len(p.events) == eventsMax:
		p.events, p.whole = nil, true
		return fmt.Errorf("%d events wait for the game to take them", eventsMax)
	}
	p.last = e.Seq
	p.events = append(p.events, e)
	if e.Type == OnSessionExpiring {
		select {
		case p.expiring <- struct{}{}:
		default: // keepLogin has not taken the previous one yet
		}
	}
	if e.Flow != nil {
		p.noteFlowLocked(*e.Flow)
	}
	p.tellLocked()
	return nil
}

// from returns the number of the event after which the service should continue; 0 requests an OnSync.
func (p *Player) from() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.whole {
		return 0
	}
	return p.last
}

// Poll returns the next event without waiting, and whether there was one. A game loop calls it in each frame.
func (p *Player) Poll() (Event, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.events) == 0 {
		return Event{}, false
	}
	return p.pop(), true
}

func (p *Player) pop() Event {
	e := p.events[0]
	p.events[0] = Event{} // frees what it points to
	p.events = p.events[1:]
	p.taken = e.Seq
	return e
}

// Next waits for the next event. It returns each event once, in order and without a gap, even if the connection was lost
// meanwhile. The error is ErrReplaced, ErrLoggedOut or ErrClosed when no more events can come, or the context's.
func (p *Player) Next(ctx context.Context) (Event, error) {
	for {
		p.mu.Lock()
		if len(p.events) > 0 {
			e := p.pop()
			p.mu.Unlock()
			return e, nil
		}
		over, happened := p.over, p.happened
		p.mu.Unlock()
		if over != nil {
			return Event{}, over
		}
		select {
		case <-happened:
		case <-ctx.Done():
			return Event{}, context.Cause(ctx)
		}
	}
}

// Events iterates over the events that Next returns, until ctx ends or no more events can come. The last pair contains the error.
func (p *Player) Events(ctx context.Context) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		for {
			e, err := p.Next(ctx)
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

// Await returns the next event of one of these types. It discards the events before it; Flow includes what they changed. It fails as Next
// does.
func (p *Player) Await(ctx context.Context, types ...EventType) (Event, error) {
	for {
		e, err := p.Next(ctx)
		if err != nil || slices.Contains(types, e.Type) {
			return e, err
		}
	}
}
