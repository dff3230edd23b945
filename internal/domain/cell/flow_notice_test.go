package cell

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/playerflow"
)

// noticed returns the notices that the server of a game instance got after a number: type, player and reason of each.
func (w *flowWorld) noticed(instance flow.InstanceID, after uint64) string {
	w.t.Helper()
	v := w.cell.View()
	notices, head, _, ok := v.ServerNotices(instance, after, 1000)
	if !ok || head != after+uint64(len(notices)) {
		w.t.Fatalf("notices behind %d: %d of them up to %d, complete %t", after, len(notices), head, ok)
	}
	var all []string
	for i, x := range notices {
		n, err := flow.DecodeNotice(x.Body)
		if err != nil || x.Seq != after+1+uint64(i) {
			w.t.Fatalf("notice %d: number %d, %v", i, x.Seq, err)
		}
		text := strings.TrimPrefix(x.Type.String(), "On")
		for _, m := range n.Added {
			text += ":" + m.Player
		}
		for _, detail := range []string{n.Player, n.Reason} {
			if detail != "" {
				text += ":" + detail
			}
		}
		all = append(all, text)
	}
	return strings.Join(all, " ")
}

func (w *flowWorld) noticeHead(instance flow.InstanceID) uint64 {
	r, _ := w.cell.playerflow.Flow.Instance(instance)
	return w.cell.playerflow.Flow.Instances.Get(r).NoticeSeq()
}

func (w *flowWorld) wantNoticed(instance flow.InstanceID, after uint64, want string) {
	w.t.Helper()
	if got := w.noticed(instance, after); got != want {
		w.t.Errorf("the server was told\n %s\nwant\n %s", got, want)
	}
}

// noticesOf returns the server's notices for an outcome of table T4. The server is told of the end of a membership, in some cases after a
// notice of its cause, and of each new player session of an expected player.
func noticesOf(status flow.MembershipStatus, trigger, want string) string {
	reason, ended := strings.CutPrefix(want, "ended ")
	switch {
	case status == flow.MemberPending: // there is no server yet
		return ""
	case trigger == "end":
		return "PlayerLeft:me:GAME_ENDED PlayerLeft:mate:GAME_ENDED"
	case trigger == "back and lost too often":
		tries := strings.TrimSuffix(strings.Repeat("PlayerReconnecting:me ", 5), " ")
		if ended {
			return tries + " PlayerLeft:me:" + reason
		}
		return tries
	case reason == "DECLINED":
		return "PlayerDeclinedReconnect:me PlayerLeft:me:DECLINED"
	case reason == "RECONNECT_EXPIRED":
		return "ReconnectExpired:me PlayerLeft:me:RECONNECT_EXPIRED"
	case ended:
		return "PlayerLeft:me:" + reason
	case trigger == "details" && status == flow.MemberActive:
		return "PlayerSessionSuperseded:me"
	case trigger == "details" && status != flow.MemberReserved: // whose reservation is as good as new
		return "PlayerReconnecting:me"
	}
	return ""
}

// TestServerNotices checks the game server's notices about table T4.
func TestServerNotices(t *testing.T) {
	eachT4(t, func(t *testing.T, w *flowWorld, status flow.MembershipStatus, instance flow.InstanceID, trigger, want string) {
		before := w.noticeHead(instance)
		if cmd, done := w.trigger(trigger, instance); !done {
			_ = w.do(cmd) // TestT4 looks at how it ends
		}
		told := noticesOf(status, trigger, want)
		got := w.noticed(instance, before)
		if trigger == "end" { // in the order of the memberships
			parts := strings.Fields(got)
			slices.SortFunc(parts, func(a, b string) int { return strings.Compare(b, a) })
			got, told = strings.Join(parts, " "), "PlayerLeft:me:GAME_ENDED PlayerLeft:mate:GAME_ENDED"
		}
		if got != told {
			t.Errorf("the server was told\n %q\nwant\n %q", got, told)
		}
	})
}

// A server hears first who belongs to the game, then of newcomers, all of one transaction at once; and of a player who left
// while there was no host.
func TestServerIsToldOfPlayers(t *testing.T) {
	w := newFlowWorld(t, nil)
	w.online("me", "mate", "late", "guest")
	key := w.server("server")
	plan := playerflow.GamePlan{ID: flow.InstanceID(w.id()), Queue: "q", PlayersMax: 5, Reconnect: flow.ReconnectOptional, Players: []playerflow.PlannedPlayer{
		{Player: "me", Team: "red"}, {Player: "mate"}, {Player: "late"},
	}}
	w.must(&playerflow.MakeGame{Plan: plan})
	w.must(&playerflow.LeaveGame{Caller: w.as("late"), Instance: plan.ID})
	if w.noticeHead(plan.ID) != 0 {
		t.Error("a notice was sent before there was a server")
	}
	w.activateHost(key, plan.ID)
	w.wantNoticed(plan.ID, 0, "PlayersAdded:me:mate PlayerLeft:late:LEFT")
	w.must(&playerflow.AddMembers{Instance: plan.ID, Players: []playerflow.PlannedPlayer{{Player: "guest", Team: "blue"}, {Player: "late"}}})
	w.wantNoticed(plan.ID, 2, "PlayersAdded:guest:late")

	v := w.cell.View()
	notices, _, _, _ := v.ServerNotices(plan.ID, 2, 1)
	n, _ := flow.DecodeNotice(notices[0].Body)
	if n.Added[0].Team != "blue" {
		t.Errorf("%+v", n)
	}
}

// The outbox of a server is bounded, is there after a restart, and is forgotten with the game instance.
func TestServerOutboxIsBounded(t *testing.T) {
	w := newFlowWorld(t, nil)
	w.online("me", "mate")
	g := w.play(false, flow.ReconnectOptional, "me", "mate")
	w.connect(g, "me", "mate")
	for range flow.NoticesMax { // each time another device takes over
		w.must(&playerflow.GetHostConnectionDetails{Caller: w.as("me"), Instance: g})
		if err := w.accept(g, w.member("me").Next); err != nil {
			t.Fatal(err)
		}
	}
	head := w.noticeHead(g)
	v := w.cell.View()
	if _, _, _, ok := v.ServerNotices(g, 0, 1); ok || head != flow.NoticesMax+1 {
		t.Errorf("%d notices, the first one is still there: %t", head, ok)
	}
	if notices, _, live, ok := v.ServerNotices(g, 1, 1000); !ok || !live || len(notices) != flow.NoticesMax {
		t.Errorf("%d notices are kept, complete %t, live %t", len(notices), ok, live)
	}
	w.check()
	w.must(&playerflow.EndGame{Instance: g})
	v = w.cell.View()
	if _, _, live, ok := v.ServerNotices(g, head, 1000); live || !ok {
		t.Errorf("ended: live %t, complete %t", live, ok)
	}
	w.pass(11 * time.Minute)
	if _, known := w.cell.playerflow.Flow.Instance(g); known {
		t.Error("the game instance is still known")
	}
}
