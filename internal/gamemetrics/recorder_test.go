package gamemetrics

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/gameservers"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/matchmaking"
	"github.com/musterhq/muster/internal/domain/placement"
	"github.com/musterhq/muster/internal/domain/ruleset"
	"github.com/musterhq/muster/internal/domain/session"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/engine/enginetest"
	"github.com/musterhq/muster/internal/matchmaker"
	"github.com/musterhq/muster/internal/series"
	"github.com/musterhq/muster/internal/waittest"
)

// scene is an engine on a clock that the test moves, with a recorder and its store.
type scene struct {
	*testing.T
	engine   *engine.Engine
	runner   *matchmaker.Runner
	files    vfs.FS
	store    *series.Store
	recorder *Recorder
	uses     atomic.Pointer[[]HostUse] // what agents say
}

func newScene(t *testing.T) *scene {
	t.Helper()
	s := &scene{T: t, files: vfs.NewMem()}
	s.engine = enginetest.Open(t, engine.Config{Cell: cell.DefaultConfig(), Clock: engine.NewClock(time.Unix(1_750_000_020, 0))})
	s.runner = matchmaker.New(matchmaker.Config{Engine: s.engine, Log: slog.New(slog.DiscardHandler), PassEvery: 5 * time.Millisecond, Virtual: true})
	s.engine.Attend(s.runner)
	s.runner.Lead()
	s.start()
	t.Cleanup(func() { s.stop(); s.runner.Rest() })
	return s
}

func (s *scene) start() {
	s.Helper()
	var err error
	if s.store, err = series.Open(series.Options{Dir: "metrics", FS: s.files, BytesMax: 1 << 30, SeriesMax: 10_000, Log: slog.New(slog.DiscardHandler)}); err != nil {
		s.Fatal(err)
	}
	s.recorder = Start(Config{Engine: s.engine, Rules: s.runner.RuleEvaluations, Hosts: s.hosts, Store: s.store, Short: func() error { return nil }, Log: slog.New(slog.DiscardHandler)})
}

func (s *scene) hosts() []HostUse {
	if all := s.uses.Load(); all != nil {
		return *all
	}
	return nil
}

func (s *scene) stop() {
	s.recorder.Close()
	if err := s.store.Close(); err != nil {
		s.Error(err)
	}
}

func (s *scene) do(cmd kernel.Command) {
	s.Helper()
	if err := s.engine.Do(s.Context(), cmd); err != nil {
		s.Fatalf("%T: %v", cmd, err)
	}
}

func (s *scene) advance(d time.Duration) {
	s.Helper()
	if err := s.engine.Advance(s.Context(), d); err != nil {
		s.Fatal(err)
	}
}

// ready makes a ready server process on its own host.
func (s *scene) ready(fleetID, host string, link uint64) fleet.Key {
	s.Helper()
	key := fleet.Key{Fleet: fleetID, Compute: host, Process: fmt.Sprint("p", link)}
	s.do(&hosting.ConnectProcess{Process: key, Link: link, SDK: "Go 5.5.0"})
	s.do(&hosting.ActivateProcess{Process: key, Link: link, Port: 7777, Request: link})
	s.do(&hosting.ReportHealth{Process: key, Healthy: true})
	return key
}

func (s *scene) host(fleetID, location, name string) {
	s.Helper()
	s.do(&hosting.RegisterCompute{Compute: fleet.Compute{FleetID: fleetID, Name: name, Location: location, IPAddress: "127.0.0.1"}})
}

// metrics returns the values that Prometheus would read, by name and labels.
func (s *scene) metrics() map[string]float64 {
	s.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(s.recorder)
	families, err := registry.Gather()
	if err != nil {
		s.Fatal(err)
	}
	all := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			name := strings.TrimPrefix(f.GetName(), "gamelift_")
			for _, l := range m.GetLabel() {
				name += " " + l.GetValue()
			}
			if h := m.GetHistogram(); h != nil {
				all[name+" count"], all[name+" sum"] = float64(h.GetSampleCount()), h.GetSampleSum()
				continue
			}
			all[name] = m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	return all
}

func (s *scene) shows(want map[string]float64) {
	s.Helper()
	var got map[string]float64
	missing := func() (wrong []string) {
		got = s.metrics()
		for name, value := range want {
			if x, ok := got[name]; !ok || x != value {
				wrong = append(wrong, fmt.Sprintf("%s is %v, want %v", name, x, value))
			}
		}
		return wrong
	}
	for end := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		wrong := missing()
		if len(wrong) == 0 {
			return
		}
		if time.Now().After(end) {
			s.Fatalf("%s\nin %v", strings.Join(wrong, "\n"), got)
		}
	}
}

// kept returns the sum over the stored minutes of a series, and the newest minute.
func (s *scene) kept(metric string, dimensions ...string) (sum float64, newest series.Stat) {
	s.Helper()
	var all []series.Dimension
	for i := 0; i < len(dimensions); i += 2 {
		all = append(all, series.Dimension{Name: dimensions[i], Value: dimensions[i+1]})
	}
	slots, err := s.store.Minutes(series.MakeKey(metric, all...), 0, 1<<40)
	if err != nil {
		s.Fatal(err)
	}
	for _, x := range slots {
		sum += x.Sum
		newest = x.Stat
	}
	return sum, newest
}

// minuteOver lets the present minute end and waits until it is written.
func (s *scene) minuteOver() {
	s.Helper()
	last := s.store.Last()
	s.advance(time.Minute)
	waittest.Until(s, "the minute is written", func() bool { return s.store.Last() > last })
}

const rules = `{"ruleLanguageVersion":"1.0","playerAttributes":[{"name":"skill","type":"number"}],
"teams":[{"name":"red","minPlayers":1,"maxPlayers":1},{"name":"blue","minPlayers":1,"maxPlayers":1}],
"rules":[{"name":"Near","type":"distance","measurements":["max(flatten(teams[*].players.attributes[skill]))"],
"referenceValue":"min(flatten(teams[*].players.attributes[skill]))","maxDistance":50}]}`

// furnish makes two fleets of a metric group, in two locations, and a queue over both.
func (s *scene) furnish() {
	s.Helper()
	for _, l := range []string{"custom-a", "custom-b"} {
		s.do(&hosting.CreateLocation{Name: l, Region: "us-east-1"})
	}
	cheap, dear := "0.1", "0.9"
	s.do(&hosting.CreateFleet{Fleet: fleet.Fleet{ID: "fleet-1", Region: "us-east-1", Name: "f", MetricGroups: []string{"eu"}, Cost: &cheap}, Locations: []string{"custom-a", "custom-b"}})
	s.do(&hosting.CreateFleet{Fleet: fleet.Fleet{ID: "fleet-2", Region: "us-east-1", Name: "g", MetricGroups: []string{"eu"}, Cost: &dear}, Locations: []string{"custom-a"}})
	s.host("fleet-1", "custom-a", "a1")
	s.host("fleet-1", "custom-b", "b1")
	s.host("fleet-2", "custom-a", "a2")
	s.do(&hosting.CreateQueue{Queue: placement.Queue{
		Name: "q", Region: "us-east-1", Timeout: time.Minute, Destinations: []string{"arn:aws:gamelift:us-east-1::fleet/fleet-1", "arn:aws:gamelift:us-east-1::fleet/fleet-2"},
	}})
}

// place starts a placement whose player is nearer to custom-a.
func (s *scene) place(id string) {
	s.Helper()
	s.do(&hosting.StartPlacement{Placement: placement.Placement{
		ID: id, Queue: "q", PlayersMax: 4, Players: []placement.Player{{Player: "ann", ID: domain.PlayerSessionID{1, byte(len(id))}}},
		Latencies: []placement.Latency{{Player: "ann", Location: "custom-a", Milliseconds: 20}, {Player: "ann", Location: "custom-b", Milliseconds: 90}},
	}})
}

func TestFleetsAndQueues(t *testing.T) {
	s := newScene(t)
	s.furnish()
	a := s.ready("fleet-1", "a1", 1)
	b := s.ready("fleet-1", "b1", 2)
	s.place("one") // the first choice: fleet-1 in custom-a, near and cheap
	s.do(&hosting.ActivateGameSession{Process: a, Game: session.ID("fleet-1/custom-a/one")})
	s.do(&hosting.AcceptPlayer{Process: a, Game: "fleet-1/custom-a/one", Player: domain.PlayerSessionID{1, 3}, Request: 7})
	s.place("three") // custom-a is full: it goes to custom-b
	s.do(&hosting.ActivateGameSession{Process: b, Game: session.ID("fleet-1/custom-b/three")})
	s.place("waits")
	s.place("stopped")
	s.do(&hosting.StopPlacement{ID: "stopped"})
	s.advance(20 * time.Second) // within the minute
	s.shows(map[string]float64{
		"active_instances fleet-1 custom-a eu": 1, "idle_instances fleet-1 custom-a eu": 0, "active_instances fleet-2 custom-a eu": 0,
		"percent_idle_instances fleet-1 custom-a eu": 0, "active_server_processes fleet-1 custom-b eu": 1, "healthy_server_processes fleet-1 custom-b eu": 1,
		"percent_healthy_server_processes fleet-1 custom-b eu": 100, "active_game_sessions fleet-1 custom-a eu": 1, "activating_game_sessions fleet-1 custom-a eu": 0,
		"available_game_sessions fleet-1 custom-a eu": 0, "concurrent_activatable_game_sessions fleet-1 custom-a eu": 0, "percent_available_game_sessions fleet-1 custom-a eu": 0,
		"current_player_sessions fleet-1 custom-a eu": 1, "available_player_sessions fleet-1 custom-a eu": 3,
		"server_process_activations_total fleet-1 custom-a eu": 1, "player_session_activations_total fleet-1 custom-a eu": 1,
		"queue_depth q": 1, "average_wait_time_seconds q": 20, "location_queue_depth custom-a": 1, "location_average_wait_time_seconds custom-a": 20, "location_queue_depth custom-b": 0,
		"placements_started_total q": 4, "placements_succeeded_total q": 2, "placements_canceled_total q": 1,
		"placements_succeeded_by_location_total custom-a q": 1, "placements_succeeded_by_location_total custom-b q": 1,
		"first_choice_out_of_capacity_total q": 1, "location_first_choice_out_of_capacity_total custom-b": 1,
		"lowest_latency_placement_total q": 1, "location_lowest_latency_placement_total custom-a": 1, "lowest_price_placement_total q": 2,
	})
	if _, there := s.metrics()["percent_idle_instances fleet-2 custom-a eu"]; there {
		t.Error("a share of nothing has a value")
	}
	s.minuteOver()
	for _, x := range []struct {
		metric     string
		dimensions []string
		sum        float64
	}{
		{"ActiveInstances", []string{"FleetId", "fleet-1", "Location", "custom-a"}, 1}, {"ActiveInstances", []string{"FleetId", "fleet-1"}, 2},
		{"ActiveInstances", []string{"MetricGroups", "eu"}, 2}, {"PercentIdleInstances", []string{"MetricGroups", "eu"}, 0},
		{"ServerProcessActivations", []string{"FleetId", "fleet-1"}, 2}, {"ServerProcessActivations", []string{"MetricGroups", "eu"}, 2},
		{"PlacementsStarted", []string{"QueueName", "q"}, 4}, {"Placement custom-b", []string{"QueueName", "q"}, 1},
		{"FirstChoiceOutOfCapacity", []string{"Location", "custom-b"}, 1},
	} {
		if sum, newest := s.kept(x.metric, x.dimensions...); sum != x.sum || newest != series.Of(x.sum) {
			t.Errorf("%s %v has %v, newest %+v, want %v", x.metric, x.dimensions, sum, newest, x.sum)
		}
	}
	s.do(&hosting.LoseLink{Process: a, Link: 1})
	s.advance(10 * time.Minute) // the placement that waits times out, and the server process has not come back
	s.shows(map[string]float64{
		"placements_timed_out_total q": 1, "queue_depth q": 0, "average_wait_time_seconds q": 0,
		"server_process_terminations_total fleet-1 custom-a eu": 1, "server_process_abnormal_terminations_total fleet-1 custom-a eu": 1,
	})
	c := s.ready("fleet-2", "a2", 5)
	s.do(&hosting.EndProcess{Process: c, Request: 9})
	s.shows(map[string]float64{"server_process_terminations_total fleet-2 custom-a eu": 1, "active_server_processes fleet-2 custom-a eu": 0})
	if n := s.metrics()["server_process_abnormal_terminations_total fleet-2 custom-a eu"]; n > 0 {
		t.Errorf("%v abnormal terminations of a process that ended by itself", n)
	}
	// started = succeeded + canceled + timed out + failed + the present depth
	m := s.metrics()
	if m["placements_started_total q"] != m["placements_succeeded_total q"]+m["placements_canceled_total q"]+m["placements_timed_out_total q"]+m["queue_depth q"] {
		t.Errorf("the counters of placements do not add up: %v", m)
	}
}

// Counters and durations exist before their first event, which Prometheus would not see as an increase otherwise.
func TestCountersBeginAtZero(t *testing.T) {
	s := newScene(t)
	s.furnish()
	s.makeRuleSet()
	s.do(&matchmaking.CreateConfiguration{Configuration: matchmaking.Configuration{Name: "plain", RuleSet: "duel", RequestTimeout: time.Minute, Standalone: true}})
	s.shows(map[string]float64{
		"server_process_activations_total fleet-2 custom-a eu": 0, "server_process_abnormal_terminations_total fleet-2 custom-a eu": 0,
		"placements_started_total q": 0, "placements_failed_total q": 0, "location_lowest_price_placement_total custom-b": 0,
		"tickets_started_total plain": 0, "time_to_match_seconds plain count": 0,
	})
	if _, there := s.metrics()["network_in_bytes_total fleet-1 custom-a eu"]; there {
		t.Error("a fleet without agents has a counter of its hosts")
	}
	s.do(&hosting.DeleteQueue{Name: "q"})
	if _, there := s.metrics()["placements_failed_total q"]; there {
		t.Error("a queue that is gone has a counter")
	}
}

// search starts the search of one player.
func (s *scene) search(configuration, id string, skill float64) {
	s.Helper()
	s.do(&matchmaking.StartMatchmaking{Configuration: configuration, ID: id, Players: []matchmaking.Player{{
		ID: "player " + id, Attributes: []ruleset.NamedValue{{Name: "skill", Value: ruleset.Value{Kind: ruleset.Number, Number: skill}}},
	}}})
}

// makeRuleSet makes the rule set "duel".
func (s *scene) makeRuleSet() {
	s.Helper()
	compiled, problems := ruleset.Parse(rules)
	if len(problems) > 0 {
		s.Fatal(problems)
	}
	s.do(&matchmaking.CreateRuleSet{RuleSet: matchmaking.RuleSet{Name: "duel", Body: rules}, Compiled: compiled})
}

func (s *scene) status(id string, want matchmaking.Status) {
	s.Helper()
	waittest.Until(s, id+" is "+want.String(), func() bool {
		x, err := s.engine.Ticket(s.Context(), id)
		return err == nil && x.Status == want
	})
}

func TestMatchmaking(t *testing.T) {
	s := newScene(t)
	s.makeRuleSet()
	s.do(&matchmaking.CreateConfiguration{Configuration: matchmaking.Configuration{Name: "plain", RuleSet: "duel", RequestTimeout: time.Minute, Standalone: true}})
	s.do(&matchmaking.CreateConfiguration{Configuration: matchmaking.Configuration{
		Name: "asks", RuleSet: "duel", RequestTimeout: time.Hour, Standalone: true, AcceptanceRequired: true, AcceptanceTimeout: 30 * time.Second,
	}})
	s.search("plain", "far", 500)
	s.status("far", matchmaking.Searching)
	s.advance(10 * time.Second)
	s.search("plain", "a", 1)
	s.search("plain", "b", 2)
	s.status("b", matchmaking.Completed)
	s.shows(map[string]float64{
		"tickets_started_total plain": 3, "players_started_total plain": 3, "matches_created_total plain": 1, "current_tickets plain": 1,
		"time_to_match_seconds plain count": 2, "time_to_ticket_success_seconds plain count": 2,
	})
	s.search("asks", "c", 1)
	s.search("asks", "d", 2)
	s.status("d", matchmaking.RequiresAcceptance)
	s.do(&matchmaking.AcceptMatch{Ticket: "c", Players: []string{"player c"}, Accept: true})
	s.do(&matchmaking.AcceptMatch{Ticket: "d", Players: []string{"player d"}, Accept: true})
	s.search("asks", "e", 1)
	s.search("asks", "f", 2)
	s.status("f", matchmaking.RequiresAcceptance)
	s.do(&matchmaking.AcceptMatch{Ticket: "e", Players: []string{"player e"}, Accept: false})
	s.shows(map[string]float64{"matches_created_total asks": 2, "matches_accepted_total asks": 1, "matches_rejected_total asks": 1})
	if n := s.metrics()["matches_accepted_total plain"]; n > 0 {
		t.Error("matches that need no acceptance count as accepted")
	}
	s.search("asks", "g", 1)
	s.status("g", matchmaking.RequiresAcceptance) // with f, which searches on
	s.advance(31 * time.Second)
	s.search("asks", "h", 900)
	s.advance(10 * time.Second)
	s.do(&matchmaking.StopMatchmaking{ID: "h"})
	s.advance(time.Minute) // the search of far is over
	s.shows(map[string]float64{
		"match_acceptances_timed_out_total asks": 1, "time_to_ticket_cancel_seconds asks count": 4, "tickets_timed_out_total plain": 1,
		"current_tickets plain": 0,
	})
	for _, name := range []string{"rule_evaluations_passed_total plain Near", "rule_evaluations_failed_total plain Near"} { // how many depends on the matcher
		waittest.Until(s, name, func() bool { return s.metrics()[name] > 0 })
	}
	s.minuteOver()
	if _, newest := s.kept("TimeToMatch", "ConfigurationName", "plain"); newest.Count != 2 {
		t.Errorf("TimeToMatch is %+v", newest)
	}
	if sum, _ := s.kept("RuleEvaluationsPassed", "ConfigurationName", "plain", "RuleName", "Near"); sum == 0 {
		t.Error("no evaluations are kept")
	}
}

func TestGameServerGroups(t *testing.T) {
	s := newScene(t)
	s.do(&gameservers.CreateGameServerGroup{Group: gameservers.Group{Name: "g", Role: "r", SizeMax: 1, Template: gameservers.LaunchTemplate{ID: "lt-1"}, Instances: []gameservers.InstanceType{{Name: "c5.large"}, {Name: "c5.xlarge"}}}})
	for i := range 4 {
		s.do(&gameservers.RegisterGameServer{Server: gameservers.Server{ID: fmt.Sprint("s", i), Group: "g", Instance: "i"}})
	}
	s.do(&gameservers.ClaimGameServer{Group: "g"})
	s.do(&gameservers.UpdateGameServer{Group: "g", ID: "s0", Utilized: new(true)})
	s.shows(map[string]float64{"available_game_servers g": 3, "utilized_game_servers g": 1, "percent_utilized_game_servers g": 25})
}

// Counters continue after a restart, and each event counts once.
func TestRestart(t *testing.T) {
	s := newScene(t)
	s.furnish()
	s.place("waits")
	s.shows(map[string]float64{"placements_started_total q": 1})
	s.stop() // which writes the minute that is not over
	s.start()
	s.shows(map[string]float64{"placements_started_total q": 1})
	s.place("second")
	s.advance(5 * time.Minute)
	s.shows(map[string]float64{"placements_started_total q": 2, "placements_timed_out_total q": 2})
	s.stop()
	s.start()
	s.shows(map[string]float64{"placements_started_total q": 2, "placements_timed_out_total q": 2})
	if sum, _ := s.kept("PlacementsStarted", "QueueName", "q"); sum != 2 {
		t.Errorf("the kept minutes have %v placements, want 2", sum)
	}
}

// A minute that cannot be written is written together with the next one.
func TestShortage(t *testing.T) {
	s := newScene(t)
	s.furnish()
	s.stop()
	s.start()
	full := true
	s.recorder.config.Short = func() error {
		if full {
			return fmt.Errorf("the disk is full")
		}
		return nil
	}
	s.place("one")
	s.shows(map[string]float64{"placements_started_total q": 1})
	minute := s.recorder.minute()
	s.recorder.write(minute)
	if sum, _ := s.kept("PlacementsStarted", "QueueName", "q"); sum != 0 {
		t.Fatal("it was written")
	}
	full = false
	s.recorder.write(minute + 1)
	if sum, _ := s.kept("PlacementsStarted", "QueueName", "q"); sum != 1 {
		t.Errorf("%v placements were written, want 1", sum)
	}
}

// Queues beyond the limit share a counter.
func TestSubjectsAreBounded(t *testing.T) {
	s := newScene(t)
	s.do(&hosting.CreateLocation{Name: "custom-a", Region: "us-east-1"})
	s.do(&hosting.CreateFleet{Fleet: fleet.Fleet{ID: "fleet-1", Region: "us-east-1", Name: "f"}, Locations: []string{"custom-a"}})
	for i := range subjectsMax + 20 {
		name := fmt.Sprintf("q%03d", i)
		s.do(&hosting.CreateQueue{Queue: placement.Queue{Name: name, Region: "us-east-1", Timeout: time.Minute, Destinations: []string{"arn:aws:gamelift:us-east-1::fleet/fleet-1"}}})
		s.do(&hosting.StartPlacement{Placement: placement.Placement{ID: name, Queue: name, PlayersMax: 1}})
	}
	s.shows(map[string]float64{"placements_started_total q000": 1, "placements_started_total q199": 1, "placements_started_total other": 20})
	if _, there := s.metrics()["placements_started_total q210"]; there {
		t.Error("a queue beyond the bound has a series")
	}
}

// A rule that comes to have series of its own begins with the evaluations of that minute. A rule without them is forgotten with its configuration.
func TestRulesAreBounded(t *testing.T) {
	s := newScene(t)
	s.makeRuleSet()
	s.do(&matchmaking.CreateConfiguration{Configuration: matchmaking.Configuration{Name: "duel", RuleSet: "duel", RequestTimeout: time.Minute, Standalone: true}})
	s.stop()
	s.start()
	var all []matchmaker.RuleEvaluations
	for i := range rulesMax + 2 {
		all = append(all, matchmaker.RuleEvaluations{Configuration: "duel", Rule: fmt.Sprintf("rule %02d", i), Passed: 1000})
	}
	late := &all[rulesMax]
	late.Passed, all[rulesMax+1].Passed = 900, 1
	s.recorder.config.Rules = func() []matchmaker.RuleEvaluations { return all }
	minute := s.recorder.minute()
	s.recorder.write(minute)
	late.Passed += 200
	s.recorder.write(minute + 1)
	if sum, _ := s.kept("RuleEvaluationsPassed", "ConfigurationName", "duel", "RuleName", late.Rule); sum != 200 {
		t.Errorf("%v evaluations are kept; want the 200 of the last minute", sum)
	}
	if got := s.metrics()["rule_evaluations_passed_total duel "+late.Rule]; got != 1100 {
		t.Errorf("%v evaluations are counted, want 1100", got)
	}
	all = nil
	s.do(&matchmaking.DeleteConfiguration{Name: "duel"})
	s.recorder.write(minute + 2)
	s.recorder.write(minute + 3)
	for k := range s.recorder.counts {
		if k.metric.Of == Rule {
			t.Fatalf("%v is still counted", k)
		}
	}
}

// Two readers at a time, such as two Prometheus servers, count each evaluation once.
func TestReadersAtATime(t *testing.T) {
	s := newScene(t)
	s.makeRuleSet()
	s.do(&matchmaking.CreateConfiguration{Configuration: matchmaking.Configuration{Name: "duel", RuleSet: "duel", RequestTimeout: time.Minute, Standalone: true}})
	var calls atomic.Uint64
	slow, second := make(chan struct{}), make(chan struct{})
	s.recorder.config.Rules = func() []matchmaker.RuleEvaluations {
		call := calls.Add(1)
		if call == 1 {
			close(slow)
			select {
			case <-second:
			case <-time.After(100 * time.Millisecond): // the second reader waits for this one
			}
		}
		return []matchmaker.RuleEvaluations{{Configuration: "duel", Rule: "Near", Passed: 1000 + call}}
	}
	var reading sync.WaitGroup
	reading.Go(func() { s.metrics() })
	<-slow
	reading.Go(func() {
		s.metrics()
		close(second)
	})
	reading.Wait()
	if got := s.metrics()["rule_evaluations_passed_total duel Near"]; got != 1003 {
		t.Errorf("%v evaluations are counted, want 1003", got)
	}
}

func TestKeysBack(t *testing.T) {
	for _, d := range Table {
		if d.Kind == Gauge {
			continue
		}
		k := key{d, "x", ""}
		if len(dimensions[d.Of]) == 2 || d.Of == QueueLocation {
			k.b = "y"
		}
		if back, ok := keyFrom(k.series()); !ok || back != k {
			t.Errorf("%s: %+v became %+v", d.Name, k, back)
		}
	}
	if _, ok := keyFrom(series.MakeKey("ServerProcessActivations", series.Dimension{Name: metricGroups, Value: "eu"})); ok {
		t.Error("a sum is taken for a counter")
	}
}

// Agents' measurements are stored by place, by fleet and by metric group: averages, and the bytes read and sent since the previous report. If a host restarts, its
// unreported bytes are lost, but counters never decrease.
func TestHostsUse(t *testing.T) {
	s := newScene(t)
	s.do(&kernel.RaiseLevel{To: kernel.Level})
	for _, location := range []string{"custom-a", "custom-b"} {
		s.do(&hosting.CreateLocation{Name: location, Region: "us-east-1"})
	}
	s.do(&hosting.CreateFleet{Fleet: fleet.Fleet{ID: "fleet-1", Region: "us-east-1", Name: "arena"}, Locations: []string{"custom-a", "custom-b"}})
	for name, location := range map[string]string{"h1": "custom-a", "h2": "custom-a", "h3": "custom-b"} {
		s.host("fleet-1", location, name)
	}
	uses := []HostUse{
		{Fleet: "fleet-1", Compute: "h1", CPUPercent: 20, MemoryPercent: 10, NetworkIn: 1000, DiskReads: 5}, {Fleet: "fleet-1", Compute: "h2", CPUPercent: 40, NetworkIn: 500},
		{Fleet: "fleet-1", Compute: "h3", CPUPercent: 90, NetworkOut: 7}, {Fleet: "fleet-1", Compute: "gone", CPUPercent: 100}, {Fleet: "other", Compute: "h1", CPUPercent: 100},
	}
	report := func(change func()) {
		uses = slices.Clone(uses)
		change()
		s.uses.Store(&uses)
	}
	report(func() {})
	check := func(want map[string]float64) {
		t.Helper()
		got := s.metrics()
		for name, value := range want {
			if v, ok := got[name]; v != value || !ok && value >= 0 {
				t.Errorf("%s: %v, want %v", name, v, value)
			}
		}
	}
	check(map[string]float64{"cpu_utilization_percent fleet-1 custom-a default": 30, "memory_utilization_percent fleet-1 custom-a default": 5, "cpu_utilization_percent fleet-1 custom-b default": 90, "network_in_bytes_total fleet-1 custom-a default": 0})
	report(func() { uses[0].NetworkIn, uses[0].DiskReads, uses[1].NetworkIn, uses[2].NetworkOut = 1100, 8, 40, 9 }) // h2 has restarted
	check(map[string]float64{"network_in_bytes_total fleet-1 custom-a default": 100, "disk_read_ops_total fleet-1 custom-a default": 3, "network_out_bytes_total fleet-1 custom-b default": 2})
	report(func() { uses[1].NetworkIn = 90 })
	s.minuteOver()
	if sum, _ := s.kept("NetworkIn", "FleetId", "fleet-1", "Location", "custom-a"); sum != 150 {
		t.Errorf("%v bytes of the place were kept, want 150", sum)
	}
	if sum, _ := s.kept("NetworkIn", "FleetId", "fleet-1"); sum != 150 {
		t.Errorf("%v bytes of the fleet were kept, want 150", sum)
	}
	if sum, _ := s.kept("NetworkOut", "MetricGroups", "default"); sum != 2 {
		t.Errorf("%v bytes of the metric group were kept, want 2", sum)
	}
	for _, of := range [][2]string{{"FleetId", "fleet-1"}, {"MetricGroups", "default"}} {
		if _, newest := s.kept("CPUUtilization", of[0], of[1]); newest.Sum != 50 {
			t.Errorf("%s was busy at %+v, want 50", of[0], newest)
		}
	}
	uses = nil
	report(func() {})
	for name := range s.metrics() {
		if strings.HasPrefix(name, "cpu_") {
			t.Errorf("%s without a report", name)
		}
	}
}
