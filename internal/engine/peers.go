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

// Peers reach the node of a cluster that decides, wherever it is. Its methods may be called concurrently. An error is ErrNotLeading when nothing has
// happened, because no node decides or it cannot be reached, and ErrStopped when the connection was lost after the question had left.
type Peers interface {
	// Execute has the node that decides execute a command by ExecuteFor, and returns the answer or the error of that.
	Execute(ctx context.Context, r *Request) (answer []byte, err error)
	// Index returns the number of the journal entry that a linearizable read, begun before the call, must have applied.
	Index(ctx context.Context) (uint64, error)
	// Verify returns nil if this node is the one that decides: no other node has decided anything before the call.
	Verify(ctx context.Context) error
}

// Request is a command that one node has another one execute. However often it is asked, it has one effect; package answers says how.
type Request struct {
	Asker   domain.UUID // the process that asks
	No      uint64      // counts the requests of the asker
	Attempt uint64      // from 1: how often it was asked
	Settled uint64      // the asker will not ask again for lower numbers
	Command commandcodec.Asked
	Trace   string `cbor:",omitempty"` // that the command belongs to, as a traceparent; empty: none
}

// Undecided is a refusal of a command that the core has not seen: the queue is full, the disk is, the archive cannot be read. An earlier attempt
// may have had an effect all the same.
type Undecided struct{ *domain.Refusal }

// Unwrap returns the refusal.
func (u *Undecided) Unwrap() error { return u.Refusal }

const (
	retryFirst = 5 * time.Millisecond // until the node that decides is asked again; doubles up to retryMost
	retryMost  = 100 * time.Millisecond
)

// ExecuteFor executes the command of another node, and returns its answer once it is durable. The error is a refusal, *Undecided, ErrNotLeading
// or ErrStopped.
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
	return form.Answer(cmd) // of a command that has changed nothing in the state, and was not refused
}

func onceOf(r *Request, cmd kernel.Command, form *commandcodec.Form) *answers.Once {
	return &answers.Once{Command: cmd, Asker: r.Asker, Request: r.No, Attempt: r.Attempt, Settled: r.Settled, Form: form}
}

// execute has this node execute a request.
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
	// The command changed nothing, so no append has shown that this node still decides, and what it read may be old.
	if once.Attempt == 1 {
		if verified := e.config.Peers.Verify(ctx); verified != nil {
			return ErrNotLeading
		}
		return err
	}
	return e.void(ctx, once, err)
}

// void makes final that a request had no effect, although it was asked before, and returns err. An earlier attempt that arrived meanwhile counts instead.
func (e *Engine) void(ctx context.Context, once *answers.Once, err error) error {
	switch failed := e.submit(ctx, &answers.Void{Once: once}); {
	case errors.Is(failed, ErrNotLeading), errors.Is(failed, ErrStopped): // also of an effect that may not be durable
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

// doOnce has a command executed by the node that decides, and asks again while no node does or the outcome is unknown.
func (e *Engine) doOnce(ctx context.Context, cmd kernel.Command) error {
	if !commandcodec.Travels(cmd) { // one that only the node that decides gives
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
		if executed { // in vain: it begins again as it was asked
			if err := form.Reset(cmd); err != nil {
				return err
			}
		}
		r.Attempt++
		r := *r // the one before may still be on its way
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

// untilDecided repeats ask while no node decides or the outcome is unknown, for as long as the time-outs of clients allow.
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

// awaitIndex returns once this node has applied everything that was acknowledged, by any node, before the call.
func (e *Engine) awaitIndex(ctx context.Context) error {
	return e.untilDecided(ctx, func() error {
		number, err := e.config.Peers.Index(ctx)
		if err == nil && number > e.durable.reached.Load() {
			err = e.durable.wait(ctx, number, func() error { return ErrNotLeading })
		}
		if errors.Is(err, ErrStopped) {
			return ErrNotLeading // a question that was lost has changed nothing
		}
		return err
	})
}

// asker numbers the requests of this process, and knows which are settled.
type asker struct {
	id domain.UUID

	lock  sync.Mutex
	first uint64 // the oldest request that waits
	ended []bool // of it and those behind it
}

// begin returns the next number, and the number below which all are settled.
func (a *asker) begin() (no, settled uint64) {
	a.lock.Lock()
	defer a.lock.Unlock()
	a.ended = append(a.ended, false)
	return a.first + uint64(len(a.ended)) - 1, a.first
}

// end settles a request: nothing asks for it again.
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
	askerSilent = 10 // such periods without an answer, after which those of an asker are dropped
)

// dropAnswers is the goroutine that drops the answers of processes that have ended, or have not changed anything in a long time.
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
