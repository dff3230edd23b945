package streams

import (
	"context"
	"sync"
	"time"

	"github.com/musterhq/muster/internal/domain/playerflow"
	"github.com/musterhq/muster/internal/playerapi/problem"
)

// gate is closed while clients are kept away for maintenance.
type gate struct {
	turn sync.Mutex // held during a drain or its end

	mu     sync.Mutex
	after  time.Duration // how long clients should wait; 0: the gate is open
	closed chan struct{} // closed with the gate
}

func newGate() *gate { return &gate{closed: make(chan struct{})} }

// shut closes the gate, or changes how long clients should wait. It returns the previous wait; 0: the gate was open.
func (g *gate) shut(after time.Duration) (was time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	was, g.after = g.after, after
	if was == 0 {
		close(g.closed)
	}
	return was
}

func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.after != 0 {
		g.after, g.closed = 0, make(chan struct{})
	}
}

// away returns how long clients should wait, while the gate is closed.
func (g *gate) away() (after time.Duration, closed bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.after, g.after != 0
}

// closing returns a channel that is closed with the gate.
func (g *gate) closing() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.closed
}

// Draining returns the refusal for clients that come while players are kept away; nil if they may come.
func (x *Streams) Draining() *problem.Problem {
	if after, closed := x.gate.away(); closed {
		return problem.Later(problem.Maintenance, after, "the service takes no players now, for maintenance; parties, searches and seats are kept")
	}
	return nil
}

// SendAway keeps clients away: it closes their streams, and tells them when to come back. Players who stay away keep everything for
// the duration of hold. It returns the number of closed streams. It does not depend on the caller's patience: the gate and the state must agree.
func (x *Streams) SendAway(ctx context.Context, after, hold time.Duration) (closed int, err error) {
	ctx = context.WithoutCancel(ctx)
	x.gate.turn.Lock()
	defer x.gate.turn.Unlock()
	was := x.shut(after)
	x.awaitAdmitted()
	err = x.State.Do(ctx, &playerflow.AwaitPlayers{For: hold, Node: x.Node()})
	if was == 0 {
		x.decided(err == nil)
	}
	if err != nil {
		return 0, err
	}
	all := x.all()
	for _, s := range all {
		s.sayBye(after)
	}
	return len(all), nil
}

// shut shuts the gate. From here on no client is admitted, and the end of a stream does not make its player absent. If the gate was open, losses of streams are
// withheld until decided.
func (x *Streams) shut(after time.Duration) (was time.Duration) {
	x.mu.Lock()
	defer x.mu.Unlock()
	was = x.gate.shut(after)
	x.withholds = was == 0
	return was
}

// awaitAdmitted waits for the streams and polls that were admitted before the gate was shut. The core must attach and begin them before it awaits their players,
// because both make a player present.
func (x *Streams) awaitAdmitted() {
	x.polling.Lock()
	defer x.polling.Unlock()
	for i := range x.attaching {
		x.attaching[i].Lock()
		defer x.attaching[i].Unlock()
	}
}

// decided ends the time in which losses are withheld. If the players could not be sent away, it opens the gate and reports these losses.
func (x *Streams) decided(away bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if !away {
		x.gate.open()
		for _, s := range x.withheld {
			x.report(s)
		}
	}
	x.withholds, x.withheld = false, nil
}

// Readmit admits clients again, like SendAway without regard to the caller's patience.
func (x *Streams) Readmit(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx)
	x.gate.turn.Lock()
	defer x.gate.turn.Unlock()
	if _, closed := x.gate.away(); !closed {
		return nil
	}
	// The players get their time to come back before the gate opens: afterwards the command would also wait for those who have already come.
	if err := x.State.Do(ctx, &playerflow.AwaitPlayers{Node: x.Node()}); err != nil {
		return err
	}
	x.gate.open()
	return nil
}
