package sessionwatch

import (
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/membership"
	"github.com/musterhq/muster/internal/domain/placement"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/engine/enginetest"
	"github.com/musterhq/muster/internal/logtest"
)

// scene is a cell with a fleet and a queue, and its log.
type scene struct {
	*testing.T
	engine *engine.Engine
	log    logtest.Log
	watch  *Watch
	offset atomic.Int64
}

func newScene(t *testing.T) *scene {
	t.Helper()
	s := &scene{T: t}
	s.engine = enginetest.Open(t, engine.Config{
		Cell: cell.DefaultConfig(),
		Now:  func() time.Time { return time.Now().Add(time.Duration(s.offset.Load())) },
	})
	s.watch = Start(Config{Engine: s.engine, Log: slog.New(slog.NewTextHandler(&s.log, nil)), Each: 20, Period: time.Hour})
	s.watch.Lead()
	t.Cleanup(s.watch.Close)
	s.do(&hosting.CreateLocation{Name: "custom-a", Region: "us-east-1"})
	s.do(&hosting.CreateFleet{Fleet: fleet.Fleet{ID: "fleet-1", Region: "us-east-1", Name: "f"}, Locations: []string{"custom-a"}})
	s.do(&hosting.RegisterCompute{Compute: fleet.Compute{FleetID: "fleet-1", Name: "host", Location: "custom-a", IPAddress: "127.0.0.1"}})
	s.do(&hosting.CreateQueue{Queue: placement.Queue{
		Name: "q", Region: "us-east-1", Timeout: time.Minute, Destinations: []string{"arn:aws:gamelift:us-east-1::fleet/fleet-1"},
	}})
	return s
}

func (s *scene) do(cmd kernel.Command) {
	s.Helper()
	if err := s.engine.Do(s.Context(), cmd); err != nil {
		s.Fatalf("%T: %v", cmd, err)
	}
}

func (s *scene) ready(process string, link uint64) fleet.Key {
	s.Helper()
	key := fleet.Key{Fleet: "fleet-1", Compute: "host", Process: process}
	s.do(&hosting.ConnectProcess{Process: key, Link: link, SDK: "Go 5.5.0"})
	s.do(&hosting.ActivateProcess{Process: key, Link: link, Port: 7777, Request: link})
	s.do(&hosting.ReportHealth{Process: key, Healthy: true})
	return key
}

// says waits for a line with all of the parts.
func (s *scene) says(parts ...string) {
	s.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(2 * time.Millisecond) {
		for line := range strings.Lines(s.log.String()) {
			if !strings.Contains(line, parts[0]) {
				continue
			}
			all := true
			for _, part := range parts[1:] {
				all = all && strings.Contains(line, part)
			}
			if all {
				return
			}
		}
		if time.Now().After(end) {
			s.Fatalf("no line with %q in\n%s", parts, s.log.String())
		}
	}
}

func (s *scene) later(d time.Duration) {
	s.offset.Add(int64(d))
	s.engine.Poke()
}

func TestTheLogTellsOfSessionsAndServers(t *testing.T) {
	s := newScene(t)
	refused := &hosting.CreateGameSession{Fleet: "fleet-1", Location: "custom-a", Name: "g0", PlayersMax: 4}
	if err := s.engine.Do(t.Context(), refused); err == nil {
		t.Fatal("a game session without a server process")
	}
	s.says("game session refused", "level=INFO", "fleet=fleet-1", "location=custom-a", "reason=NoCapacity", "no server process is connected in custom-a")

	key := s.ready("p1", 1)
	s.says(`msg="server process connected"`, "process=fleet-1/host/p1", `sdk="Go 5.5.0"`)
	s.says("server process ready", "port=7777")
	s.do(&hosting.LoseLink{Process: key, Link: 1})
	s.says("server process disconnected", "process=fleet-1/host/p1")
	s.do(&hosting.ConnectProcess{Process: key, Link: 2, SDK: "Go 5.5.0"})
	s.says("server process reconnected")

	s.do(&hosting.StartPlacement{Placement: placement.Placement{ID: "first", Queue: "q", PlayersMax: 4}})
	s.says("game session created", "game_session=fleet-1/custom-a/first", "process=fleet-1/host/p1", "placement=first")
	s.do(&hosting.StartPlacement{Placement: placement.Placement{ID: "second", Queue: "q", PlayersMax: 4, Players: []placement.Player{{Player: "ann", ID: domain.PlayerSessionID{1}}}}})
	s.do(&hosting.ActivateGameSession{Process: key, Game: "fleet-1/custom-a/first"})
	s.later(61 * time.Second)
	s.says("placement got no game session", "placement=second", "status=TIMED_OUT", `places="NO_FREE_PROCESS 1"`, "the only server process in custom-a hosts a game session")

	s.do(&hosting.LoseLink{Process: key, Link: 2})
	s.later(10 * time.Minute)
	s.says("game session ended", "game_session=fleet-1/custom-a/first", "reason=SERVER_CRASHED")
	s.says("server process ended abnormally", "level=WARN", "reason=CRASHED")
	other := s.ready("p2", 3)
	s.do(&hosting.EndProcess{Process: other, Request: 9})
	s.says(`msg="server process ended"`, "process=fleet-1/host/p2", "reason=ENDED")

	node := domain.UUID{7}
	s.do(&membership.BeginNode{Node: node, Name: "n"})
	s.do(&hosting.ConnectProcess{Process: fleet.Key{Fleet: "fleet-1", Compute: "host", Process: "p3"}, Link: 4, Node: node})
	s.do(&membership.LoseNode{Node: node})
	s.says("server processes disconnected", "processes=1")

	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(s.watch)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			name := f.GetName()
			for _, l := range m.GetLabel() {
				name += " " + l.GetValue()
			}
			got[name] = m.GetCounter().GetValue()
		}
	}
	for name, want := range map[string]float64{
		"muster_server_processes_started_total": 3, "muster_server_processes_ended_total CRASHED": 1, "muster_server_processes_ended_total ENDED": 1,
		"muster_server_process_disconnections_total": 3, "muster_game_sessions_created_total": 1, "muster_game_sessions_ended_total SERVER_CRASHED": 1,
		"muster_placements_ended_total FULFILLED": 1, "muster_placements_ended_total TIMED_OUT": 1, "muster_game_sessions_refused_total NoCapacity": 1,
	} {
		if got[name] != want {
			t.Errorf("%s is %v, want %v", name, got[name], want)
		}
	}
}
