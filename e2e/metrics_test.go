package e2e

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/gamelift"
	"github.com/aws/aws-sdk-go-v2/service/gamelift/types"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/musterhq/muster/internal/waittest"
)

// exposition is the content of /metrics, parsed by Prometheus' own parser.
type exposition map[string]*dto.MetricFamily

func (s *service) exposition(t *testing.T) exposition {
	t.Helper()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(s.metrics(t)))
	must(t, err)
	return families
}

// value returns the value of the only series with these labels, given as name, value, name, value; for a histogram the number of samples.
func (e exposition) value(name string, labels ...string) (value float64, ok bool) {
	f := e[name]
	for _, m := range f.GetMetric() {
		have := map[string]string{}
		for _, l := range m.GetLabel() {
			have[l.GetName()] = l.GetValue()
		}
		want := map[string]string{}
		for i := 0; i < len(labels); i += 2 {
			want[labels[i]] = labels[i+1]
		}
		if !maps.Equal(have, want) {
			continue
		}
		switch f.GetType() {
		case dto.MetricType_COUNTER:
			return m.GetCounter().GetValue(), true
		case dto.MetricType_HISTOGRAM:
			return float64(m.GetHistogram().GetSampleCount()), true
		default:
			return m.GetGauge().GetValue(), true
		}
	}
	return 0, false
}

func (e exposition) expect(t *testing.T, want float64, name string, labels ...string) {
	t.Helper()
	if got, ok := e.value(name, labels...); !ok || got != want {
		t.Errorf("%s %v is %v (there: %t), want %v", name, labels, got, ok, want)
	}
}

func (e exposition) atLeast(t *testing.T, least float64, name string, labels ...string) {
	t.Helper()
	if got, ok := e.value(name, labels...); !ok || got < least {
		t.Errorf("%s %v is %v (there: %t), want at least %v", name, labels, got, ok, least)
	}
}

// A service in production, without matchmaking and player flow, shows what runs, the calls with their durations, and
// the state of its store, its connections and its process.
func TestMetricsWhileSessionsRun(t *testing.T) {
	t.Parallel()
	s := startService(t)
	p := s.prepare()
	first, session := p.hosting(sdkOptions{process: "one"}, 4)
	second := p.ready(sdkOptions{process: "two"})
	third := p.startSDKServer(sdkOptions{process: "three"})
	third.must("init")
	for _, player := range []string{"ann", "bob", "cem", "dee"} {
		s.mustReserve(session, player)
	}
	for range 2 {
		if _, err := s.reserve(session, "eve"); !isError[*types.GameSessionFullException](err) {
			t.Errorf("a fifth player: %v", err)
		}
	}
	place := []string{"fleet_id", p.fleet, "location", p.location}
	at := func(more ...string) []string { return slices.Concat(place, more) }
	var e exposition
	waittest.Until(t, "the second server to be free, and the requests to be counted", func() bool {
		e = s.exposition(t)
		free, _ := e.value("muster_server_processes_available", place...)
		ready, _ := e.value("muster_calls_total", "door", "game_servers", "operation", "ActivateServerProcess", "outcome", "ok") // counted after the answer
		return free == 1 && ready == 2
	})

	e.expect(t, 1, "muster_game_sessions", at("status", "ACTIVE")...)
	e.expect(t, 0, "muster_game_sessions", at("status", "ACTIVATING")...)
	e.expect(t, 4, "muster_player_sessions", at("status", "RESERVED")...)
	e.expect(t, 0, "muster_player_sessions", at("status", "ACTIVE")...)
	e.expect(t, 4, "muster_player_slots", place...)
	e.expect(t, 4, "muster_player_slots_taken", place...)
	e.expect(t, 2, "muster_server_processes", at("status", "ACTIVE")...)
	e.expect(t, 1, "muster_server_processes", at("status", "INITIALIZED")...)
	e.expect(t, 1, "muster_server_processes_hosting", place...)
	e.expect(t, 1, "muster_computes", place...)
	e.expect(t, 1, "muster_computes_hosting", place...)

	e.expect(t, 4, "muster_calls_total", "door", "api", "operation", "CreatePlayerSession", "outcome", "ok")
	e.expect(t, 2, "muster_calls_total", "door", "api", "operation", "CreatePlayerSession", "outcome", "refused")
	e.expect(t, 6, "muster_call_seconds", "door", "api", "operation", "CreatePlayerSession")
	e.expect(t, 2, "muster_calls_total", "door", "game_servers", "operation", "ActivateServerProcess", "outcome", "ok")
	e.expect(t, 2, "muster_api_refused_total", "code", "GameSessionFullException")

	e.atLeast(t, 5, "muster_journal_entries_total")
	e.atLeast(t, 100, "muster_journal_bytes_total")
	e.atLeast(t, 5, "muster_journal_append_seconds")
	e.atLeast(t, 5, "muster_commit_seconds")
	e.atLeast(t, 100, "muster_journal_unsaved_bytes")
	e.expect(t, 0, "muster_snapshots_failed_total")
	e.expect(t, 0, "muster_archive_refused_total")
	e.expect(t, 3, "muster_connections", "door", "game_servers", "state", "proven")
	e.atLeast(t, 10, "go_goroutines")
	e.atLeast(t, 1, "process_open_fds")
	e.expect(t, 1, "muster_healthy")
	if f := e["muster_build_info"]; len(f.GetMetric()) != 1 || f.GetMetric()[0].GetGauge().GetValue() != 1 {
		t.Errorf("muster_build_info is %v", f)
	}
	if e["muster_flow_players"] != nil || len(e["muster_matchmaking_tickets"].GetMetric()) != 0 {
		t.Error("there are metrics of player flow or of a matchmaker")
	}

	before, _ := e.value("muster_archive_records_total")
	second.must("ending")
	first.must("ending")
	waittest.Until(t, "the counts to follow", func() bool {
		e = s.exposition(t)
		games, _ := e.value("muster_game_sessions", at("status", "ACTIVE")...)
		players, _ := e.value("muster_player_sessions", at("status", "RESERVED")...)
		processes, _ := e.value("muster_server_processes", at("status", "ACTIVE")...)
		return games == 0 && players == 0 && processes == 0
	})
	for _, line := range []string{`msg="server process connected"`, `msg="game session created"`, `msg="game session ended" game_session=` + strings.SplitN(session, "gamesession/", 2)[1] + " reason=SERVER_ENDED"} {
		waittest.Until(t, "the log to say "+line, func() bool { return strings.Contains(s.logs.String(), line) })
	}
	waittest.Until(t, "the ended sessions to be archived", func() bool {
		archived, _ := s.exposition(t).value("muster_archive_records_total")
		return archived >= before+5
	})
}

// Every metric follows Prometheus' conventions and has a help text of its own.
func TestMetricsAreWellFormed(t *testing.T) {
	t.Parallel()
	s := startService(t, "--player-flow")
	p := s.prepare()
	p.ready(sdkOptions{})
	text := s.metrics(t)
	problems, err := promlint.New(strings.NewReader(text)).Lint()
	must(t, err)
	for _, x := range problems {
		if strings.HasPrefix(x.Metric, "gamelift_percent_") { // the service's names; Prometheus would have ratios
			continue
		}
		t.Errorf("%s: %s", x.Metric, x.Text)
	}
	helps := map[string]string{}
	for name, f := range s.exposition(t) {
		if other, twice := helps[f.GetHelp()]; twice && strings.HasPrefix(name, "muster_") {
			t.Errorf("%s and %s have the same help: %s", name, other, f.GetHelp())
		}
		helps[f.GetHelp()] = name
	}
}

// Fleets beyond a bound are summed, so that the number of series does not grow with them.
func TestMetricsOfManyFleets(t *testing.T) {
	t.Parallel()
	s := startService(t)
	const fleets, shown = 230, 200
	_, err := s.api().CreateLocation(t.Context(), &gamelift.CreateLocationInput{LocationName: aws.String("custom-home")})
	must(t, err)
	last := ""
	for i := range fleets {
		out, err := s.api().CreateFleet(t.Context(), &gamelift.CreateFleetInput{Name: aws.String(fmt.Sprint("f", i)), ComputeType: types.ComputeTypeAnywhere,
			Locations: []types.LocationConfiguration{{Location: aws.String("custom-home")}}})
		must(t, err)
		last = *out.FleetAttributes.FleetId
		_, err = s.api().RegisterCompute(t.Context(), &gamelift.RegisterComputeInput{
			FleetId: &last, ComputeName: aws.String("host"), IpAddress: aws.String("127.0.0.1"), Location: aws.String("custom-home"),
		})
		must(t, err)
	}
	e := s.exposition(t)
	if n := len(e["muster_computes"].GetMetric()); n != shown+1 {
		t.Errorf("%d series of computes, want %d", n, shown+1)
	}
	e.expect(t, fleets-shown, "muster_computes", "fleet_id", "other", "location", "other")
	if _, ok := e.value("muster_computes", "fleet_id", last, "location", "custom-home"); ok {
		t.Error("the newest fleet has a series of its own")
	}
}
