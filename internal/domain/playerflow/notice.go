package playerflow

import (
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/matchmaking"
)

// Notices to the server of a game instance. A server may ignore all of them: what it must know comes with player sessions, as in every
// game session. A game instance without a host gets no notices.

// serverNotice is a notice that Settle writes at the end of the transaction.
type serverNotice struct {
	instance flow.InstanceRef
	kind     flow.NoticeType
	notice   flow.Notice
}

// tellServer queues a notice for the server of a game instance; Settle writes it.
func (t *transaction) tellServer(r flow.InstanceRef, kind flow.NoticeType, n flow.Notice) {
	if t.Flow.Instances.Get(r).Game != "" {
		t.own().notices = append(t.own().notices, serverNotice{r, kind, n})
	}
}

// tellAdded tells the server of a new member. All members who join in one transaction share one notice.
func (t *transaction) tellAdded(r flow.InstanceRef, m *flow.Membership) {
	added := flow.AddedMember{Player: m.Player, Team: m.Team, Party: m.Party}
	if n := len(t.own().notices); n > 0 {
		if last := &t.own().notices[n-1]; last.instance == r && last.kind == flow.OnPlayersAdded {
			last.notice.Added = append(last.notice.Added, added)
			return
		}
	}
	t.tellServer(r, flow.OnPlayersAdded, flow.Notice{Added: []flow.AddedMember{added}})
}

// tellHosted tells a new host which players are members.
func (t *transaction) tellHosted(r flow.InstanceRef) {
	for _, m := range t.Flow.Instances.Get(r).Members() {
		t.tellAdded(r, t.Flow.Memberships.Get(m))
	}
}

// tellMemberEnd tells the server that a membership has ended, after any notice specific to the reason.
func (t *transaction) tellMemberEnd(m *flow.Membership, reason flow.Reason) {
	r := m.InstanceRef()
	switch reason {
	case flow.DeclinedReconnect:
		t.tellServer(r, flow.OnPlayerDeclinedReconnect, flow.Notice{Player: m.Player})
	case flow.ReconnectExpired:
		t.tellServer(r, flow.OnReconnectExpired, flow.Notice{Player: m.Player})
	}
	t.tellServer(r, flow.OnPlayerLeft, flow.Notice{Player: m.Player, Reason: reason.String()})
}

// tellReservation tells the server with which player session a player returns or takes over from another device.
func (t *transaction) tellReservation(m *flow.Membership, id, old domain.PlayerSessionID, takeover bool) {
	if takeover {
		t.tellServer(m.InstanceRef(), flow.OnPlayerSessionSuperseded, flow.Notice{Player: m.Player, Session: id, Old: old, Attempt: m.Attempt})
		return
	}
	t.tellServer(m.InstanceRef(), flow.OnPlayerReconnecting, flow.Notice{Player: m.Player, Session: id, Attempt: m.Attempt})
}

// tellBackfill tells the server that a backfill of its game instance has begun or ended.
func (t *transaction) tellBackfill(x *matchmaking.Ticket, kind flow.NoticeType, reason string) {
	if !x.Backfill || x.Game == "" {
		return
	}
	if r, ok := t.Flow.InstanceOfGame(x.Game); ok {
		t.tellServer(r, kind, flow.Notice{Ticket: x.ID, Queue: x.Configuration, Slots: x.Slots, Reason: reason})
	}
}

// backfillReasons maps the end of a backfill without players to the reason that game servers are told.
var backfillReasons = map[matchmaking.Reason]string{
	matchmaking.RequestTimedOut: "TIMEOUT", matchmaking.StoppedByRequest: "REQUESTED", matchmaking.Replaced: "REPLACED",
	matchmaking.ReplacedByServer: "REPLACED", matchmaking.GameSessionLost: "GAME_ENDING", matchmaking.DuplicatePlayer: "TICKET_SUPERSEDED",
}

// backfillMatched is the reason for the end of a successful backfill.
const backfillMatched = "MATCHED"

func backfillReason(why matchmaking.Reason) string {
	if text, ok := backfillReasons[why]; ok {
		return text
	}
	return flow.EngineFailed.String()
}

// writeNotices emits the notices, after the events for players.
func (t *transaction) writeNotices() {
	for _, n := range t.own().notices {
		x := t.Flow.Instances.Get(n.instance)
		seq := x.NoticeSeq() + 1
		first := x.FirstNotice()
		if len(x.Notices()) == flow.NoticesMax {
			first++
		}
		t.Emit(&GameInstanceTold{x.ID, seq, first, n.kind, n.notice.Encode()})
	}
}

// ServerNotice is one notice in the stream of a game instance.
type ServerNotice struct {
	Seq uint64
	flow.Noticed
}

// ServerNotices returns the notices of a game instance with numbers above `after`, the number of the latest one, and whether the game
// instance is live. ok is false if some of them are no longer kept or `after` is above the latest number.
func (v *View) ServerNotices(instance flow.InstanceID, after uint64, limit int) (notices []ServerNotice, head uint64, live, ok bool) {
	r, known := v.c.Flow.Instance(instance)
	if !known {
		v.SawAll()
		return nil, 0, false, false
	}
	x := v.c.Flow.Instances.Get(r)
	v.Saw(x.Changed)
	head, live = x.NoticeSeq(), x.Live()
	if after > head || after+1 < x.FirstNotice() {
		return nil, head, live, false
	}
	for i, n := range x.Notices()[after+1-x.FirstNotice():] {
		if len(notices) == limit {
			break
		}
		notices = append(notices, ServerNotice{after + 1 + uint64(i), n})
	}
	return notices, head, live, true
}
