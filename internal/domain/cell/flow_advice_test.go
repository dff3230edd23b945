package cell

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/matchmaking"
	"github.com/musterhq/muster/internal/domain/placement"
	"github.com/musterhq/muster/internal/domain/playerflow"
)

// callerOf returns the caller of a command that supports advice, or nil for other commands.
func callerOf(cmd kernel.Command) *playerflow.Caller {
	switch cmd := cmd.(type) {
	case *playerflow.CreateParty:
		return &cmd.Caller
	case *playerflow.JoinParty:
		return &cmd.Caller
	case *playerflow.SendInvite:
		return &cmd.Caller
	case *playerflow.EnterMatchmaking:
		return &cmd.Caller
	case *playerflow.GetHostConnectionDetails:
		return &cmd.Caller
	case *playerflow.CreateGameInstance:
		return &cmd.Caller
	case *playerflow.JoinGameInstance:
		return &cmd.Caller
	case *playerflow.UpdateOwnGame:
		return &cmd.Caller
	}
	return nil
}

// TestLook: advice on a command returns the refusal that the command would get, and changes nothing. Then the command runs as if advice
// had not been read. Each cell of T1.
func TestLook(t *testing.T) {
	eachT1(t, func(t *testing.T, w *flowWorld, _ row, _ int, cmd kernel.Command, want string) {
		by := callerOf(cmd)
		if by == nil {
			t.Skip("no hook asks before it")
		}
		by.Look, by.Request = true, "the request"
		if len(want) != 2 {
			w.refused(cmd, flow.Code(want))
			return
		}
		before, entries := w.dump(), len(w.journal)
		w.must(cmd)
		if len(w.journal) != entries || !bytes.Equal(before, w.dump()) {
			t.Fatal("a look has changed something")
		}
		would := by.Would
		by.Look = false
		w.must(cmd)
		w.wantPhase("me", flow.Phase(want[1]-'0'))
		if by.Repeated || !would && len(w.journal) > entries+1 {
			t.Errorf("a look says %t, repeated %t, and %d entries were written", would, by.Repeated, len(w.journal)-entries)
		}
		by.Look = true
		w.must(cmd)
		if !by.Repeated {
			t.Error("a look at what was done already does not say so")
		}
	})
}

// TestLookAtDetails: a look says whether a reservation would be made, which is when PlayerData is asked for.
func TestLookAtDetails(t *testing.T) {
	w := newFlowWorld(t, nil)
	w.online("a")
	g := w.play(false, flow.ReconnectOptional, "a")
	look := func() bool {
		t.Helper()
		cmd := &playerflow.GetHostConnectionDetails{Caller: w.as("a"), Instance: g}
		cmd.Look = true
		w.must(cmd)
		return cmd.Would
	}
	if look() {
		t.Error("the reservation is good yet")
	}
	w.connect(g, "a")
	w.lose(g, w.member("a").Session)
	if !look() {
		t.Error("the way back needs a reservation")
	}
	data := "level=3"
	cmd := &playerflow.GetHostConnectionDetails{Caller: w.as("a"), Instance: g, Data: &data}
	w.must(cmd)
	if got := w.dataOf(domain.PlayerSessionID(cmd.Made)); got != data {
		t.Errorf("PlayerData is %q", got)
	}
	w.connect(g, "a")
	w.lose(g, domain.PlayerSessionID(cmd.Made))
	again := &playerflow.GetHostConnectionDetails{Caller: w.as("a"), Instance: g}
	w.must(again)
	if got := w.dataOf(domain.PlayerSessionID(again.Made)); got != data {
		t.Errorf("unchanged PlayerData is %q", got)
	}
}

// dataOf returns the PlayerData of a player session.
func (w *flowWorld) dataOf(id domain.PlayerSessionID) string {
	w.t.Helper()
	r, ok := w.cell.hosting.Sessions.PlayerByID(id)
	if !ok {
		w.t.Fatalf("no player session %s", id)
	}
	return w.cell.hosting.Sessions.Players.Get(r).Data
}

// enterWith makes a party of players enter the test queue with the studio's advice on its search.
func (w *flowWorld) enterWith(a flow.Advice, players ...string) domain.TicketID {
	w.t.Helper()
	w.queues()
	w.party(players...)
	w.ready()
	for _, player := range players[1:] {
		w.must(&playerflow.SetReady{Caller: w.as(player), Ready: true})
	}
	if len(players) > 1 {
		w.must(&playerflow.SetReady{Caller: w.as(players[0]), Ready: true})
	}
	cmd := &playerflow.EnterMatchmaking{Caller: w.as(players[0]), Ticket: domain.TicketID(w.id()), Queue: testQueue, Advice: a}
	w.must(cmd)
	return domain.TicketID(cmd.Made)
}

func (w *flowWorld) skillOf(ticket domain.TicketID, player string) float64 {
	w.t.Helper()
	for _, p := range matchmaking.DecodeRoster(w.ticket(ticket).Roster) {
		if p.ID == player && len(p.Attributes) == 1 {
			return p.Attributes[0].Value.Number
		}
	}
	return -1
}

// TestAttributesOfASearch: which source of an attribute takes precedence.
func TestAttributesOfASearch(t *testing.T) {
	party, client, trusted := `{"skill":1}`, `{"skill":2}`, `{"skill":4}`
	for _, tc := range []struct {
		name            string
		client, trusted *string
		advice          flow.Advice
		want            float64
	}{
		{"the party's", nil, nil, flow.Advice{}, 1},
		{"the client's", &client, nil, flow.Advice{}, 2},
		{"the client's for this search", &client, nil, flow.Advice{Attributes: `{"skill":3}`}, 3},
		{"the studio's", &client, &trusted, flow.Advice{Attributes: `{"skill":3}`}, 4},
		{"the studio's for this search", &client, &trusted, flow.Advice{Attributes: `{"skill":3}`, Trusted: `{"skill":5}`}, 5},
		{"the studio's for this player in this search", &client, &trusted,
			flow.Advice{Trusted: `{"skill":5}`, Players: []flow.PlayerAdvice{{Player: "a", Trusted: `{"skill":6}`}}}, 6},
		{"another player's", nil, nil, flow.Advice{Players: []flow.PlayerAdvice{{Player: "b", Trusted: `{"skill":6}`}}}, 1},
		{"of the wrong kind", &client, nil, flow.Advice{Attributes: `{"skill":"high"}`}, 2},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newFlowWorld(t, nil)
			w.queues()
			w.online("a")
			w.must(&playerflow.CreateParty{Caller: w.as("a"), ID: flow.PartyID(w.id()), Attributes: party})
			if tc.client != nil {
				w.must(&playerflow.SetPlayerPreferences{Caller: w.as("a"), Attributes: tc.client})
			}
			if tc.trusted != nil {
				w.must(&playerflow.SetPlayerAttributes{Player: "a", Attributes: *tc.trusted})
			}
			cmd := &playerflow.EnterMatchmaking{Caller: w.as("a"), Ticket: domain.TicketID(w.id()), Queue: testQueue, Advice: tc.advice}
			w.must(cmd)
			if got := w.skillOf(domain.TicketID(cmd.Made), "a"); got != tc.want {
				t.Errorf("skill is %g, want %g", got, tc.want)
			}
		})
	}
}

// TestAdviceGoesIntoTheGame: PlayerData and the order of locations are in the match. Once the game has a host they are no longer
// kept.
func TestAdviceGoesIntoTheGame(t *testing.T) {
	w := newFlowWorld(t, nil)
	red := w.enterWith(flow.Advice{
		Regions: []string{"east", "west"},
		Players: []flow.PlayerAdvice{{Player: "a", Data: "data of a"}, {Player: "b", Data: "data of b"}},
	}, "a", "b")
	blue := w.enterWith(flow.Advice{Regions: []string{"west", "north"}, Players: []flow.PlayerAdvice{{Player: "c", Data: "data of c"}}}, "c")
	if w.cell.playerflow.Flow.Advices.Len() != 2 {
		t.Fatalf("%d are kept", w.cell.playerflow.Flow.Advices.Len())
	}
	if refused := w.propose(testQueue, red, blue); refused != nil {
		t.Fatal(refused)
	}
	g := w.keys("a").Game
	match := w.instance(g).Placement
	r, _ := w.cell.hosting.Placements.Placement(match)
	p := w.cell.hosting.Placements.Placements.Get(r)
	// east: 0 for two and 2 for one; west: 1 for two and 0 for one, which is the same; north: 2 and 1.
	if want := "east west north"; strings.Join(p.Regions, " ") != want {
		t.Errorf("regions %v, want %s", p.Regions, want)
	}
	w.startMatch(match)
	for _, player := range []string{"a", "b", "c"} {
		if got := w.dataOf(w.member(player).Session); got != "data of "+player {
			t.Errorf("PlayerData of %s is %q", player, got)
		}
	}
	if n := w.cell.playerflow.Flow.Advices.Len(); n != 0 {
		t.Errorf("%d are kept", n)
	}
}

// TestAdviceEnds: the advice on a search that ended without a match is dropped. A search that begins again keeps its advice.
func TestAdviceEnds(t *testing.T) {
	said := func(player string) flow.Advice {
		return flow.Advice{Attributes: `{"skill":3}`, Players: []flow.PlayerAdvice{{Player: player, Data: "data of " + player}}}
	}
	left := func(t *testing.T, w *flowWorld, want int) {
		t.Helper()
		if n := w.cell.playerflow.Flow.Advices.Len(); n != want {
			t.Errorf("%d are kept, want %d", n, want)
		}
	}
	t.Run("left", func(t *testing.T) {
		w := newFlowWorld(t, nil)
		w.enterWith(said("a"), "a")
		w.must(&playerflow.LeaveMatchmaking{Caller: w.as("a")})
		left(t, w, 0)
	})
	t.Run("all of a party leave before there is a host", func(t *testing.T) {
		w := newFlowWorld(t, nil)
		if refused := w.propose(testQueue, w.enterWith(said("a"), "a", "b"), w.enterWith(said("c"), "c")); refused != nil {
			t.Fatal(refused)
		}
		g := w.keys("a").Game
		w.must(&playerflow.LeaveGame{Caller: w.as("a"), Instance: g})
		left(t, w, 2)
		w.must(&playerflow.LeaveGame{Caller: w.as("b"), Instance: g})
		left(t, w, 1)
		w.startMatch(w.instance(g).Placement)
		left(t, w, 0)
	})
	for _, requeue := range []bool{false, true} {
		t.Run(fmt.Sprintf("no host, requeue %t", requeue), func(t *testing.T) {
			w := newFlowWorld(t, func(c *flow.Config) { c.Games.Requeue = requeue })
			if refused := w.propose(testQueue, w.enterWith(said("a"), "a"), w.enterWith(said("b"), "b")); refused != nil {
				t.Fatal(refused)
			}
			w.must(&hosting.StopPlacement{ID: w.instance(w.keys("a").Game).Placement})
			if !requeue {
				left(t, w, 0)
				return
			}
			left(t, w, 2)
			red, blue := w.keys("a").Ticket, w.keys("b").Ticket
			if w.skillOf(red, "a") != 3 {
				t.Error("the attributes are gone")
			}
			if refused := w.propose(testQueue, red, blue); refused != nil {
				t.Fatal(refused)
			}
			w.startMatch(w.instance(w.keys("a").Game).Placement)
			if got := w.dataOf(w.member("a").Session); got != "data of a" {
				t.Errorf("PlayerData is %q", got)
			}
			left(t, w, 0)
		})
	}
}

// TestEnterAboutOthers: the studio's advice on one party does not apply to another one.
func TestEnterAboutOthers(t *testing.T) {
	w := newFlowWorld(t, nil)
	w.queues()
	w.party("me", "friend")
	w.ready()
	w.refused(&playerflow.EnterMatchmaking{Caller: w.as("me"), Ticket: domain.TicketID(w.id()), Queue: testQueue, About: []string{"me"}}, flow.RevConflict)
	w.must(&playerflow.EnterMatchmaking{Caller: w.as("me"), Ticket: domain.TicketID(w.id()), Queue: testQueue, About: []string{"me", "friend"}})
}

// TestPlacementOrder: the locations that a placement prefers take precedence over the queue's priorities. The queue's filter still applies.
func TestPlacementOrder(t *testing.T) {
	q := placement.Queue{PriorityOrder: []placement.Criterion{placement.ByCost}, AllowedLocations: []string{"a", "b", "c"}}
	destinations := []placement.Destination{
		{Index: 0, Fleet: "cheap", Cost: 1, Locations: []string{"a", "d"}}, {Index: 1, Fleet: "dear", Cost: 9, Locations: []string{"b", "c"}},
	}
	order := func(regions ...string) (places []string) {
		best, _ := q.Candidates(&placement.Placement{Regions: regions}, destinations, 0)
		for _, x := range best {
			places = append(places, x.Location)
		}
		return places
	}
	for _, tc := range [][2][]string{
		{nil, {"a", "b", "c"}}, {{"c", "b"}, {"c", "b", "a"}}, {{"d", "c", "nowhere"}, {"c", "a", "b"}},
	} {
		if got := order(tc[0]...); !slices.Equal(got, tc[1]) {
			t.Errorf("%v: %v, want %v", tc[0], got, tc[1])
		}
	}
}

// TestCreateGameInstanceDefaults: the settings of a player's game without arguments.
func TestCreateGameInstanceDefaults(t *testing.T) {
	w := newFlowWorld(t, func(c *flow.Config) {
		c.Games.DirectCreate, c.Games.DirectQueue, c.Games.DirectPlayersMax = true, "q", 4
	})
	w.party("a")
	w.must(&playerflow.SetPlayerPreferences{Caller: w.as("a"), Latencies: &[]flow.Latency{{Region: testLocation, Milliseconds: 20}}})
	for _, size := range []int32{-1, 5} {
		w.refused(&playerflow.CreateGameInstance{Caller: w.as("a"), Plan: playerflow.GamePlan{ID: flow.InstanceID(w.id())}, Size: size}, flow.InvalidArgument)
	}
	cmd := &playerflow.CreateGameInstance{Caller: w.as("a"), Plan: playerflow.GamePlan{ID: flow.InstanceID(w.id()), Attributes: `{"mode":"sandbox"}`}, Data: "data of a"}
	w.must(cmd)
	r, _ := w.cell.hosting.Placements.Placement(flow.InstanceID(cmd.Made).String())
	p := w.cell.hosting.Placements.Placements.Get(r)
	if p.Queue != "q" || p.PlayersMax != 4 || len(p.Latencies) != 1 || p.Players[0].Data != "data of a" {
		t.Errorf("the placement is %+v", p)
	}
	if got := w.instance(flow.InstanceID(cmd.Made)).Attributes; got != `{"mode":"sandbox"}` {
		t.Errorf("attributes %s", got)
	}
	w.activateHost(w.server("late"), flow.InstanceID(cmd.Made))
	w.must(&playerflow.LeaveGame{Caller: w.as("a"), Instance: flow.InstanceID(cmd.Made)})
	small := &playerflow.CreateGameInstance{Caller: w.as("a"), Plan: playerflow.GamePlan{ID: flow.InstanceID(w.id()), PlayersMax: 9}, Size: 2} // the studio's word is above it
	w.must(small)
	r, _ = w.cell.hosting.Placements.Placement(flow.InstanceID(small.Made).String())
	if got := w.cell.hosting.Placements.Placements.Get(r).PlayersMax; got != 9 {
		t.Errorf("%d players", got)
	}
	nowhere := newFlowWorld(t, func(c *flow.Config) { c.Games.DirectCreate = true })
	nowhere.online("a")
	nowhere.refused(&playerflow.CreateGameInstance{Caller: nowhere.as("a"), Plan: playerflow.GamePlan{ID: flow.InstanceID(nowhere.id())}}, flow.JoinNotAllowed)
	look := &playerflow.CreateGameInstance{Caller: nowhere.as("a"), Plan: playerflow.GamePlan{ID: flow.InstanceID(nowhere.id())}}
	look.Look = true
	nowhere.must(look)
	if !look.Would {
		t.Error("the studio may name a queue yet")
	}
}

// TestUpdateOwnGame checks the row of UpdateGameInstance.
func TestUpdateOwnGame(t *testing.T) {
	for phase, want := range []flow.Code{flow.NotInGame, flow.NotInGame, flow.NotInGame, "", ""} {
		w := newFlowWorld(t, nil)
		phases[phase](w)
		cmd := &playerflow.UpdateOwnGame{Caller: w.as("me"), Attributes: `{"map":"harbour"}`}
		if want != "" {
			w.refused(cmd, want)
			continue
		}
		seq := w.seq("me")
		w.must(cmd)
		w.wantTold("me", seq, "GameInstanceUpdated")
		if got := w.instance(w.keys("me").Game).Attributes; got != `{"map":"harbour"}` {
			t.Errorf("attributes %s", got)
		}
		w.refused(&playerflow.UpdateOwnGame{Caller: w.as("me"), Attributes: "{}", Instance: flow.InstanceID(w.id())}, flow.NotInGame)
		game := w.gameOf(w.keys("me").Game)
		w.must(&hosting.TerminateGameSession{ID: game.ID})
		w.refused(&playerflow.UpdateOwnGame{Caller: w.as("me"), Attributes: "{}"}, flow.GameIsEnding)
	}
}

// TestJoinWithData: a player who joins a running game gets the team and the PlayerData that the studio chose.
func TestJoinWithData(t *testing.T) {
	w := newFlowWorld(t, func(c *flow.Config) { c.Games.DirectJoin = true })
	w.online("host", "me")
	g := w.play(false, 0, "host")
	w.must(&playerflow.JoinGameInstance{Caller: w.as("me"), Instance: g, Team: "red", Data: "skin=7"})
	if m := w.member("me"); m.Team != "red" || w.dataOf(m.Session) != "skin=7" {
		t.Errorf("team %s, PlayerData %s", m.Team, w.dataOf(m.Session))
	}
}

// TestDecidePenalty: the studio's decision applies only to the penalty that it names.
func TestDecidePenalty(t *testing.T) {
	w := newFlowWorld(t, func(c *flow.Config) { c.Penalties.Mode = flow.PenaltiesEnforced })
	w.online("a")
	offend := func() flow.Penalty {
		t.Helper()
		g := w.play(false, flow.ReconnectOptional, "a")
		w.must(&playerflow.LeaveGame{Caller: w.as("a"), Instance: g})
		return w.player("a").Penalties[0]
	}
	first := offend()
	seq := w.seq("a")
	w.must(&playerflow.DecidePenalty{Player: "a", Kind: first.Kind, Since: first.Since, Given: first.Level, Until: first.Until, Clear: true})
	w.wantTold("a", seq, "PenaltyLifted")
	if n := len(w.player("a").Penalties); n != 0 {
		t.Errorf("%d penalties", n)
	}
	w.pass(time.Second)
	second := offend()
	w.pass(time.Second)
	third := offend()
	if third.Level != second.Level+1 || third.Until == 0 {
		t.Fatalf("%+v", third)
	}
	entries := len(w.journal)
	w.must(&playerflow.DecidePenalty{Player: "a", Kind: second.Kind, Since: second.Since, Given: second.Level, Until: second.Until, Clear: true}) // too late
	if len(w.journal) != entries {
		t.Error("a decision about an earlier offence did something")
	}
	w.must(&playerflow.DecidePenalty{Player: "a", Kind: third.Kind, Since: third.Since, Given: third.Level, Until: third.Until, Clear: true})
	if p := w.player("a").Penalties[0]; p.Level != second.Level || p.Until != 0 {
		t.Errorf("%+v", p)
	}
	entries = len(w.journal)
	w.must(&playerflow.DecidePenalty{Player: "a", Kind: third.Kind, Since: third.Since, Given: third.Level, Until: third.Until, Clear: true}) // asked twice
	if len(w.journal) != entries {
		t.Error("a second decision about an offence did something")
	}
	w.pass(time.Second)
	third = offend()
	seq = w.seq("a")
	w.must(&playerflow.DecidePenalty{Player: "a", Kind: third.Kind, Since: third.Since, Given: third.Level, Until: third.Until, Level: 3, Lock: time.Minute})
	w.wantTold("a", seq, "PenaltyApplied")
	if p := w.player("a").Penalties[0]; p.Level != 3 || p.Until != w.now.Add(time.Minute) || p.Since != third.Since {
		t.Errorf("%+v", p)
	}
	w.refused(&playerflow.DecidePenalty{Player: "nobody"}, flow.PlayerNotFound)
}

// Scales have no level below the first: neither a command nor decay moves a player lower.
func TestPlacesOnScales(t *testing.T) {
	w := newFlowWorld(t, func(c *flow.Config) { c.Penalties.DodgeDecay = 0 })
	w.online("me")
	w.refused(&playerflow.SetPenalty{Player: "me", Penalty: flow.Penalty{Kind: flow.Dodge, Level: -2, Until: w.now.Add(time.Hour)}}, flow.InvalidArgument)
	g := w.play(true, flow.ReconnectOptional, "me")
	w.must(&playerflow.LeaveGame{Caller: w.as("me"), Instance: g})
	since := w.player("me").Penalties[0].Since
	w.refused(&playerflow.DecidePenalty{Player: "me", Kind: flow.Dodge, Since: since, Level: -2, Lock: time.Hour}, flow.InvalidArgument)
	long := flow.Penalty{Kind: flow.Dodge, Level: 2, Since: 1}
	if got := playerflow.Decayed(long, time.Millisecond, domain.Time(1).Add(60*24*time.Hour)); got != 0 {
		t.Errorf("after sixty thousand periods and more the level is %d", got)
	}
}
