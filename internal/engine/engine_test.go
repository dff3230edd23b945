package engine_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/session"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/journal"
	"github.com/musterhq/muster/internal/journal/journaltest"
	"github.com/musterhq/muster/internal/waittest"
)

// TestSeatsAreSoldOnce: many callers compete for the seats of one game session while others read it.
func TestSeatsAreSoldOnce(t *testing.T) {
	h := newHouse(t, engine.Config{})
	h.hall()
	const seats, callers, each = 100, manyWaiters, 10
	game := h.game("g1", seats)
	var sold, full, looks atomic.Int64
	var callersDone, readersDone sync.WaitGroup
	stop := make(chan struct{})
	for range 4 {
		readersDone.Go(func() {
			for last := int32(0); ; looks.Add(1) {
				now := h.held(game)
				if now > seats || now < last {
					t.Errorf("%d of %d seats are held, %d were before", now, seats, last)
				}
				last = now
				select {
				case <-stop:
					return
				default:
				}
			}
		})
	}
	for caller := range callers {
		callersDone.Go(func() {
			for i := range each {
				switch err := h.reserve(game, caller*each+i); {
				case err == nil:
					sold.Add(1)
				case domain.IsRefused(err, domain.Full):
					full.Add(1)
				default:
					t.Errorf("reserve: %v", err)
				}
			}
		})
	}
	callersDone.Wait()
	close(stop)
	readersDone.Wait()
	if sold.Load() != seats || full.Load() != callers*each-seats {
		t.Errorf("%d seats sold and %d refused, want %d and %d", sold.Load(), full.Load(), seats, callers*each-seats)
	}
	h.reopen()
	if held := h.held(game); held != seats {
		t.Errorf("%d seats held after a restart, want %d", held, seats)
	}
}

// TestReadsWaitForWhatTheySaw: a read that saw a change which is not durable yet waits for it. Other reads do not wait.
func TestReadsWaitForWhatTheySaw(t *testing.T) {
	h := newHouse(t, engine.Config{})
	h.hall()
	seen, other := h.game("g1", 4), h.game("g2", 4)
	h.gate.shut()
	wrote := make(chan error, 1)
	go func() { wrote <- h.reserve(seen, 1) }()
	waittest.Until(t, "the append", func() bool { return h.gate.held.Load() == 1 })
	if held := h.held(other); held != 0 {
		t.Errorf("%d seats of the other game session are held", held)
	}
	read, refused := make(chan int32, 1), make(chan error, 1)
	go func() { read <- h.held(seen) }()
	go func() { refused <- h.Do(t.Context(), &hosting.ReservePlayers{Game: "fleet-1/x/none"}) }()
	short, cancel := context.WithCancel(t.Context())
	gaveUp := make(chan error, 1)
	go func() { _, err := h.GameSession(short, seen); gaveUp <- err }()
	cancel()
	if err := <-gaveUp; !errors.Is(err, context.Canceled) {
		t.Errorf("the cancelled read got %v", err)
	}
	select {
	case <-read:
		t.Error("a read returned a change that was not durable")
	case <-refused:
		t.Error("a refusal was returned before what it had read was durable")
	case <-wrote:
		t.Error("a command was answered before it was durable")
	default:
	}
	h.gate.open()
	if held := <-read; held != 1 {
		t.Errorf("the read saw %d seats held, want 1", held)
	}
	if err := <-refused; !domain.IsRefused(err, domain.NotFound) {
		t.Errorf("the refusal became %v", err)
	}
	if err := <-wrote; err != nil {
		t.Errorf("the command got %v", err)
	}
}

// TestFailedAppend: all waiting callers get ErrStopped, and written entries count after a restart.
func TestFailedAppend(t *testing.T) {
	for name, fault := range map[string]journaltest.Fault{"not written": journaltest.NotWritten, "written": journaltest.Written, "unsynced": journaltest.Unsynced} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t, engine.Config{})
			h.hall()
			game, other := h.game("g1", 200), h.game("g2", 4)
			h.gate.shut()
			h.disk.FailNext(fault)
			answers := make(chan error, 3*manyWaiters)
			first := make(chan error, 1)
			go func() { first <- h.reserve(game, 0) }()
			waittest.Until(t, "the append", func() bool { return h.gate.held.Load() == 1 })
			for i := range manyWaiters {
				go func() { answers <- h.reserve(game, i+1) }()
				go func() { answers <- h.Do(t.Context(), &hosting.DeleteLocation{Name: "none"}) }() // refused, after a change that is not durable
				go func() { _, err := h.GameSession(t.Context(), game); answers <- err }()
			}
			h.gate.open()
			for range 3 * manyWaiters {
				if err := <-answers; !errors.Is(err, engine.ErrStopped) || !errors.Is(err, journaltest.ErrDisk) {
					t.Errorf("a waiting caller got %v", err)
				}
			}
			if err := <-first; !errors.Is(err, engine.ErrStopped) {
				t.Errorf("the first got %v", err)
			}
			<-h.Stopped()
			if err := h.reserve(game, 9999); !errors.Is(err, engine.ErrStopped) {
				t.Errorf("afterwards: %v", err)
			}
			if held := h.held(other); held != 0 {
				t.Errorf("a read of what was durable before saw %d seats held", held)
			}
			if err := h.close(); !errors.Is(err, journaltest.ErrDisk) || !errors.Is(h.Err(), journaltest.ErrDisk) {
				t.Errorf("Close: %v, Err: %v", err, h.Err())
			}
			h.open()
			want := int32(1)
			if fault == journaltest.NotWritten {
				want = 0
			}
			if held := h.held(game); held != want {
				t.Errorf("%d seats held after a restart, want %d", held, want)
			}
		})
	}
}

// TestCloseUnderLoad: all callers are answered, and acknowledged changes exist afterwards.
func TestCloseUnderLoad(t *testing.T) {
	h := newHouse(t, engine.Config{})
	h.hall()
	game := h.game("g1", 200)
	var numbers, acknowledged atomic.Int64
	var acked sync.Map
	var callers sync.WaitGroup
	for range manyWaiters {
		callers.Go(func() {
			for {
				n := int(numbers.Add(1))
				err := h.reserve(game, n)
				switch {
				case err == nil:
					acked.Store(n, true)
					acknowledged.Add(1)
				case errors.Is(err, engine.ErrStopped):
					return
				case !domain.IsRefused(err, domain.Full):
					t.Errorf("reserve: %v", err)
				}
			}
		})
	}
	waittest.Until(t, "some reservations", func() bool { return acknowledged.Load() > 20 })
	if err := h.close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	callers.Wait()
	if err := h.Err(); err != nil {
		t.Errorf("Err after Close: %v", err)
	}
	h.open()
	acked.Range(func(n, _ any) bool {
		if _, err := h.PlayerSession(t.Context(), playerID(n.(int))); err != nil {
			t.Errorf("player session %d was acknowledged: %v", n, err)
		}
		return true
	})
}

// TestSnapshotsUnderLoad: snapshots are taken while commands continue, and a restart from one has everything.
func TestSnapshotsUnderLoad(t *testing.T) {
	h := newHouse(t, engine.Config{SnapshotEvery: 4 << 10})
	h.hall()
	var games []session.ID
	for i := range 8 {
		games = append(games, h.game(string(rune('a'+i)), 200))
	}
	var callers sync.WaitGroup
	for caller := range 8 {
		callers.Go(func() {
			for i := range 100 {
				if err := h.reserve(games[caller], caller*1000+i); err != nil {
					t.Errorf("reserve: %v", err)
				}
			}
		})
	}
	callers.Wait()
	waittest.Until(t, "a snapshot", func() bool { return h.snapshotAt() > 0 })
	for round := range 3 {
		h.reopen()
		for caller, game := range games {
			if held := h.held(game); held != 100 {
				t.Fatalf("round %d: game session %d has %d seats held, want 100", round, caller, held)
			}
		}
	}
}

func (h *house) snapshotAt() uint64 {
	at, r, err := h.config.Journal.LatestSnapshot(h.t.Context())
	if err != nil {
		h.t.Fatal(err)
	}
	if r != nil {
		r.Close()
	}
	return at
}

// TestJournalDoesNotGrow: an engine counts the entries that it replays towards the next snapshot, so that frequent restarts do not let
// the journal grow.
func TestJournalDoesNotGrow(t *testing.T) {
	h := newHouse(t, engine.Config{SnapshotEvery: 6 << 10})
	h.hall()
	game := h.game("g1", 200)
	for n := range 200 {
		if h.snapshotAt() > 0 {
			return
		}
		if err := h.reserve(game, n); err != nil {
			t.Fatal(err)
		}
		if n%20 == 0 {
			h.reopen()
		}
	}
	waittest.Until(t, "a snapshot after ten restarts", func() bool { return h.snapshotAt() > 0 })
}

// TestOverload: commands beyond QueueMax are refused at once.
func TestOverload(t *testing.T) {
	h := newHouse(t, engine.Config{QueueMax: 10})
	h.hall()
	release, reading := make(chan struct{}), make(chan struct{})
	go func() {
		_ = h.Read(context.Background(), func(*cell.View) error { close(reading); <-release; return nil })
	}()
	<-reading
	answers := make(chan error, 4000)
	for range 40 {
		go func() { answers <- h.Do(context.Background(), &hosting.DeleteLocation{Name: "none"}) }()
	}
	overloaded := 0
	for range 10 { // the others wait: ten in the queue, and some that were taken from it before
		if err := <-answers; domain.IsRefused(err, domain.Overloaded) {
			overloaded++
		}
	}
	left := 30
	for now, most := h.Waiting(); now != most; now, most = h.Waiting() { // fewer, if the engine took those in the queue late
		if most != 10 {
			t.Fatalf("%d of %d commands wait, want 10 of 10", now, most)
		}
		go func() { answers <- h.Do(context.Background(), &hosting.DeleteLocation{Name: "none"}) }()
		left++
		time.Sleep(time.Millisecond)
	}
	close(release)
	for range left {
		if err := <-answers; domain.IsRefused(err, domain.Overloaded) {
			overloaded++
		} else if !domain.IsRefused(err, domain.NotFound) {
			t.Errorf("a waiting caller got %v", err)
		}
	}
	if overloaded < 10 {
		t.Errorf("%d were refused as too many, want at least 10", overloaded)
	}
}

// TestGroupsStayAppendable: while one append hangs, large commands gather in groups that the journal still accepts.
func TestGroupsStayAppendable(t *testing.T) {
	h := newHouse(t, engine.Config{})
	h.hall()
	game := h.game("g1", 200)
	h.gate.shut()
	answers := make(chan error, 200)
	large := strings.Repeat("x", 512<<10)
	for i := range 150 {
		go func() {
			answers <- h.Do(context.Background(), &hosting.ReservePlayers{Game: game, Players: []hosting.NewPlayer{{ID: playerID(i), Player: "ann", Data: large}}})
		}()
	}
	waittest.Until(t, "the append", func() bool { return h.gate.held.Load() == 1 })
	h.gate.open()
	for range 150 {
		if err := <-answers; err != nil {
			t.Fatal(err)
		}
	}
	if largest := h.gate.largest.Load(); largest > journal.MaxBatchBytes*3/4 {
		t.Errorf("a group of %d bytes", largest)
	}
}

// TestReadThatPanics: a read that panics does not affect other callers.
func TestReadThatPanics(t *testing.T) {
	h := newHouse(t, engine.Config{})
	func() {
		defer func() { _ = recover() }()
		_ = h.Read(t.Context(), func(*cell.View) error { panic("in a front end") })
	}()
	h.hall()
}
