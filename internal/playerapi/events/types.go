package events

import (
	"reflect"

	"github.com/danielgtaylor/huma/v2"

	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/playerapi/objects"
)

// The data of events: docs/spec/player-api.md#events. The documents are generated from these types.
type (
	// KeysChanged is the data of OnGameSessionChanged.
	KeysChanged struct {
		Rev            uint64       `json:"rev"`
		Phase          string       `json:"phase" enum:"IDLE,IN_PARTY,MATCHMAKING,IN_GAME"`
		Keys           objects.Keys `json:"keys"`
		Changed        []KeyChange  `json:"changed"`
		Cause          string       `json:"cause" doc:"The call, the deadline, or the event of the game."`
		AllowedActions []string     `json:"allowed_actions"`
	}
	// KeyChange is one key before and after a commit.
	KeyChange struct {
		Key string  `json:"key" enum:"PARTY_ID,MATCHMAKING_ID,GAME_INSTANCE_ID"`
		Old *string `json:"old" doc:"null: it had no value."`
		New *string `json:"new" doc:"null: it has no value."`
	}
	// ReplacedData is the data of OnSessionReplaced.
	ReplacedData struct {
		By ReplacedBy `json:"by"`
	}
	// ReplacedBy is the login that has taken over.
	ReplacedBy struct {
		DeviceLabel string `json:"device_label"`
		At          string `json:"at" format:"date-time"`
	}
	// ExpiringData is the data of OnSessionExpiring.
	ExpiringData struct {
		ExpiresAt string `json:"expires_at" format:"date-time"`
	}
	// PartyChangedData is the data of OnPartyChanged.
	PartyChangedData struct {
		Party  *objects.Party  `json:"party"`
		Change PartyChangeData `json:"change"`
	}
	// PartyChangeData is a change of a party.
	PartyChangeData struct {
		Kind     string `json:"kind" enum:"CREATED,JOINED,LEFT,KICKED,LEADER,READY,PREFERENCES,ATTRIBUTES,CODE"`
		PlayerID string `json:"player_id,omitempty" doc:"The member who changed; with LEADER the new leader."`
	}
	// AddedToPartyData is the data of OnAddedToParty.
	AddedToPartyData struct {
		PartyID string `json:"party_id"`
	}
	// RemovedFromPartyData is the data of OnRemovedFromParty.
	RemovedFromPartyData struct {
		PartyID string `json:"party_id"`
		Reason  string `json:"reason" enum:"LEFT,SWITCHED,KICKED,OFFLINE,PARTY_EXPIRED,SHUT_DOWN,DISBANDED,BANNED"`
	}
	// PresenceData is the data of OnPartyMemberPresence.
	PresenceData struct {
		PartyID  string `json:"party_id"`
		PlayerID string `json:"player_id"`
		Online   bool   `json:"online"`
	}
	// InviteData is the data of OnPartyInviteReceived.
	InviteData struct {
		Invite *objects.Invite `json:"invite"`
	}
	// InviteCancelledData is the data of OnPartyInviteCancelled.
	InviteCancelledData struct {
		Invite *objects.Invite `json:"invite"`
		Reason string          `json:"reason" enum:"CANCELLED,EXPIRED,PARTY_GONE"`
	}
	// InviteResponseData is the data of OnPartyInviteResponse.
	InviteResponseData struct {
		Invite   *objects.Invite `json:"invite"`
		Accepted bool            `json:"accepted"`
		PlayerID string          `json:"player_id"`
	}
	// TicketData is the data of OnEnteredMatchmaking and OnMatchmakingStatus.
	TicketData struct {
		Ticket *objects.Ticket `json:"ticket"`
	}
	// ResumedData is the data of OnMatchmakingResumed.
	ResumedData struct {
		Ticket *objects.Ticket `json:"ticket"`
		Reason string          `json:"reason,omitempty" doc:"Why the proposed match failed."`
	}
	// MatchFoundData is the data of OnMatchFound.
	MatchFoundData struct {
		MatchmakingID string `json:"matchmaking_id"`
		MatchID       string `json:"match_id"`
		Deadline      string `json:"deadline" format:"date-time"`
		PlayersCount  int32  `json:"players_count"`
	}
	// AcceptanceChangedData is the data of OnMatchAcceptanceChanged.
	AcceptanceChangedData struct {
		MatchmakingID string `json:"matchmaking_id"`
		AcceptedCount int32  `json:"accepted_count"`
		PendingCount  int32  `json:"pending_count"`
		Declined      bool   `json:"declined"`
	}
	// LeftMatchmakingData is the data of OnLeftMatchmaking.
	LeftMatchmakingData struct {
		MatchmakingID string `json:"matchmaking_id"`
		Reason        string `json:"reason" enum:"REQUESTED,MEMBER_LEFT,MEMBER_KICKED,MEMBER_OFFLINE,MEMBER_REMOVED,PARTY_SHUT_DOWN,NOT_READY"`
		By            string `json:"by,omitempty" doc:"The player; absent when it was none."`
	}
	// MatchmakingFailedData is the data of OnMatchmakingFailed.
	MatchmakingFailedData struct {
		MatchmakingID string `json:"matchmaking_id"`
		Reason        string `json:"reason" enum:"TIMEOUT,ACCEPT_DECLINED,ACCEPT_TIMEOUT,ENGINE,TICKET_SUPERSEDED,QUEUE_CLOSED,VERSION"`
		By            string `json:"by,omitempty" doc:"The players who declined or did not answer, separated by commas."`
	}
	// AddedToGameData is the data of OnAddedToGame.
	AddedToGameData struct {
		GameInstanceID string         `json:"game_instance_id"`
		MatchID        string         `json:"match_id,omitempty"`
		Team           string         `json:"team,omitempty"`
		Reconnect      string         `json:"reconnect" enum:"OFF,OPTIONAL,REQUIRED"`
		Attributes     objects.Object `json:"attributes"`
	}
	// HostDetailsData is the data of OnHostConnectionDetailsReceived.
	HostDetailsData struct {
		objects.HostConnectionDetails
		Cause string `json:"cause" enum:"ALLOCATED,RESENT,RECONNECT,TAKEOVER"`
	}
	// AllocationFailedData is the data of OnFailedToAllocateGameInstance.
	AllocationFailedData struct {
		GameInstanceID string `json:"game_instance_id"`
		Reason         string `json:"reason" enum:"TIMEOUT,NO_CAPACITY,CANCELLED,HOST_ERROR"`
		Requeued       bool   `json:"requeued" doc:"The party searches again; OnEnteredMatchmaking says so, too."`
	}
	// MembershipChangedData is the data of OnGameMembershipChanged.
	MembershipChangedData struct {
		GameInstanceID    string `json:"game_instance_id"`
		Old               string `json:"old" enum:"PENDING,RESERVED,NO_SHOW,ACTIVE,DISCONNECTED"`
		New               string `json:"new" enum:"PENDING,RESERVED,NO_SHOW,ACTIVE,DISCONNECTED,ENDED"`
		ReconnectDeadline string `json:"reconnect_deadline,omitempty" format:"date-time"`
	}
	// ReconnectAvailableData is the data of OnReconnectAvailable.
	ReconnectAvailableData struct {
		GameInstanceID string `json:"game_instance_id"`
		Reconnect      string `json:"reconnect" enum:"OFF,OPTIONAL,REQUIRED"`
		Deadline       string `json:"deadline,omitempty" format:"date-time" doc:"Absent if the seat is held until the end of the game."`
		CanDecline     bool   `json:"can_decline"`
		HostSuspect    bool   `json:"host_suspect"`
	}
	// InstanceUpdatedData is the data of OnGameInstanceUpdated.
	InstanceUpdatedData struct {
		GameInstanceID string         `json:"game_instance_id"`
		Attributes     objects.Object `json:"attributes"`
	}
	// GameEndedData is the data of OnGameEnded.
	GameEndedData struct {
		GameInstanceID string         `json:"game_instance_id"`
		EndReason      string         `json:"end_reason" enum:"FINISHED,TERMINATED,HOST_LOST,ABSOLUTE_TIMEOUT,OPERATOR"`
		Result         objects.Object `json:"result"`
	}
	// RemovedFromGameData is the data of OnRemovedFromGame.
	RemovedFromGameData struct {
		GameInstanceID string          `json:"game_instance_id"`
		Reason         string          `json:"reason" enum:"GAME_ENDED,GAME_TERMINATED,HOST_LOST,LEFT,DECLINED,NO_SHOW,DISCONNECTED,RECONNECT_EXPIRED,TOO_MANY_DISCONNECTS,REMOVED,RELEASED,SLOT_LOST,ABSOLUTE_TIMEOUT,OPERATOR"`
		Result         *objects.Object `json:"result,omitempty"`
	}
	// LockData is the data of OnPenaltyApplied and OnPenaltyLifted.
	LockData struct {
		Lock objects.Lock `json:"lock"`
	}
	// ActionsData is the data of OnAllowedActionsChanged.
	ActionsData struct {
		AllowedActions []string `json:"allowed_actions" doc:"What the player may do from now on, without a change of keys; that is in OnGameSessionChanged."`
	}
	// MaintenanceData is the data of OnMaintenance.
	MaintenanceData struct {
		StartsAt string `json:"starts_at" format:"date-time"`
		Message  string `json:"message"`
	}
)

// forms has the events with their data, in the order of docs/spec/player-api.md#events.
var forms = []struct {
	kind flow.MessageType
	data reflect.Type
}{
	{flow.OnSync, reflect.TypeFor[objects.FlowSnapshot]()},
	{flow.OnGameSessionChanged, reflect.TypeFor[KeysChanged]()},
	{flow.OnSessionReplaced, reflect.TypeFor[ReplacedData]()},
	{flow.OnSessionExpiring, reflect.TypeFor[ExpiringData]()},
	{flow.OnPartyChanged, reflect.TypeFor[PartyChangedData]()},
	{flow.OnAddedToParty, reflect.TypeFor[AddedToPartyData]()},
	{flow.OnRemovedFromParty, reflect.TypeFor[RemovedFromPartyData]()},
	{flow.OnPartyMemberPresence, reflect.TypeFor[PresenceData]()},
	{flow.OnPartyInviteReceived, reflect.TypeFor[InviteData]()},
	{flow.OnPartyInviteCancelled, reflect.TypeFor[InviteCancelledData]()},
	{flow.OnPartyInviteResponse, reflect.TypeFor[InviteResponseData]()},
	{flow.OnEnteredMatchmaking, reflect.TypeFor[TicketData]()},
	{flow.OnMatchmakingStatus, reflect.TypeFor[TicketData]()},
	{flow.OnMatchFound, reflect.TypeFor[MatchFoundData]()},
	{flow.OnMatchAcceptanceChanged, reflect.TypeFor[AcceptanceChangedData]()},
	{flow.OnMatchmakingResumed, reflect.TypeFor[ResumedData]()},
	{flow.OnLeftMatchmaking, reflect.TypeFor[LeftMatchmakingData]()},
	{flow.OnMatchmakingFailed, reflect.TypeFor[MatchmakingFailedData]()},
	{flow.OnAddedToGame, reflect.TypeFor[AddedToGameData]()},
	{flow.OnHostConnectionDetailsReceived, reflect.TypeFor[HostDetailsData]()},
	{flow.OnFailedToAllocateGameInstance, reflect.TypeFor[AllocationFailedData]()},
	{flow.OnGameMembershipChanged, reflect.TypeFor[MembershipChangedData]()},
	{flow.OnReconnectAvailable, reflect.TypeFor[ReconnectAvailableData]()},
	{flow.OnGameInstanceUpdated, reflect.TypeFor[InstanceUpdatedData]()},
	{flow.OnGameEnded, reflect.TypeFor[GameEndedData]()},
	{flow.OnRemovedFromGame, reflect.TypeFor[RemovedFromGameData]()},
	{flow.OnPenaltyApplied, reflect.TypeFor[LockData]()},
	{flow.OnPenaltyLifted, reflect.TypeFor[LockData]()},
	{flow.OnMaintenance, reflect.TypeFor[MaintenanceData]()},
	{flow.OnAllowedActionsChanged, reflect.TypeFor[ActionsData]()},
}

// The ways in which a client resumes.
const (
	ResumeReplay   = "REPLAY"
	ResumeSnapshot = "SNAPSHOT"
)

// Hello is the first frame.
type Hello struct {
	Type           string `json:"type" enum:"hello"`
	SessionID      string `json:"session_id"`
	Epoch          uint32 `json:"epoch"`
	HeadSeq        uint64 `json:"head_seq"`
	Rev            uint64 `json:"rev"`
	PingIntervalMS int64  `json:"ping_interval_ms"`
	DeadAfterMS    int64  `json:"dead_after_ms" doc:"A stream that is silent for so long is closed, and the player is offline."`
	Resume         string `json:"resume" enum:"REPLAY,SNAPSHOT" doc:"REPLAY: the missed events follow. SNAPSHOT: one OnSync follows."`
}

// Event is an event as sent to the client.
type Event string

// MarshalJSON writes the event.
func (e Event) MarshalJSON() ([]byte, error) { return []byte(e), nil }

// Kinds returns the names of all events.
func Kinds() (names []any) {
	for _, x := range forms {
		names = append(names, x.kind.String())
	}
	return names
}

// Name is the name of any event in the documents. Each type also has its own name there.
const Name = "Event"

// Schema returns the schema of an event: a union, distinguished by type.
func (Event) Schema(r huma.Registry) *huma.Schema {
	const refs = "#/components/schemas/"
	all := r.Map()
	if all[Name] == nil {
		one := &huma.Schema{
			Description:   "An event as the stream brings it. Types that a client does not know are passed over.",
			Discriminator: &huma.Discriminator{PropertyName: "type", Mapping: map[string]string{}},
		}
		all[Name] = one
		r.Schema(reflect.TypeFor[Hello](), true, "") // the stream's first frame, which no call returns
		for _, x := range forms {
			name := x.kind.String()
			all[name] = eventSchema(name, r.Schema(x.data, true, ""))
			one.OneOf = append(one.OneOf, &huma.Schema{Ref: refs + name})
			one.Discriminator.Mapping[name] = refs + name
		}
	}
	return &huma.Schema{Ref: refs + Name}
}

func eventSchema(name string, data *huma.Schema) *huma.Schema {
	none := 0.0
	return &huma.Schema{
		Type: huma.TypeObject, AdditionalProperties: false,
		Properties: map[string]*huma.Schema{
			"seq":    {Type: huma.TypeInteger, Format: "int64", Minimum: &none, Description: "Number of the event, gapless for each player. That of OnSync is a new one, too."},
			"commit": {Type: huma.TypeString, Description: "Events with the same one happened at once."},
			"ts":     {Type: huma.TypeString, Format: "date-time"},
			"type":   {Type: huma.TypeString, Enum: []any{name}},
			"data":   data,
		},
		Required: []string{"seq", "commit", "ts", "type", "data"},
	}
}
