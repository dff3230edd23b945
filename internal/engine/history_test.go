package engine_test

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/archive"
	"github.com/musterhq/muster/internal/archive/archivetest"
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/session"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/waittest"
)

// inMemory returns the number of ended records in memory.
func (h *house) inMemory() (ended int) {
	h.t.Helper()
	if err := h.Read(h.t.Context(), func(v *cell.View) error { ended = v.Totals().Ended; return nil }); err != nil {
		h.t.Fatal(err)
	}
	return ended
}

// TestListsBesideTheMove: while ended records move to the archive, every list has each record once, in order.
func TestListsBesideTheMove(t *testing.T) {
	h := newHouse(t, engine.Config{EndedLinger: time.Nanosecond})
	h.hall()
	const games, players = 60, 3
	for i := range games {
		game := h.game(fmt.Sprintf("g%02d", i), players)
		for j := range players {
			cmd := &hosting.ReservePlayers{Game: game, Players: []hosting.NewPlayer{{ID: playerID(players*i + j), Player: "ann"}}}
			h.must(cmd)
		}
	}
	first := session.MakeID(testFleet, testLocation, "g00")
	var work sync.WaitGroup
	work.Go(func() {
		for i := range games {
			h.must(&hosting.EndProcess{Process: fleet.Key{Fleet: testFleet, Compute: testCompute, Process: fmt.Sprintf("p-g%02d", i)}, Request: 1})
			time.Sleep(10 * time.Millisecond)
		}
	})
	rounds := 0
	for done := false; !done || h.inMemory() > 0; rounds++ {
		h.listGames(games, 1+rounds%70)
		h.listPlayers("by player", games*players, 1+rounds%50, func(after engine.PlayerPlace, limit int) ([]hosting.PlayerSession, bool, error) {
			return h.PlayersNamed(t.Context(), "ann", after, limit)
		})
		h.listPlayers("by game session", players, 1+rounds%4, func(after engine.PlayerPlace, limit int) ([]hosting.PlayerSession, bool, error) {
			return h.PlayersIn(t.Context(), first, 0, after, limit)
		})
		for i := range 3 {
			if _, err := h.PlayerSession(t.Context(), playerID((rounds*7+i)%(games*players))); err != nil {
				t.Fatalf("round %d: %v", rounds, err)
			}
		}
		g, err := h.GameSession(t.Context(), session.MakeID(testFleet, testLocation, fmt.Sprintf("g%02d", games-1)))
		done = err == nil && !g.Live()
		if t.Failed() {
			break
		}
	}
	work.Wait()
	if page, _, err := h.PlayersIn(t.Context(), first, session.TimedOut, engine.PlayerPlace{}, 10); err != nil || len(page) != players {
		t.Errorf("%d player sessions timed out, %v", len(page), err)
	}
	if page, _, err := h.GameSessions(t.Context(), testFleet, hosting.GameFilter{Status: session.Active}, hosting.GamePlace{}, 10); err != nil || len(page) != 0 {
		t.Errorf("%d game sessions are ACTIVE, %v", len(page), err)
	}
}

func (h *house) listGames(want, limit int) {
	h.t.Helper()
	seen := map[session.ID]bool{}
	for after, more := (hosting.GamePlace{}), true; more; {
		var page []session.GameSession
		var err error
		page, more, err = h.GameSessions(h.t.Context(), testFleet, hosting.GameFilter{}, after, limit)
		if err != nil {
			h.t.Fatal(err)
		}
		for _, g := range page {
			if seen[g.ID] || g.Created < after.Created || g.Created == after.Created && g.ID <= after.ID {
				h.t.Fatalf("pages of %d: %s comes twice or out of order", limit, g.ID)
			}
			seen[g.ID], after = true, hosting.GamePlace{Created: g.Created, ID: g.ID}
		}
	}
	if len(seen) != want {
		h.t.Fatalf("pages of %d: %d game sessions, want %d", limit, len(seen), want)
	}
}

func (h *house) listPlayers(how string, want, limit int, next func(engine.PlayerPlace, int) ([]hosting.PlayerSession, bool, error)) {
	h.t.Helper()
	seen := map[domain.UUID]bool{}
	for after, more := (engine.PlayerPlace{}), true; more; {
		var page []hosting.PlayerSession
		var err error
		page, more, err = next(after, limit)
		if err != nil {
			h.t.Fatal(err)
		}
		for _, p := range page {
			if seen[domain.UUID(p.ID)] {
				h.t.Fatalf("%s, pages of %d: %s comes twice", how, limit, p.ID)
			}
			seen[domain.UUID(p.ID)], after = true, engine.PlayerPlace{Created: p.Created, ID: p.ID}
		}
	}
	if len(seen) != want {
		h.t.Fatalf("%s, pages of %d: %d player sessions, want %d", how, limit, len(seen), want)
	}
}

// TestTokensStayTaken: one token gives one game session, for all callers, also when it is in the archive.
func TestTokensStayTaken(t *testing.T) {
	h := newHouse(t, engine.Config{EndedLinger: time.Nanosecond})
	h.hall()
	const tokens, callers = 12, 8
	for i := range tokens + 1 {
		h.server(fmt.Sprint("p", i))
	}
	created := make([]sync.Map, tokens) // by the time of creation and the process
	var stop atomic.Bool
	var work sync.WaitGroup
	for caller := range callers {
		work.Go(func() {
			for i := caller; !stop.Load(); i++ {
				cmd := &hosting.CreateGameSession{Fleet: testFleet, Location: testLocation, Name: fmt.Sprint("token-", i%tokens), PlayersMax: 4, Parameters: 5}
				if err := h.Do(t.Context(), cmd); err != nil {
					t.Errorf("create: %v", err)
					return
				}
				created[i%tokens].Store(fmt.Sprint(cmd.Game.Created, cmd.Game.ProcessID), true)
			}
		})
	}
	waittest.Until(t, "all game sessions", func() bool {
		page, _, err := h.GameSessions(t.Context(), testFleet, hosting.GameFilter{}, hosting.GamePlace{}, 100)
		return err == nil && len(page) == tokens
	})
	for i := range tokens + 1 {
		h.must(&hosting.EndProcess{Process: fleet.Key{Fleet: testFleet, Compute: testCompute, Process: fmt.Sprint("p", i)}, Request: 1})
	}
	waittest.Until(t, "the move to the archive", func() bool { return h.inMemory() == 0 })
	stop.Store(true)
	work.Wait()
	for i := range created {
		n := 0
		created[i].Range(func(_, _ any) bool { n++; return true })
		if n != 1 {
			t.Errorf("token %d gave %d game sessions", i, n)
		}
	}
	other := &hosting.CreateGameSession{Fleet: testFleet, Location: testLocation, Name: "token-0", PlayersMax: 4, Parameters: 6}
	if err := h.Do(t.Context(), other); !domain.IsRefused(err, domain.TokenMismatch) {
		t.Errorf("other parameters for a token in the archive: %v", err)
	}
}

// TestFailedArchive: the engine stops when the archive fails, because ended records would otherwise fill memory.
func TestFailedArchive(t *testing.T) {
	h := newHouse(t, engine.Config{EndedLinger: time.Nanosecond})
	h.hall()
	game := h.game("g1", 4)
	h.vault.FailNext(archivetest.Written)
	h.must(&hosting.EndProcess{Process: fleet.Key{Fleet: testFleet, Compute: testCompute, Process: "p-g1"}, Request: 1})
	<-h.Stopped()
	if err := h.Err(); !errors.Is(err, archive.ErrFailed) {
		t.Errorf("Err: %v", err)
	}
	h.reopen()
	waittest.Until(t, "the move to the archive", func() bool { return h.inMemory() == 0 })
	if g, err := h.GameSession(t.Context(), game); err != nil || g.Live() {
		t.Errorf("%s is %s, %v", game, g.Status, err)
	}
}
