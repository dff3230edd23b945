package playerflow

import (
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/matchmaking"
)

// Notices to the server of a game instance. A server that reads none of them is correct: what it must know comes with player sessions, as
// in every game session. While a game instance has no host there are no notices.

// serverNotice is a notice that a transaction writes down at its end.
type serverNotice struct {
	instance flow.InstanceRef
	kind     flow.NoticeType
	notice   flow.Notice
}

// tellServer notes a notice for the server of a game instance; Settle writes it.
func (t *transaction) tellServer(r flow.InstanceRef, kind flow.NoticeType, n flow.Notice) {
	if t.Flow.Instances.Get(r).Game != "" {
		t.own().notices = append(t.own().notices, serverNotice{r, kind, n})
	}
}

// tellAdded tells the server of a new member: all who come in one transaction share one notice.
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

// tellHosted tells a server that has just become the host which players are members.
func (t *transaction) tellHosted(r flow.InstanceRef) {
	for _, m := range t.Flow.Instances.Get(r).Members() {
		t.tellAdded(r, t.Flow.Memberships.Get(m))
	}
}

// tellMemberEnd tells the server that a membership has ended, after the notice that is specific to the reason.
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

// tellReservation tells the server with which player session a player comes back, or comes by another device.
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

// backfillReasons is why a backfill ended without players, as game servers are told.
var backfillReasons = map[matchmaking.Reason]string{
	matchmaking.RequestTimedOut: "TIMEOUT", matchmaking.StoppedByRequest: "REQUESTED", matchmaking.Replaced: "REPLACED",
	matchmaking.ReplacedByServer: "REPLACED", matchmaking.GameSessionLost: "GAME_ENDING", matchmaking.DuplicatePlayer: "TICKET_SUPERSEDED",
}

// backfillMatched is how a backfill ends that has brought players.
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

// ServerNotice is one notice of a game instance's stream.
type ServerNotice struct {
	Seq uint64
	flow.Noticed
}

// ServerNotices are the notices of a game instance behind number `after`, the number of the latest one, and whether the
// game instance goes on. Not ok: they are not all there any more, or `after` is ahead of the head.
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
