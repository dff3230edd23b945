package playerapi

import (
	"bytes"
	"encoding/json"
	"strconv"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/flow"
)

// OnSync is how a client gets everything at once; its seq is the head.
const onSync = "OnSync"

// eventTail writes an event behind its number: the same for all who are told.
func (d *Door) eventTail(x *flow.Told, player string) []byte {
	m, err := flow.DecodeMessage(x.Body)
	var data any = map[string]any{}
	if err != nil {
		// Written by ourselves; a client that does not see the number would wait for it for ever.
		d.log.Error("an event in the outbox cannot be read", "player", player, "type", x.Type.String(), "err", err)
	} else {
		data = d.eventData(x.Type, m, player)
	}
	return d.tail(strconv.FormatUint(x.Commit, 10), x.At, x.Type.String(), data)
}

func (d *Door) tail(commit string, at domain.Time, kind string, data any) []byte {
	body, err := written(data)
	if err != nil {
		d.log.Error("an event cannot be written", "type", kind, "err", err)
		body = []byte("{}")
	}
	b := make([]byte, 0, len(body)+120)
	b = append(b, `"commit":"`...)
	b = append(b, commit...)
	b = append(b, `","ts":"`...)
	b = append(b, stamp(at)...)
	b = append(b, `","type":"`...)
	b = append(b, kind...)
	b = append(b, `","data":`...)
	b = append(b, body...)
	return append(b, '}')
}

// written is JSON without the escapes for HTML, which would make attributes up to six times as long as they were allowed to be.
func written(data any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(data)
	return bytes.TrimSuffix(b.Bytes(), []byte{'\n'}), err
}

// event writes a whole event.
func event(seq uint64, tail []byte) []byte {
	b := make([]byte, 0, len(tail)+30)
	b = append(b, `{"seq":`...)
	b = strconv.AppendUint(b, seq, 10)
	b = append(b, ',')
	return append(b, tail...)
}

// syncTail is an OnSync.
func (d *Door) syncTail(s *FlowSnapshot, commit uint64) []byte {
	return d.tail(strconv.FormatUint(commit, 10), domain.TimeOf(d.engine.Now()), onSync, s)
}

// fields are what an event says. Specification, 3.6.
type fields map[string]any

func (f fields) unlessEmpty(key, value string) fields {
	if value != "" {
		f[key] = value
	}
	return f
}

func (d *Door) eventData(kind flow.MessageType, m *flow.Message, player string) any {
	switch kind {
	case flow.OnGameSessionChanged:
		return changedOf(m)
	case flow.OnSessionReplaced:
		return fields{"by": fields{"device_label": m.Device, "at": stamp(m.Deadline)}}
	case flow.OnSessionExpiring:
		return fields{"expires_at": stamp(m.Deadline)}
	case flow.OnMaintenance:
		return fields{"starts_at": stamp(m.Deadline), "message": m.Text}
	case flow.OnPenaltyApplied, flow.OnPenaltyLifted:
		return fields{"lock": lockOf(m.Penalty)}
	}
	if data := partyData(kind, m); data != nil {
		return data
	}
	if data := searchData(kind, m); data != nil {
		return data
	}
	return d.gameData(kind, m, player)
}

// changedOf is what OnGameSessionChanged says.
func changedOf(m *flow.Message) fields {
	type change struct {
		Key string  `json:"key"`
		Old *string `json:"old"`
		New *string `json:"new"`
	}
	changes := []change{}
	was, is := keysOf(m.Old), keysOf(m.Stand.Keys)
	for _, x := range []struct{ key, was, is string }{
		{"PARTY_ID", was.PartyID, is.PartyID}, {"MATCHMAKING_ID", was.MatchmakingID, is.MatchmakingID},
		{"GAME_INSTANCE_ID", was.GameInstanceID, is.GameInstanceID},
	} {
		if x.was == x.is {
			continue
		}
		c := change{Key: x.key}
		if x.was != "" {
			c.Old = &x.was
		}
		if x.is != "" {
			c.New = &x.is
		}
		changes = append(changes, c)
	}
	return fields{
		"rev": m.Stand.Rev, "phase": m.Stand.Keys.Phase().String(), "keys": is, "changed": changes, "cause": m.Cause, "allowed_actions": m.Allowed.Names(),
	}
}

func partyData(kind flow.MessageType, m *flow.Message) any {
	switch kind {
	case flow.OnPartyChanged:
		if m.Party == nil {
			return fields{}
		}
		return fields{"party": partyOf(m.Party), "change": fields{"kind": m.Change.String()}.unlessEmpty("player_id", m.Player)}
	case flow.OnAddedToParty, flow.OnRemovedFromParty:
		return fields{"party_id": partyID(m.PartyID)}.unlessEmpty("reason", m.Reason.String())
	case flow.OnPartyMemberPresence:
		return fields{"party_id": partyID(m.PartyID), "player_id": m.Player, "online": m.Online}
	case flow.OnPartyInviteReceived, flow.OnPartyInviteCancelled:
		return fields{"invite": inviteOf(m.Invite)}.unlessEmpty("reason", m.Reason.String())
	case flow.OnPartyInviteResponse:
		return fields{"invite": inviteOf(m.Invite), "accepted": m.Accepted, "player_id": m.Player}
	}
	return nil
}

func searchData(kind flow.MessageType, m *flow.Message) any {
	switch kind {
	case flow.OnEnteredMatchmaking, flow.OnMatchmakingStatus, flow.OnMatchmakingResumed:
		x := fields{}.unlessEmpty("reason", m.Reason.String())
		if m.Search != nil {
			x["ticket"] = ticketOf(m.Search)
		}
		return x
	case flow.OnMatchFound:
		return fields{"matchmaking_id": ticketID(m.Ticket), "match_id": m.Match, "deadline": stamp(m.Deadline), "players_count": m.Players}
	case flow.OnMatchAcceptanceChanged:
		return fields{"matchmaking_id": ticketID(m.Ticket), "accepted_count": m.AcceptedCount, "pending_count": m.PendingCount, "declined": m.Reason == flow.AcceptDeclined}
	case flow.OnLeftMatchmaking, flow.OnMatchmakingFailed:
		return fields{"matchmaking_id": ticketID(m.Ticket), "reason": m.Reason.String()}.unlessEmpty("by", m.Player)
	}
	return nil
}

func (d *Door) gameData(kind flow.MessageType, m *flow.Message, player string) any {
	x := fields{"game_instance_id": gameID(m.Instance)}
	switch kind {
	case flow.OnAddedToGame:
		x["reconnect"], x["attributes"] = m.Reconnect.String(), Object(m.Attributes)
		return x.unlessEmpty("match_id", m.Match).unlessEmpty("team", m.Team)
	case flow.OnHostConnectionDetailsReceived:
		if m.Host == nil {
			return x
		}
		return struct {
			*HostConnectionDetails
			Cause string `json:"cause"`
		}{d.hostOf(player, m.Host), m.Reason.String()}
	case flow.OnFailedToAllocateGameInstance:
		x["reason"], x["requeued"] = m.Reason.String(), m.Requeued
	case flow.OnGameMembershipChanged:
		x["old"], x["new"] = m.OldStatus.String(), m.Status.String()
		x.unlessEmpty("reconnect_deadline", stamp(m.Deadline))
	case flow.OnReconnectAvailable:
		x["reconnect"], x["can_decline"], x["host_suspect"] = m.Reconnect.String(), m.CanDecline, m.Suspect
		x.unlessEmpty("deadline", stamp(m.Deadline))
	case flow.OnGameInstanceUpdated:
		x["attributes"] = Object(m.Attributes)
	case flow.OnGameEnded:
		x["end_reason"], x["result"] = m.Reason.String(), Object(m.Result)
	case flow.OnRemovedFromGame:
		x["reason"] = m.Reason.String()
		if m.Result != "" {
			x["result"] = Object(m.Result)
		}
	}
	return x
}
