package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/answers"
	"github.com/musterhq/muster/internal/domain/commandcodec"
	"github.com/musterhq/muster/internal/domain/kernel"
)

// Peers reach the node of a cluster that decides, wherever it is. Its methods may be called concurrently. Besides those named, their
// errors are ErrNotLeading when nothing has happened, because no node decides or it cannot be reached, and ErrStopped when the
// connection was lost after the question had left.
type Peers interface {
	// Execute has the node that decides execute a command by ExecuteFor, and returns the answer. Other errors are refusals.
	Execute(ctx context.Context, r *Request) (answer []byte, err error)
	// Index returns the number of the journal entry that a linearizable read, begun before the call, must have applied.
	Index(ctx context.Context) (uint64, error)
}

// Request is a command that one node has another one execute. However often it is asked, it has one effect; package answers says how.
type Request struct {
	Asker   domain.UUID // the process that asks
	No      uint64      // counts the requests of the asker
	Settled uint64      // the asker will not ask again for lower numbers
	Command commandcodec.Asked
}

const (
	retryFirst = 5 * time.Millisecond // until the node that decides is asked again; doubles up to retryMost
	retryMost  = 100 * time.Millisecond
)

// ExecuteFor executes the command of another node, and returns its answer once it is durable.
func (e *Engine) ExecuteFor(ctx context.Context, r *Request) (answer []byte, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	cmd, err := r.Command.Command()
	if err != nil {
		return nil, domain.Refuse(domain.Invalid, "%v", err)
	}
	if err := e.decide(ctx, r.once(cmd)); err != nil {
		return nil, err
	}
	return r.Command.Answer(cmd)
}

func (r *Request) once(cmd kernel.Command) *answers.Once {
	return &answers.Once{Command: cmd, Asker: r.Asker, Request: r.No, Settled: r.Settled, Form: r.Command}
}

// doOnce has a command executed by the node that decides, and asks again while no node does or the outcome is unknown.
func (e *Engine) doOnce(ctx context.Context, cmd kernel.Command) error {
	asked, err := commandcodec.Encode(cmd)
	if err != nil { // one that only the node that decides gives
		return e.decide(ctx, cmd)
	}
	r := &Request{Asker: e.asker.id, Command: asked}
	r.No, r.Settled = e.asker.begin()
	defer e.asker.end(r.No)
	executed := false
	return e.untilDecided(ctx, func() error {
		if executed { // in vain: it begins again as it was asked
			if err := r.Command.Reset(cmd); err != nil {
				return err
			}
		}
		if executed = e.run.Load() != nil; executed {
			return e.decide(ctx, r.once(cmd))
		}
		answer, err := e.config.Peers.Execute(ctx, r)
		if err != nil {
			return err
		}
		return r.Command.Fill(cmd, answer)
	})
}

// untilDecided repeats ask while no node decides or the outcome is unknown, for as long as the time-outs of clients allow.
func (e *Engine) untilDecided(ctx context.Context, ask func() error) error {
	var unknown error
	wait := retryFirst
	for began := time.Now(); ; {
		err := ask()
		switch {
		case errors.Is(err, ErrStopped):
			unknown = err
		case !errors.Is(err, ErrNotLeading):
			return err
		}
		switch {
		case e.Err() != nil:
			return e.stopError()
		case time.Since(began) < e.config.Patience:
		case unknown != nil:
			return unknown
		default:
			return domain.Refuse(domain.Overloaded, "no node of the cluster decides at the moment")
		}
		select {
		case <-time.After(wait):
			wait = min(2*wait, retryMost)
		case <-e.stopped:
		case <-ctx.Done():
			return errors.Join(ctx.Err(), unknown)
		}
	}
}

// awaitIndex returns once this node has applied everything that was acknowledged, by any node, before the call.
func (e *Engine) awaitIndex(ctx context.Context) error {
	return e.untilDecided(ctx, func() error {
		number, err := e.config.Peers.Index(ctx)
		if err == nil && number > e.durable.reached.Load() {
			err = e.durable.wait(ctx, number, func() error { return ErrNotLeading })
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
	askerSilent = 10 // such periods without a change, after which an asker is forgotten
)

// forgetAskers is the goroutine that forgets the processes that have ended, or have not changed anything in a long time.
func (r *run) forgetAskers(ctx context.Context) {
	type sample struct {
		settled uint64
		silent  int
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
		settled, _ := r.e.seq.Cell().Askers()
		r.e.stateLock.RUnlock()
		maps.DeleteFunc(samples, func(id domain.UUID, _ sample) bool { _, known := settled[id]; return !known })
		for id, now := range settled {
			x, known := samples[id]
			if x.silent++; !known || x.settled != now {
				x = sample{settled: now}
			}
			samples[id] = x
			if x.silent < askerSilent {
				continue
			}
			delete(samples, id)
			if err := r.submit(&answers.ForgetAsker{Asker: id}); err != nil {
				r.e.log.Warn("a process that no longer asks could not be forgotten", "asker", fmt.Sprint(id), "error", err)
			}
		}
	}
}
