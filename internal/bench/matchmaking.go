package bench

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/matchmaking"
	"github.com/musterhq/muster/internal/domain/ruleset"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/matchmaker"
)

// matchmaking measures the time of tickets from the request to the durable match.
func (b *bench) matchmaking(ctx context.Context) error {
	for _, part := range []func(context.Context) error{b.duelsLoaded, b.duelsThroughAPI, b.teamsArriving, b.ticketMemory} {
		if err := part(ctx); err != nil {
			return err
		}
	}
	return nil
}

// duels matches one against one, with skill within 50.
const duels = `{"ruleLanguageVersion": "1.0", "playerAttributes": [{"name": "skill", "type": "number"}],
	"teams": [{"name": "a", "minPlayers": 1, "maxPlayers": 1}, {"name": "b", "minPlayers": 1, "maxPlayers": 1}],
	"rules": [{"name": "Near", "type": "distance", "measurements": ["max(flatten(teams[*].players.attributes[skill]))"],
		"referenceValue": "min(flatten(teams[*].players.attributes[skill]))", "maxDistance": 50}]}`

// teams matches five against five with similar skill and low latency, both relaxed over time.
const teams = `{"ruleLanguageVersion": "1.0", "playerAttributes": [{"name": "skill", "type": "number"}, {"name": "level", "type": "number"},
		{"name": "mode", "type": "string"}, {"name": "hero", "type": "string"}],
	"teams": [{"name": "red", "minPlayers": 5, "maxPlayers": 5}, {"name": "blue", "minPlayers": 5, "maxPlayers": 5}],
	"rules": [{"name": "Near", "type": "distance", "measurements": ["max(flatten(teams[*].players.attributes[skill]))"],
		"referenceValue": "min(flatten(teams[*].players.attributes[skill]))", "maxDistance": 100},
		{"name": "Ping", "type": "latency", "maxLatency": 60}],
	"expansions": [{"target": "rules[Near].maxDistance", "steps": [{"waitTimeSeconds": 5, "value": 200}, {"waitTimeSeconds": 10, "value": 400}]},
		{"target": "rules[Ping].maxLatency", "steps": [{"waitTimeSeconds": 5, "value": 100}, {"waitTimeSeconds": 15, "value": 200}]}]}`

const matchConfiguration = "bench"

var matchRegions = []string{"eu-central-1", "eu-west-1", "us-east-1", "us-west-2", "ap-northeast-1"}

// duelist returns a player with a normally distributed skill.
func duelist(n int) matchmaking.Player {
	return matchmaking.Player{ID: "player-" + strconv.Itoa(n), Attributes: []ruleset.NamedValue{aNumber("skill", math.Round(1500+300*rand.NormFloat64()))}}
}

// teamPlayer returns a player with four attributes and five latencies, of which one or two are low.
func teamPlayer(n int) matchmaking.Player {
	p := duelist(n)
	p.Attributes = append(p.Attributes, aNumber("level", float64(rand.IntN(60))), aWord("mode", "ranked"), aWord("hero", "hero-"+strconv.Itoa(n%40)))
	home := rand.IntN(len(matchRegions))
	for i, region := range matchRegions {
		far := min((i-home+5)%5, (home-i+5)%5)
		p.Latencies = append(p.Latencies, matchmaking.Latency{Region: region, Milliseconds: int32(20 + 60*far + rand.IntN(40))})
	}
	return p
}

func aNumber(name string, x float64) ruleset.NamedValue {
	return ruleset.NamedValue{Name: name, Value: ruleset.Value{Kind: ruleset.Number, Number: x}}
}

func aWord(name, s string) ruleset.NamedValue {
	return ruleset.NamedValue{Name: name, Value: ruleset.Value{Kind: ruleset.String, Text: s}}
}

// matchCell is a cell in this process with one configuration.
type matchCell struct {
	*localCell
	rules *ruleset.RuleSet
}

func (b *bench) openMatchCell(ctx context.Context, body string) (*matchCell, error) {
	dir, err := b.freshDir("matchmaking")
	if err != nil {
		return nil, err
	}
	c, err := openCell(ctx, dir, 0, nil)
	if err != nil {
		return nil, err
	}
	rules, problems := ruleset.Parse(body)
	if len(problems) > 0 {
		panic(problems) // the caller's rule set is valid
	}
	for _, cmd := range []kernel.Command{
		&matchmaking.CreateRuleSet{RuleSet: matchmaking.RuleSet{Name: "bench", Region: region, Account: "000000000000", Body: body}, Compiled: rules},
		&matchmaking.CreateConfiguration{Configuration: matchmaking.Configuration{
			Name: matchConfiguration, Region: region, Account: "000000000000", RuleSet: "bench", Standalone: true, RequestTimeout: time.Hour,
		}},
	} {
		if err := c.Do(ctx, cmd); err != nil {
			_ = c.close()
			return nil, err
		}
	}
	return &matchCell{c, rules}, nil
}

func (c *matchCell) start(ctx context.Context, n int, player func(int) matchmaking.Player) error {
	return c.Do(ctx, &matchmaking.StartMatchmaking{Configuration: matchConfiguration, ID: randomID().String(), Players: []matchmaking.Player{player(n)}})
}

func (c *matchCell) load(ctx context.Context, n int, player func(int) matchmaking.Player) error {
	return inParallel(n, callers, func(i int) error { return c.start(ctx, i, player) })
}

func (c *matchCell) runner() *matchmaker.Runner {
	r := matchmaker.New(matchmaker.Config{Engine: c.Engine, Log: slog.New(slog.DiscardHandler)})
	r.Lead()
	return r
}

// matchWatch records matches when they become durable.
type matchWatch struct {
	mu      sync.Mutex
	rules   *ruleset.RuleSet
	began   map[uint64]domain.Time // start of the waiting tickets
	from    time.Time              // earlier matches do not count
	matched int
	waits   []time.Duration // of tickets, from their start
	lags    []time.Duration // of matches, from the moment when they became possible: when the newest ticket had arrived and was old enough
	last    time.Time
}

func (c *matchCell) watch() (w *matchWatch, end func()) {
	w = &matchWatch{rules: c.rules, began: map[uint64]domain.Time{}, from: time.Now()}
	return w, c.Follow(kernel.Kinds(new(matchmaking.TicketStarted), new(matchmaking.MatchProposed)), func(committed engine.Committed) {
		now := time.Now()
		w.mu.Lock()
		defer w.mu.Unlock()
		for _, event := range committed.Events {
			switch e := event.Event.(type) {
			case *matchmaking.TicketStarted:
				w.began[e.Ticket.No] = e.Ticket.Start
			case *matchmaking.MatchProposed:
				w.match(now, &e.Match)
			}
		}
	})
}

func (w *matchWatch) match(now time.Time, m *matchmaking.Match) {
	var newest domain.Time
	for _, s := range m.Seats {
		start := w.began[s.Ticket]
		delete(w.began, s.Ticket)
		newest = max(newest, start)
		if wait := now.Sub(start.Std()); !now.Before(w.from) {
			w.waits = append(w.waits, wait)
		}
	}
	w.matched += len(m.Seats)
	w.last = now
	level := w.rules.LevelAt(int64(m.Proposed-newest) / 1000)
	possible := newest.Std().Add(time.Duration(w.rules.Waits()[level]) * time.Second)
	if !possible.Before(w.from) {
		w.lags = append(w.lags, now.Sub(possible))
	}
}

// settled waits until no more matches are made.
func (w *matchWatch) settled(ctx context.Context, all int, patience time.Duration) (matched int, last time.Time) {
	for {
		w.mu.Lock()
		matched, last = w.matched, w.last
		w.mu.Unlock()
		quiet := time.Since(last)
		if last.IsZero() {
			quiet = time.Since(w.from) / 10 // loading the pool takes time
		}
		if matched == all || quiet > patience || ctx.Err() != nil {
			return matched, last
		}
		time.Sleep(time.Millisecond)
	}
}

// duelsLoaded matches an existing pool on one core, from the first pass to the last durable match.
func (b *bench) duelsLoaded(ctx context.Context) error {
	n := b.sizes.duels
	c, err := b.openMatchCell(ctx, duels)
	if err != nil {
		return err
	}
	defer c.close()
	if err := c.load(ctx, n, duelist); err != nil {
		return err
	}
	runtime.GC()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	w, end := c.watch()
	defer end()
	used, began := processorTime(nil), time.Now()
	r := c.runner()
	matched, last := w.settled(ctx, n, 2*time.Second)
	took := last.Sub(began)
	r.Rest()
	b.progress("  %d of %d duels from a loaded pool in %s on one core, processor time %s", matched, n, took.Round(time.Millisecond), (processorTime(nil) - used).Round(time.Millisecond))
	b.table.addFact(fmt.Sprintf("one against one within 50: a loaded pool of %s tickets to durable matches, one core", thousands(int64(n))), "20,000 tickets a second, 99.5 %",
		"%s tickets a second, %.2f %%", thousands(int64(float64(matched)/took.Seconds())), 100*float64(matched)/float64(n))
	return nil
}

// duelsThroughAPI lets clients start matchmaking over HTTP as fast as they can, while matches are made.
func (b *bench) duelsThroughAPI(ctx context.Context) error {
	return b.serving(ctx, "matchmaking", func(s *server, setup *conn) error {
		x := &ticketLoad{run: strconv.FormatInt(time.Now().UnixNano(), 36)}
		if _, err := callJSON[struct{}](setup, "CreateMatchmakingRuleSet", map[string]any{"Name": "bench", "RuleSetBody": duels}); err != nil {
			return err
		}
		if _, err := callJSON[struct{}](setup, "CreateMatchmakingConfiguration", map[string]any{
			"Name": matchConfiguration, "RuleSetName": "bench", "AcceptanceRequired": false, "FlexMatchMode": "STANDALONE", "RequestTimeoutSeconds": 3600,
		}); err != nil {
			return err
		}
		for range b.sizes.gameConnections {
			c, err := dial(ctx, s.addr, awsJSON, s.key)
			if err != nil {
				return err
			}
			defer c.close()
			x.conns = append(x.conns, c)
		}
		x.ids = make([][]string, len(x.conns))
		l := load{workers: len(x.conns), warm: b.options.Measure / 4, measure: b.options.Measure}
		m, err := b.runProfiled(ctx, s, "matchmaking", l, x.unit)
		if err != nil {
			return err
		}
		b.progress("  StartMatchmaking: %s", m)
		b.table.addLoad("StartMatchmaking, JSON 1.1, durable, matched meanwhile", "tickets", 1, m, 0)
		return b.ticketsOutcome(setup, x)
	})
}

type ticketLoad struct {
	run   string
	conns []*conn
	ids   [][]string // of a sample of each connection's tickets
}

const ticketSample = 50 // one in this many tickets is checked afterwards

func (x *ticketLoad) unit(worker int) error {
	n := rand.Uint64()
	id := x.run + "-" + strconv.FormatUint(n, 36)
	if n%ticketSample == 0 {
		x.ids[worker] = append(x.ids[worker], id)
	}
	skill := strconv.FormatFloat(math.Round(1500+300*rand.NormFloat64()), 'f', 0, 64)
	_, err := x.conns[worker].send("StartMatchmaking", []byte(`{"TicketId":"`+id+`","ConfigurationName":"`+matchConfiguration+
		`","Players":[{"PlayerId":"p-`+id+`","PlayerAttributes":{"skill":{"N":`+skill+`}}}]}`))
	return err
}

// ticketsOutcome reads the outcomes of the sample.
func (b *bench) ticketsOutcome(c *conn, x *ticketLoad) error {
	time.Sleep(2 * time.Second) // until the last tickets are matched
	const inOne = 10
	var waits []time.Duration
	asked, matched := 0, 0
	for ids := range slices.Chunk(slices.Concat(x.ids...), inOne) {
		answer, err := callJSON[struct {
			TicketList []struct {
				Status             string
				StartTime, EndTime float64
			}
		}](c, "DescribeMatchmaking", map[string]any{"TicketIds": ids})
		if err != nil {
			return err
		}
		asked += len(ids)
		for _, t := range answer.TicketList {
			if t.Status == "COMPLETED" {
				matched++
				waits = append(waits, time.Duration((t.EndTime-t.StartTime)*float64(time.Second)))
			}
		}
	}
	b.progress("  of %d tickets asked for, %d were matched, after %s in the middle", asked, matched, milliseconds(middle(waits)))
	b.table.addFact("one against one within 50, tickets through the API as fast as they come: wait, median", "500 ms, 99.5 % matched", "%s, %.2f %%",
		milliseconds(middle(waits)), 100*float64(matched)/float64(max(1, asked)))
	return nil
}

// teamsArriving measures a large pool in which tickets arrive at a steady rate.
func (b *bench) teamsArriving(ctx context.Context) error {
	c, err := b.openMatchCell(ctx, teams)
	if err != nil {
		return err
	}
	defer c.close()
	if err := c.load(ctx, b.sizes.teamTickets, teamPlayer); err != nil {
		return err
	}
	began := time.Now()
	loaded, end := c.watch()
	r := c.runner()
	defer r.Rest()
	matched, last := loaded.settled(ctx, b.sizes.teamTickets, 2*time.Second)
	end()
	b.progress("  %d of %d tickets for five against five from a loaded pool in %s", matched, b.sizes.teamTickets, last.Sub(began).Round(time.Millisecond))
	b.table.addFact(fmt.Sprintf("five against five, skill and latency: a loaded pool of %s tickets to durable matches", thousands(int64(b.sizes.teamTickets))),
		"10,000 tickets a second", "%s tickets a second, %.1f %%", thousands(int64(float64(matched)/last.Sub(began).Seconds())), 100*float64(matched)/float64(b.sizes.teamTickets))
	w, end := c.watch()
	defer end()
	n := b.sizes.teamTickets
	var mu sync.Mutex
	m, err := load{workers: callers, rate: b.sizes.teamRate, warm: b.options.Measure, measure: 2 * b.options.Measure}.run(ctx, nil, func(int) error {
		mu.Lock()
		n++
		player := n
		mu.Unlock()
		return c.start(ctx, player, teamPlayer)
	})
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	b.progress("  %.0f tickets a second for five against five: %d matched, lag p50 %s", m.perSecond(), w.matched, milliseconds(middle(w.lags)))
	b.table.addFact(fmt.Sprintf("five against five, %s tickets a second: from when a match is possible until it is durable, median", thousands(int64(m.perSecond()))), "250 ms",
		"%s (%s tickets matched a second)", milliseconds(middle(w.lags)), thousands(int64(float64(w.matched)/(3*b.options.Measure).Seconds())))
	return nil
}

// ticketMemory measures the memory of a waiting ticket in the core and in the matcher.
func (b *bench) ticketMemory(ctx context.Context) error {
	const lonely = `{"ruleLanguageVersion": "1.0", "playerAttributes": [{"name": "skill", "type": "number"}, {"name": "level", "type": "number"},
		{"name": "mode", "type": "string"}, {"name": "hero", "type": "string"}],
		"teams": [{"name": "all", "minPlayers": 40, "maxPlayers": 40}],
		"rules": [{"name": "Near", "type": "distance", "measurements": ["max(flatten(teams[*].players.attributes[skill]))"],
			"referenceValue": "min(flatten(teams[*].players.attributes[skill]))", "maxDistance": 0}]}`
	c, err := b.openMatchCell(ctx, lonely)
	if err != nil {
		return err
	}
	defer c.close()
	r := c.runner()
	defer r.Rest()
	before := liveHeap()
	err = c.load(ctx, b.sizes.teamTickets, func(n int) matchmaking.Player {
		p := teamPlayer(n)
		p.Attributes[0].Number = float64(n) // different from all others
		return p
	})
	if err != nil {
		return err
	}
	time.Sleep(b.options.Measure / 2) // until all have reached the matcher
	each := (liveHeap() - before) / int64(b.sizes.teamTickets)
	b.progress("  %d B for each of %d tickets that wait", each, b.sizes.teamTickets)
	b.table.addFact(fmt.Sprintf("a waiting ticket of one player with 4 attributes and 5 latencies: live heap for each of %s", thousands(int64(b.sizes.teamTickets))), "2048 B", "%d B", each)
	return nil
}

func liveHeap() int64 {
	runtime.GC()
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return int64(s.HeapAlloc)
}

func middle(values []time.Duration) time.Duration {
	if len(values) == 0 {
		return 0
	}
	slices.Sort(values)
	return values[len(values)/2]
}
