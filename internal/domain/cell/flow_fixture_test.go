package cell

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/matchmaking"
	"github.com/musterhq/muster/internal/domain/placement"
	"github.com/musterhq/muster/internal/domain/playerflow"
	"github.com/musterhq/muster/internal/domain/session"
	"github.com/musterhq/muster/internal/sim/canon"
)

// flowWorld is a world with player flow: a queue over one fleet, and players who come and go.
type flowWorld struct {
	*world
	config *flow.Config
	logins map[string]flow.LoginSessionID
	made   int
	stream uint64
}

func newFlowWorld(t testing.TB, change func(*flow.Config)) *flowWorld {
	config := DefaultConfig()
	settings := flow.DefaultConfig()
	if change != nil {
		change(&settings)
	}
	if err := settings.Validate(); err != nil {
		t.Fatal(err)
	}
	config.PlayerFlow.Flow = &settings
	config.PlayerFlow.Tokens = testTokens{}
	w := &flowWorld{world: newWorld(t, config), config: &settings, logins: map[string]flow.LoginSessionID{}}
	w.hall()
	w.must(&hosting.CreateQueue{Queue: placement.Queue{Name: "q", Region: "us-east-1", Timeout: 10 * time.Minute, Destinations: []string{"arn:aws:gamelift:us-east-1::fleet/" + testFleet}}})
	if _, test := t.(*testing.T); test { // benchmarks keep no journal
		t.Cleanup(func() {
			if !t.Failed() {
				w.check()
			}
		})
	}
	return w
}

// check compares the invariants, the indexes and the deadlines with the state, and restarted cells with the running one.
func (w *flowWorld) check() {
	w.t.Helper()
	v := w.cell.View()
	if broken := v.Audit(); len(broken) > 0 {
		w.t.Fatalf("invariants: %v", broken)
	}
	if err := errors.Join(checkState(w.cell), w.checkRestarts()); err != nil {
		w.t.Fatal(err)
	}
}

func (w *flowWorld) id() domain.UUID {
	w.made++
	var id domain.UUID
	binary.BigEndian.PutUint64(id[8:], uint64(w.made)|1<<40)
	id[0] = 0xf1
	return id
}

// login logs a player in; online attaches a stream, too.
func (w *flowWorld) login(player string) playerflow.Caller {
	w.t.Helper()
	cmd := &playerflow.Login{Player: player, LoginSessionID: flow.LoginSessionID(w.id()), Token: w.id(), Device: "test"}
	w.must(cmd)
	w.logins[player] = cmd.LoginSessionID
	return w.as(player)
}

func (w *flowWorld) online(players ...string) {
	w.t.Helper()
	for _, player := range players {
		if _, ok := w.logins[player]; !ok {
			w.login(player)
		}
		w.attach(player)
	}
}

func (w *flowWorld) attach(player string) {
	w.t.Helper()
	w.stream++
	w.must(&playerflow.AttachStream{Player: player, LoginSessionID: w.logins[player], Stream: w.stream, After: w.player(player).Seq})
}

func (w *flowWorld) offline(player string) {
	w.t.Helper()
	r, _ := w.cell.playerflow.Flow.Player(player)
	w.must(&playerflow.LoseStream{Player: player, Stream: w.cell.playerflow.Flow.Players.Get(r).Stream})
}

func (w *flowWorld) as(player string) playerflow.Caller {
	return playerflow.Caller{Player: player, LoginSessionID: w.logins[player]}
}

func (w *flowWorld) player(id string) *flow.Player {
	r, ok := w.cell.playerflow.Flow.Player(id)
	if !ok {
		w.t.Fatalf("player %s is not known", id)
	}
	return w.cell.playerflow.Flow.Players.Get(r)
}

func (w *flowWorld) keys(id string) flow.Keys { return w.player(id).Keys }

func (w *flowWorld) member(id string) *flow.Membership {
	w.t.Helper()
	r := w.player(id).Membership()
	if r == 0 {
		w.t.Fatalf("player %s is in no game", id)
	}
	return w.cell.playerflow.Flow.Memberships.Get(r)
}

// party makes a party of players who are online. The first one leads it.
func (w *flowWorld) party(players ...string) flow.PartyID {
	w.t.Helper()
	w.online(players...)
	id := w.id()
	w.must(&playerflow.CreateParty{Caller: w.as(players[0]), ID: flow.PartyID(id), Joinability: flow.Open})
	for _, player := range players[1:] {
		w.must(&playerflow.JoinParty{Caller: w.as(player), Party: flow.PartyID(id)})
	}
	return flow.PartyID(id)
}

// play puts players into a new game instance. Unless pending it is active, and all members have a reservation.
func (w *flowWorld) play(pending bool, mode flow.Reconnect, players ...string) flow.InstanceID {
	w.t.Helper()
	plan := playerflow.GamePlan{ID: flow.InstanceID(w.id()), Queue: "q", PlayersMax: int32(len(players)) + 1, Reconnect: mode}
	for _, player := range players {
		plan.Players = append(plan.Players, playerflow.PlannedPlayer{Player: player})
	}
	if pending {
		w.must(&playerflow.MakeGame{Plan: plan})
		return plan.ID
	}
	key := w.server(fmt.Sprint("server-", w.made))
	w.must(&playerflow.MakeGame{Plan: plan})
	w.activateHost(key, plan.ID)
	return plan.ID
}

// activateHost makes the server that was found for a studio's game instance activate its game session.
func (w *flowWorld) activateHost(key fleet.Key, instance flow.InstanceID) {
	w.t.Helper()
	game := session.MakeID(testFleet, testLocation, instance.String())
	w.must(&hosting.PromptGameSession{Process: key, Game: game})
	w.must(&hosting.ActivateGameSession{Process: key, Game: game})
}

func (w *flowWorld) gameOf(instance flow.InstanceID) *session.GameSession {
	r, _ := w.cell.playerflow.Flow.Instance(instance)
	g, _ := w.cell.hosting.Sessions.Game(session.ID(w.cell.playerflow.Flow.Instances.Get(r).Game))
	return w.cell.hosting.Sessions.Games.Get(g)
}

// accept makes the game server accept a player session.
func (w *flowWorld) accept(instance flow.InstanceID, playerSession domain.PlayerSessionID) error {
	w.seed++
	g := w.gameOf(instance)
	key := processKey(g.ProcessID)
	return w.do(&hosting.AcceptPlayer{Process: key, Game: g.ID, Player: playerSession, Request: kernel.RequestHash(fmt.Sprint("accept-", w.seed))})
}

// connect makes players with reservations connect.
func (w *flowWorld) connect(instance flow.InstanceID, players ...string) {
	w.t.Helper()
	for _, player := range players {
		if err := w.accept(instance, w.member(player).Session); err != nil {
			w.t.Fatal(err)
		}
	}
}

// lose makes the game server report that a player has lost the connection.
func (w *flowWorld) lose(instance flow.InstanceID, playerSession domain.PlayerSessionID) {
	w.t.Helper()
	g := w.gameOf(instance)
	w.must(&hosting.RemovePlayer{Process: processKey(g.ProcessID), Game: g.ID, Player: playerSession})
}

// pass lets time pass and handles the deadlines that become due.
func (w *flowWorld) pass(d time.Duration) {
	w.t.Helper()
	end := w.now.Add(d)
	for {
		next := w.cell.NextDeadline()
		if next == 0 || next > end {
			break
		}
		w.now = max(w.now, next)
		w.must(&kernel.Tick{})
	}
	w.now = end
}

func (w *flowWorld) dump() []byte {
	b, err := canon.Dump(w.cell.Freeze())
	if err != nil {
		w.t.Fatal(err)
	}
	return b
}

// refused executes a command that must be refused with a code, and must change nothing.
func (w *flowWorld) refused(cmd kernel.Command, code flow.Code) *flow.Refusal {
	w.t.Helper()
	before, entries := w.dump(), len(w.journal)
	err := w.do(cmd)
	if got := flow.CodeOf(err); err == nil || got != code {
		w.t.Errorf("%T: got %v, want %s", cmd, err, code)
		return nil
	}
	if len(w.journal) != entries || !bytes.Equal(before, w.dump()) {
		w.t.Errorf("%T was refused with %s and changed something", cmd, code)
	}
	refusal, _ := errors.AsType[*flow.Refusal](err)
	return refusal
}

// told returns the types and reasons of the events that a player got since. It omits OnSync, which clients request, and
// OnAllowedActionsChanged, which follows from the rest.
func (w *flowWorld) told(player string, since uint64) string {
	w.t.Helper()
	v := w.cell.View()
	events, _, _ := v.EventsAfter(player, max(since, w.player(player).FirstKept()-1), 1000)
	if since == 0 {
		events = nil
		for i, x := range w.player(player).Outbox() {
			events = append(events, playerflow.PlayerEvent{Seq: w.player(player).FirstKept() + uint64(i), Told: x})
		}
	}
	var all []string
	for _, e := range events {
		if e.Type == flow.OnSync || e.Type == flow.OnAllowedActionsChanged {
			continue
		}
		m, err := flow.DecodeMessage(e.Body)
		if err != nil {
			w.t.Fatal(err)
		}
		text := strings.TrimPrefix(e.Type.String(), "On")
		for _, detail := range []string{m.Change.String(), m.Reason.String()} {
			if detail != "" {
				text += ":" + detail
			}
		}
		all = append(all, text)
	}
	return strings.Join(all, " ")
}

func (w *flowWorld) seq(player string) uint64 { return w.player(player).Seq }

// wantTold compares the events that a player got.
func (w *flowWorld) wantTold(player string, since uint64, want string) {
	w.t.Helper()
	if got := w.told(player, since); got != want {
		w.t.Errorf("%s was told\n %s\nwant\n %s", player, got, want)
	}
}

func (w *flowWorld) wantPhase(player string, want flow.Phase) {
	w.t.Helper()
	if got := w.keys(player).Phase(); got != want {
		w.t.Errorf("%s is in phase S%d, want S%d", player, got, want)
	}
}

// Queues that players may enter: testQueue and otherQueue match two teams of one to three players, acceptQueue also asks them to accept.
const testQueue, otherQueue, acceptQueue = "duel", "brawl", "ranked"

const testRules = `{"name":"r","ruleLanguageVersion":"1.0","playerAttributes":[{"name":"skill","type":"number","default":10}],
"teams":[{"name":"red","minPlayers":1,"maxPlayers":3},{"name":"blue","minPlayers":1,"maxPlayers":3}]}`

// queues makes the configurations, once.
func (w *flowWorld) queues() {
	w.t.Helper()
	if _, ok := w.cell.matchmaking.Records.Configuration(testQueue); ok {
		return
	}
	w.must(&matchmaking.CreateRuleSet{RuleSet: matchmaking.RuleSet{Name: "rules", Region: "us-east-1", Body: testRules}})
	for _, name := range []string{testQueue, otherQueue, acceptQueue} {
		w.must(&matchmaking.CreateConfiguration{Configuration: matchmaking.Configuration{
			Name: name, Region: "us-east-1", RuleSet: "rules", RequestTimeout: 5 * time.Minute, AcceptanceTimeout: 20 * time.Second,
			AcceptanceRequired: name == acceptQueue, Queues: []string{"arn:aws:gamelift:us-east-1::gamesessionqueue/q"},
		}})
	}
}

// searchIn makes a party of players and enters it into a queue.
func (w *flowWorld) searchIn(queue string, players ...string) domain.TicketID {
	w.t.Helper()
	w.queues()
	w.party(players...)
	if len(players) > 1 {
		for _, player := range players {
			w.must(&playerflow.SetReady{Caller: w.as(player), Ready: true})
		}
	}
	cmd := &playerflow.EnterMatchmaking{Caller: w.as(players[0]), Ticket: domain.TicketID(w.id()), Queue: queue}
	w.must(cmd)
	return domain.TicketID(cmd.Made)
}

func (w *flowWorld) search(players ...string) domain.TicketID {
	w.t.Helper()
	return w.searchIn(testQueue, players...)
}

func (w *flowWorld) ticket(id domain.TicketID) *matchmaking.Ticket {
	r, ok := w.cell.matchmaking.Records.Ticket(id.String())
	if !ok {
		w.t.Fatalf("ticket %s is not known", id)
	}
	return w.cell.matchmaking.Records.Tickets.Get(r)
}

// propose proposes a match of two tickets, and returns why it was refused.
func (w *flowWorld) propose(queue string, red, blue domain.TicketID) *domain.Refusal {
	w.t.Helper()
	c, _ := w.cell.matchmaking.Records.Configuration(queue)
	a, b := w.ticket(red), w.ticket(blue)
	cmd := &matchmaking.ProposeMatches{Configuration: queue, Version: c.Version, Proposals: []matchmaking.Proposal{{ID: w.id(), PlayersMax: 6, Tickets: []matchmaking.ProposedTicket{
		{TicketKey: matchmaking.TicketKey{No: a.No, Generation: a.Generation}, Team: "red"}, {TicketKey: matchmaking.TicketKey{No: b.No, Generation: b.Generation}, Team: "blue"},
	}}}}
	w.must(cmd)
	return cmd.Refused[0]
}
