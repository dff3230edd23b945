package events

import (
	"bytes"
	"context"
	"encoding/json"
	"strconv"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/playerapi/objects"
	"github.com/musterhq/muster/internal/playerapi/state"
)

// Writer writes events as clients receive them.
type Writer struct {
	State *state.State
}

// Tail writes an event without its number. It is the same for all recipients, except OnSync, which is for one player. It fails only if the
// state for an OnSync cannot be read: the service is stopping, or the cluster has no leader.
func (w Writer) Tail(ctx context.Context, seq uint64, x *flow.Told, player string) ([]byte, error) {
	if x.Type == flow.OnSync {
		return w.syncTail(ctx, seq, x, player)
	}
	m, err := flow.DecodeMessage(x.Body)
	var data any = map[string]any{}
	if err != nil {
		// The service itself wrote this event. A client that never sees the number would wait for it forever.
		w.State.Log.Error("an event in the outbox cannot be read", "player", player, "type", x.Type.String(), "error", err)
	} else {
		data = w.data(x.Type, m, player)
	}
	return w.tail(flow.CommitName(x.Commit, x.Part), x.At, x.Type.String(), data), nil
}

func (w Writer) tail(commit string, at domain.Time, kind string, data any) []byte {
	body, err := written(data)
	if err != nil {
		w.State.Log.Error("an event cannot be written", "type", kind, "error", err)
		body = []byte("{}")
	}
	b := make([]byte, 0, len(body)+120)
	b = append(b, `"commit":"`...)
	b = append(b, commit...)
	b = append(b, `","ts":"`...)
	b = append(b, objects.Stamp(at)...)
	b = append(b, `","type":"`...)
	b = append(b, kind...)
	b = append(b, `","data":`...)
	b = append(b, body...)
	return append(b, '}')
}

// written returns JSON without the HTML escapes, which would make attributes up to six times as long as their limit.
func written(data any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(data)
	return bytes.TrimSuffix(b.Bytes(), []byte{'\n'}), err
}

// Whole writes a whole event.
func Whole(seq uint64, tail []byte) []byte {
	b := make([]byte, 0, len(tail)+30)
	b = append(b, `{"seq":`...)
	b = strconv.AppendUint(b, seq, 10)
	b = append(b, ',')
	return append(b, tail...)
}

// syncTail writes an OnSync: its number is from the outbox, its data from the present state. A client continues after the number,
// although the state may be later, because later events may contain more, such as the offer to return to a game.
func (w Writer) syncTail(ctx context.Context, seq uint64, x *flow.Told, player string) ([]byte, error) {
	s, err := w.State.Snapshot(ctx, player)
	if err != nil {
		return nil, err
	}
	s.Seq = seq
	return w.tail(flow.CommitName(x.Commit, x.Part), x.At, flow.OnSync.String(), s), nil
}

// fields is the data of an event for game servers or the studio.
type fields map[string]any

func (f fields) unlessEmpty(key, value string) fields {
	if value != "" {
		f[key] = value
	}
	return f
}

// data returns the data of an event, of the type in forms.
func (w Writer) data(kind flow.MessageType, m *flow.Message, player string) any {
	switch kind {
	case flow.OnGameSessionChanged:
		return changedOf(m)
	case flow.OnSessionReplaced:
		return ReplacedData{ReplacedBy{m.Device, objects.Stamp(m.Deadline)}}
	case flow.OnSessionExpiring:
		return ExpiringData{objects.Stamp(m.Deadline)}
	case flow.OnMaintenance:
		return MaintenanceData{objects.Stamp(m.Deadline), m.Text}
	case flow.OnAllowedActionsChanged:
		return ActionsData{m.Allowed.Names()}
	case flow.OnPenaltyApplied, flow.OnPenaltyLifted:
		return LockData{objects.LockOf(m.Penalty)}
	}
	if data := partyData(kind, m); data != nil {
		return data
	}
	if data := searchData(kind, m); data != nil {
		return data
	}
	return w.gameData(kind, m, player)
}

// changedOf returns the data of OnGameSessionChanged.
func changedOf(m *flow.Message) KeysChanged {
	changes := []KeyChange{}
	was, is := objects.KeysOf(m.Old), objects.KeysOf(m.Record.Keys)
	for _, x := range []struct{ key, was, is string }{
		{"PARTY_ID", was.PartyID, is.PartyID}, {"MATCHMAKING_ID", was.MatchmakingID, is.MatchmakingID},
		{"GAME_INSTANCE_ID", was.GameInstanceID, is.GameInstanceID},
	} {
		if x.was != x.is {
			changes = append(changes, KeyChange{x.key, orNull(x.was), orNull(x.is)})
		}
	}
	return KeysChanged{m.Record.Rev, m.Record.Keys.Phase().String(), is, changes, m.Cause, m.Allowed.Names()}
}

func orNull(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

func partyData(kind flow.MessageType, m *flow.Message) any {
	switch kind {
	case flow.OnPartyChanged:
		return PartyChangedData{objects.PartyOf(m.Party), PartyChangeData{m.Change.String(), m.Player}}
	case flow.OnAddedToParty:
		return AddedToPartyData{objects.ID(m.PartyID)}
	case flow.OnRemovedFromParty:
		return RemovedFromPartyData{objects.ID(m.PartyID), m.Reason.String()}
	case flow.OnPartyMemberPresence:
		return PresenceData{objects.ID(m.PartyID), m.Player, m.Online}
	case flow.OnPartyInviteReceived:
		return InviteData{objects.InviteOf(m.Invite)}
	case flow.OnPartyInviteCancelled:
		return InviteCancelledData{objects.InviteOf(m.Invite), m.Reason.String()}
	case flow.OnPartyInviteResponse:
		return InviteResponseData{objects.InviteOf(m.Invite), m.Accepted, m.Player}
	}
	return nil
}

func searchData(kind flow.MessageType, m *flow.Message) any {
	switch kind {
	case flow.OnEnteredMatchmaking, flow.OnMatchmakingStatus:
		return TicketData{objects.TicketOf(m.Search)}
	case flow.OnMatchmakingResumed:
		return ResumedData{objects.TicketOf(m.Search), m.Reason.String()}
	case flow.OnMatchFound:
		return MatchFoundData{objects.ID(m.Ticket), m.Match, objects.Stamp(m.Deadline), m.Players}
	case flow.OnMatchAcceptanceChanged:
		return AcceptanceChangedData{objects.ID(m.Ticket), m.AcceptedCount, m.PendingCount, m.Reason == flow.AcceptDeclined}
	case flow.OnLeftMatchmaking:
		return LeftMatchmakingData{objects.ID(m.Ticket), m.Reason.String(), m.Player}
	case flow.OnMatchmakingFailed:
		return MatchmakingFailedData{objects.ID(m.Ticket), m.Reason.String(), m.Player}
	}
	return nil
}

func (w Writer) gameData(kind flow.MessageType, m *flow.Message, player string) any {
	id := objects.ID(m.Instance)
	switch kind {
	case flow.OnAddedToGame:
		return AddedToGameData{id, m.Match, m.Team, m.Reconnect.String(), objects.Object(m.Attributes)}
	case flow.OnHostConnectionDetailsReceived:
		if m.Host == nil {
			return HostDetailsData{objects.HostConnectionDetails{GameInstanceID: id}, m.Reason.String()}
		}
		return HostDetailsData{*w.State.Objects.Host(player, m.Host), m.Reason.String()}
	case flow.OnFailedToAllocateGameInstance:
		return AllocationFailedData{id, m.Reason.String(), m.Requeued}
	case flow.OnGameMembershipChanged:
		return MembershipChangedData{id, m.OldStatus.String(), m.Status.String(), objects.Stamp(m.Deadline)}
	case flow.OnReconnectAvailable:
		return ReconnectAvailableData{id, m.Reconnect.String(), objects.Stamp(m.Deadline), m.CanDecline, m.Suspect}
	case flow.OnGameInstanceUpdated:
		return InstanceUpdatedData{id, objects.Object(m.Attributes)}
	case flow.OnGameEnded:
		return GameEndedData{id, m.Reason.String(), objects.Object(m.Result)}
	case flow.OnRemovedFromGame:
		data := RemovedFromGameData{GameInstanceID: id, Reason: m.Reason.String()}
		if m.Result != "" {
			data.Result = new(objects.Object(m.Result))
		}
		return data
	}
	return nil
}
