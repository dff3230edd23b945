package cell

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/matchmaking"
	"github.com/musterhq/muster/internal/domain/playerflow"
	"github.com/musterhq/muster/internal/domain/quota"
	"github.com/musterhq/muster/internal/domain/session"
)

// TestEnterChecks checks docs/spec/player-flow.md#t1-note-9: the first failure in this order is returned.
func TestEnterChecks(t *testing.T) {
	w := newFlowWorld(t, func(c *flow.Config) {
		c.Penalties.Mode = flow.PenaltiesEnforced
		c.Queues = []flow.QueueConfig{{Name: testQueue, PartyMax: 2, ClientVersions: []string{"1"}}, {Name: "unknown"}}
	})
	w.queues()
	w.online("solo")
	w.party("a", "b", "c")
	enter := func(queue string) kernel.Command {
		return &playerflow.EnterMatchmaking{Caller: w.as("a"), Ticket: domain.TicketID(w.id()), Party: flow.PartyID(w.id()), Queue: queue}
	}
	w.refused(&playerflow.EnterMatchmaking{Caller: w.as("b"), Ticket: domain.TicketID(w.id()), Queue: testQueue}, flow.NotLeader)
	g := w.play(false, flow.ReconnectOptional, "b", "c")
	w.connect(g, "b", "c")
	w.offline("b")
	if r := w.refused(enter(testQueue), flow.PlayerInGame); r != nil && (strings.Join(r.Players, " ") != "b c" || len(r.Decliners) != 0) {
		t.Errorf("%+v", r)
	}
	w.lose(g, w.member("b").Session) // R12
	if r := w.refused(enter(testQueue), flow.PlayerInGame); r != nil && (strings.Join(r.Players, " ") != "b c" || strings.Join(r.Decliners, " ") != "b") {
		t.Errorf("one may decline: %+v", r)
	}
	w.must(&playerflow.LeaveGame{Caller: w.as("c"), Instance: g})
	if r := w.refused(enter(testQueue), flow.PlayerInGame); r != nil && (strings.Join(r.Players, " ") != "b" || strings.Join(r.Decliners, " ") != "b") {
		t.Errorf("%+v", r)
	}
	w.must(&playerflow.DeclineReconnect{Caller: w.as("b"), Instance: g})
	if r := w.refused(enter(testQueue), flow.MembersOffline); r != nil && strings.Join(r.Players, " ") != "b" {
		t.Errorf("%+v", r)
	}
	w.attach("b")
	w.must(&playerflow.SetReady{Caller: w.as("a"), Ready: true})
	if r := w.refused(enter(testQueue), flow.PlayersNotReady); r != nil && strings.Join(r.Players, " ") != "b c" {
		t.Errorf("%+v", r)
	}
	for _, player := range []string{"b", "c"} {
		w.must(&playerflow.SetReady{Caller: w.as(player), Ready: true})
	}
	w.refused(enter(testQueue), flow.ClientVersionUnsupported)
	v1, v2 := "1", "2"
	for _, player := range []string{"a", "b", "c"} {
		w.must(&playerflow.SetPlayerPreferences{Caller: w.as(player), ClientVersion: &v1})
	}
	w.must(&playerflow.SetPlayerPreferences{Caller: w.as("c"), ClientVersion: &v2})
	w.refused(enter("nosuch"), flow.PartyVersionMismatch)
	w.must(&playerflow.SetPlayerPreferences{Caller: w.as("c"), ClientVersion: &v1})
	w.refused(enter("nosuch"), flow.QueueNotFound)
	w.refused(enter("unknown"), flow.QueueNotFound)
	w.must(&playerflow.SetQueue{Name: testQueue, Closed: true})
	w.refused(enter(testQueue), flow.QueueIsClosed)
	w.must(&playerflow.SetQueue{Name: testQueue})
	w.refused(enter(testQueue), flow.PartyTooLarge)
	w.must(&playerflow.LeaveParty{Caller: w.as("c")})
	w.must(&playerflow.SetPenalty{Player: "b", Penalty: flow.Penalty{Kind: flow.ByOperator, Until: w.now.Add(time.Minute), Level: 1}})
	if r := w.refused(enter(testQueue), flow.MatchmakingLocked); r != nil && (r.Players[0] != "b" || r.Lock.Kind != flow.ByOperator) {
		t.Errorf("%+v", r)
	}
	w.pass(61 * time.Second)
	w.must(enter(testQueue))
}

// TestMatchCommit: all players of a match move into a game instance in one commit, with one revision each. The matchmaker's tickets
// and the keys never contradict each other.
func TestMatchCommit(t *testing.T) {
	w := newFlowWorld(t, nil)
	red, blue := w.search("a", "b"), w.search("c")
	seqs := map[string]uint64{}
	revs := map[string]uint64{}
	for _, player := range []string{"a", "b", "c"} {
		seqs[player], revs[player] = w.seq(player), w.player(player).Rev
	}
	if refused := w.propose(testQueue, red, blue); refused != nil {
		t.Fatal(refused)
	}
	game := w.keys("a").Game
	for player, seq := range seqs {
		p := w.player(player)
		if p.Keys.Game != game || !p.Keys.Ticket.IsZero() || p.Rev != revs[player]+1 {
			t.Errorf("%s has keys %v and revision %d, had %d", player, p.Keys, p.Rev, revs[player])
		}
		w.wantTold(player, seq, "GameSessionChanged AddedToGame")
	}
	if w.member("a").Team != "red" || w.member("c").Team != "blue" {
		t.Error("the teams are others")
	}
	w.refused(&playerflow.LeaveMatchmaking{Caller: w.as("a")}, flow.AlreadyMatched)

	r, _ := w.cell.playerflow.Flow.Instance(game)
	match := w.cell.playerflow.Flow.Instances.Get(r).Placement
	seq := w.seq("a")
	w.startMatch(match)
	w.wantTold("a", seq, "GameMembershipChanged HostConnectionDetailsReceived:ALLOCATED")
	p, _ := w.cell.hosting.Sessions.PlayerByID(w.member("a").Session)
	if w.cell.hosting.Sessions.Players.Get(p).Status != session.Reserved || w.gameOf(game).SeatsHeld != 3 {
		t.Error("the seats are not reserved once")
	}
	if got := w.gameOf(game).Properties; len(got) != 3 || got[0].Value != game.String() {
		t.Errorf("properties %v", got)
	}
	w.connect(game, "a", "b", "c")
	w.refused(&playerflow.LeaveMatchmaking{Caller: w.as("a")}, flow.NotInMatchmaking)
	w.must(&playerflow.EndGame{Instance: game, Result: `{"winner":"red"}`, Results: map[string]string{"a": `{"score":7}`}})
	w.wantPhase("a", flow.InParty)
	if last := w.player("a").LastGame; last.Result != `{"score":7}` || last.EndReason != flow.Finished {
		t.Errorf("%+v", last)
	}
	if i, _ := w.cell.playerflow.Flow.Party(w.keys("a").Party); w.cell.playerflow.Flow.Parties.Get(i).Members[0].Ready {
		t.Error("a is still ready")
	}
	entries := len(w.journal)
	w.must(&playerflow.EndGame{Instance: game}) // R15
	if len(w.journal) != entries {
		t.Error("a second EndGame did something")
	}
}

// startMatch gives the placement of a match a server, and activates it.
func (w *flowWorld) startMatch(placement string) {
	w.t.Helper()
	key := w.server("server of " + placement)
	game := session.MakeID(testFleet, testLocation, placement)
	w.must(&hosting.PromptGameSession{Process: key, Game: game})
	w.must(&hosting.ActivateGameSession{Process: key, Game: game})
}

// TestHeldTicket: an absent member holds the ticket back, and a proposal is refused without a penalty. If the member returns in time,
// the search continues. Otherwise it ends for the whole party.
func TestHeldTicket(t *testing.T) {
	w := newFlowWorld(t, nil)
	red, blue := w.search("a", "b"), w.search("c")
	before := w.seq("a")
	w.offline("b")
	w.wantTold("a", before, "PartyMemberPresence MatchmakingStatus")
	dump := w.cell.playerflow.Flow.Players.Len()
	keys := w.keys("c")
	if refused := w.propose(testQueue, red, blue); refused == nil {
		t.Fatal("a held ticket was matched")
	}
	if w.keys("c") != keys || w.cell.playerflow.Flow.Players.Len() != dump {
		t.Error("the healthy ticket was touched")
	}
	w.pass(14 * time.Second)
	w.attach("b")
	w.wantTold("a", before, "PartyMemberPresence MatchmakingStatus PartyMemberPresence MatchmakingStatus")
	w.pass(time.Minute)
	w.offline("b")
	w.pass(16 * time.Second)
	w.wantPhase("a", flow.InParty)
	w.wantPhase("b", flow.InParty)
	if got := w.told("a", before); !strings.HasSuffix(got, "GameSessionChanged LeftMatchmaking:MEMBER_OFFLINE") {
		t.Errorf("a was told %s", got)
	}
	if w.ticket(red).Status.Active() {
		t.Error("the ticket lives on")
	}
	if refused := w.propose(testQueue, red, blue); refused == nil {
		t.Error("a match followed from an ended ticket")
	}
}

// TestT2Acceptance checks the rows of docs/spec/player-flow.md#t2 about matches that must be accepted.
func TestT2Acceptance(t *testing.T) {
	begin := func(t *testing.T) (*flowWorld, domain.TicketID, domain.TicketID) {
		w := newFlowWorld(t, nil)
		red, blue := w.searchIn(acceptQueue, "a", "b"), w.searchIn(acceptQueue, "c")
		if refused := w.propose(acceptQueue, red, blue); refused != nil {
			t.Fatal(refused)
		}
		return w, red, blue
	}
	t.Run("accepted", func(t *testing.T) {
		w, red, blue := begin(t)
		if got := w.told("a", 0); !strings.HasSuffix(got, "EnteredMatchmaking MatchFound") {
			t.Errorf("a was told %s", got)
		}
		w.offline("b") // not held now: the deadline decides
		w.attach("b")
		w.must(&playerflow.AnswerMatch{Caller: w.as("a"), Ticket: red, Accept: true})
		w.must(&playerflow.AnswerMatch{Caller: w.as("b"), Ticket: red, Accept: true})
		w.wantPhase("a", flow.Matchmaking)
		before := w.seq("c")
		w.must(&playerflow.AnswerMatch{Caller: w.as("c"), Ticket: blue, Accept: true})
		w.wantTold("c", before, "GameSessionChanged MatchAcceptanceChanged AddedToGame")
		w.wantPhase("b", flow.InGameWithParty)
		w.must(&playerflow.AnswerMatch{Caller: w.as("a"), Ticket: red, Accept: true}) // ok: this match came of it
		w.refused(&playerflow.AnswerMatch{Caller: w.as("a"), Ticket: red}, flow.AcceptanceNotOpen)
	})
	t.Run("accepted, and the answer was lost", func(t *testing.T) {
		w, red, _ := begin(t)
		by := w.as("a")
		by.Request = "r1"
		for range 2 {
			answer := &playerflow.AnswerMatch{Caller: by, Ticket: red, Accept: true}
			w.must(answer)
			if answer.Search == nil || strings.Join(answer.Search.Accepted, " ") != "a" {
				t.Errorf("repeated %t: the search is %+v", answer.Repeated, answer.Search)
			}
		}
	})
	t.Run("accepted by one who is away since", func(t *testing.T) { // B186
		w, red, blue := begin(t)
		w.must(&playerflow.AnswerMatch{Caller: w.as("a"), Ticket: red, Accept: true})
		w.must(&playerflow.AnswerMatch{Caller: w.as("b"), Ticket: red, Accept: true})
		w.offline("b")
		w.must(&playerflow.AnswerMatch{Caller: w.as("c"), Ticket: blue, Accept: true})
		w.wantPhase("b", flow.InGameWithParty)
	})
	t.Run("declined", func(t *testing.T) {
		w, red, _ := begin(t)
		before := w.seq("c")
		w.must(&playerflow.AnswerMatch{Caller: w.as("b"), Ticket: red, Accept: false})
		w.wantPhase("a", flow.InParty)
		w.wantPhase("b", flow.InParty)
		w.wantPhase("c", flow.Matchmaking)
		w.wantTold("c", before, "MatchAcceptanceChanged:ACCEPT_DECLINED MatchmakingResumed:ACCEPT_DECLINED")
		if got := w.told("a", 0); !strings.HasSuffix(got, "MatchmakingFailed:ACCEPT_DECLINED") {
			t.Errorf("a was told %s", got)
		}
		if len(w.player("b").Penalties) != 1 || len(w.player("a").Penalties) != 0 {
			t.Errorf("penalties %v of the decliner, %v of the other", w.player("b").Penalties, w.player("a").Penalties)
		}
	})
	t.Run("left", func(t *testing.T) {
		w, _, blue := begin(t)
		entered := w.ticket(blue).Start
		w.must(&playerflow.LeaveMatchmaking{Caller: w.as("a")})
		w.wantPhase("b", flow.InParty)
		w.wantPhase("c", flow.Matchmaking)
		if w.ticket(blue).Start != entered {
			t.Error("the other ticket lost its place")
		}
	})
	t.Run("timed out", func(t *testing.T) {
		w, red, _ := begin(t)
		w.must(&playerflow.AnswerMatch{Caller: w.as("a"), Ticket: red, Accept: true})
		w.pass(21 * time.Second)
		w.wantPhase("a", flow.InParty)
		w.wantPhase("c", flow.InParty)
		if len(w.player("a").Penalties) != 0 || len(w.player("b").Penalties) != 1 || len(w.player("c").Penalties) != 1 {
			t.Error("the penalties are others'")
		}
		if got := w.told("a", 0); !strings.HasSuffix(got, "MatchmakingFailed:ACCEPT_TIMEOUT") {
			t.Errorf("a was told %s", got)
		}
	})
}

// TestT2SearchEnds checks the rows of docs/spec/player-flow.md#t2 about tickets that end for external reasons.
func TestT2SearchEnds(t *testing.T) {
	for name, row := range map[string]struct {
		end  func(w *flowWorld, ticket domain.TicketID)
		want string
	}{
		"timeout": {func(w *flowWorld, _ domain.TicketID) { w.pass(5*time.Minute + time.Second) }, "MatchmakingFailed:TIMEOUT"},
		"stopped": {func(w *flowWorld, id domain.TicketID) { w.must(&matchmaking.StopMatchmaking{ID: id.String()}) }, "MatchmakingFailed:TICKET_SUPERSEDED"},
		"closed": {func(w *flowWorld, _ domain.TicketID) {
			w.must(&playerflow.SetQueue{Name: testQueue, Closed: true})
			w.must(&kernel.Tick{})
		}, "MatchmakingFailed:QUEUE_CLOSED"},
		"kicked": {func(w *flowWorld, _ domain.TicketID) { w.must(&playerflow.KickPlayer{Caller: w.as("a"), Target: "b"}) }, "LeftMatchmaking:MEMBER_KICKED PartyChanged:KICKED"},
		"left":   {func(w *flowWorld, _ domain.TicketID) { w.must(&playerflow.LeaveParty{Caller: w.as("b")}) }, "LeftMatchmaking:MEMBER_LEFT PartyChanged:LEFT"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFlowWorld(t, nil)
			ticket := w.search("a", "b")
			before := w.seq("a")
			row.end(w, ticket)
			w.wantPhase("a", flow.InParty)
			w.wantTold("a", before, "GameSessionChanged "+row.want)
			if w.ticket(ticket).Status.Active() {
				t.Error("the ticket lives on")
			}
		})
	}
}

// TestRequeueLock checks docs/spec/fair-play.md#requeue: a player who repeatedly enters and leaves waits longer each time.
func TestRequeueLock(t *testing.T) {
	w := newFlowWorld(t, nil)
	w.queues()
	w.online("a")
	enter := func() kernel.Command {
		return &playerflow.EnterMatchmaking{Caller: w.as("a"), Ticket: domain.TicketID(w.id()), Party: flow.PartyID(w.id()), Queue: testQueue}
	}
	for range 3 {
		w.must(enter())
		w.must(&playerflow.LeaveMatchmaking{Caller: w.as("a")})
	}
	if r := w.refused(enter(), flow.MatchmakingLocked); r != nil && (r.Lock.Kind != flow.Requeue || r.Until != w.now.Add(15*time.Second)) {
		t.Errorf("%+v", r)
	}
	w.pass(16 * time.Second)
	w.must(enter())
	w.must(&playerflow.LeaveMatchmaking{Caller: w.as("a")})
	if r := w.refused(enter(), flow.MatchmakingLocked); r != nil && r.Until != w.now.Add(30*time.Second) {
		t.Errorf("locked until %v, want 30 s", r.Until.Sub(w.now))
	}
	w.pass(11 * time.Minute)
	w.must(enter())
}

// Three leaves within any minute lock the player, not three since the first one of a minute.
func TestRequeueWindowSlides(t *testing.T) {
	for _, test := range []struct {
		at    []time.Duration
		locks int
	}{
		{[]time.Duration{0, 55 * time.Second, 65 * time.Second}, 0},
		{[]time.Duration{0, 55 * time.Second, 65 * time.Second, 114 * time.Second}, 1},
		{[]time.Duration{0, 55 * time.Second, 65 * time.Second, 115 * time.Second}, 0},
		{[]time.Duration{0, 1 * time.Second, 2 * time.Second, 61 * time.Second, 62 * time.Second}, 1},
		{[]time.Duration{0, 1 * time.Second, 20 * time.Second, 60 * time.Second}, 2},
	} {
		w := newFlowWorld(t, nil)
		w.queues()
		w.online("a")
		begin := w.now
		for _, at := range test.at {
			w.pass(begin.Add(at).Sub(w.now))
			w.must(&playerflow.EnterMatchmaking{Caller: w.as("a"), Ticket: domain.TicketID(w.id()), Party: flow.PartyID(w.id()), Queue: testQueue})
			w.must(&playerflow.LeaveMatchmaking{Caller: w.as("a")})
		}
		if n := int(w.player("a").Requeues().Level); n != test.locks {
			t.Errorf("leaves at %v: %d locks, want %d", test.at, n, test.locks)
		}
	}
}

// Leaves that release 0.1 has counted still count, all with the time of the first one.
func TestRequeuesOfEarlierReleases(t *testing.T) {
	for _, test := range []struct {
		wait  time.Duration
		locks int32
	}{{59 * time.Second, 1}, {time.Minute, 0}} {
		w := newFlowWorld(t, nil)
		w.queues()
		w.online("a")
		r, _ := w.cell.playerflow.Flow.Player("a")
		w.cell.playerflow.Flow.Players.Mut(r).SetRequeues(flow.Requeues{Leaves: 2, Since: w.now})
		w.pass(test.wait)
		w.must(&playerflow.EnterMatchmaking{Caller: w.as("a"), Ticket: domain.TicketID(w.id()), Party: flow.PartyID(w.id()), Queue: testQueue})
		w.must(&playerflow.LeaveMatchmaking{Caller: w.as("a")})
		if got := w.player("a").Requeues(); got.Level != test.locks {
			t.Errorf("%+v after %v, want level %d", got, test.wait, test.locks)
		}
	}
}

// TestRequeueAfterFailedAllocation checks onAllocationFailure=REQUEUE: parties search again in the same commit and keep their waiting time.
func TestRequeueAfterFailedAllocation(t *testing.T) {
	w := newFlowWorld(t, func(c *flow.Config) { c.Games.Requeue = true })
	w.must(&kernel.RaiseLevel{To: kernel.Level})
	red, blue := w.search("a", "b"), w.search("c")
	entered := w.ticket(red).Start
	w.pass(10 * time.Second)
	w.propose(testQueue, red, blue)
	w.offline("c")
	before := w.seq("a")
	rev := w.player("a").Rev
	w.pass(2*time.Minute + time.Second)
	w.wantPhase("a", flow.Matchmaking)
	w.wantPhase("c", flow.InParty)
	if ticket := w.keys("a").Ticket; ticket == red || w.ticket(ticket).Start != entered || w.ticket(red).Status.Active() || w.player("a").Rev != rev+1 {
		t.Errorf("ticket %s, old one %s", ticket, red)
	}
	w.wantTold("a", before, "GameSessionChanged EnteredMatchmaking FailedToAllocateGameInstance:TIMEOUT")
	if again := w.ticket(w.keys("a").Ticket); again.Holder != quota.Players {
		t.Errorf("the ticket counts for holder %d, want %d, the players", again.Holder, quota.Players)
	}
}

// As in FlexMatch, a party's search timeout keeps running while its game is placed, even when the matched ticket was archived
// long ago. A party whose time is over does not search again.
func TestRequeueKeepsTheTimeout(t *testing.T) {
	for _, test := range []struct {
		searched, allocation time.Duration
		manual, again        bool
	}{
		{searched: 10 * time.Second, allocation: 2 * time.Minute, again: true},
		{searched: 4 * time.Minute, allocation: 2 * time.Minute},
		{searched: 3 * time.Minute, allocation: 2 * time.Minute},
		{searched: 10 * time.Second, allocation: 3 * time.Minute, manual: true, again: true},
		{searched: 10 * time.Second, allocation: 30 * time.Minute, manual: true},
	} {
		t.Run(fmt.Sprintf("%+v", test), func(t *testing.T) {
			w := newFlowWorld(t, func(c *flow.Config) {
				c.Games.Requeue, c.Games.ManualReady, c.Games.AllocationTimeout = true, test.manual, test.allocation
			})
			red, blue := w.search("a"), w.search("b")
			first := *w.ticket(red)
			w.pass(test.searched)
			w.propose(testQueue, red, blue)
			if test.manual {
				w.startMatch(w.instance(w.keys("a").Game).Placement)
			}
			before := w.seq("a")
			w.pass(test.allocation)
			w.check()
			if !test.again {
				w.wantPhase("a", flow.InParty)
				w.wantTold("a", before, "GameSessionChanged FailedToAllocateGameInstance:TIMEOUT")
				return
			}
			w.wantPhase("a", flow.Matchmaking)
			if again := w.ticket(w.keys("a").Ticket); again.Start != first.Start || again.TimeoutAt != first.TimeoutAt {
				t.Errorf("starts %d, until %d; the first one started %d, until %d", again.Start, again.TimeoutAt, first.Start, first.TimeoutAt)
			}
			w.pass(first.TimeoutAt.Sub(w.now))
			w.wantPhase("a", flow.InParty)
		})
	}
}

// The search timeout stops while the service is down, even while a game waits for its host.
func TestRequeueAfterAnOutage(t *testing.T) {
	for _, searching := range []bool{false, true} {
		w := newFlowWorld(t, func(c *flow.Config) { c.Games.Requeue = true })
		red, blue := w.search("a"), w.search("b")
		until := w.ticket(red).TimeoutAt
		outage := func() {
			w.now = w.now.Add(time.Hour)
			w.must(&kernel.Resume{})
			w.attach("a")
			w.attach("b")
		}
		w.pass(time.Minute)
		if searching {
			outage()
		}
		w.propose(testQueue, red, blue)
		w.pass(time.Minute)
		if !searching {
			outage()
		}
		w.pass(time.Minute)
		w.wantPhase("a", flow.Matchmaking)
		if again := w.ticket(w.keys("a").Ticket); again.TimeoutAt != until.Add(time.Hour) {
			t.Errorf("while searching %t: until %d, want %d", searching, again.TimeoutAt, until.Add(time.Hour))
		}
		w.check()
	}
}

// The players of a match learn why no host was found, like those of a game that the studio created.
func TestWhyAMatchGotNoHost(t *testing.T) {
	for want, end := range map[string]func(w *flowWorld, placement string){
		"NO_CAPACITY": func(w *flowWorld, _ string) { w.pass(31 * time.Second) },
		"CANCELLED":   func(w *flowWorld, placement string) { w.must(&hosting.StopPlacement{ID: placement}) },
		"HOST_ERROR":  func(w *flowWorld, _ string) { w.must(&hosting.DeleteQueue{Name: "q"}) },
	} {
		for _, requeue := range []bool{false, true} {
			w := newFlowWorld(t, func(c *flow.Config) { c.Games.Requeue = requeue })
			w.must(&hosting.UpdateQueue{Name: "q", Timeout: new(30 * time.Second)})
			red, blue := w.search("a"), w.search("b")
			w.propose(testQueue, red, blue)
			before := w.seq("a")
			end(w, w.ticket(red).Outcome.Match)
			told := "GameSessionChanged FailedToAllocateGameInstance:" + want
			if requeue {
				told = "GameSessionChanged EnteredMatchmaking FailedToAllocateGameInstance:" + want
			}
			w.wantTold("a", before, told)
			w.check()
		}
	}
}

// A match that cannot be placed because its queue was deleted is not made again and again while its players wait.
func TestNoRequeueWithoutAQueueToPlaceIn(t *testing.T) {
	w := newFlowWorld(t, func(c *flow.Config) { c.Games.Requeue = true })
	red, blue := w.search("a"), w.search("b")
	w.must(&hosting.DeleteQueue{Name: "q"})
	before := w.seq("a")
	w.propose(testQueue, red, blue)
	w.wantTold("a", before, "GameSessionChanged AddedToGame FailedToAllocateGameInstance:HOST_ERROR")
	w.wantPhase("a", flow.InParty)
	if x := w.instance(w.player("a").LastGame.Instance); !x.Rules.Requeue {
		t.Error("the game has other rules than it began with")
	}
	w.check()
}

// No player is returned to a queue that players may no longer enter.
func TestNoRequeueIntoAQueueThatIsGone(t *testing.T) {
	w := newFlowWorld(t, func(c *flow.Config) { c.Games.Requeue = true })
	w.propose(testQueue, w.search("a"), w.search("b"))
	w.setConfig(`{"queues": [{"name": "brawl"}]}`)
	w.pass(2*time.Minute + time.Second)
	w.wantPhase("a", flow.InParty)
}

// TestStrictPlayers checks docs/spec/fair-play.md#strict-players: the service's API does not take players away from player flow.
func TestStrictPlayers(t *testing.T) {
	for _, lax := range []bool{false, true} {
		w := newFlowWorld(t, func(c *flow.Config) { c.Games.LaxPlayers = lax })
		ticket := w.search("a", "b")
		game := w.game("foreign", 4)
		keys := w.keys("b")
		err := w.do(&hosting.ReservePlayers{Game: game, Players: []hosting.NewPlayer{{ID: domain.PlayerSessionID(w.id()), Player: "b"}}})
		if (err == nil) != lax {
			t.Errorf("lax %t: %v", lax, err)
		}
		if w.keys("b") != keys {
			t.Error("a foreign player session changed the keys")
		}
		v := w.cell.View()
		if s, _ := v.FlowOf("b", w.now); (len(s.Foreign) == 1) != lax {
			t.Errorf("lax %t: foreign sessions %v", lax, s.Foreign)
		}
		err = w.do(&matchmaking.StartMatchmaking{Configuration: testQueue, ID: "raw", Players: w.ticket(ticket).PlayersOf()})
		if (err == nil) != lax {
			t.Errorf("lax %t: %v", lax, err)
		}
		if lax {
			w.wantPhase("a", flow.InParty)
		}
	}
}

// TestBackfillCommit: newcomers move from their tickets into the running game instance. Its other members are not changed.
func TestBackfillCommit(t *testing.T) {
	w := newFlowWorld(t, nil)
	w.propose(testQueue, w.search("a"), w.search("b"))
	g := w.keys("a").Game
	w.startMatch(w.instance(g).Placement)
	w.connect(g, "a", "b")
	rev := w.player("a").Rev
	game := w.gameOf(g)
	backfill := &matchmaking.StartMatchBackfill{Configuration: testQueue, ID: "more", Game: string(game.ID), Players: []matchmaking.Player{{ID: "a", Team: "red"}, {ID: "b", Team: "blue"}}}
	w.must(backfill)
	ticket := w.ticket(w.search("c", "d"))
	c, _ := w.cell.matchmaking.Records.Configuration(testQueue)
	more, _ := w.cell.matchmaking.Records.Ticket("more")
	x := w.cell.matchmaking.Records.Tickets.Get(more)
	cmd := &matchmaking.ProposeMatches{Configuration: testQueue, Version: c.Version, Proposals: []matchmaking.Proposal{{ID: w.id(), PlayersMax: 6, Tickets: []matchmaking.ProposedTicket{
		{TicketKey: matchmaking.TicketKey{No: x.No, Generation: x.Generation}, Team: ""}, {TicketKey: matchmaking.TicketKey{No: ticket.No, Generation: ticket.Generation}, Team: "red"},
	}}}}
	w.must(cmd)
	if cmd.Refused[0] != nil {
		t.Fatal(cmd.Refused[0])
	}
	if w.keys("c").Game != g || w.keys("d").Game != g || w.member("c").Status != flow.MemberReserved || w.player("a").Rev != rev {
		t.Errorf("c has %v, the others' revision went from %d to %d", w.keys("c"), rev, w.player("a").Rev)
	}
	if w.gameOf(g).SeatsHeld != 4 {
		t.Errorf("%d seats are held", w.gameOf(g).SeatsHeld)
	}
	w.connect(g, "c", "d")
}

// TestMatchWithStrangers: a player who is logged in and idle may be matched over the plain API, together with parties. The seat belongs
// to the stranger: only players who have left the game lose their seats when a host is found.
func TestMatchWithStrangers(t *testing.T) {
	w := newFlowWorld(t, nil)
	red := w.search("a")
	w.online("stranger")
	stranger := w.id()
	w.must(&matchmaking.StartMatchmaking{Configuration: testQueue, ID: domain.TicketID(stranger).String(), Players: []matchmaking.Player{{ID: "stranger"}}})
	if refused := w.propose(testQueue, red, domain.TicketID(stranger)); refused != nil {
		t.Fatal(refused)
	}
	g := w.keys("a").Game
	w.startMatch(w.instance(g).Placement)
	v := w.cell.View()
	s, _ := v.FlowOf("stranger", w.now)
	if len(s.Foreign) != 1 || w.gameOf(g).SeatsHeld != 2 {
		t.Errorf("%d seats are held, the stranger has %v", w.gameOf(g).SeatsHeld, s.Foreign)
	}
	w.wantNoticed(g, 0, "PlayersAdded:a")
}
