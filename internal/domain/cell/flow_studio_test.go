package cell

import (
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/matchmaking"
	"github.com/musterhq/muster/internal/domain/playerflow"
)

func (w *flowWorld) subscribe(change func(*flow.Subscription)) flow.SubscriptionID {
	w.t.Helper()
	cmd := &playerflow.SubscribeEvents{Subscription: flow.Subscription{ID: flow.SubscriptionID(w.id()), By: "backend"}}
	if change != nil {
		change(&cmd.Subscription)
	}
	w.must(cmd)
	return cmd.Subscription.ID
}

// heard returns the types of a subscription's events after a number, with the players of each.
func (w *flowWorld) heard(id flow.SubscriptionID, after uint64) (types string, last uint64) {
	w.t.Helper()
	v := w.cell.View()
	page, ok := v.StudioEvents(id, after, 1000, 1<<20)
	if !ok || page.Missed != 0 {
		w.t.Fatalf("subscription known %t, %d events missed", ok, page.Missed)
	}
	var all []string
	commit := uint64(0)
	for _, e := range page.Events {
		if e.Commit < commit {
			w.t.Errorf("event %d of entry %d comes behind entry %d", e.No, e.Commit, commit)
		}
		commit = e.Commit
		text := strings.TrimPrefix(e.Type.String(), "On")
		for _, to := range e.To {
			text += ":" + to.Player
		}
		all = append(all, text)
	}
	return strings.Join(all, " "), page.Last
}

// Without a subscription no event is numbered or kept. A subscription gets later events in the order of the commits, each once for all
// its players; events that all receivers have are removed.
func TestStudioEvents(t *testing.T) {
	w := newFlowWorld(t, nil)
	w.party("ann", "bob")
	studio := &w.cell.playerflow.Flow.Studio
	if studio.Head() != 0 || len(studio.After(0)) != 0 {
		t.Fatalf("%d events are kept without a subscription", studio.Head())
	}
	all := w.subscribe(nil)
	ready := w.subscribe(func(s *flow.Subscription) {
		s.Types, s.Players = []string{"OnPartyChanged", "OnSync"}, []string{"nobody", "cyd", "ann-is-not-meant", "cyd"}
	})
	w.must(&playerflow.SetReady{Caller: w.as("bob"), Ready: true})
	w.party("cyd")
	got, last := w.heard(all, 0)
	if want := "PartyChanged:ann:bob GameSessionChanged:cyd AddedToParty:cyd PartyChanged:cyd"; !strings.HasSuffix(got, want) {
		t.Errorf("heard\n %s\nwant at its end\n %s", got, want)
	}
	if got, _ := w.heard(ready, 0); got != "PartyChanged:cyd" {
		t.Errorf("the filter lets through %s", got)
	}
	v := w.cell.View()
	page, _ := v.StudioEvents(all, 0, 1000, 1<<20)
	if seq := page.Events[0].To[1].Seq; seq != w.seq("bob") {
		t.Errorf("the event has number %d for bob, want %d", seq, w.seq("bob"))
	}
	w.check()
	w.must(&playerflow.TakeEvents{ID: all, No: last})
	if len(studio.After(0)) == 0 {
		t.Error("what the other one does not have yet was forgotten")
	}
	w.must(&playerflow.TakeEvents{ID: ready, No: last + 7}) // no further than there is
	if len(studio.After(0)) != 0 || studio.Head() != last {
		t.Errorf("%d events are kept that all have, up to %d", len(studio.After(0)), studio.Head())
	}
	w.must(&playerflow.UnsubscribeEvents{ID: all})
	w.must(&playerflow.SetReady{Caller: w.as("bob"), Ready: false})
	if studio.Head() != last {
		t.Error("an event is kept that no subscription wants")
	}
	w.must(&playerflow.UnsubscribeEvents{ID: ready})
	cmd := &playerflow.UnsubscribeEvents{ID: ready}
	if w.must(cmd); cmd.Known {
		t.Error("a subscription ended twice")
	}
}

// A client that acknowledges its events does not remove them for the studio.
func TestStudioEventsOutliveAcks(t *testing.T) {
	w := newFlowWorld(t, nil)
	w.party("ann")
	id := w.subscribe(nil)
	for range playerflow.AckStep {
		w.must(&playerflow.SetPartyPreferences{Caller: w.as("ann"), Attributes: new("{}")})
	}
	w.must(&playerflow.AckEvents{Player: "ann", LoginSessionID: w.logins["ann"], Seq: w.seq("ann")})
	if n := len(w.player("ann").Outbox()); n != 0 {
		t.Errorf("%d events are kept for ann", n)
	}
	if got, _ := w.heard(id, 0); strings.Count(got, "PartyChanged:ann") != playerflow.AckStep {
		t.Errorf("heard %s", got)
	}
}

// Penalties that are only reported reach the studio, and not the player.
func TestStudioHearsOfPenalties(t *testing.T) {
	w := newFlowWorld(t, nil)
	w.online("me", "mate")
	id := w.subscribe(func(s *flow.Subscription) { s.Types = []string{"OnPenaltyApplied"} })
	g := w.play(false, flow.ReconnectOptional, "me", "mate")
	since := w.seq("me")
	w.must(&playerflow.LeaveGame{Caller: w.as("me"), Instance: g})
	if got, _ := w.heard(id, 0); got != "PenaltyApplied:me" {
		t.Errorf("heard %q", got)
	}
	if told := w.told("me", since); strings.Contains(told, "Penalty") {
		t.Errorf("me was told %s", told)
	}
}

func TestSubscriptionsAreBounded(t *testing.T) {
	w := newFlowWorld(t, nil)
	for range playerflow.SubscriptionsMax {
		w.subscribe(nil)
	}
	w.refused(&playerflow.SubscribeEvents{Subscription: flow.Subscription{ID: flow.SubscriptionID(w.id())}}, flow.InvalidArgument)
	first := w.cell.playerflow.Flow.Studio.Subscriptions()[0]
	again := &playerflow.SubscribeEvents{Subscription: flow.Subscription{ID: first.ID, URL: "https://other.example"}}
	if w.must(again); again.Subscription.URL != "" {
		t.Errorf("a repeat changed the subscription: %+v", again.Subscription)
	}
}

// proposeBackfill proposes a match of a game instance's backfill and one party, and returns why it was refused.
func (w *flowWorld) proposeBackfill(backfill string, party domain.TicketID, team string) *domain.Refusal {
	w.t.Helper()
	c, _ := w.cell.matchmaking.Records.Configuration(testQueue)
	r, _ := w.cell.matchmaking.Records.Ticket(backfill)
	a, b := w.cell.matchmaking.Records.Tickets.Get(r), w.ticket(party)
	cmd := &matchmaking.ProposeMatches{Configuration: testQueue, Version: c.Version, Proposals: []matchmaking.Proposal{{ID: w.id(), PlayersMax: 6, Tickets: []matchmaking.ProposedTicket{
		{TicketKey: matchmaking.TicketKey{No: a.No, Generation: a.Generation}, Team: ""}, {TicketKey: matchmaking.TicketKey{No: b.No, Generation: b.Generation}, Team: team},
	}}}}
	w.must(cmd)
	return cmd.Refused[0]
}

// A game instance searches for as many players as its server requests. Its members do not change, and the server is told of each
// step.
func TestGameEntersMatchmaking(t *testing.T) {
	w := newFlowWorld(t, nil)
	w.propose(testQueue, w.search("a"), w.search("b"))
	g := w.keys("a").Game
	w.startMatch(w.instance(g).Placement)
	w.connect(g, "a", "b")
	head, rev := w.noticeHead(g), w.player("a").Rev

	w.refused(&playerflow.EnterBackfill{Instance: g, Ticket: domain.BackfillID(w.id()), Queue: "none"}, flow.QueueNotFound)
	w.refused(&playerflow.EnterBackfill{Instance: g, Ticket: domain.BackfillID(w.id()), Slots: -1}, flow.InvalidArgument)
	w.refused(&playerflow.EnterBackfill{Instance: g, Ticket: domain.BackfillID(w.id()), Slots: 5}, flow.GameFull)
	w.refused(&playerflow.EnterBackfill{Instance: flow.InstanceID(w.id()), Ticket: domain.BackfillID(w.id())}, flow.GameInstanceNotFound)

	first := &playerflow.EnterBackfill{Instance: g, Ticket: domain.BackfillID(w.id()), Slots: 1}
	w.must(first)
	w.must(&playerflow.EnterBackfill{Instance: g, Ticket: first.Ticket, Slots: 3}) // a repeat
	w.wantNoticed(g, head, "GameInstanceEnteredMatchmaking")
	v := w.cell.View()
	if free, ok := v.FreeSlots(w.instance(g).Game); !ok || free != 1 {
		t.Errorf("%d slots, want 1", free)
	}
	if refused := w.proposeBackfill(first.Made.ID, w.search("x", "y"), "red"); refused == nil || refused.Reason != domain.Full {
		t.Errorf("two players for one slot: %v", refused)
	}
	second := &playerflow.EnterBackfill{Instance: g, Ticket: domain.BackfillID(w.id()), Slots: 2}
	w.must(second)
	w.wantNoticed(g, head+1, "GameInstanceLeftMatchmaking:REPLACED GameInstanceEnteredMatchmaking")
	if refused := w.proposeBackfill(second.Made.ID, w.search("c", "d"), "blue"); refused != nil {
		t.Fatal(refused)
	}
	w.wantNoticed(g, head+3, "GameInstanceLeftMatchmaking:MATCHED PlayersAdded:c:d")
	if w.keys("c").Game != g || w.player("a").Rev != rev {
		t.Errorf("c has %v, a's revision went from %d to %d", w.keys("c"), rev, w.player("a").Rev)
	}
	w.must(&playerflow.EnterBackfill{Instance: g, Ticket: domain.BackfillID(w.id())})
	stop := &playerflow.LeaveBackfill{Instance: g}
	if w.must(stop); stop.Ticket == "" {
		t.Error("there was no search to end")
	}
	w.must(&playerflow.LeaveBackfill{Instance: g})
	w.wantNoticed(g, head+5, "GameInstanceEnteredMatchmaking GameInstanceLeftMatchmaking:REQUESTED")
}

// A gap is reported once: the receiver continues after it, even if no later event is for its subscription.
func TestMissedEvents(t *testing.T) {
	w := newFlowWorld(t, nil)
	mine := w.subscribe(func(s *flow.Subscription) { s.Players = []string{"ann"} })
	w.subscribe(nil)
	w.party("ann")
	studio := &w.cell.playerflow.Flow.Studio
	defer func(before flow.Studio) { *studio = before }(*studio)                                                  // it is not written by commands here
	studio.Write(flow.StudioEvent{No: studio.Head() + 1, To: []flow.Hearer{{Player: "bob"}}}, studio.Head()+1, 0) // gives up all before it
	lost := studio.Head() - 1
	v := w.cell.View()
	page, ok := v.StudioEvents(mine, 0, 1000, 1<<20)
	if !ok || page.Missed != lost || page.Last != lost+1 || len(page.Events) != 0 {
		t.Fatalf("known %t: %d missed of %d, %d events up to %d", ok, page.Missed, lost, len(page.Events), page.Last)
	}
	studio.Write(flow.StudioEvent{No: studio.Head() + 1}, studio.Head()+2, 0) // and this one, too
	if page, _ = v.StudioEvents(mine, lost, 1000, 1<<20); page.Missed != 2 || page.Last != studio.Head() {
		t.Errorf("%d missed of 2, up to %d of %d", page.Missed, page.Last, studio.Head())
	}
}

// A receiver that takes none of its waiting events loses its subscription after a set time, so that the list of events does
// not grow without a reader.
func TestSubscriptionsLapse(t *testing.T) {
	const day = 24 * time.Hour
	w := newFlowWorld(t, func(c *flow.Config) { c.Sessions.SubscriptionLife = 7 * day })
	studio := &w.cell.playerflow.Flow.Studio
	find := func(id flow.SubscriptionID) flow.Subscription { x, _ := studio.Find(id); return x }
	gone := w.subscribe(nil)
	quiet := w.subscribe(func(s *flow.Subscription) { s.Players = []string{"zoe"} })
	well := w.subscribe(nil)
	take := func(id flow.SubscriptionID) { w.must(&playerflow.TakeEvents{ID: id, No: studio.Head()}) }

	w.pass(30 * day)
	for _, id := range []flow.SubscriptionID{gone, quiet, well} {
		if x := find(id); x.Lapsed != 0 || x.TakeBy != 0 {
			t.Fatalf("with nothing to take: %+v", x)
		}
	}
	w.party("ann", "bob")
	for range 6 {
		w.pass(day)
		w.login("ann")
		w.party("ann")
		take(well)
	}
	if x := find(gone); x.Lapsed != 0 || x.TakeBy == 0 || len(studio.After(0)) == 0 {
		t.Errorf("after six days: %+v, %d events are kept", x, len(studio.After(0)))
	}
	w.pass(day)
	if x := find(gone); x.Lapsed == 0 || x.TakeBy != 0 {
		t.Errorf("after seven days: %+v", x)
	}
	for _, id := range []flow.SubscriptionID{quiet, well} {
		if x := find(id); x.Lapsed != 0 {
			t.Errorf("another lapsed, too: %+v", x)
		}
	}
	take(well)
	if n := len(studio.After(find(quiet).Done)); n == 0 {
		t.Error("nothing is kept for one who has not looked")
	}
	take(quiet)
	if n := len(studio.After(0)); n != 0 {
		t.Errorf("%d events are kept for one that has lapsed", n)
	}
	v := w.cell.View()
	if _, ok := v.StudioEvents(gone, 0, 10, 1000); ok {
		t.Error("one that has lapsed is told events")
	}
	w.must(&playerflow.TakeEvents{ID: gone, No: studio.Head()})
	if x := find(gone); x.Lapsed == 0 || x.Done == studio.Head() {
		t.Errorf("a late word changes one that has lapsed: %+v", x)
	}
}

// A receiver that returns late gets the gap once, and continues after it.
func TestLapsedSubscriptionGoesOn(t *testing.T) {
	w := newFlowWorld(t, func(c *flow.Config) { c.Sessions.SubscriptionLife = time.Hour })
	studio := func() *flow.Studio { return &w.cell.playerflow.Flow.Studio }
	id := w.subscribe(nil)
	find := func() flow.Subscription { x, _ := studio().Find(id); return x }
	w.party("ann")
	waiting := studio().Head()
	w.pass(time.Hour)
	if x := find(); x.Lapsed == 0 || len(studio().After(0)) != 0 {
		t.Fatalf("%+v, %d events are kept", x, len(studio().After(0)))
	}
	w.party("bob") // no subscription gets this
	if studio().Head() != waiting {
		t.Error("events are numbered without a subscription")
	}
	w.restart()
	again := &playerflow.SubscribeEvents{Subscription: flow.Subscription{ID: id}}
	w.must(again)
	if again.Lapsed == 0 || again.Subscription.Done != waiting || find().Lapsed != 0 {
		t.Fatalf("%+v", again)
	}
	w.restart()
	page := func() playerflow.StudioPage {
		t.Helper()
		v := w.cell.View()
		page, ok := v.StudioEvents(id, find().Done, 1000, 1<<20)
		if !ok {
			t.Fatal("it is not known")
		}
		return page
	}
	for range 2 { // until it is acknowledged
		if p := page(); p.Missed != waiting || len(p.Events) != 0 {
			t.Errorf("%d missed, want %d", p.Missed, waiting)
		}
	}
	w.must(&playerflow.TakeEvents{ID: id, No: waiting - 1}) // of before
	if page().Missed == 0 {
		t.Error("a late word about earlier events hides the gap")
	}
	w.must(&playerflow.TakeEvents{ID: id, No: waiting})
	if p := page(); p.Missed != 0 || find().TakeBy != 0 {
		t.Errorf("%d missed, %+v", p.Missed, find())
	}
	w.party("cem")
	if got, _ := w.heard(id, waiting); !strings.Contains(got, "PartyChanged:cem") {
		t.Errorf("it goes on with %s", got)
	}
	w.must(&playerflow.SubscribeEvents{Subscription: flow.Subscription{ID: id}})
	if find().Lost != 0 {
		t.Error("a repeat makes a gap")
	}
}

// The timer of a receiver starts when an event waits for it, and again whenever it takes one. Events that it has not subscribed to do
// not count, and neither does downtime of the service.
func TestTimeOfReceivers(t *testing.T) {
	w := newFlowWorld(t, func(c *flow.Config) { c.Sessions.SubscriptionLife = time.Hour })
	studio := &w.cell.playerflow.Flow.Studio
	id := w.subscribe(func(s *flow.Subscription) { s.Players = []string{"ann"} })
	all := w.subscribe(nil)
	takeBy := func() domain.Time {
		x, _ := studio.Find(id)
		v := w.cell.View()
		return v.LapsesAt(&x)
	}
	w.party("bob")
	if takeBy() != 0 {
		t.Error("waits for what it does not want")
	}
	w.party("ann")
	began := w.now
	if takeBy() != began.Add(time.Hour) {
		t.Errorf("lapses at %d, want an hour from %d", takeBy(), began)
	}
	w.pass(20 * time.Minute)
	w.login("ann")
	if takeBy() != began.Add(time.Hour) {
		t.Error("more to take gives more time")
	}
	first := studio.After(0)
	w.must(&playerflow.TakeEvents{ID: id, No: first[0].No})
	if takeBy() != w.now.Add(time.Hour) {
		t.Error("a receiver that takes some events gets no new time for the rest")
	}
	w.must(&playerflow.TakeEvents{ID: all, No: studio.Head()})
	w.must(&kernel.Tick{})
	w.now = w.now.Add(100 * time.Hour)
	w.must(&kernel.Resume{})
	studio = &w.cell.playerflow.Flow.Studio
	w.pass(50 * time.Minute)
	if x, _ := studio.Find(id); x.Lapsed != 0 {
		t.Error("lapsed while the service was down")
	}
	last := studio.Head()
	w.must(&playerflow.TakeEvents{ID: id, No: last})
	w.party("cem")
	if takeBy() != 0 {
		t.Error("has everything, and is to take something")
	}
}

// Lapsed subscriptions make room for new ones.
func TestLapsedSubscriptionsMakeRoom(t *testing.T) {
	w := newFlowWorld(t, func(c *flow.Config) { c.Sessions.SubscriptionLife = time.Hour })
	first := w.subscribe(nil)
	w.party("ann")
	w.pass(time.Hour)
	for range playerflow.SubscriptionsMax - 1 {
		w.subscribe(nil)
	}
	w.subscribe(nil)
	if _, ok := w.cell.playerflow.Flow.Studio.Find(first); ok {
		t.Error("it is still there")
	}
	w.refused(&playerflow.SubscribeEvents{Subscription: flow.Subscription{ID: flow.SubscriptionID(w.id())}}, flow.InvalidArgument)
}
