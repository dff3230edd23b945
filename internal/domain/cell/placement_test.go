package cell

import (
	"fmt"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/placement"
	"github.com/musterhq/muster/internal/domain/session"
)

// grounds makes a fleet in three locations with a compute in each, and a queue over it.
func (w *world) grounds(q placement.Queue) {
	locations := []string{"custom-a", "custom-b", "custom-c"}
	for _, l := range locations {
		w.must(&hosting.CreateLocation{Name: l, Region: "us-east-1"})
	}
	w.must(&hosting.CreateFleet{Fleet: fleet.Fleet{ID: testFleet, Region: "us-east-1", Name: "dev"}, Locations: locations})
	for _, l := range locations {
		w.must(&hosting.RegisterCompute{Compute: fleet.Compute{FleetID: testFleet, Name: "host-" + l, Location: l, IPAddress: "127.0.0.1"}})
	}
	q.Name, q.Region = "q", "us-east-1"
	q.Destinations = []string{"arn:aws:gamelift:us-east-1::fleet/" + testFleet}
	w.must(&hosting.CreateQueue{Queue: q})
}

// serverAt connects a process at a location and makes it ready and healthy.
func (w *world) serverAt(location, id string) fleet.Key {
	key := fleet.Key{Fleet: testFleet, Compute: "host-" + location, Process: id}
	w.must(&hosting.ConnectProcess{Process: key, Link: 7})
	w.must(&hosting.ActivateProcess{Process: key, Link: 7, Port: 7777, Request: kernel.RequestHash(id)})
	w.must(&hosting.ReportHealth{Process: key, Healthy: true})
	return key
}

func (w *world) start(p placement.Placement) {
	w.t.Helper()
	p.Queue = "q"
	if p.PlayersMax == 0 {
		p.PlayersMax = 8
	}
	w.must(&hosting.StartPlacement{Placement: p, ArchivedID: kernel.ArchivedID{ArchivedAt: w.cell.Forgotten()}})
}

func (w *world) placement(id string) placement.Placement {
	w.t.Helper()
	v := w.cell.View()
	p, ok := v.Placement(id)
	if !ok {
		w.t.Fatalf("placement %s is gone", id)
	}
	return p
}

// advance moves the clock in steps and handles the deadlines that are due.
func (w *world) advance(d time.Duration) {
	for end := w.now.Add(d); w.now < end; {
		w.now = min(w.now.Add(time.Second), end)
		for tick := (kernel.Tick{}); ; {
			w.must(&tick)
			if !tick.More {
				break
			}
		}
	}
}

func TestPlacementIsFulfilled(t *testing.T) {
	w := newWorld(t, DefaultConfig())
	w.grounds(placement.Queue{})
	w.start(placement.Placement{ID: "p1", Name: "duel", Players: []placement.Player{{Player: "ann", ID: playerID(1)}, {Player: "bob", ID: playerID(2)}}})
	if p := w.placement("p1"); p.Status != placement.Pending || p.Game != "" {
		t.Fatalf("without a server: %+v", p)
	}
	key := w.serverAt("custom-b", "s1") // it waits, so the first free process gets it
	p := w.placement("p1")
	if p.Game != testFleet+"/custom-b/p1" || p.Status != placement.Pending {
		t.Fatalf("with a server: %+v", p)
	}
	w.must(&hosting.ActivateGameSession{Process: key, Game: session.ID(p.Game)})
	p = w.placement("p1")
	if p.Status != placement.Fulfilled || p.End != w.now {
		t.Fatalf("after the activation: %+v", p)
	}
	v := w.cell.View()
	if players := v.PlayersIn(session.ID(p.Game), session.Reserved, 0, domain.PlayerSessionID{}, 10); len(players) != 2 || players[0].Player != "ann" {
		t.Fatalf("reserved: %+v", players)
	}
}

func TestPlacementTriesAgain(t *testing.T) {
	w := newWorld(t, DefaultConfig())
	w.grounds(placement.Queue{})
	bad := w.serverAt("custom-a", "bad")
	w.start(placement.Placement{ID: "p1"})
	good := w.serverAt("custom-b", "good")
	w.must(&hosting.EndProcess{Process: bad, Request: 9}) // dies before it activates
	p := w.placement("p1")
	if p.Game != testFleet+"/custom-b/p1" || len(p.Tried) != 2 || p.Tried[0].Outcome != placement.ActivationFailed {
		t.Fatalf("after the failure: %+v", p)
	}
	w.must(&hosting.ActivateGameSession{Process: good, Game: session.ID(p.Game)})
	if p := w.placement("p1"); p.Status != placement.Fulfilled {
		t.Fatalf("in the end: %+v", p)
	}
}

func TestPlacementTakesItsIDBackFromAFailedAttempt(t *testing.T) {
	w := newWorld(t, DefaultConfig())
	w.grounds(placement.Queue{})
	w.serverAt("custom-a", "s1")
	w.start(placement.Placement{ID: "p1"})
	w.must(&hosting.EndProcess{Process: fleet.Key{Fleet: testFleet, Compute: "host-custom-a", Process: "s1"}, Request: 9})
	w.now++
	key := w.serverAt("custom-a", "s2")
	p := w.placement("p1")
	w.must(&hosting.ActivateGameSession{Process: key, Game: session.ID(p.Game)})
	v := w.cell.View()
	if g, ok := v.GameSession(session.ID(p.Game)); !ok || g.Status != session.Active || g.ProcessID != "s2" {
		t.Fatalf("under the id: %+v", g)
	}
	all, _, _ := v.GameSessions(testFleet, hosting.GameFilter{}, 0, "", 100)
	if len(all) != 1 {
		t.Fatalf("%d game sessions, want the one that succeeded", len(all))
	}
	w.must(&kernel.Forget{Count: 100}) // the failed attempt leaves memory and takes nothing along
	if g, ok := v.GameSession(session.ID(p.Game)); !ok || g.Status != session.Active {
		t.Fatalf("after Forget: %+v", g)
	}
}

// A backend may give a game session and a placement the same name, for example if it starts a placement because the answer to its CreateGameSession was lost.
func TestPlacementLeavesTheGameSessionThatHasItsName(t *testing.T) {
	w := newWorld(t, DefaultConfig())
	w.grounds(placement.Queue{})
	first := w.serverAt("custom-a", "s1")
	create := &hosting.CreateGameSession{Fleet: testFleet, Location: "custom-a", PlayersMax: 8}
	create.Choose("m1")
	w.must(create)
	w.must(&hosting.ActivateGameSession{Process: first, Game: create.ID()})
	w.must(&hosting.ReservePlayers{Game: create.ID(), Players: []hosting.NewPlayer{{ID: playerID(1), Player: "ann"}}})

	second := w.serverAt("custom-a", "s2")
	w.start(placement.Placement{ID: "m1"})
	placed := session.ID(w.placement("m1").Game)
	if placed == "" || placed == create.ID() {
		t.Fatalf("the placement has the game session %q", placed)
	}
	w.must(&hosting.ActivateGameSession{Process: second, Game: placed})
	w.must(&hosting.AcceptPlayer{Process: first, Game: create.ID(), Player: playerID(1), Request: 1})
	w.must(&hosting.EndProcess{Process: first, Request: 2})

	v := w.cell.View()
	if g, ok := v.GameSession(create.ID()); !ok || g.ProcessID != "s1" || g.Status != session.Terminated {
		t.Errorf("the one that was there before: %+v", g)
	}
	if g, ok := v.GameSession(placed); !ok || g.ProcessID != "s2" || g.Status != session.Active {
		t.Errorf("the one of the placement: %+v", g)
	}
	if p := w.placement("m1"); p.Status != placement.Fulfilled {
		t.Errorf("the placement is %s", p.Status)
	}
}

// New records reuse the places of those that have left memory, so a snapshot may have the failed attempt after the one that
// succeeded. The id still belongs to the latter.
func TestFailedAttemptBehindItsSuccessorInASnapshot(t *testing.T) {
	w := newWorld(t, DefaultConfig())
	w.grounds(placement.Queue{})
	first, second := w.serverAt("custom-a", "s1"), w.serverAt("custom-a", "s2")
	w.start(placement.Placement{ID: "gone"})
	w.start(placement.Placement{ID: "p1"})
	w.must(&hosting.EndProcess{Process: first, Request: 8})
	w.must(&hosting.StopPlacement{ID: "gone"})
	w.must(&kernel.Forget{Count: 2})
	w.must(&hosting.EndProcess{Process: second, Request: 9})
	w.now++
	w.serverAt("custom-a", "s3") // the game session takes the record of the one that is gone
	if err := w.checkRestarts(); err != nil {
		t.Fatal(err)
	}
}

func TestPlacementTimesOut(t *testing.T) {
	w := newWorld(t, DefaultConfig())
	w.grounds(placement.Queue{Timeout: 30 * time.Second})
	w.start(placement.Placement{ID: "waiting"})
	w.advance(30 * time.Second)
	p := w.placement("waiting")
	if p.Status != placement.TimedOut || len(p.Tried) != 3 || p.Tried[0].Outcome != placement.NoFreeProcess {
		t.Fatalf("without a server: %+v", p)
	}
	w.serverAt("custom-c", "slow")
	w.start(placement.Placement{ID: "activating"})
	game := session.ID(w.placement("activating").Game)
	w.advance(30 * time.Second)
	v := w.cell.View()
	if g, _ := v.GameSession(game); g.Status != session.Terminated || w.placement("activating").Status != placement.TimedOut {
		t.Fatalf("with a slow server: %+v, %+v", g, w.placement("activating"))
	}
}

func TestPlacementIsStopped(t *testing.T) {
	w := newWorld(t, DefaultConfig())
	w.grounds(placement.Queue{})
	w.start(placement.Placement{ID: "p1"})
	w.must(&hosting.StopPlacement{ID: "p1"})
	if p := w.placement("p1"); p.Status != placement.Cancelled {
		t.Fatalf("%+v", p)
	}
	w.serverAt("custom-a", "s1")
	w.start(placement.Placement{ID: "p2"})
	if err := w.do(&hosting.StopPlacement{ID: "p2"}); err == nil {
		t.Fatal("a placement with a game session was stopped")
	}
	w.must(&hosting.TerminateGameSession{ID: session.ID(w.placement("p2").Game)})
	if p := w.placement("p2"); p.Status != placement.Failed {
		t.Fatalf("%+v", p)
	}
	if err := w.do(&hosting.StartPlacement{Placement: placement.Placement{ID: "p1", Queue: "q"}, ArchivedID: kernel.ArchivedID{ArchivedAt: w.cell.Forgotten()}}); err == nil {
		t.Fatal("an id was used twice")
	}
}

// TestLatencyPolicyRelaxes checks docs/spec/gamelift-api.md#latency-walk-through: 130 ms for 60 s, then no cap.
func TestLatencyPolicyRelaxes(t *testing.T) {
	w := newWorld(t, DefaultConfig())
	w.grounds(placement.Queue{LatencyPolicies: []placement.LatencyPolicy{{Cap: 130, Duration: time.Minute}}, AllowedLocations: []string{"custom-a", "custom-b"}})
	w.serverAt("custom-b", "far")
	w.start(placement.Placement{ID: "p1", Latencies: []placement.Latency{
		{Player: "1", Location: "custom-a", Milliseconds: 100}, {Player: "1", Location: "custom-b", Milliseconds: 50},
		{Player: "2", Location: "custom-a", Milliseconds: 120}, {Player: "2", Location: "custom-b", Milliseconds: 150},
	}})
	w.advance(59 * time.Second)
	if p := w.placement("p1"); p.Game != "" {
		t.Fatalf("placed over the cap: %+v", p)
	}
	w.advance(time.Second)
	if p := w.placement("p1"); p.Location != "custom-b" {
		t.Fatalf("after the cap: %+v", p)
	}
}

func TestOverrideHasOnePass(t *testing.T) {
	w := newWorld(t, DefaultConfig())
	w.grounds(placement.Queue{PriorityOrder: []placement.Criterion{placement.ByLocation}, LocationOrder: []string{"custom-a", "custom-b"}})
	w.serverAt("custom-a", "s1")
	w.start(placement.Placement{ID: "strict", Override: &placement.Override{Locations: []string{"custom-c"}, Only: true}})
	if p := w.placement("strict"); p.Game != "" {
		t.Fatalf("NONE went elsewhere: %+v", p)
	}
	w.start(placement.Placement{ID: "lenient", Override: &placement.Override{Locations: []string{"custom-c"}}})
	if p := w.placement("lenient"); p.Location != "custom-a" || !p.PassedOnce {
		t.Fatalf("after one pass: %+v", p)
	}
	w.serverAt("custom-c", "s2")
	if p := w.placement("strict"); p.Location != "custom-c" {
		t.Fatalf("in the end: %+v", p)
	}
}

func TestQueueDeletedWhilePlacementsWait(t *testing.T) {
	w := newWorld(t, DefaultConfig())
	w.grounds(placement.Queue{})
	w.start(placement.Placement{ID: "p1"})
	w.must(&hosting.DeleteQueue{Name: "q"})
	if p := w.placement("p1"); p.Status != placement.Failed {
		t.Fatalf("%+v", p)
	}
	w.serverAt("custom-a", "s1")
}

// TestCrowdedQueueIsDeletedInSteps: no command ends more than a thousand placements, and the queue goes with the last of them.
func TestCrowdedQueueIsDeletedInSteps(t *testing.T) {
	w := newWorld(t, DefaultConfig())
	w.grounds(placement.Queue{})
	for i := range 2500 {
		w.start(placement.Placement{ID: fmt.Sprint("p", i)})
	}
	for _, left := range []bool{true, true, false} {
		cmd := hosting.DeleteQueue{Name: "q"}
		w.must(&cmd)
		ended := 0
		for _, e := range w.events {
			if _, ok := e.(*hosting.PlacementEnded); ok {
				ended++
			}
		}
		v := w.cell.View()
		if _, there := v.Queue("q"); cmd.Left != left || there != left || ended > 1000 {
			t.Fatalf("after a step: left is %v, want %v; the queue exists: %v; %d placements ended", cmd.Left, left, there, ended)
		}
	}
	for _, id := range []string{"p0", "p1500", "p2499"} {
		if p := w.placement(id); p.Status != placement.Failed {
			t.Errorf("placement %s is %s", id, p.Status)
		}
	}
}

// A terminal alias may be a queue's destination: it is passed over as long as it resolves to no fleet.
func TestTerminalAliasIsPassedOver(t *testing.T) {
	w := newWorld(t, DefaultConfig())
	w.grounds(placement.Queue{})
	w.must(&hosting.CreateAlias{Alias: fleet.Alias{ID: "alias-1", Region: "us-east-1", Name: "closed", Terminal: true, Message: "closed"}})
	w.must(&hosting.UpdateQueue{Name: "q", Destinations: &[]string{"arn:aws:gamelift:us-east-1::alias/alias-1"}})
	w.serverAt("custom-a", "s1")
	w.start(placement.Placement{ID: "p1"})
	v := w.cell.View()
	if c := v.Choices("p1", w.now); len(c) != 1 || c[0].Outcome != placement.AliasTerminal {
		t.Fatalf("choices: %+v", c)
	}
	w.must(&hosting.UpdateAlias{ID: "alias-1", Route: &hosting.Route{Fleet: testFleet}})
	w.advance(time.Second)
	if p := w.placement("p1"); p.Location != "custom-a" {
		t.Fatalf("once it stands for a fleet: %+v", p)
	}
}

// After an alias has moved or was deleted, a process that becomes free in its former fleet gets none of the placements that waited there.
func TestNobodyWaitsInAnAliasFormerFleet(t *testing.T) {
	leave := map[string]kernel.Command{
		"moved":    &hosting.UpdateAlias{ID: "alias-1", Route: &hosting.Route{Fleet: "fleet-next"}},
		"terminal": &hosting.UpdateAlias{ID: "alias-1", Route: &hosting.Route{Terminal: true, Message: "closed"}},
		"deleted":  &hosting.DeleteAlias{ID: "alias-1"},
	}
	for what, cmd := range leave {
		w := newWorld(t, DefaultConfig())
		w.grounds(placement.Queue{})
		w.must(&hosting.CreateFleet{Fleet: fleet.Fleet{ID: "fleet-next", Region: "us-east-1", Name: "next"}, Locations: []string{"custom-a"}})
		w.must(&hosting.CreateAlias{Alias: fleet.Alias{ID: "alias-1", Region: "us-east-1", Name: "live", Fleet: testFleet}})
		w.must(&hosting.UpdateQueue{Name: "q", Destinations: &[]string{"arn:aws:gamelift:us-east-1::alias/alias-1"}})
		w.start(placement.Placement{ID: "p1"})
		w.must(cmd)
		w.serverAt("custom-a", "s1")
		w.advance(time.Second)
		if p := w.placement("p1"); p.Game != "" {
			t.Errorf("%s: it went to %s", what, p.Game)
		}
	}
}

// A placement's number is never assigned again, whether or not that placement is still pending.
func TestPlacementNumbersAreNotRepeated(t *testing.T) {
	w := newWorld(t, DefaultConfig())
	w.grounds(placement.Queue{})
	w.start(placement.Placement{ID: "p1"})
	w.start(placement.Placement{ID: "p2"})
	w.must(&hosting.StopPlacement{ID: "p2"})
	w.must(&hosting.StopPlacement{ID: "p1"})
	w.restart()
	w.start(placement.Placement{ID: "p3"})
	if had, got := w.placement("p2").No, w.placement("p3").No; got != had+1 {
		t.Errorf("after the restart a placement has the number %d, the last one before had %d", got, had)
	}
}

// TestOnlyRoutesReplan: a waiting placement keeps its place when something of its fleet or alias changes that does not matter to it, and
// chooses again when the cost or the route changes. There may be a million of them.
func TestOnlyRoutesReplan(t *testing.T) {
	w := newWorld(t, DefaultConfig())
	w.grounds(placement.Queue{Timeout: 10 * time.Minute})
	w.must(&hosting.CreateAlias{Alias: fleet.Alias{ID: "alias-1", Name: "a", Fleet: testFleet}})
	w.start(placement.Placement{ID: "p"})
	w.advance(time.Second)
	text, cost := "changed", "1.5"
	for _, each := range []struct {
		what  string
		cmd   kernel.Command
		waits bool
	}{
		{"the description of the fleet", &hosting.UpdateFleetAttributes{ID: testFleet, Description: &text}, true},
		{"its cost", &hosting.UpdateFleetAttributes{ID: testFleet, Cost: &cost}, false},
		{"the description of the alias", &hosting.UpdateAlias{ID: "alias-1", Description: &text}, true},
		{"its route", &hosting.UpdateAlias{ID: "alias-1", Route: &hosting.Route{Terminal: true, Message: "closed"}}, false},
	} {
		w.must(each.cmd)
		p := w.placement("p")
		if _, waits := p.Waits(); waits != each.waits {
			t.Errorf("after a change of %s the placement waits for a process: %v, want %v", each.what, waits, each.waits)
		}
		w.advance(time.Second)
		p = w.placement("p")
		if _, waits := p.Waits(); !waits {
			t.Errorf("a second after a change of %s the placement does not wait for a process", each.what)
		}
	}
}
