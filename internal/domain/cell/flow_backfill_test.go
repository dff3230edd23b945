package cell

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/matchmaking"
	"github.com/musterhq/muster/internal/domain/playerflow"
	"github.com/musterhq/muster/internal/domain/session"
	"github.com/musterhq/muster/internal/domain/wire"
)

// matchedGame returns a game instance with a running server, made from a match of two single-player parties.
func (w *flowWorld) matchedGame(red, blue string) *flow.Instance {
	w.t.Helper()
	if refused := w.propose(testQueue, w.search(red), w.search(blue)); refused != nil {
		w.t.Fatal(refused)
	}
	g := w.keys(red).Game
	w.startMatch(w.instance(g).Placement)
	return w.instance(g)
}

// A newcomer gets the PlayerData that the studio has set, and as much time to connect as the other members.
func TestNewcomersReservation(t *testing.T) {
	w := newFlowWorld(t, func(c *flow.Config) { c.Games.Reservation = 5 * time.Minute })
	x := w.matchedGame("a", "b")
	more := &playerflow.EnterBackfill{Instance: x.ID, Ticket: domain.BackfillID(w.id())}
	w.must(more)
	ticket := w.enterWith(flow.Advice{Players: []flow.PlayerAdvice{{Player: "c", Data: "level=3"}}}, "c")
	if refused := w.proposeBackfill(more.Made.ID, ticket, "red"); refused != nil {
		t.Fatal(refused)
	}
	r, _ := w.cell.hosting.Sessions.PlayerByID(w.member("c").Session)
	p := w.cell.hosting.Sessions.Players.Get(r)
	if p.Data != "level=3" {
		t.Errorf("PlayerData is %q", p.Data)
	}
	if want := w.cell.ContactTime(w.now).Add(5 * time.Minute); p.ReserveBy != want {
		t.Errorf("the reservation ends at %d, want %d", p.ReserveBy, want)
	}
}

// Members who wait for Game.Ready keep their seats even after the placement's reservations have expired. A member with such a
// reservation is not counted twice.
func TestSeatsOfThoseWhoWaitForTheServer(t *testing.T) {
	w := newFlowWorld(t, func(c *flow.Config) { c.Games.ManualReady, c.Games.AllocationTimeout = true, 10*time.Minute })
	x := w.matchedGame("a", "b")
	free := func() int32 {
		n, _ := w.cell.matchmaking.FreeSlots(x.Game)
		return n
	}
	if n := free(); n != 4 {
		t.Errorf("%d of 6 seats are free", n)
	}
	w.pass(2 * time.Minute)
	if p := w.gameOf(x.ID); p.SeatsHeld != 0 || w.member("a").Status != flow.MemberPending {
		t.Fatalf("%d seats are held, a is %s", p.SeatsHeld, w.member("a").Status)
	}
	if n := free(); n != 4 {
		t.Errorf("%d of 6 seats are free when the reservations have expired", n)
	}
}

func TestRoomForThoseWhoJoinBeforeReady(t *testing.T) {
	w := newFlowWorld(t, func(c *flow.Config) { c.Games.ManualReady, c.Games.DirectJoin = true, true })
	x := w.matchedGame("a", "b")
	for _, player := range []string{"c", "d", "e", "f"} {
		w.online(player)
		w.must(&playerflow.JoinGameInstance{Caller: w.as(player), Instance: x.ID})
	}
	w.online("g")
	w.refused(&playerflow.JoinGameInstance{Caller: w.as("g"), Instance: x.ID}, flow.GameFull)
	w.must(&playerflow.ReadyGame{Instance: x.ID})
	for _, player := range []string{"a", "b", "c", "d", "e", "f"} {
		if m := w.member(player); m.Status != flow.MemberReserved {
			t.Errorf("%s is %s", player, m.Status)
		}
	}
	if g, _ := w.cell.hosting.Sessions.Game(session.ID(x.Game)); w.cell.hosting.Sessions.Games.Get(g).SeatsHeld != 6 {
		t.Errorf("%d seats are held", w.cell.hosting.Sessions.Games.Get(g).SeatsHeld)
	}
}

// A player who has left a game and searches again keeps searching, although the game's server has not ended the player session
// yet: neither Game.EnterMatchmaking nor a server that names the player ends the search of a player who is not in the game.
func TestBackfillLeavesLeaversAlone(t *testing.T) {
	w := newFlowWorld(t, nil)
	x := w.matchedGame("a", "b")
	w.connect(x.ID, "a", "b")
	w.must(&playerflow.LeaveGame{Caller: w.as("a"), Instance: x.ID})
	again := &playerflow.EnterMatchmaking{Caller: w.as("a"), Ticket: domain.TicketID(w.id()), Queue: testQueue}
	w.must(again)

	more := &playerflow.EnterBackfill{Instance: x.ID, Ticket: domain.BackfillID(w.id())}
	w.must(more)
	if w.keys("a").Ticket != domain.TicketID(again.Made) {
		t.Errorf("a has keys %+v", w.keys("a"))
	}
	r, _ := w.cell.matchmaking.Records.Ticket(more.Made.ID)
	if roster := matchmaking.DecodeRoster(w.cell.matchmaking.Records.Tickets.Get(r).Roster); len(roster) != 1 || roster[0].ID != "b" {
		t.Errorf("the game says that these are there: %+v", roster)
	}

	named := &matchmaking.StartMatchBackfill{Configuration: testQueue, ID: "named", Game: x.Game, Players: []matchmaking.Player{{ID: "a", Team: "red"}, {ID: "b", Team: "blue"}}}
	refused, ok := errors.AsType[*domain.Refusal](w.do(named))
	if !ok || refused.Reason != domain.Invalid || w.keys("a").Ticket != domain.TicketID(again.Made) {
		t.Errorf("a server named a: %v; a has keys %+v", refused, w.keys("a"))
	}
	w.setConfig(`{"GameInstanceServiceConfig": {"strictPlayers": false}}`)
	w.must(named)
	w.wantPhase("a", flow.InParty)
}

// A game server may choose a ticket id that looks like those of Game.EnterMatchmaking. The backfill still belongs to the server:
// player flow does not replace it when a player leaves.
func TestBackfillOfAServerIsItsOwn(t *testing.T) {
	w := newFlowWorld(t, nil)
	x := w.matchedGame("a", "b")
	w.connect(x.ID, "a", "b")
	own := &matchmaking.StartMatchBackfill{
		Configuration: testQueue, ID: domain.BackfillID(w.id()).String(), Game: x.Game,
		Players: []matchmaking.Player{{ID: "a", Team: "red"}, {ID: "b", Team: "blue"}},
	}
	w.must(own)
	seat := w.member("a").Session
	w.must(&playerflow.LeaveGame{Caller: w.as("a"), Instance: x.ID})
	w.lose(x.ID, seat)
	r, _ := w.cell.matchmaking.Records.Ticket(own.ID)
	if ticket := w.cell.matchmaking.Records.Tickets.Get(r); !ticket.Status.Active() || ticket.Owner != matchmaking.ClientOwned {
		t.Errorf("the ticket is %s, with owner %d", ticket.Status, ticket.Owner)
	}
}

// Old journals do not record a ticket's owner, except for automatic backfills.
func TestOwnersOfOldTickets(t *testing.T) {
	const digits = "0123abcd-ef45-4678-9abc-def012345678"
	for id, want := range map[string]matchmaking.Owner{
		"mm-" + digits: matchmaking.PartyOwned, "bf-" + digits: matchmaking.ClientOwned, "mm-1": matchmaking.ClientOwned, digits: matchmaking.ClientOwned,
	} {
		records := matchmaking.NewRecords()
		if x := records.Tickets.Get(records.AddTicket(matchmaking.Ticket{ID: id, No: 1, Status: matchmaking.Queued})); x.Owner != want {
			t.Errorf("%s has owner %d, want %d", id, x.Owner, want)
		}
	}
	records := matchmaking.NewRecords()
	if x := records.Tickets.Get(records.AddTicket(matchmaking.Ticket{ID: "bf-" + digits, Backfill: true, Status: matchmaking.Queued})); x.Owner != matchmaking.InstanceOwned {
		t.Errorf("a backfill of a game instance has owner %d", x.Owner)
	}
	var old matchmaking.Ticket // id and automatic, as an old journal has them
	if err := wire.Unmarshal(append([]byte{0x0a, 1, 'x', 0x30, 1}, 0x40, 1, 0x48, 1), &old); err != nil {
		t.Fatal(err)
	}
	if x := records.Tickets.Get(records.AddTicket(old)); x.Owner != matchmaking.ServiceOwned {
		t.Errorf("an automatic backfill has owner %d", x.Owner)
	}
}

// A game that the studio has created may search, too: in a named queue, once the team of each member is known. Its server gets the same
// notices as the server of any other game.
func TestStudioGameIsBackfilled(t *testing.T) {
	w := newFlowWorld(t, nil)
	w.queues()
	w.online("a", "b", "zoe")
	key := w.server("studio")
	plan := playerflow.GamePlan{ID: flow.InstanceID(w.id()), Queue: "q", PlayersMax: 4, Players: []playerflow.PlannedPlayer{{Player: "a"}, {Player: "b", Team: "blue"}}}
	w.must(&playerflow.MakeGame{Plan: plan})
	w.activateHost(key, plan.ID)
	w.connect(plan.ID, "a", "b")
	game := w.instance(plan.ID).Game
	more := func(queue string, teams map[string]string) *playerflow.EnterBackfill {
		return &playerflow.EnterBackfill{Instance: plan.ID, Ticket: domain.BackfillID(w.id()), Queue: queue, Teams: teams}
	}
	w.refused(more("", nil), flow.InvalidArgument)
	w.refused(more("nosuch", nil), flow.QueueNotFound)
	if r := w.refused(more(testQueue, nil), flow.InvalidArgument); r != nil && (len(r.Players) != 1 || r.Players[0] != "a") {
		t.Errorf("refused for %v", r.Players)
	}
	w.refused(more(testQueue, map[string]string{"a": "green"}), flow.InvalidArgument)
	w.refused(more(testQueue, map[string]string{"a": "red", "zoe": "red"}), flow.InvalidArgument)

	before := w.noticeHead(plan.ID)
	first := more(testQueue, map[string]string{"a": "red"})
	w.must(first)
	if refused := w.proposeBackfill(first.Made.ID, w.search("c"), "red"); refused != nil {
		t.Fatal(refused)
	}
	if m := w.member("c"); m.Team != "red" || m.Status != flow.MemberReserved || m.Instance != plan.ID {
		t.Errorf("the newcomer: %+v", m)
	}
	if got := w.noticed(plan.ID, before); got != "GameInstanceEnteredMatchmaking GameInstanceLeftMatchmaking:MATCHED PlayersAdded:c" {
		t.Errorf("the server was told %s", got)
	}
	v := w.cell.View()
	if h, ok := v.Hosted(session.ID(game)); !ok || h.Why != matchmaking.DataUpdated || h.Ticket != first.Made.ID {
		t.Errorf("the server gets %+v", h)
	}
	if data := w.gameOf(plan.ID).MatchmakerData; !strings.Contains(data, `{"name":"red","players":[{"playerId":"a"`) || !strings.Contains(data, "matchmakingconfiguration/"+testQueue) {
		t.Errorf("match data %s", data)
	}
	w.check()

	second := more(testQueue, nil) // the teams are known now
	w.must(second)
	w.must(&hosting.EndProcess{Process: key, Request: 1})
	if r, _ := w.cell.matchmaking.Records.Ticket(second.Made.ID); w.cell.matchmaking.Records.Tickets.Get(r).Status.Active() {
		t.Error("a game that is over searches on")
	}
}

// If the rule set has one team, all members are in it; a server that has moved players to another team reports it.
func TestTeamsOfABackfill(t *testing.T) {
	w := newFlowWorld(t, nil)
	w.must(&matchmaking.CreateRuleSet{RuleSet: matchmaking.RuleSet{
		Name: "one", Region: "us-east-1", Body: `{"name":"one","ruleLanguageVersion":"1.0","teams":[{"name":"all","minPlayers":1,"maxPlayers":8}]}`,
	}})
	w.must(&matchmaking.CreateConfiguration{Configuration: matchmaking.Configuration{
		Name: "open", Region: "us-east-1", RuleSet: "one", RequestTimeout: 5 * time.Minute, Queues: []string{"arn:aws:gamelift:us-east-1::gamesessionqueue/q"},
	}})
	w.online("me")
	g := w.play(false, flow.ReconnectOptional, "me")
	roster := func(queue string, g flow.InstanceID, teams map[string]string) string {
		more := &playerflow.EnterBackfill{Instance: g, Ticket: domain.BackfillID(w.id()), Queue: queue, Teams: teams}
		w.must(more)
		r, _ := w.cell.matchmaking.Records.Ticket(more.Made.ID)
		text := ""
		for _, p := range matchmaking.DecodeRoster(w.cell.matchmaking.Records.Tickets.Get(r).Roster) {
			text += p.ID + ":" + p.Team + " "
		}
		return text
	}
	if got := roster("open", g, nil); got != "me:all " {
		t.Errorf("the roster is %s", got)
	}
	x := w.matchedGame("a", "b").ID
	if got := roster("", x, map[string]string{"b": "red"}); got != "a:red b:red " {
		t.Errorf("the roster is %s", got)
	}
}
