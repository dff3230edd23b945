package export

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/musterhq/muster/internal/audit"
	"github.com/musterhq/muster/internal/domain"
	domainaudit "github.com/musterhq/muster/internal/domain/audit"
	"github.com/musterhq/muster/internal/rate"
	"github.com/musterhq/muster/internal/tracing/otlp"
)

const (
	lookEvery = time.Second // for new entries

	pauseFirst = time.Second // after a failure, and twice as long after each further one
	pauseMax   = 30 * time.Second
	sayEvery   = 10 * time.Minute // between two lines of the log about an unreachable receiver

	// unconfirmedMax is how many entries are sent before they must be confirmed. After each failure it is half as many: a slow receiver that is not
	// done with them in time would otherwise get the same entries for ever.
	unconfirmedMax = 16 * domainaudit.GroupSize

	// gapPatience is how long the worker waits for entries that are missing: a node may be copying them from others.
	gapPatience = time.Minute
)

// worker sends the log to one receiver.
type worker struct {
	engine Engine
	name   string
	to     receiver
	log    *slog.Logger
	said   rate.Lines

	// Of the present term of office.
	done     uint64 // number of the last entry that the receiver has
	most     uint64 // entries to send before they must be confirmed
	gap      uint64 // the number of an entry that is missing; 0: none
	gapSince time.Time

	mu    sync.Mutex
	now   state
	since time.Time // of the oldest entry that waits, by its own time; zero: none does
	moved time.Time // when the receiver got an entry, or had all, or this term of office began
}

// state is what metrics and people see.
type state struct {
	leads                          bool
	waiting                        uint64
	age                            time.Duration // of the oldest entry that waits
	still                          time.Duration // since the receiver got one
	why                            string        // the last attempt failed; empty: it did not
	sent, failures, rejected, gone uint64
}

func (w *worker) status() state {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.now
	if !w.since.IsZero() {
		s.age, s.still = max(0, w.engine.Now().Sub(w.since)), max(0, w.engine.Now().Sub(w.moved))
	}
	return s
}

func (w *worker) change(f func(s *state)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f(&w.now)
}

func (w *worker) moves() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.moved = w.engine.Now()
}

// wait notes how many entries wait, and the time of the oldest.
func (w *worker) wait(waiting uint64, oldest time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now.waiting = waiting
	if waiting == 0 {
		w.moved = w.engine.Now()
	}
	if waiting == 0 || !oldest.IsZero() {
		w.since = oldest
	}
}

func (w *worker) run(ctx context.Context) {
	w.done, w.gap, w.most = 0, 0, unconfirmedMax
	w.said = rate.Lines{Most: 1, Period: sayEvery}
	w.moves()
	w.change(func(s *state) { s.leads = true })
	defer w.change(func(s *state) { s.leads = false })
	defer w.to.drop()
	for failed, pause := 0, lookEvery; ; {
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return
		}
		err := w.turn(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			pause = min(pauseFirst<<min(failed, 10), pauseMax)
			if busy, ok := errors.AsType[*otlp.Busy](err); ok {
				pause = max(pause, busy.After)
			}
			failed++
			w.most = max(w.most/2, 1)
			w.failed(err)
		default:
			if failed > 0 {
				w.log.Info("receiver of the audit log accepts entries again", "receiver", w.name, "entry", w.done)
				w.said = rate.Lines{Most: 1, Period: sayEvery}
			}
			failed, pause = 0, lookEvery
			w.change(func(s *state) { s.why = "" })
		}
	}
}

func (w *worker) failed(err error) {
	w.to.drop()
	w.change(func(s *state) { s.failures++; s.why = err.Error() })
	if write, _ := w.said.Note(time.Now()); write {
		w.log.Warn("receiver of the audit log does not accept entries: they wait, and are sent again", "receiver", w.name, "waiting", w.status().waiting, "error", err)
	}
}

// turn sends the waiting entries. Its error is the receiver's.
func (w *worker) turn(ctx context.Context) error {
	for {
		head, err := w.engine.AuditHere(ctx)
		if err != nil {
			return nil // the node stops, or has lost its office
		}
		recorded := head.Exported(w.name)
		w.done = max(w.done, recorded)
		if w.done > recorded {
			w.record(ctx)
		}
		if w.done >= head.No {
			w.wait(0, time.Time{})
			return nil
		}
		sent, n, err := w.send(ctx, head)
		if err != nil || n == 0 {
			return err
		}
		w.done, w.most = sent, min(2*w.most, unconfirmedMax)
		w.change(func(s *state) { s.sent += n })
		w.moves()
		w.record(ctx)
	}
}

// send sends n entries, at most w.most and the rest of a group, and returns the number of the last one that the receiver has.
func (w *worker) send(ctx context.Context, head domainaudit.Head) (sent, n uint64, err error) {
	for sent = w.done; sent < head.No && n < w.most; {
		docs, err := w.next(ctx, head, sent+1)
		if err != nil || len(docs) == 0 {
			break // what was sent counts, and the next turn sees the rest
		}
		if n == 0 {
			w.wait(head.No-sent, docs[0].At)
		}
		rejected, err := w.to.send(ctx, docs)
		if err != nil {
			return 0, 0, err
		}
		if rejected > 0 {
			w.change(func(s *state) { s.rejected += uint64(rejected) })
			w.log.Error("receiver of the audit log permanently rejects entries: the log has them, but the receiver does not", "receiver", w.name, "entries", rejected,
				"from", docs[0].No, "to", docs[len(docs)-1].No)
		}
		sent = docs[len(docs)-1].No
		n += uint64(len(docs))
	}
	if n == 0 {
		return 0, 0, nil
	}
	return sent, n, w.to.confirm(ctx)
}

// record stores in the state which entries the receiver has. If that fails, the next turn does it.
func (w *worker) record(ctx context.Context) {
	if err := w.engine.Do(ctx, &domainaudit.Exported{Receiver: w.name, No: w.done}); err != nil {
		w.log.Debug("the position of a receiver of the audit log could not be recorded: it is recorded later", "receiver", w.name, "error", err)
	}
}

// next returns entries from a number on, without a gap: the rest of a group. There are none while the worker waits for missing ones. It skips an entry
// that stays missing.
func (w *worker) next(ctx context.Context, head domainaudit.Head, from uint64) (docs []audit.Document, err error) {
	for {
		some, err := w.engine.AuditStored(ctx, from)
		if err != nil {
			return nil, err
		}
		for _, x := range some {
			if x.No < from || x.No > head.No {
				continue
			}
			d, err := audit.DocumentOf(x)
			if err != nil || x.No != from+uint64(len(docs)) {
				break
			}
			docs = append(docs, d)
		}
		if len(docs) > 0 {
			w.gap = 0
			return docs, nil
		}
		if from, err = w.pass(ctx, head, from); err != nil || from == 0 || from > head.No {
			return nil, err
		}
	}
}

// pass returns the number of the entry from which to continue after a missing one; 0: the worker waits for the missing one.
func (w *worker) pass(ctx context.Context, head domainaudit.Head, missing uint64) (next uint64, err error) {
	if next, err = audit.Missing(ctx, w.engine, head, missing); err != nil {
		return 0, err
	}
	if next == missing { // it exists, but cannot be read
		next++
	}
	if next == 0 {
		next = head.No + 1
	}
	if w.gap != missing {
		w.gap, w.gapSince = missing, time.Now()
	}
	expired, err := w.expired(ctx, head, next)
	if err != nil || !expired && time.Since(w.gapSince) < gapPatience {
		return 0, err
	}
	if missing > 1 || !expired { // a new receiver begins with the oldest that is kept
		w.change(func(s *state) { s.gone += next - missing })
		w.log.Error("entries are no longer in the audit log, and a receiver never got them: muster audit verify shows whether they expired", "receiver", w.name, "from", missing, "to", next-1)
	}
	if next > head.No {
		w.done = head.No
	}
	return next, nil
}

// expired reports whether the entry before one has expired.
func (w *worker) expired(ctx context.Context, head domainaudit.Head, no uint64) (bool, error) {
	now := domain.TimeOf(w.engine.Now())
	if no > head.No {
		return head.Until <= now, nil
	}
	some, err := w.engine.AuditStored(ctx, no)
	if err != nil {
		return false, err
	}
	for _, x := range some {
		if x.No == no {
			e, err := domainaudit.Decode(x.Data)
			return err == nil && e.PreviousUntil <= now, nil
		}
	}
	return false, nil
}
