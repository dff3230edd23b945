package cell

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"testing"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/session"
)

// world is a cell with a clock that the test sets and a journal that it can replay.
type world struct {
	t       testing.TB
	cell    *Cell
	now     domain.Time
	number  uint64
	journal [][]byte
	seed    uint64
	events  []kernel.Event
}

const testFleet, testLocation, testCompute = "fleet-1", "custom-home", "host"

func newWorld(t testing.TB, config Config) *world {
	return &world{t: t, cell: New(config), now: 1_700_000_000_000, number: 1}
}

// do executes a command as a journal entry of its own.
func (w *world) do(cmd kernel.Command) error {
	w.seed++
	env := kernel.Env{Now: w.now, Number: w.number, Follow: kernel.AllKinds()}
	binary.BigEndian.PutUint64(env.Seed[8:], w.seed)
	emitted, err := w.cell.Execute(cmd, &env)
	w.events = nil
	for _, e := range env.Events {
		w.events = append(w.events, e.Event)
	}
	if emitted {
		w.journal = append(w.journal, env.Batch)
		w.number++
	}
	return err
}

func (w *world) must(cmd kernel.Command) {
	w.t.Helper()
	if err := w.do(cmd); err != nil {
		w.t.Fatalf("%T: %v", cmd, err)
	}
}

// answers runs a command and fails the test unless it is refused for this reason, or succeeds if the reason is 0.
func (w *world) answers(what string, cmd kernel.Command, want domain.Reason) {
	w.t.Helper()
	err := w.do(cmd)
	refusal, _ := errors.AsType[*domain.Refusal](err)
	switch {
	case want == 0 && err != nil:
		w.t.Errorf("%s: %v", what, err)
	case want != 0 && (refusal == nil || refusal.Reason != want):
		w.t.Errorf("%s: %v, want %v", what, err, want)
	}
}

// hall makes a location, a fleet and a compute.
func (w *world) hall() {
	w.must(&hosting.CreateLocation{Name: testLocation, Region: "us-east-1"})
	w.must(&hosting.CreateFleet{Fleet: fleet.Fleet{ID: testFleet, Region: "us-east-1", Name: "dev"}, Locations: []string{testLocation}})
	w.must(&hosting.RegisterCompute{Compute: fleet.Compute{FleetID: testFleet, Name: testCompute, Location: testLocation, IPAddress: "127.0.0.1"}})
}

func processKey(id string) fleet.Key {
	return fleet.Key{Fleet: testFleet, Compute: testCompute, Process: id}
}

// server connects a process and makes it ready and healthy.
func (w *world) server(id string) fleet.Key {
	key := processKey(id)
	w.must(&hosting.ConnectProcess{Process: key, Link: 7, SDK: "Go 5.5.0"})
	w.must(&hosting.ActivateProcess{Process: key, Link: 7, Port: 7777, Request: kernel.RequestHash("activate " + id + fmt.Sprint(w.seed))})
	w.must(&hosting.ReportHealth{Process: key, Healthy: true})
	return key
}

// game starts an ACTIVE game session on a new process.
func (w *world) game(name string, players int32) session.ID {
	key := w.server("p-" + name)
	cmd := &hosting.CreateGameSession{Fleet: testFleet, Location: testLocation, Name: name, PlayersMax: players}
	w.must(cmd)
	w.must(&hosting.PromptGameSession{Process: key, Game: cmd.ID()})
	w.must(&hosting.ActivateGameSession{Process: key, Game: cmd.ID()})
	return cmd.ID()
}

func playerID(n int) (id domain.PlayerSessionID) {
	binary.BigEndian.PutUint64(id[8:], uint64(n)+1)
	binary.LittleEndian.PutUint64(id[:8], mix(uint64(n)))
	return id
}

// restart replaces the test's cell with one that was loaded from its snapshot.
func (w *world) restart() {
	w.t.Helper()
	var snapshot bytes.Buffer
	loaded := New(w.cell.config)
	if err := errors.Join(w.cell.Freeze().Write(&snapshot), loaded.Load(&snapshot)); err != nil {
		w.t.Fatal(err)
	}
	w.cell = loaded
}

// mix spreads a small number over 64 bits (the finaliser of splitmix64).
func mix(x uint64) uint64 {
	x *= 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
