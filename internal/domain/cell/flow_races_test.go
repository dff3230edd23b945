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

// race puts "me" and "mate" into a game where both play, under OPTIONAL.
func race(t *testing.T) (*flowWorld, flow.InstanceID) {
	w := newFlowWorld(t, nil)
	w.online("me", "mate")
	g := w.play(false, flow.ReconnectOptional, "me", "mate")
	w.connect(g, "me", "mate")
	return w, g
}

// lostGame begins a race in which "me" has lost the connection.
func lostGame(t *testing.T) (*flowWorld, flow.InstanceID) {
	w, g := race(t)
	w.lose(g, w.member("me").Session)
	return w, g
}

func (w *flowWorld) details(g flow.InstanceID) *flow.Host {
	w.t.Helper()
	cmd := &playerflow.GetHostConnectionDetails{Caller: w.as("me"), Instance: g}
	w.must(cmd)
	return cmd.Host
}

func (w *flowWorld) statusOf(id domain.PlayerSessionID) session.PlayerStatus {
	r, _ := w.cell.hosting.Sessions.PlayerByID(id)
	return w.cell.hosting.Sessions.Players.Get(r).Status
}

// openReservations counts the reservations of "me".
func (w *flowWorld) openReservations() (n int) {
	v := w.cell.View()
	for _, p := range v.PlayersNamed("me", 0, domain.PlayerSessionID{}, 100) {
		if p.Status == session.Reserved {
			n++
		}
	}
	return n
}

// TestRaces checks the table of docs/spec/reconnect.md#races, in both orders where there are two.
func TestRaces(t *testing.T) {
	t.Run("R1 end first", func(t *testing.T) {
		w, g := lostGame(t)
		w.must(&playerflow.EndGame{Instance: g})
		w.refused(&playerflow.GetHostConnectionDetails{Caller: w.as("me"), Instance: g}, flow.GameHasEnded)
	})
	t.Run("R1 details first", func(t *testing.T) {
		w, g := lostGame(t)
		host := w.details(g)
		game := w.gameOf(g)
		key, id := processKey(game.ProcessID), game.ID
		w.must(&playerflow.EndGame{Instance: g})
		if err := w.do(&hosting.AcceptPlayer{Process: key, Game: id, Player: host.Session, Request: 99}); err == nil {
			t.Error("a reservation outlived its game instance")
		}
	})
	t.Run("R2 A completes while B only looks", func(t *testing.T) {
		w, g := lostGame(t)
		host := w.details(g)
		w.online("me")
		w.login("me") // device B
		w.attach("me")
		v := w.cell.View()
		if _, err := v.VerifyPlayer(g, host.Session, host.Epoch, host.Attempt); err != nil {
			t.Error(err)
		}
		w.connect(g, "me")
	})
	t.Run("R2 B has asked", func(t *testing.T) {
		w, g := lostGame(t)
		a := w.details(g)
		w.login("me")
		b := w.details(g)
		v := w.cell.View()
		if _, err := v.VerifyPlayer(g, a.Session, a.Epoch, a.Attempt); flow.CodeOf(err) != flow.Superseded {
			t.Error(err)
		}
		if _, err := v.VerifyPlayer(g, b.Session, b.Epoch, b.Attempt); err != nil {
			t.Error(err)
		}
		if w.openReservations() != 1 {
			t.Errorf("%d reservations are open", w.openReservations())
		}
	})
	t.Run("R3", func(t *testing.T) {
		w, g := lostGame(t)
		a := w.as("me")
		w.login("me")
		w.refused(&playerflow.GetHostConnectionDetails{Caller: a, Instance: g}, flow.SessionReplaced)
		w.details(g)
		w.refused(&playerflow.GetHostConnectionDetails{Caller: a, Instance: g}, flow.SessionReplaced)
		if w.openReservations() != 1 {
			t.Errorf("%d reservations are open", w.openReservations())
		}
	})
	t.Run("R4", func(t *testing.T) {
		w, g := lostGame(t)
		host := w.details(g)
		w.pass(61 * time.Second)
		if err := w.accept(g, host.Session); err == nil || w.member("me").Status != flow.MemberDisconnected {
			t.Errorf("accepted: %v, membership %s", err, w.member("me").Status)
		}
		w.details(g)
		w.connect(g, "me")
	})
	t.Run("R5", func(t *testing.T) {
		w, g := lostGame(t)
		host := w.details(g)
		w.now += 60_000 // both at the same instant
		w.connect(g, "me")
		w.must(&kernel.Tick{})
		if w.member("me").Status != flow.MemberActive || w.statusOf(host.Session) != session.PlayerActive {
			t.Error("the reservation expired although it was accepted")
		}
	})
	t.Run("R6 confirmed", func(t *testing.T) {
		w, g := lostGame(t)
		key := processKey(w.gameOf(g).ProcessID)
		w.pass(150 * time.Second)
		w.must(&hosting.LoseLink{Process: key, Link: 7})
		if host := w.details(g); !host.Suspect {
			t.Error("the host is not suspect")
		}
		w.pass(99 * time.Second) // the window of 180 s is over
		if w.keys("me").Game.IsZero() {
			t.Fatal("a membership ended while its host was suspect")
		}
		w.pass(2 * time.Second)
		if last := w.player("me").LastGame; last == nil || last.Membership != flow.HostLost || len(w.player("me").Penalties) != 0 {
			t.Errorf("%+v, penalties %v", last, w.player("me").Penalties)
		}
	})
	t.Run("R6 refuted", func(t *testing.T) {
		w, g := lostGame(t)
		key := processKey(w.gameOf(g).ProcessID)
		w.pass(150 * time.Second)
		w.must(&hosting.LoseLink{Process: key, Link: 7})
		w.pass(60 * time.Second)
		w.must(&hosting.ConnectProcess{Process: key, Link: 8})
		w.pass(29 * time.Second)
		if w.keys("me").Game.IsZero() {
			t.Fatal("the time of suspicion counted")
		}
		w.pass(2 * time.Second)
		if last := w.player("me").LastGame; last == nil || last.Membership != flow.ReconnectExpired {
			t.Errorf("%+v", last)
		}
	})
	t.Run("R7", func(t *testing.T) {
		w, g := race(t)
		old := w.member("me").Session
		w.login("me")
		host := w.details(g) // takeover
		w.check()            // both player sessions share a seat, also after a restart
		if w.gameOf(g).SeatsHeld != 2 || w.member("me").Next != host.Session {
			t.Errorf("%d seats held, membership %+v", w.gameOf(g).SeatsHeld, w.member("me"))
		}
		if err := w.accept(g, host.Session); err != nil {
			t.Fatal(err)
		}
		if w.statusOf(old) != session.Completed || w.member("me").Disconnects != 0 || w.member("me").Status != flow.MemberActive {
			t.Errorf("old %s, membership %+v", w.statusOf(old), w.member("me"))
		}
		w.lose(g, old) // a late report
		stale := &playerflow.DisconnectMember{Instance: g, PlayerSession: old}
		w.must(stale)
		if !stale.Stale || w.member("me").Status != flow.MemberActive || w.gameOf(g).SeatsHeld != 2 {
			t.Errorf("stale %t, membership %+v", stale.Stale, w.member("me"))
		}
	})
	t.Run("takeover that expires", func(t *testing.T) {
		w, g := race(t)
		w.login("me")
		w.details(g)
		w.pass(61 * time.Second)
		if m := w.member("me"); m.Status != flow.MemberActive || !m.Next.IsZero() || w.gameOf(g).SeatsHeld != 2 {
			t.Errorf("%+v", m)
		}
	})
	t.Run("takeover denied", func(t *testing.T) {
		w := newFlowWorld(t, func(c *flow.Config) { c.Games.DenyTakeover = true })
		w.online("me")
		g := w.play(false, 0, "me")
		w.connect(g, "me")
		w.login("me")
		w.refused(&playerflow.GetHostConnectionDetails{Caller: w.as("me"), Instance: g}, flow.NotDisconnected)
	})
	t.Run("R8 decline first", func(t *testing.T) {
		w, g := lostGame(t)
		w.must(&playerflow.DeclineReconnect{Caller: w.as("me"), Instance: g})
		w.refused(&playerflow.GetHostConnectionDetails{Caller: w.as("me"), Instance: g}, flow.NotInGame)
	})
	t.Run("R8 details first", func(t *testing.T) {
		w, g := lostGame(t)
		host := w.details(g)
		w.must(&playerflow.DeclineReconnect{Caller: w.as("me"), Instance: g})
		if err := w.accept(g, host.Session); err == nil {
			t.Error("a void reservation was accepted")
		}
	})
	t.Run("R9", func(t *testing.T) {
		w, g := lostGame(t)
		w.now += 180_000
		w.details(g) // before the Tick
		w.must(&kernel.Tick{})
		w.pass(59 * time.Second)
		w.connect(g, "me")
	})
	t.Run("R9 and again", func(t *testing.T) { // docs/spec/reconnect.md#timers: at most one reservation beyond the deadline
		w, g := lostGame(t)
		w.pass(170 * time.Second)
		first := w.details(g)
		w.pass(55 * time.Second) // 45 s behind the deadline, 5 s of the reservation are left
		if again := w.details(g); again.ReserveBy != first.ReserveBy {
			t.Errorf("a reservation until %d, when the one open at the deadline ends at %d", again.ReserveBy, first.ReserveBy)
		}
		w.login("me")
		if other := w.details(g); other.ReserveBy != first.ReserveBy || other.Session == first.Session {
			t.Errorf("another device has the same player session, or one until %d", other.ReserveBy)
		}
		w.pass(6 * time.Second)
		if last := w.player("me").LastGame; last == nil || last.Membership != flow.ReconnectExpired {
			t.Errorf("last game %+v", last)
		}
	})
	t.Run("R10", func(t *testing.T) {
		w, g := lostGame(t)
		w.must(&hosting.ReservePlayers{Game: w.gameOf(g).ID, Players: []hosting.NewPlayer{{ID: domain.PlayerSessionID(w.id()), Player: "x"}}})
		if free, _ := w.cell.matchmaking.FreeSlots(string(w.gameOf(g).ID)); free != 0 {
			t.Errorf("%d slots are free for a backfill", free)
		}
		w.must(&playerflow.DeclineReconnect{Caller: w.as("me"), Instance: g})
		if free, _ := w.cell.matchmaking.FreeSlots(string(w.gameOf(g).ID)); free != 1 {
			t.Errorf("%d slots are free for a backfill", free)
		}
	})
	t.Run("R11", func(t *testing.T) {
		w := newFlowWorld(t, nil)
		w.party("mate", "me")
		g := w.play(false, flow.ReconnectOptional, "me", "mate")
		w.connect(g, "me", "mate")
		w.lose(g, w.member("me").Session)
		w.must(&playerflow.KickPlayer{Caller: w.as("mate"), Target: "me"})
		w.wantPhase("me", flow.InGame)
		w.details(g)
		w.connect(g, "me")
	})
	t.Run("R13", func(t *testing.T) {
		w := newFlowWorld(t, nil)
		w.online("me")
		key := w.server("late")
		g := w.play(true, 0, "me")
		game := session.MakeID(testFleet, testLocation, g.String())
		w.must(&hosting.PromptGameSession{Process: key, Game: game})
		w.pass(2*time.Minute + time.Second)
		if err := w.do(&hosting.ActivateGameSession{Process: key, Game: game}); err == nil {
			t.Error("an orphan was activated")
		}
		w.wantPhase("me", flow.Idle)
	})
	t.Run("R14", func(t *testing.T) {
		w, g := lostGame(t)
		by := w.as("me")
		by.Request = "once"
		first := &playerflow.GetHostConnectionDetails{Caller: by, Instance: g}
		w.must(first)
		w.now += 300_000
		w.must(&kernel.Resume{})
		w.must(&hosting.ConnectProcess{Process: processKey(w.gameOf(g).ProcessID), Link: 8})
		again := &playerflow.GetHostConnectionDetails{Caller: by, Instance: g}
		w.must(again)
		if again.Made != first.Made || domain.UUID(again.Host.Session) != first.Made || !again.Repeated {
			t.Errorf("%+v, first %+v", again, first)
		}
		w.connect(g, "me")
	})
	t.Run("R16", func(t *testing.T) {
		w, g := race(t)
		w.offline("me")
		seq := w.seq("me")
		w.must(&playerflow.EndGame{Instance: g, Result: `{"won":true}`})
		w.wantTold("me", seq, "GameSessionChanged GameEnded:FINISHED RemovedFromGame:GAME_ENDED")
		v := w.cell.View()
		if s, _ := v.FlowOf("me", w.now); s.LastGame == nil || s.LastGame.Result != `{"won":true}` || s.Game != nil {
			t.Errorf("%+v", s)
		}
		w.pass(25 * time.Hour)
		if s, _ := v.FlowOf("me", w.now); s.LastGame != nil {
			t.Error("the last game is remembered for ever")
		}
	})
	t.Run("R17", func(t *testing.T) {
		w, g := lostGame(t)
		host := w.details(g)
		w.must(&playerflow.RemoveMembers{Instance: g, Players: []playerflow.RemovedMember{{Player: "me", Reason: flow.RemovedKicked}}})
		if w.statusOf(host.Session) != session.TimedOut || w.player("me").LastGame.Membership != flow.Removed {
			t.Errorf("%s, %+v", w.statusOf(host.Session), w.player("me").LastGame)
		}
		w.refused(&playerflow.GetHostConnectionDetails{Caller: w.as("me"), Instance: g}, flow.NotInGame)
	})
	t.Run("R18", func(t *testing.T) {
		w, g := lostGame(t)
		w.must(&playerflow.ForceLogout{Player: "me"})
		w.login("me")
		w.details(g)
		w.connect(g, "me")
	})
	t.Run("R19", func(t *testing.T) {
		w, g := lostGame(t)
		host := w.details(g)
		w.connect(g, "me")
		if err := w.accept(g, host.Session); err == nil {
			t.Error("a player session was accepted twice")
		}
	})
	t.Run("R20", func(t *testing.T) {
		w := newFlowWorld(t, nil)
		w.online("me")
		g := w.play(false, flow.ReconnectOptional, "me")
		w.offline("me")
		w.pass(2 * time.Minute)
		if w.member("me").Status != flow.MemberNoShow {
			t.Errorf("membership is %s", w.member("me").Status)
		}
		before := w.seq("me")
		w.attach("me")
		w.wantTold("me", before, "ReconnectAvailable")
		w.details(g)
		w.connect(g, "me")
	})
	t.Run("automatic reconnect", func(t *testing.T) {
		w, g := lostGame(t)
		w.offline("me")
		login := &playerflow.Login{Player: "me", LoginSessionID: flow.LoginSessionID(w.id()), Token: w.id(), AutoReconnect: true}
		w.must(login)
		w.logins["me"] = login.LoginSessionID
		before := w.seq("me")
		w.attach("me")
		w.wantTold("me", before, "GameMembershipChanged HostConnectionDetailsReceived:RECONNECT")
		w.connect(g, "me")
	})
}

// TestClockJumps: an hour forward or back while the service is down ends no membership early.
func TestClockJumps(t *testing.T) {
	for _, jump := range []domain.Time{3_600_000, -3_600_000} {
		w, g := lostGame(t)
		w.now += jump
		w.must(&kernel.Resume{})
		w.must(&hosting.ConnectProcess{Process: processKey(w.gameOf(g).ProcessID), Link: 8})
		w.now = max(w.now, w.cell.Last())
		w.pass(2 * time.Minute)
		w.attach("me")
		w.details(g)
		w.connect(g, "me")
	}
}
