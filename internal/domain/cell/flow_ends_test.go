package cell

import (
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/keyvalue"
	"github.com/musterhq/muster/internal/domain/matchmaking"
	"github.com/musterhq/muster/internal/domain/playerflow"
	"github.com/musterhq/muster/internal/domain/session"
)

// If a game ends before it has a host, the end has its own reason, and no player searches again.
func TestPendingGameIsEnded(t *testing.T) {
	for _, row := range []struct {
		name   string
		end    func(w *flowWorld, g flow.InstanceID)
		reason flow.Reason
		told   string
	}{
		{"by an operator", func(w *flowWorld, g flow.InstanceID) { w.must(&playerflow.ForceEnd{Instance: g}) }, flow.ByTheOperator,
			"GameSessionChanged GameEnded:OPERATOR RemovedFromGame:OPERATOR"},
		{"by the studio", func(w *flowWorld, g flow.InstanceID) { w.must(&playerflow.EndGame{Instance: g}) }, flow.Finished,
			"GameSessionChanged GameEnded:FINISHED RemovedFromGame:GAME_ENDED"},
		{"after all time", func(w *flowWorld, _ flow.InstanceID) { w.pass(61 * time.Second) }, flow.AbsoluteTimeout,
			"GameSessionChanged GameEnded:ABSOLUTE_TIMEOUT RemovedFromGame:ABSOLUTE_TIMEOUT"},
	} {
		t.Run(row.name, func(t *testing.T) {
			w := newFlowWorld(t, func(c *flow.Config) { c.Games.Requeue, c.Games.AbsoluteTimeout = true, time.Minute })
			red := w.search("a", "b")
			if refused := w.propose(testQueue, red, w.search("c")); refused != nil {
				t.Fatal(refused)
			}
			g, before := w.keys("a").Game, w.seq("a")
			match := w.instance(g).Placement
			row.end(w, g)
			w.wantTold("a", before, row.told)
			w.wantPhase("a", flow.InParty)
			if x := w.instance(g); x.EndReason != row.reason {
				t.Errorf("it is %s (%s)", x.Status, x.EndReason)
			}
			r, _ := w.cell.playerflow.Flow.Party(w.keys("b").Party)
			if x := w.cell.playerflow.Flow.Parties.Get(r); !x.Members[1].Ready {
				t.Error("b is not ready any more, and has never played")
			}
			if p, _ := w.cell.hosting.Placements.Placement(match); w.cell.hosting.Placements.Placements.Get(p).Status == 1 || w.ticket(red).Status.Active() {
				t.Error("a host is looked for on")
			}
		})
	}
}

// The tickets of a match with players of player flow end with the placement, even if the configuration requeues those of other matches (B149).
// A ticket that returned to the pool would be matched again without its party.
func TestNoTicketOutlivesItsGame(t *testing.T) {
	for name, end := range map[string]func(w *flowWorld, g flow.InstanceID){
		"the allocation takes too long": func(w *flowWorld, _ flow.InstanceID) { w.pass(2*time.Minute + time.Second) },
		"an operator ends the game":     func(w *flowWorld, g flow.InstanceID) { w.must(&playerflow.ForceEnd{Instance: g}) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newFlowWorld(t, nil)
			w.queues()
			w.must(&TagResource{Resource{ConfigurationResource, testQueue}, []keyvalue.Pair{{Key: matchmaking.PlacementFailureTag, Value: matchmaking.Requeue}}, nil})
			red, blue := w.search("a"), domain.TicketID(w.id())
			w.must(&matchmaking.StartMatchmaking{Configuration: testQueue, ID: blue.String(), Players: []matchmaking.Player{{ID: "stranger"}}})
			if refused := w.propose(testQueue, red, blue); refused != nil {
				t.Fatal(refused)
			}
			end(w, w.keys("a").Game)
			w.wantPhase("a", flow.InParty)
			for _, id := range []domain.TicketID{red, blue} {
				if x := w.ticket(id); x.Status != matchmaking.Failed {
					t.Errorf("the ticket of %s is %s, want FAILED", x.PlayersOf()[0].ID, x.Status)
				}
			}
			w.check()
		})
	}
}

// A player who joined a game without a search is not put into a queue when the game's server does not become ready.
func TestOnlySearchersSearchAgain(t *testing.T) {
	w := newFlowWorld(t, func(c *flow.Config) {
		c.Games.ManualReady, c.Games.Requeue, c.Games.DirectJoin = true, true, true
	})
	x := w.matchedGame("a", "b")
	g := x.ID
	w.party("solo")
	w.must(&playerflow.JoinGameInstance{Caller: w.as("solo"), Instance: g})
	w.online("late") // into the party of one who has searched
	w.must(&playerflow.JoinParty{Caller: w.as("late"), Party: w.keys("b").Party})
	w.must(&playerflow.JoinGameInstance{Caller: w.as("late"), Instance: g})
	w.pass(3 * time.Minute)
	for player, want := range map[string]flow.Phase{"a": flow.Matchmaking, "solo": flow.InParty, "b": flow.InParty, "late": flow.InParty} {
		if got := w.keys(player).Phase(); got != want {
			t.Errorf("%s is in S%d, want S%d", player, got, want)
		}
	}
}

// A server that is about to end gets no more players, although it reports that it is ready.
func TestReadyWhileEnding(t *testing.T) {
	w := newFlowWorld(t, func(c *flow.Config) { c.Games.ManualReady = true })
	w.online("me")
	g := w.play(false, flow.ReconnectOptional, "me")
	w.must(&hosting.TerminateGameSession{ID: w.gameOf(g).ID})
	w.refused(&playerflow.ReadyGame{Instance: g}, flow.GameIsEnding)
	w.pass(31 * time.Second)
	w.wantPhase("me", flow.Idle)
}

// A game session that accepts no new players rejects players who join by themselves. Its server may still add some.
func TestJoinWhereNobodyIsLetIn(t *testing.T) {
	w := newFlowWorld(t, func(c *flow.Config) { c.Games.DirectJoin = true })
	w.online("me", "mate", "friend")
	g := w.play(false, flow.ReconnectOptional, "me")
	game := w.gameOf(g)
	w.must(&hosting.SetPlayerPolicy{Process: processKey(game.ProcessID), Game: game.ID, Deny: true, Request: 1})
	w.refused(&playerflow.JoinGameInstance{Caller: w.as("mate"), Instance: g}, flow.JoinNotAllowed)
	add := &playerflow.AddMembers{Instance: g, Players: []playerflow.PlannedPlayer{{Player: "friend"}}}
	w.must(add)
	if len(add.Failed) != 0 {
		t.Error(add.Failed)
	}
}

// No player is matched into a finished game, even if its server still runs, and the game starts no search by itself.
func TestNoBackfillOfFinishedGames(t *testing.T) {
	t.Run("asked for", func(t *testing.T) {
		w := newFlowWorld(t, nil)
		x := w.matchedGame("a", "b")
		w.connect(x.ID, "a", "b")
		more := &playerflow.EnterBackfill{Instance: x.ID, Ticket: domain.BackfillID(w.id())}
		w.must(more)
		before := w.noticeHead(x.ID)
		w.must(&playerflow.EndGame{Instance: x.ID})
		r, _ := w.cell.matchmaking.Records.Ticket(more.Made.ID)
		if s := w.cell.matchmaking.Records.Tickets.Get(r).Status; s.Active() {
			t.Errorf("the backfill is %s", s)
		}
		if got := w.noticed(x.ID, before); !strings.Contains(got, "GameInstanceLeftMatchmaking") {
			t.Errorf("the server was told %q", got)
		}
	})
	t.Run("automatic", func(t *testing.T) {
		w := newFlowWorld(t, nil)
		w.fillsUp()
		x := w.matchedGame("a", "b")
		w.connect(x.ID, "a", "b")
		if _, open := w.cell.matchmaking.Records.BackfillOf(x.Game); !open {
			t.Fatal("there is no automatic backfill")
		}
		sessions := []domain.PlayerSessionID{w.member("a").Session, w.member("b").Session}
		g := session.ID(x.Game)
		key := w.gameOf(x.ID).ProcessID
		w.must(&playerflow.EndGame{Instance: x.ID})
		for _, id := range sessions {
			if r, open := w.cell.matchmaking.Records.BackfillOf(string(g)); open {
				t.Errorf("%s searches", w.cell.matchmaking.Records.Tickets.Get(r).ID)
			}
			w.must(&hosting.RemovePlayer{Process: processKey(key), Game: g, Player: id})
		}
	})
}

// fillsUp makes the games of testQueue backfill automatically, also for players who have left.
func (w *flowWorld) fillsUp() {
	w.t.Helper()
	w.queues()
	yes := true
	w.must(&matchmaking.UpdateConfiguration{Name: testQueue, AutoBackfill: &yes})
	w.must(&TagResource{
		Resource: Resource{Kind: ConfigurationResource, ID: testQueue}, Tags: []fleet.Tag{{Key: matchmaking.BackfillLeaversTag, Value: "true"}},
	})
}

// While a game's automatic backfill is open, the matchmaker is told of players who join, and of absent players whose seats are
// kept. When a kept seat ends, the game searches for another player.
func TestAutomaticBackfillKnowsKeptSeats(t *testing.T) {
	w := newFlowWorld(t, nil)
	w.fillsUp()
	x := w.matchedGame("a", "b")
	g := x.ID
	w.connect(g, "a", "b")
	roster := func() (players []string) {
		r, ok := w.cell.matchmaking.Records.BackfillOf(w.instance(g).Game)
		if !ok {
			return nil
		}
		for _, p := range matchmaking.DecodeRoster(w.cell.matchmaking.Records.Tickets.Get(r).Roster) {
			players = append(players, p.ID)
		}
		return players
	}
	want := func(when string, players ...string) {
		t.Helper()
		if got := strings.Join(roster(), " "); got != strings.Join(players, " ") {
			t.Errorf("%s: the matchmaker is told of %q, want %q", when, got, players)
		}
	}
	want("both play", "a", "b")
	w.lose(g, w.member("a").Session)
	want("a is away", "a", "b")
	w.pass(3*time.Minute + time.Second)
	want("a is gone", "b")
	w.must(&playerflow.RemoveMembers{Instance: g, Players: []playerflow.RemovedMember{{Player: "b", Reason: flow.RemovedKicked}}})
	want("no member is present")
}
