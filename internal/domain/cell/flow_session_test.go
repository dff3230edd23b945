package cell

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/playerflow"
)

// TestT5Login: in any phase a login changes no key, takes control, and notifies the old client.
func TestT5Login(t *testing.T) {
	for phase := range phases {
		w := newFlowWorld(t, nil)
		phases[phase](w)
		keys, old, rev := w.keys("me"), w.as("me"), w.player("me").Rev
		before := w.seq("me")
		w.login("me")
		if w.keys("me") != keys || w.player("me").Rev != rev {
			t.Errorf("S%d: the login changed the keys from %v to %v", phase, keys, w.keys("me"))
		}
		w.wantTold("me", before, "SessionReplaced")
		w.refused(&playerflow.CreateParty{Caller: old, ID: flow.PartyID(w.id())}, flow.SessionReplaced)
		if p := w.player("me"); p.Presence != flow.Online || p.PresenceBy == 0 {
			t.Errorf("S%d: presence %s until %d: the new client has not had the time to attach", phase, p.Presence, p.PresenceBy)
		}
		w.pass(26 * time.Second)
		if w.player("me").Presence != flow.Offline {
			t.Errorf("S%d: it is still online without an attached client", phase)
		}
		w.attach("me")
		if w.player("me").Presence != flow.Online {
			t.Errorf("S%d: it is not online", phase)
		}
	}
}

// TestT5Reject checks duplicateLogin=REJECT.
func TestT5Reject(t *testing.T) {
	w := newFlowWorld(t, func(c *flow.Config) { c.Sessions.RejectDuplicates = true })
	w.online("me")
	again := func() kernel.Command {
		return &playerflow.Login{Player: "me", LoginSessionID: flow.LoginSessionID(w.id()), Token: w.id()}
	}
	w.refused(again(), flow.AlreadyLoggedIn)
	w.offline("me")
	w.must(again())
}

// TestT5Flapping: too many logins that replace one another are refused on both devices. The present session stays.
func TestT5Flapping(t *testing.T) {
	w := newFlowWorld(t, nil)
	w.online("me")
	for range 5 {
		w.online("me")
		w.login("me")
	}
	w.refused(&playerflow.Login{Player: "me", LoginSessionID: flow.LoginSessionID(w.id()), Token: w.id()}, flow.LoginFlapping)
	w.attach("me")
	w.must(&playerflow.CreateParty{Caller: w.as("me"), ID: flow.PartyID(w.id())})
	w.pass(61 * time.Second)
	w.login("me")
}

// Five logins that replace one another within any minute lock the player, not five since the first one of a minute.
func TestT5FlappingWindowSlides(t *testing.T) {
	for _, test := range []struct {
		at    []time.Duration
		locks bool
	}{
		{[]time.Duration{0, 50 * time.Second, 55 * time.Second, 65 * time.Second, 70 * time.Second}, false},
		{[]time.Duration{0, 50 * time.Second, 55 * time.Second, 65 * time.Second, 70 * time.Second, 75 * time.Second}, true},
		{[]time.Duration{0, 10 * time.Second, 20 * time.Second, 30 * time.Second, 60 * time.Second}, false},
		{[]time.Duration{0, 10 * time.Second, 20 * time.Second, 30 * time.Second, 59 * time.Second}, true},
	} {
		w := newFlowWorld(t, nil)
		w.online("me")
		begin := w.now
		for _, at := range test.at {
			w.pass(begin.Add(at).Sub(w.now))
			w.login("me")
			w.attach("me")
		}
		if got := w.player("me").FlapUntil > w.now; got != test.locks {
			t.Errorf("logins at %v: locked %t, want %t", test.at, got, test.locks)
		}
	}
}

// Logins that release 0.1 has counted still count, all with the time of the first one.
func TestT5FlappingOfEarlierReleases(t *testing.T) {
	for _, test := range []struct {
		wait  time.Duration
		locks bool
	}{{59 * time.Second, true}, {time.Minute, false}} {
		w := newFlowWorld(t, nil)
		w.online("me")
		r, _ := w.cell.playerflow.Flow.Player("me")
		w.cell.playerflow.Flow.Players.Mut(r).SetReplaces(flow.Replaces{Logins: 4, Since: w.now})
		w.pass(test.wait)
		w.login("me")
		if got := w.player("me").FlapUntil > w.now; got != test.locks {
			t.Errorf("after %v: locked %t, want %t", test.wait, got, test.locks)
		}
	}
}

// TestT5Expiry: a login session whose client is silent expires, and the keys stay.
func TestT5Expiry(t *testing.T) {
	w := newFlowWorld(t, func(c *flow.Config) { c.Parties.OfflineRemoval = time.Hour })
	w.party("a", "b")
	w.pass(25 * time.Hour) // the clients that are here send heartbeats
	if w.player("a").Login() == 0 {
		t.Fatal("the login session of a client that is here has ended")
	}
	w.offline("a")
	w.pass(50 * time.Minute)
	if w.player("a").Login() == 0 {
		t.Fatal("the login session has ended too early")
	}
	w.wantPhase("a", flow.InParty)
	w.pass(25 * time.Hour)
	if w.player("a").Login() != 0 {
		t.Error("the login session is still there")
	}
	w.refused(&playerflow.LeaveParty{Caller: w.as("a")}, flow.SessionNotFound)
}

// TestT5Ban: a ban removes a player from party, search and game.
func TestT5Ban(t *testing.T) {
	for phase := range phases {
		w := newFlowWorld(t, nil)
		phases[phase](w)
		w.must(&playerflow.BanPlayer{Player: "me", Banned: true})
		w.wantPhase("me", flow.Idle)
		if phase == 2 {
			w.wantPhase("friend", flow.InParty)
		}
		w.refused(&playerflow.Login{Player: "me", LoginSessionID: flow.LoginSessionID(w.id()), Token: w.id()}, flow.PlayerBanned)
		w.refused(&playerflow.CreateParty{Caller: w.as("me"), ID: flow.PartyID(w.id())}, flow.SessionNotFound)
		w.must(&playerflow.BanPlayer{Player: "me"})
		w.login("me")
	}
}

// TestT5Restart: the presence of online players is UNKNOWN for a while and counts as online, tickets are held until all members are back,
// and deadlines are moved by the downtime.
func TestT5Restart(t *testing.T) {
	w := newFlowWorld(t, nil)
	ticket := w.search("a", "b")
	w.online("c")
	g := w.play(false, flow.ReconnectOptional, "c")
	w.connect(g, "c")
	w.lose(g, w.member("c").Session)
	w.online("d")
	w.offline("d")
	left := w.cell.WallTime(w.member("c").HoldBy) - w.now

	w.now += 3_600_000
	w.must(&kernel.Resume{})
	if p := w.player("a"); p.Presence != flow.Unknown || !p.Here() {
		t.Errorf("a is %s", p.Presence)
	}
	if w.player("d").Presence != flow.Offline {
		t.Error("d was offline and is not any more")
	}
	r, _ := w.cell.playerflow.Flow.PartyByTicket(ticket)
	if s := w.cell.playerflow.PartyView(r).Search; s.Status != flow.Held || len(s.HeldBy) != 2 {
		t.Errorf("search %+v", s)
	}
	if m := w.member("c"); m.HoldBy != 0 || m.HoldLeft != int64(left) { // its server has not come back either
		t.Errorf("%d ms are left of %d, until %d", m.HoldLeft, left, m.HoldBy)
	}
	w.attach("a")
	w.attach("b")
	if s := w.cell.playerflow.Flow.Parties.Get(r).Search; s.Status != flow.Searching && s.Status != flow.Queued {
		t.Errorf("search %+v", s)
	}
	w.must(&hosting.ConnectProcess{Process: processKey(w.gameOf(g).ProcessID), Link: 8})
	if m := w.member("c"); m.HoldLeft != 0 || domain.Time(m.HoldBy) != domain.Time(w.cell.ContactTime(w.now))+left {
		t.Errorf("hold until %d, %d left, want %d from now", m.HoldBy, m.HoldLeft, left)
	}
	w.pass(61 * time.Second)
	if p := w.player("c"); p.Presence != flow.Offline {
		t.Errorf("c is %s a minute after the restart", p.Presence)
	}
	w.wantPhase("c", flow.InGame)
}

// TestPresence: polls count as presence, a second stream takes over without a change of presence, and a late report about the first is ignored.
func TestPresence(t *testing.T) {
	w := newFlowWorld(t, nil)
	w.party("a", "b")
	before := w.seq("b")
	first := w.player("a").Stream
	w.attach("a")
	w.must(&playerflow.LoseStream{Player: "a", Stream: first})
	w.wantTold("b", before, "")
	w.offline("a")
	w.wantTold("b", before, "PartyMemberPresence")
	poll := &playerflow.PollEvents{Player: "a", LoginSessionID: w.logins["a"]}
	w.must(poll)
	w.wantTold("b", before, "PartyMemberPresence PartyMemberPresence")
	entries := len(w.journal)
	w.must(poll)
	if len(w.journal) != entries {
		t.Error("each poll is written to the journal")
	}
	for range 6 {
		w.pass(20 * time.Second)
		w.must(poll)
	}
	w.wantTold("b", before, "PartyMemberPresence PartyMemberPresence")
	w.pass(26 * time.Second)
	w.wantTold("b", before, "PartyMemberPresence PartyMemberPresence PartyMemberPresence")
}

// TestLoginTicket: a login ticket is valid once, for its player, for a limited time.
func TestLoginTicket(t *testing.T) {
	w := newFlowWorld(t, nil)
	hash := w.id()
	w.must(&playerflow.IssueLoginTicket{Hash: hash, Player: "ann", DisplayName: "Ann", Life: time.Minute, Once: true})
	login := &playerflow.Login{Ticket: hash, LoginSessionID: flow.LoginSessionID(w.id()), Token: w.id()}
	w.must(login)
	if login.Player != "ann" || login.Made.Epoch != 1 || w.player("ann").Profile.DisplayName != "Ann" {
		t.Errorf("%+v", login)
	}
	w.refused(&playerflow.Login{Ticket: hash, LoginSessionID: flow.LoginSessionID(w.id()), Token: w.id()}, flow.Unauthenticated)
	w.must(&playerflow.IssueLoginTicket{Hash: hash, Player: "ann", Life: time.Minute, Once: true})
	w.pass(61 * time.Second)
	w.refused(&playerflow.Login{Ticket: hash, LoginSessionID: flow.LoginSessionID(w.id()), Token: w.id()}, flow.Unauthenticated)
	w.refused(&playerflow.IssueLoginTicket{Hash: hash, Player: "an n", Life: time.Minute}, flow.InvalidArgument)
	w.refused(&playerflow.IssueLoginTicket{Hash: hash, Player: "ann", Life: time.Hour}, flow.InvalidArgument)
}

// TestTokens: after a rotation the old token is valid for a while, and then refused as stale.
func TestTokens(t *testing.T) {
	w := newFlowWorld(t, nil)
	w.online("a")
	v := w.cell.View()
	old := w.cell.playerflow.Flow.Logins.Get(w.player("a").Login()).Token
	fresh := w.id()
	w.must(&playerflow.RefreshLogin{Caller: w.as("a"), Token: fresh})
	if l, stale, ok := v.LoginByToken(old, w.now); !ok || stale || l.ID != w.logins["a"] {
		t.Errorf("the old token: %+v stale %t known %t", l, stale, ok)
	}
	w.pass(31 * time.Second)
	if _, stale, ok := v.LoginByToken(old, w.now); !ok || !stale {
		t.Error("the old token is good for ever")
	}
	if _, stale, ok := v.LoginByToken(fresh, w.now); !ok || stale {
		t.Error("the new token is not good")
	}
}

// TestFlowOff: without the setting, player flow is not available.
func TestFlowOff(t *testing.T) {
	w := newWorld(t, DefaultConfig())
	for _, cmd := range []kernel.Command{&playerflow.Login{Player: "a"}, &playerflow.CreateParty{}, &playerflow.MakeGame{}, &playerflow.BanPlayer{}, &playerflow.AttachStream{}} {
		if err := w.do(cmd); flow.CodeOf(err) != flow.Unavailable || err == nil {
			t.Errorf("%T: %v", cmd, err)
		}
	}
}

// TestSwitchedOff: when player flow is switched off, its remaining records end.
func TestSwitchedOff(t *testing.T) {
	w := newFlowWorld(t, nil)
	w.search("a", "b")
	w.online("c")
	g := w.play(false, flow.ReconnectOptional, "c")
	w.connect(g, "c")
	game := w.gameOf(g)
	config := w.cell.config
	config.PlayerFlow.Flow = nil
	off := New(config)
	for i, batch := range w.journal {
		if err := off.Replay(uint64(i+1), batch); err != nil {
			t.Fatal(err)
		}
	}
	w.cell = off
	w.must(&kernel.Resume{})
	w.must(&hosting.ConnectProcess{Process: processKey(game.ProcessID), Link: 8})
	w.must(&hosting.EndProcess{Process: processKey(game.ProcessID), Request: 5})
	w.pass(2 * time.Hour)
	for _, player := range []string{"a", "b", "c"} {
		w.wantPhase(player, flow.Idle)
	}
}

// TestExplainStuck: in every phase the explanation says what holds the player and until when.
func TestExplainStuck(t *testing.T) {
	for phase, want := range []string{"", "PARTY_ID:", "MATCHMAKING_ID:the ticket's timeout PARTY_ID:",
		"GAME_INSTANCE_ID:reservationTimeout, and then the hold on the seat PARTY_ID:the end of the game, and then offlineRemoval or staleExpiration",
		"GAME_INSTANCE_ID:reservationTimeout, and then the hold on the seat"} {
		w := newFlowWorld(t, nil)
		phases[phase](w)
		explain := func() string {
			v := w.cell.View()
			holdings, ok := v.ExplainStuck("me", w.now)
			if !ok {
				t.Fatal("the player is not known")
			}
			var all []string
			for _, h := range holdings {
				all = append(all, h.Key+":"+h.Ends)
				if (h.Until != 0) != (h.Ends != "" && !strings.HasPrefix(h.Ends, "the end of the game")) {
					t.Errorf("S%d: %+v", phase, h)
				}
			}
			return strings.Join(all, " ")
		}
		if got := explain(); got != want {
			t.Errorf("S%d: %s, want %s", phase, got, want)
		}
		if phase == 1 {
			w.offline("me")
			if got := explain(); got != "PARTY_ID:offlineRemoval" {
				t.Errorf("offline in a party: %s", got)
			}
		}
	}
}

// TestFlowQueues: the list has the queues that players may enter.
func TestFlowQueues(t *testing.T) {
	w := newFlowWorld(t, func(c *flow.Config) {
		c.Queues = []flow.QueueConfig{{Name: acceptQueue, PartyMax: 2, Own: []flow.Setting{{Name: "reconnect", Value: `"REQUIRED"`}}}, {Name: testQueue}}
	})
	w.queues()
	w.must(&playerflow.SetQueue{Name: testQueue, Closed: true})
	v := w.cell.View()
	got := v.FlowQueues(w.now)
	want := []playerflow.QueueView{{Name: testQueue, PartyMax: 3, Reconnect: flow.ReconnectOptional},
		{Name: acceptQueue, Open: true, PartyMax: 2, AcceptanceRequired: true, Reconnect: flow.ReconnectRequired}}
	if !slices.Equal(got, want) {
		t.Errorf("%+v\nwant %+v", got, want)
	}
}

// TestLongDowntime: by the wall clock a player is forgotten, while by the contact clock some of the player's records are still needed.
func TestLongDowntime(t *testing.T) {
	w := newFlowWorld(t, nil)
	w.party("a", "b")
	w.must(&playerflow.SendInvite{Caller: w.as("a"), ID: flow.InviteID(w.id()), Target: w.online1("c")})
	w.login("b")
	for _, player := range []string{"a", "b", "c"} {
		w.must(&playerflow.Logout{Caller: w.as(player)})
	}
	w.now += 40 * 24 * 3_600_000
	w.must(&kernel.Resume{})
	w.must(&kernel.Tick{})
	w.must(&kernel.Tick{})
	if _, ok := w.cell.playerflow.Flow.Player("b"); ok {
		t.Error("b is still known")
	}
	if w.cell.playerflow.Flow.Logins.Len() != 1 {
		t.Errorf("%d login sessions are remembered", w.cell.playerflow.Flow.Logins.Len())
	}
	w.check()
	w.pass(2 * time.Hour)
	w.login("b")
}

// online1 makes a player online and returns the player's name.
func (w *flowWorld) online1(player string) string { w.online(player); return player }
