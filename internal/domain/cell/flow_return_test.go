package cell

import (
	"testing"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/playerflow"
	"github.com/musterhq/muster/internal/domain/session"
)

// relaunch logs in a client that crashed, before the service has noticed the crash.
func (w *flowWorld) relaunch(player string, auto bool) (since uint64) {
	w.t.Helper()
	login := &playerflow.Login{Player: player, LoginSessionID: flow.LoginSessionID(w.id()), Token: w.id(), AutoReconnect: auto}
	w.must(login)
	w.logins[player] = login.LoginSessionID
	return w.seq(player)
}

func (w *flowWorld) shownHost(player string) *flow.Host {
	v := w.cell.View()
	s, _ := v.FlowOf(player, w.now)
	return s.Game.Host
}

// TestRelaunch: a client that comes back is told how to continue in every state of the membership, whether or not the game server
// has noticed that the previous client is gone.
func TestRelaunch(t *testing.T) {
	const offer, resent = "ReconnectAvailable", "HostConnectionDetailsReceived:RESENT"
	const fresh, back = "HostConnectionDetailsReceived:RECONNECT", "GameMembershipChanged HostConnectionDetailsReceived:RECONNECT"
	const takeover = "HostConnectionDetailsReceived:TAKEOVER"
	for i, want := range []struct{ asked, auto string }{
		{"", ""}, {resent, fresh}, {offer, back}, {offer, takeover}, {offer, back},
	} {
		x := states[i]
		for _, auto := range []bool{false, true} {
			told := want.asked
			if auto {
				told = want.auto
			}
			for name, come := range map[string]func(*flowWorld){
				"stream": func(w *flowWorld) { w.attach("me") }, "poll": func(w *flowWorld) { w.poll("me") },
			} {
				t.Run(x.status.String()+" "+name, func(t *testing.T) {
					w := newFlowWorld(t, nil)
					w.online("me", "mate")
					x.enter(w, flow.ReconnectOptional)
					since := w.relaunch("me", auto)
					if host := w.shownHost("me"); host != nil && w.statusOf(host.Session) != session.Reserved {
						t.Errorf("the login shows a player session that is %s", w.statusOf(host.Session))
					}
					come(w)
					w.wantTold("me", since, told)
					if host := w.shownHost("me"); auto && told != "" && host == nil {
						t.Error("no details although they were sent")
					}
					since = w.seq("me")
					w.attach("me")
					again := ""
					if told == offer || told == resent { // it still holds, and the client has not asked
						again = told
					}
					w.wantTold("me", since, again)
				})
			}
		}
	}
}

// TestRelaunchEndsTheOldAdmission: the game server has not noticed that the client is gone. When it admits the player again, the
// player has one seat, and a late report about the old connection changes nothing.
func TestRelaunchEndsTheOldAdmission(t *testing.T) {
	w, g := race(t)
	old := w.member("me").Session
	w.relaunch("me", true)
	w.attach("me")
	next := w.shownHost("me")
	if next == nil || next.Session == old {
		t.Fatalf("details %+v", next)
	}
	if got := w.statusOf(old); got != session.PlayerActive {
		t.Errorf("the old player session is %s before the new one is accepted", got)
	}
	if err := w.accept(g, next.Session); err != nil {
		t.Fatal(err)
	}
	if got := w.statusOf(old); got != session.Completed {
		t.Errorf("the old player session is %s after the new one was accepted", got)
	}
	w.lose(g, old)
	if m := w.member("me"); m.Status != flow.MemberActive || m.Session != next.Session || m.Disconnects != 0 {
		t.Errorf("%+v", m)
	}
}

// TestResumedStreamIsNoRelaunch: a player who is in the game and only lost the event stream gets no offer.
func TestResumedStreamIsNoRelaunch(t *testing.T) {
	w, _ := race(t)
	since := w.seq("me")
	w.offline("me")
	w.attach("me")
	w.wantTold("me", since, "")
	if host := w.shownHost("me"); host != nil {
		t.Errorf("the player session that was used is shown: %+v", host)
	}
}

// TestRelaunchWithoutTakeover: a return that would be refused is not offered until the game server has noticed the crash.
func TestRelaunchWithoutTakeover(t *testing.T) {
	w := newFlowWorld(t, func(c *flow.Config) { c.Games.Rules.DenyTakeover = true })
	w.online("me")
	g := w.play(false, flow.ReconnectOptional, "me")
	w.connect(g, "me")
	since := w.relaunch("me", true)
	w.attach("me")
	w.wantTold("me", since, "")
	w.lose(g, w.member("me").Session)
	w.wantTold("me", since, "GameMembershipChanged ReconnectAvailable")
}

// TestNoOfferOfAGameThatEnds: a game whose host is about to end admits no player, so no way back into it is offered.
func TestNoOfferOfAGameThatEnds(t *testing.T) {
	w := newFlowWorld(t, func(c *flow.Config) { c.Games.EndingGrace = 10 * time.Minute })
	w.online("me", "mate", "late")
	g := w.play(false, flow.ReconnectOptional, "me", "mate", "late")
	w.connect(g, "me", "mate")
	w.lose(g, w.member("me").Session)
	w.must(&hosting.TerminateGameSession{ID: w.gameOf(g).ID})
	since := w.relaunch("me", true)
	w.attach("me")
	w.wantTold("me", since, "")
	since = w.seq("mate")
	w.must(&playerflow.DisconnectMember{Instance: g, PlayerSession: w.member("mate").Session})
	w.wantTold("mate", since, "GameMembershipChanged")
	since = w.seq("late")
	w.pass(61 * time.Second)
	w.wantTold("late", since, "GameMembershipChanged")
}

// TestCommitsAndTimes: the events of one transaction, and no others, share a commit, even if one journal entry has several transactions.
// Live, from the outbox and after a replay they have the same time.
func TestCommitsAndTimes(t *testing.T) {
	w := newFlowWorld(t, nil)
	w.online("a")
	a := w.as("a")
	env := kernel.Env{Number: w.number, Follow: kernel.Kinds(new(playerflow.PlayersTold))}
	for i, cmd := range []kernel.Command{
		&playerflow.CreateParty{Caller: a, ID: flow.PartyID(w.id()), Joinability: flow.Open}, &playerflow.SetReady{Caller: a, Ready: true}, &playerflow.SetReady{Caller: a, Ready: true}, &playerflow.SetReady{Caller: a, Ready: false},
	} {
		w.now = w.now.Add(7 * time.Millisecond)
		env.Now, env.Seed = w.now, domain.UUID{15: byte(i)}
		if _, err := w.cell.Execute(cmd, &env); err != nil {
			t.Fatal(err)
		}
	}
	w.journal, w.number = append(w.journal, env.Batch), w.number+1
	commits := map[string][]string{}
	var order []string
	var live []flow.Told
	for _, e := range env.Events {
		x := e.Event.(*playerflow.PlayersTold)
		told := flow.Told{At: e.At, Commit: env.Number, Part: e.Part, Type: x.Type, Body: x.Body}
		live = append(live, told)
		name := flow.CommitName(told.Commit, told.Part)
		if len(commits[name]) == 0 {
			order = append(order, name)
		}
		commits[name] = append(commits[name], told.Type.String())
	}
	if len(order) != 3 || len(commits[order[0]]) < 2 {
		t.Errorf("commits %v, want one for each of the three calls that changed something", commits)
	}
	replayed := New(w.cell.config)
	for i, batch := range w.journal {
		if err := replayed.Replay(uint64(i+1), batch); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]*Cell{"outbox": w.cell, "replay": replayed} {
		r, _ := c.playerflow.Flow.Player("a")
		kept := c.playerflow.Flow.Players.Get(r).Outbox()
		kept = kept[len(kept)-len(live):]
		for i := range live {
			if kept[i] != live[i] {
				t.Errorf("%s: %+v, live %+v", name, kept[i], live[i])
			}
		}
	}
}
