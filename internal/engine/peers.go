package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/answers"
	"github.com/musterhq/muster/internal/domain/commandcodec"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/tracing"
)

// Peers reaches the leader from any node. Its methods may be called concurrently. An error is ErrNotLeading if nothing has happened, because there is
// no leader or it cannot be reached, and ErrStopped if the connection was lost after the request was sent.
type Peers interface {
	// Execute sends a command to the leader, which executes it with ExecuteFor. It returns the answer or error of ExecuteFor.
	Execute(ctx context.Context, r *Request) (answer []byte, err error)
	// Index returns the number of the journal entry up to which a linearizable read that began before the call must wait.
	Index(ctx context.Context) (uint64, error)
	// Verify returns nil if this node is the leader and no other node has decided anything before the call.
	Verify(ctx context.Context) error
}

// Request is a command that one node asks another to execute. It takes effect at most once, however often it is sent; package answers explains how.
type Request struct {
	Asker   domain.UUID // the process that sends the request
	No      uint64      // counts the requests of the asker
	Attempt uint64      // from 1: how often it has been sent
	Settled uint64      // the asker will not send lower numbers again
	Command commandcodec.Asked
	Trace   string `cbor:",omitempty"` // the traceparent of the command's trace; empty: none
}

// Undecided is a refusal of a command that never reached the core, because the queue or the disk is full or the archive cannot be read. An earlier
// attempt may still have taken effect.
type Undecided struct{ *domain.Refusal }

// Unwrap returns the refusal.
func (u *Undecided) Unwrap() error { return u.Refusal }

const (
	retryFirst = 5 * time.Millisecond // pause before the next attempt to reach the leader; doubles up to retryMost
	retryMost  = 100 * time.Millisecond
)

// ExecuteFor executes another node's command and returns its answer once it is durable. The error is a refusal, *Undecided, ErrNotLeading or
// ErrStopped.
func (e *Engine) ExecuteFor(ctx context.Context, r *Request) (answer []byte, err error) {
	if err := ctx.Err(); err != nil {
		return nil, ErrNotLeading
	}
	form, err := r.Command.Parse()
	if err != nil {
		return nil, &Undecided{domain.Refuse(domain.Invalid, "%v", err)}
	}
	cmd, err := form.Command()
	if err != nil {
		return nil, &Undecided{domain.Refuse(domain.Invalid, "%v", err)}
	}
	once := onceOf(r, cmd, form)
	if err := e.executeTraced(ctx, r.Trace, once); err != nil {
		return nil, err
	}
	if len(once.Answer) > 0 {
		return once.Answer, nil
	}
	return form.Answer(cmd) // the command was not refused but changed nothing
}

func onceOf(r *Request, cmd kernel.Command, form *commandcodec.Form) *answers.Once {
	return &answers.Once{Command: cmd, Asker: r.Asker, Request: r.No, Attempt: r.Attempt, Settled: r.Settled, Form: form}
}

// execute executes a request on this node.
func (e *Engine) execute(ctx context.Context, once *answers.Once) error {
	err := e.decide(ctx, once)
	switch {
	case errors.Is(err, ErrNotLeading), errors.Is(err, ErrStopped), once.Changed:
		return err
	case once.Lost:
		return fmt.Errorf("%w: %w", ErrStopped, err)
	case !once.Decided:
		return undecided(err)
	}
	// The command changed nothing, so no append has proved that this node still leads, and what it read may be stale.
	if once.Attempt == 1 {
		if verified := e.config.Peers.Verify(ctx); verified != nil {
			return ErrNotLeading
		}
		return err
	}
	return e.void(ctx, once, err)
}

// void durably records that a request had no effect although it was sent before, and returns err. If an earlier attempt has arrived meanwhile, its
// outcome counts instead.
func (e *Engine) void(ctx context.Context, once *answers.Once, err error) error {
	switch failed := e.submit(ctx, &answers.Void{Once: once}); {
	case errors.Is(failed, ErrNotLeading), errors.Is(failed, ErrStopped): // also if an earlier attempt's effect may not be durable
		return failed
	case once.Lost:
		return fmt.Errorf("%w: %w", ErrStopped, failed)
	case once.Changed:
		return nil
	case failed != nil:
		return undecided(failed)
	}
	return err
}

func undecided(err error) error {
	refusal, ok := errors.AsType[*domain.Refusal](err)
	if !ok {
		refusal = domain.Refuse(domain.Overloaded, "%v", err)
	}
	return &Undecided{refusal}
}

// doOnce executes a command on the leader. It repeats the request while there is no leader or the outcome is unknown.
func (e *Engine) doOnce(ctx context.Context, cmd kernel.Command) error {
	if !commandcodec.Travels(cmd) { // only the leader itself issues it
		return e.decide(ctx, cmd)
	}
	form, err := commandcodec.Encode(cmd)
	if err != nil {
		return err
	}
	r := &Request{Asker: e.asker.id, Command: form.Asked()}
	if e.config.Tracing.On() {
		r.Trace = tracing.Text(ctx)
	}
	r.No, r.Settled = e.asker.begin()
	defer e.asker.end(r.No)
	executed := false
	return e.untilDecided(ctx, func() error {
		if executed { // the last attempt changed cmd in vain: restore it
			if err := form.Reset(cmd); err != nil {
				return err
			}
		}
		r.Attempt++
		r := *r // a copy, because the previous attempt may still be in transit
		if executed = e.run.Load() != nil; executed {
			return e.execute(ctx, onceOf(&r, cmd, form))
		}
		answer, err := e.config.Peers.Execute(ctx, &r)
		if err != nil {
			return err
		}
		return form.Fill(cmd, answer)
	})
}

// untilDecided repeats ask while there is no leader or the outcome is unknown, for at most Config.Patience.
func (e *Engine) untilDecided(ctx context.Context, ask func() error) error {
	var unknown error
	wait := retryFirst
	for began := time.Now(); ; {
		err := ask()
		early, undecided := errors.AsType[*Undecided](err)
		switch {
		case errors.Is(err, ErrStopped):
			unknown = err
		case undecided && unknown == nil:
			return early.Refusal
		case !undecided && !errors.Is(err, ErrNotLeading):
			return err
		}
		if e.Err() == nil && time.Since(began) < e.config.Patience {
			select {
			case <-time.After(wait):
				wait = min(2*wait, retryMost)
				continue
			case <-e.stopped:
			case <-ctx.Done():
				return errors.Join(ctx.Err(), unknown)
			}
		}
		switch {
		case unknown != nil:
			return unknown
		case e.isStopped():
			return e.stopError()
		}
		return domain.Refuse(domain.Overloaded, "no node of the cluster decides at the moment")
	}
}

func (e *Engine) isStopped() bool {
	select {
	case <-e.stopped:
		return true
	default:
		return false
	}
}

// awaitIndex returns once this node has applied everything that any node acknowledged before the call.
func (e *Engine) awaitIndex(ctx context.Context) error {
	return e.untilDecided(ctx, func() error {
		number, err := e.config.Peers.Index(ctx)
		if err == nil && number > e.durable.reached.Load() {
			err = e.awaitEntry(ctx, number)
		}
		if errors.Is(err, ErrStopped) {
			return ErrNotLeading // a lost question has changed nothing
		}
		return err
	})
}

// awaitEntry returns once this node has applied an entry. It waits for at most Config.Patience, because a node that does not receive entries, or whose
// archive accepts no records, may not apply it for hours.
func (e *Engine) awaitEntry(ctx context.Context, number uint64) error {
	waiting, cancel := context.WithTimeout(ctx, e.config.Patience)
	defer cancel()
	err := e.durable.wait(waiting, number, func() error { return ErrNotLeading })
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return domain.Refuse(domain.Overloaded, "this node is behind the leader; use another node, or try again later")
	}
	return err
}

// asker numbers the requests of this process and tracks which are settled.
type asker struct {
	id domain.UUID

	lock  sync.Mutex
	first uint64 // the oldest unsettled request
	ended []bool // of first and the requests after it
}

// begin returns the next number, and the number below which all requests are settled.
func (a *asker) begin() (no, settled uint64) {
	a.lock.Lock()
	defer a.lock.Unlock()
	a.ended = append(a.ended, false)
	return a.first + uint64(len(a.ended)) - 1, a.first
}

// end settles a request: it will not be sent again.
func (a *asker) end(no uint64) {
	a.lock.Lock()
	defer a.lock.Unlock()
	a.ended[no-a.first] = true
	n := 0
	for n < len(a.ended) && a.ended[n] {
		n++
	}
	a.first += uint64(n)
	a.ended = a.ended[n:]
}

const (
	askersEvery = time.Minute
	askerSilent = 10 // periods without a new answer after which an asker's answers are dropped
)

// dropAnswers is the goroutine that drops the answers of processes that have ended or have not changed anything for a long time.
func (r *run) dropAnswers(ctx context.Context) {
	type sample struct {
		answers.Standing
		silent int
	}
	samples := map[domain.UUID]sample{}
	for every := time.NewTicker(askersEvery); ; {
		select {
		case <-every.C:
		case <-ctx.Done():
			every.Stop()
			return
		}
		r.e.stateLock.RLock()
		askers := r.e.seq.Cell().Askers()
		r.e.stateLock.RUnlock()
		for id, now := range askers {
			x := samples[id]
			if x.silent++; x.Standing != now || now.Kept == 0 {
				x = sample{Standing: now}
			}
			samples[id] = x
			if x.silent < askerSilent {
				continue
			}
			if err := r.submit(&answers.DropAnswers{Asker: id}); err != nil {
				r.e.log.Warn("the answers of a process that no longer asks could not be dropped", "asker", fmt.Sprint(id), "error", err)
			}
		}
	}
}
