package playerwatch_test

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/playerflow"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/engine/enginetest"
	"github.com/musterhq/muster/internal/logtest"
	"github.com/musterhq/muster/internal/playerwatch"
)

// values returns the metrics by name and labels, as far as they are plain numbers.
func values(t *testing.T, c prometheus.Collector) map[string]float64 {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(c)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			name := strings.TrimPrefix(f.GetName(), "muster_flow_")
			for _, l := range m.GetLabel() {
				name += " " + l.GetValue()
			}
			all[name] = m.GetGauge().GetValue() + m.GetCounter().GetValue()
		}
	}
	return all
}

// TestWatch: the metrics count commits, and survey the present records.
func TestWatch(t *testing.T) {
	settings := flow.DefaultConfig()
	config := cell.DefaultConfig()
	config.PlayerFlow.Flow = &settings
	clock := engine.NewClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	e := enginetest.Open(t, engine.Config{Cell: config, Clock: clock})
	log := &logtest.Log{}
	w := playerwatch.Start(playerwatch.Config{Engine: e, Log: slog.New(slog.NewTextHandler(log, nil)), Every: time.Hour})
	w.Lead()
	defer w.Close()
	must := func(cmd kernel.Command) {
		t.Helper()
		if err := e.Do(t.Context(), cmd); err != nil {
			t.Fatal(err)
		}
	}
	for i, player := range []string{"ann", "bob", "cyd"} {
		id := domain.UUID{0: 0xf1, 1: byte(i)}
		must(&playerflow.Login{Player: player, LoginSessionID: flow.LoginSessionID(id), Token: domain.UUID{0: 0xf2, 1: byte(i)}})
		if player != "cyd" {
			must(&playerflow.CreateParty{Caller: playerflow.Caller{Player: player, LoginSessionID: flow.LoginSessionID(id)}, ID: flow.PartyID{0: 0xf3, 1: byte(i)}})
		}
	}
	must(&playerflow.ForceRelease{Player: "bob", Party: true})
	must(&playerflow.SetPenalty{Player: "cyd", Penalty: flow.Penalty{Kind: flow.ByOperator, Level: 1}})
	if err := e.Advance(t.Context(), 0); err != nil { // the followers have been told then
		t.Fatal(err)
	}
	if err := w.Survey(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := values(t, w)
	for name, want := range map[string]float64{
		"commits_total CreateParty": 2, "commits_total ForceRelease": 1, "key_changes_total": 3, "penalties_total OPERATOR": 1,
		"players IDLE": 2, "players IN_PARTY": 1, "players MATCHMAKING": 0, "players_by_presence OFFLINE": 3,
		"invariant_violations": 0, "invariant_violations_total": 0, "deadline_lag_seconds": 0,
	} {
		if value, ok := got[name]; !ok || value != want {
			t.Errorf("%s is %v (there: %t), want %v", name, value, ok, want)
		}
	}
	if text := log.String(); text != "" {
		t.Errorf("the log has %s", text)
	}
}
