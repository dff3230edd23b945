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

// EventType says what an event is about.
type EventType string

// The types of events, with the fields of an Event that they set beside Seq, At, Type and Data. A later service may know more:
// pass over what you do not know.
const (
	// OnSync replaces everything that the client knows: Snapshot. It comes when events were missed for so long that the
	// service does not have them any more.
	OnSync EventType = "OnSync"

	OnGameSessionChanged EventType = "OnGameSessionChanged" // the keys have changed: Flow, Cause, AllowedActions
	OnSessionReplaced    EventType = "OnSessionReplaced"    // another device has taken over
	OnSessionExpiring    EventType = "OnSessionExpiring"    // Deadline

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

// Event is one thing that has happened to a player. Which fields count depends on the Type.
type Event struct {
	Seq  uint64 // rises by one with each event of the player, over devices and restarts; an OnSync has that of the last one
	At   time.Time
	Type EventType
	Data json.RawMessage // all that the service said, for what this package does not know

	Snapshot *Snapshot    // of OnSync
	Flow     *Flow        // of OnGameSessionChanged
	Host     *HostDetails // of OnHostConnectionDetailsReceived
	EventData
}

// EventData is what events say.
type EventData struct {
	Cause          string   `json:"cause"`
	Reason         string   `json:"reason"`
	AllowedActions []string `json:"allowed_actions"`

	PartyID  string      `json:"party_id"`
	PlayerID string      `json:"player_id"`
	Party    *Party      `json:"party"`
	Change   PartyChange `json:"change"`
	Invite   *Invite     `json:"invite"`
	Accepted bool        `json:"accepted"`
	// MemberOnline is whether a member of the party is there.
	MemberOnline bool `json:"online"`

	Search        *Search   `json:"ticket"`
	SearchID      string    `json:"matchmaking_id"`
	MatchID       string    `json:"match_id"`
	Deadline      time.Time `json:"deadline"`
	PlayersCount  int       `json:"players_count"`
	AcceptedCount int       `json:"accepted_count"`
	PendingCount  int       `json:"pending_count"`
	Declined      bool      `json:"declined"`

	GameInstanceID    string           `json:"game_instance_id"`
	Team              string           `json:"team"`
	Reconnect         string           `json:"reconnect"`
	Requeued          bool             `json:"requeued"` // the search goes on
	Old               MembershipStatus `json:"old"`
	New               MembershipStatus `json:"new"`
	ReconnectDeadline time.Time        `json:"reconnect_deadline"`
	CanDecline        bool             `json:"can_decline"`
	HostSuspect       bool             `json:"host_suspect"`
	EndReason         string           `json:"end_reason"`
	Attributes        json.RawMessage  `json:"attributes"`
	Result            json.RawMessage  `json:"result"`

	Lock     *Lock     `json:"lock"`
	StartsAt time.Time `json:"starts_at"`
	Message  string    `json:"message"`
}

// PartyChange is what has changed in a party.
type PartyChange struct {
	Kind     string `json:"kind"` // CREATED, JOINED, LEFT, KICKED, LEADER, READY, PREFERENCES, ATTRIBUTES, CODE
	PlayerID string `json:"player_id"`
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
	// What a later service says in another way is left out, and is in Data: an event that was never taken in would keep back
	// all those behind it.
	_ = json.Unmarshal(e.Data, &e.EventData)
	return e, nil
}

// eventsMax is how many events wait for a game that does not take them. When there are more they are thrown away, and one
// OnSync comes in their place, which says everything.
const eventsMax = 1000

// errGap makes the stream begin anew behind the last event that was taken in.
var errGap = errors.New("the numbers of the events have a gap")

// take takes in what the service sent: each event once, in order.
func (p *Player) take(e Event) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case e.Type == OnSync:
		p.events, p.whole = p.events[:0], false // it says all that those said
		p.flow = e.Snapshot.Flow
	case e.Seq <= p.last || p.whole:
		return nil // known, or about to be told with everything
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
		default: // it is known
		}
	}
	if e.Flow != nil {
		p.noteFlowLocked(*e.Flow)
	}
	p.tellLocked()
	return nil
}

// from is behind which event the service is to go on; 0 asks for everything.
func (p *Player) from() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.whole {
		return 0
	}
	return p.last
}

// Poll is the next event, if there is one: for a game loop, in each frame.
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
	p.events[0] = Event{} // what it points to need not live as long as the array
	p.events = p.events[1:]
	p.taken = e.Seq
	return e
}

// Next waits for the next event. Each event is given out once, in order and without a gap, whatever happened to the
// connection meanwhile. When no more can come the error is ErrReplaced, ErrLoggedOut or ErrClosed.
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

// Events are the events as Next gives them, until ctx ends or no more can come: the last pair has the error.
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

// Await takes events until one of these types comes, and gives that one. Those before it are passed over; Flow has what
// they changed.
func (p *Player) Await(ctx context.Context, types ...EventType) (Event, error) {
	for {
		e, err := p.Next(ctx)
		if err != nil || slices.Contains(types, e.Type) {
			return e, err
		}
	}
}
