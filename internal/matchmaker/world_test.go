package matchmaker

import (
	"encoding/binary"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/matchmaking"
	"github.com/musterhq/muster/internal/domain/notice"
	"github.com/musterhq/muster/internal/domain/placement"
	"github.com/musterhq/muster/internal/domain/ruleset"
	"github.com/musterhq/muster/internal/domain/session"
)

const caseBegan = domain.Time(1_700_000_000_000)

// world is the core and one pool under a virtual clock, without goroutines.
type world struct {
	t      *testing.T
	c      *acceptanceCase
	rules  *ruleset.RuleSet
	cell   *cell.Cell
	pool   *Pool
	now    domain.Time
	number uint64
	seed   uint64

	timeout    time.Duration // of the queue's next placement
	placements []placed      // those that were started
	matches    []match
	events     []told
	status     map[int64]map[string]matchmaking.TicketView // at the end of each second that a case expects something of
	rejected   map[string]error
	ids        map[uint64]string // of tickets, by number
}

// placed is a placement on its way.
type placed struct {
	id   string
	due  int64
	plan casePlacement
	done bool
}

// match is a proposal that became a match.
type match struct {
	at      int64
	tickets []string
	teams   map[string][]string // of players
}

type told struct {
	at int64
	notice.Match
}

func (m *match) has(ticket string) bool { return slices.Contains(m.tickets, ticket) }

func (w *world) second() int64 { return int64(w.now-caseBegan) / 1000 }

func (w *world) do(cmd kernel.Command) error {
	w.seed++
	env := kernel.Env{Now: w.now, Number: w.number, Follow: kernel.AllKinds()}
	binary.BigEndian.PutUint64(env.Seed[8:], w.seed)
	if emitted, err := w.cell.Execute(cmd, &env); err != nil || !emitted {
		return err
	}
	w.number++
	for _, e := range env.Events {
		w.take(e.Event)
	}
	return nil
}

func (w *world) must(cmd kernel.Command) {
	w.t.Helper()
	if err := w.do(cmd); err != nil {
		w.t.Fatalf("second %d: %T: %v", w.second(), cmd, err)
	}
}

// take follows the state as a Runner does.
func (w *world) take(event kernel.Event) {
	switch e := event.(type) {
	case *matchmaking.TicketStarted:
		w.ids[e.Ticket.No] = e.Ticket.ID
		w.pool.Add(&e.Ticket)
	case *matchmaking.TicketEnded:
		w.pool.Remove(uint64(e.Ticket))
	case *matchmaking.MatchProposed:
		w.note(e)
	case *matchmaking.MatchDropped:
		for _, no := range e.Returned {
			w.comeBack(uint64(no))
		}
	case *hosting.PlacementStarted:
		plan := casePlacement{Result: "FULFILLED"}
		if p := w.c.Config.Placements; len(p) > 0 {
			plan = p[min(len(w.placements), len(p)-1)]
		}
		w.placements = append(w.placements, placed{id: e.Placement.ID, due: w.second() + plan.After, plan: plan})
	case *notice.NoticeWritten:
		if e.Notice.Match != nil {
			w.events = append(w.events, told{w.second(), *e.Notice.Match})
		}
	}
}

func (w *world) note(e *matchmaking.MatchProposed) {
	m := match{at: w.second(), teams: map[string][]string{}}
	v := w.cell.View()
	for _, s := range e.Match.Seats {
		w.pool.Remove(s.Ticket)
		t, _ := v.Ticket(w.ids[s.Ticket])
		m.add(&t.Ticket)
	}
	w.matches = append(w.matches, m)
}

func (m *match) add(t *matchmaking.Ticket) {
	m.tickets = append(m.tickets, t.ID)
	for _, p := range t.PlayersOf() {
		m.teams[p.Team] = append(m.teams[p.Team], p.ID)
	}
}

func (w *world) comeBack(no uint64) {
	v := w.cell.View()
	if t, ok := v.TicketNo(no); ok {
		w.pool.Add(&t.Ticket)
	}
}

func runCase(t *testing.T, c *acceptanceCase) {
	body := string(c.RuleSet)
	if c.RuleSetText != nil {
		body = *c.RuleSetText
	}
	rules, problems := ruleset.Parse(body)
	valid := c.Expect.Valid == nil || *c.Expect.Valid
	if valid != (len(problems) == 0) {
		t.Fatalf("valid: got %v, want %v", problems, valid)
	}
	if !valid {
		var text []string
		for _, p := range problems {
			text = append(text, p.String())
		}
		if all := strings.Join(text, "\n"); len(c.Expect.ErrorMentionsAny) > 0 && !mentionsAny(all, c.Expect.ErrorMentionsAny) {
			t.Errorf("problems:\n%s\nwant one that mentions any of %q", all, c.Expect.ErrorMentionsAny)
		}
		return
	}
	w := newCaseWorld(t, c, body, rules)
	for second := range c.RunUntil + 1 {
		w.now = caseBegan.Add(time.Duration(second) * time.Second)
		w.step(second)
	}
	w.check()
}

func mentionsAny(text string, words []string) bool {
	return slices.ContainsFunc(words, func(word string) bool {
		return strings.Contains(strings.ToLower(text), strings.ToLower(word))
	})
}

func newCaseWorld(t *testing.T, c *acceptanceCase, body string, rules *ruleset.RuleSet) *world {
	config := cell.DefaultConfig()
	config.Notify = &notice.Notify{Bus: true, Max: 1 << 30, Age: time.Hour * 1000}
	w := &world{t: t, c: c, rules: rules, cell: cell.New(config), now: caseBegan, number: 1, status: map[int64]map[string]matchmaking.TicketView{}, rejected: map[string]error{}, ids: map[uint64]string{}}
	w.must(&matchmaking.CreateRuleSet{RuleSet: matchmaking.RuleSet{Name: "rules", Body: body}, Compiled: rules})
	x := matchmaking.Configuration{
		Name: "case", Region: "us-east-1", RuleSet: "rules", RequestTimeout: seconds(c.Config.RequestTimeout, 600),
		AcceptanceRequired: c.Config.AcceptanceRequired, AcceptanceTimeout: seconds(c.Config.AcceptanceTimeout, 30),
		Standalone: c.Config.FlexMatchMode != "WITH_QUEUE", AdditionalPlayers: c.Config.AdditionalPlayers,
	}
	if !x.Standalone {
		w.must(&hosting.CreateLocation{Name: "custom-a", Region: "us-east-1"})
		w.must(&hosting.CreateFleet{Fleet: fleet.Fleet{ID: "fleet-1", Region: "us-east-1", Name: "case"}, Locations: []string{"custom-a"}})
		w.must(&hosting.RegisterCompute{Compute: fleet.Compute{FleetID: "fleet-1", Name: "host", Location: "custom-a", IPAddress: "127.0.0.1"}})
		w.must(&hosting.CreateQueue{Queue: placement.Queue{Name: "q", Region: "us-east-1", Destinations: []string{"arn:aws:gamelift:us-east-1::fleet/fleet-1"}}})
		x.Queues = []string{"q"}
	}
	w.pool = NewPool(x, rules)
	w.must(&matchmaking.CreateConfiguration{Configuration: x})
	v := w.cell.View()
	made, _ := v.Configuration("case")
	w.pool = NewPool(made, rules)
	return w
}

func seconds(n *int64, otherwise int64) time.Duration {
	if n == nil {
		n = &otherwise
	}
	return time.Duration(*n) * time.Second
}

// step plays one second of a case, in the order that the cases require.
func (w *world) step(second int64) {
	for i := range w.c.Tickets {
		if t := &w.c.Tickets[i]; t.Arrival == second {
			w.submit(t)
		}
	}
	for _, a := range w.c.Actions {
		if a.At == second {
			w.act(a)
		}
	}
	w.reportPlacements(second)
	for tick := (kernel.Tick{}); ; {
		w.must(&tick)
		if !tick.More {
			break
		}
	}
	w.find()
	w.reportPlacements(second)
	for _, s := range w.c.Expect.Status {
		if s.At == second {
			w.remember(second, s.Ticket)
		}
	}
}

// find makes matches until there are no more.
func (w *world) find() {
	for range 1000 {
		w.planQueue()
		for _, cmd := range w.pool.News() {
			w.must(cmd)
		}
		found := false
		w.pool.Slots(func(game string) (int32, bool) { v := w.cell.View(); return v.FreeSlots(game) })
		for _, cmd := range w.pool.Pass(w.now, w.matchID) {
			w.must(cmd)
			for _, refused := range cmd.Refused {
				if refused != nil {
					w.t.Errorf("second %d: a proposal was refused: %v", w.second(), refused)
				}
			}
			found = true
		}
		if !found && !w.pool.matcher.Dirty() {
			return
		}
	}
	w.t.Fatal("passes do not end")
}

func (w *world) matchID() (id domain.UUID) {
	w.seed++
	binary.BigEndian.PutUint64(id[:8], w.seed)
	return id
}

// planQueue makes the queue's next placement time out if the case requires it.
func (w *world) planQueue() {
	p := w.c.Config.Placements
	if w.c.Config.FlexMatchMode != "WITH_QUEUE" || len(p) == 0 {
		return
	}
	timeout := 600 * time.Second
	if next := p[min(len(w.placements), len(p)-1)]; next.Result == "TIMED_OUT" {
		timeout = time.Duration(next.After) * time.Second
	}
	if timeout != w.timeout {
		w.timeout = timeout
		w.must(&hosting.UpdateQueue{Name: "q", Timeout: &timeout})
	}
}

func (w *world) reportPlacements(second int64) {
	for i := range w.placements {
		p := &w.placements[i]
		if p.done || p.due > second || p.plan.Result != "FULFILLED" {
			continue
		}
		p.done = true
		key := fleet.Key{Fleet: "fleet-1", Compute: "host", Process: "server of " + p.id}
		w.must(&hosting.ConnectProcess{Process: key, Link: 7})
		w.must(&hosting.ActivateProcess{Process: key, Link: 7, Port: 7777, Request: 1})
		w.must(&hosting.ReportHealth{Process: key, Healthy: true})
		w.must(&hosting.ActivateGameSession{Process: key, Game: session.MakeID("fleet-1", "custom-a", p.id)})
	}
}

func (w *world) submit(t *caseTicket) {
	players := make([]matchmaking.Player, len(t.Players))
	for i, p := range t.Players {
		players[i] = matchmaking.Player{ID: p.ID, Team: p.Team, Attributes: w.attributes(p.Attributes)}
		for _, region := range slices.Sorted(maps.Keys(p.LatencyMs)) {
			players[i].Latencies = append(players[i].Latencies, matchmaking.Latency{Region: region, Milliseconds: p.LatencyMs[region]})
		}
	}
	var cmd kernel.Command = &matchmaking.StartMatchmaking{Configuration: "case", ID: t.ID, Players: players}
	if t.Kind == "backfill" {
		cmd = &matchmaking.StartMatchBackfill{Configuration: "case", ID: t.ID, Players: players, Game: t.GameSession}
	}
	if err := w.do(cmd); err != nil {
		w.rejected[t.ID] = err
	}
}

// attributes returns a player's attributes, of the types that the rule set declares.
func (w *world) attributes(from map[string]json.RawMessage) (to []ruleset.NamedValue) {
	for _, name := range slices.Sorted(maps.Keys(from)) {
		to = append(to, ruleset.NamedValue{Name: name, Value: w.value(from[name])})
	}
	return to
}

func (w *world) value(text json.RawMessage) ruleset.Value {
	var number float64
	if json.Unmarshal(text, &number) == nil {
		return ruleset.Value{Kind: ruleset.Number, Number: number}
	}
	var s string
	if json.Unmarshal(text, &s) == nil {
		return ruleset.Value{Kind: ruleset.String, Text: s}
	}
	var list []string
	if json.Unmarshal(text, &list) == nil {
		return ruleset.Value{Kind: ruleset.List, List: list}
	}
	var pairs map[string]float64
	if err := json.Unmarshal(text, &pairs); err != nil {
		w.t.Fatalf("attribute %s: %v", text, err)
	}
	v := ruleset.Value{Kind: ruleset.Map}
	for _, key := range slices.Sorted(maps.Keys(pairs)) {
		v.Map = append(v.Map, ruleset.Entry{Key: key, Number: pairs[key]})
	}
	return v
}

func (w *world) act(a caseAction) {
	var cmd kernel.Command = &matchmaking.StopMatchmaking{ID: a.Ticket}
	if a.Op != "stop" {
		cmd = &matchmaking.AcceptMatch{Ticket: a.Ticket, Players: a.Players, Accept: a.Op == "accept"}
	}
	if err := w.do(cmd); err != nil {
		w.t.Logf("second %d: %s of %s: %v", a.At, a.Op, a.Ticket, err) // a case may try what is refused; it looks at the status
	}
}

func (w *world) remember(second int64, ticket string) {
	v := w.cell.View()
	t, ok := v.Ticket(ticket)
	if !ok && w.rejected[ticket] != nil {
		return
	}
	if !ok {
		w.t.Errorf("second %d: ticket %s is gone", second, ticket)
	}
	if w.status[second] == nil {
		w.status[second] = map[string]matchmaking.TicketView{}
	}
	w.status[second][ticket] = t
}
