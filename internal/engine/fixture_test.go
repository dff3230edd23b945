package engine_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/musterhq/muster/internal/archive/archivetest"
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/session"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/journal"
	"github.com/musterhq/muster/internal/journal/journaltest"
)

const (
	testFleet, testLocation, testCompute = "fleet-1", "custom-home", "host"
	manyWaiters                          = 32
)

// house has the disks of an installation, and the engine on them.
type house struct {
	t      *testing.T
	disk   *journaltest.Memory
	vault  *archivetest.Memory
	config engine.Config
	gate   *gate
	*engine.Engine
	close func() error
}

func newHouse(t *testing.T, config engine.Config) *house {
	h := &house{t: t, disk: journaltest.NewMemory(1), vault: archivetest.NewMemory(1), config: config}
	if h.config.Cell == (cell.Config{}) {
		h.config.Cell = cell.DefaultConfig()
	}
	h.open()
	t.Cleanup(func() { h.gate.open(); _ = h.close() })
	return h
}

// open opens the engine on the present disks.
func (h *house) open() {
	h.t.Helper()
	j, err := h.disk.Open()
	if err != nil {
		h.t.Fatal(err)
	}
	a, err := h.vault.Open()
	if err != nil {
		h.t.Fatal(err)
	}
	h.gate = &gate{Journal: j}
	h.config.Journal, h.config.Archive = h.gate, a
	if h.Engine, err = engine.Open(h.t.Context(), h.config); err != nil {
		h.t.Fatal(err)
	}
	e := h.Engine
	h.close = sync.OnceValue(func() error { return errors.Join(e.Close(), j.Close(), a.Close()) })
}

// reopen closes the engine and opens it again.
func (h *house) reopen() {
	h.t.Helper()
	_ = h.close()
	h.open()
}

func (h *house) must(cmd kernel.Command) {
	h.t.Helper()
	if err := h.Do(h.t.Context(), cmd); err != nil {
		h.t.Fatalf("%T: %v", cmd, err)
	}
}

// hall makes a location, a fleet and a compute.
func (h *house) hall() {
	h.t.Helper()
	h.must(&hosting.CreateLocation{Name: testLocation})
	h.must(&hosting.CreateFleet{Fleet: fleet.Fleet{ID: testFleet}, Locations: []string{testLocation}})
	h.must(&hosting.RegisterCompute{Compute: fleet.Compute{FleetID: testFleet, Name: testCompute, Location: testLocation, IPAddress: "127.0.0.1"}})
}

var links atomic.Uint64

// server makes a process that is ready and healthy. The id may be reused after the process has ended.
func (h *house) server(id string) fleet.Key {
	h.t.Helper()
	key := fleet.Key{Fleet: testFleet, Compute: testCompute, Process: id}
	link := links.Add(1)
	h.must(&hosting.ConnectProcess{Process: key, Link: link})
	h.must(&hosting.ActivateProcess{Process: key, Link: link, Port: 7777, Request: kernel.RequestHash(fmt.Sprint(id, link))})
	h.must(&hosting.ReportHealth{Process: key, Healthy: true})
	return key
}

// game starts an ACTIVE game session on a new process.
func (h *house) game(name string, players int32) session.ID {
	h.t.Helper()
	key := h.server("p-" + name)
	cmd := &hosting.CreateGameSession{Fleet: testFleet, Location: testLocation, Name: name, PlayersMax: players}
	h.must(cmd)
	h.must(&hosting.ActivateGameSession{Process: key, Game: cmd.Game.ID})
	return cmd.Game.ID
}

// held returns the number of occupied seats of a game session.
func (h *house) held(id session.ID) int32 {
	h.t.Helper()
	g, err := h.GameSession(h.t.Context(), id)
	if err != nil {
		h.t.Fatal(err)
	}
	return g.SeatsHeld
}

func (h *house) reserve(game session.ID, n int) error {
	return h.Do(context.Background(), &hosting.ReservePlayers{Game: game, Players: []hosting.NewPlayer{{ID: playerID(n), Player: fmt.Sprint("player-", n)}}})
}

func playerID(n int) (id domain.PlayerSessionID) {
	binary.BigEndian.PutUint64(id[8:], uint64(n)+1)
	return id
}

// gate is a journal whose appends the test can hold.
type gate struct {
	journal.Journal
	lock     sync.Mutex
	closed   chan struct{} // nil while appends pass
	held     atomic.Int64  // appends that wait
	appended atomic.Int64
	largest  atomic.Int64
}

func (g *gate) shut() {
	g.lock.Lock()
	defer g.lock.Unlock()
	g.closed = make(chan struct{})
}

func (g *gate) open() {
	g.lock.Lock()
	defer g.lock.Unlock()
	if g.closed != nil {
		close(g.closed)
		g.closed = nil
	}
}

func (g *gate) Append(ctx context.Context, next uint64, batch []byte) error {
	g.lock.Lock()
	closed := g.closed
	g.lock.Unlock()
	if closed != nil {
		g.held.Add(1)
		<-closed
		g.held.Add(-1)
	}
	g.appended.Add(1)
	g.largest.Store(max(g.largest.Load(), int64(len(batch))))
	return g.Journal.Append(ctx, next, batch)
}
