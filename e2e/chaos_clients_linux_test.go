package e2e

import (
	"context"
	"math/rand/v2"
	"net"
	"sync"
	"time"
)

// clientWire is the network between a node and its clients, players and game servers. It relays their connections, and can pause, slow down and break them.
type clientWire struct {
	mu      sync.Mutex
	line    clientLine
	changed chan struct{} // closed and replaced with line
	conns   map[*relayed]bool
}

// clientLine is the state of a clientWire.
type clientLine struct {
	requests, answers bool // they do not arrive
	delay             time.Duration
}

// relayed is a connection of a client.
type relayed struct {
	node net.Conn // to the node
	near net.Conn // the relay's end of the client's connection
	over chan struct{}
	once sync.Once
}

func newClientWire() *clientWire {
	return &clientWire{changed: make(chan struct{}), conns: map[*relayed]bool{}}
}

func (w *clientWire) set(l clientLine) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.line = l
	close(w.changed)
	w.changed = make(chan struct{})
}

// pass waits until data may pass, and reports whether it may: false once over is closed.
func (w *clientWire) pass(over <-chan struct{}, held func(clientLine) bool) bool {
	for {
		w.mu.Lock()
		l, changed := w.line, w.changed
		w.mu.Unlock()
		if held(l) {
			select {
			case <-changed:
				continue
			case <-over:
				return false
			}
		}
		select {
		case <-time.After(l.delay):
			return true
		case <-over:
			return false
		}
	}
}

func requestsHeld(l clientLine) bool { return l.requests }
func answersHeld(l clientLine) bool  { return l.answers }

// dial connects a client to the node.
func (w *clientWire) dial(ctx context.Context, node func(context.Context) (net.Conn, error)) (net.Conn, error) {
	if !w.pass(ctx.Done(), func(l clientLine) bool { return l.requests || l.answers }) {
		return nil, ctx.Err()
	}
	conn, err := node(ctx)
	if err != nil {
		return nil, err
	}
	client, near := net.Pipe()
	r := &relayed{node: conn, near: near, over: make(chan struct{})}
	w.mu.Lock()
	w.conns[r] = true
	w.mu.Unlock()
	go w.carry(r, near, conn, requestsHeld)
	go w.carry(r, conn, near, answersHeld)
	return client, nil
}

// carry relays one direction of a connection until it ends.
func (w *clientWire) carry(r *relayed, from, to net.Conn, held func(clientLine) bool) {
	defer w.end(r)
	for b := make([]byte, 32<<10); ; {
		n, err := from.Read(b)
		if n > 0 {
			if !w.pass(r.over, held) {
				return
			}
			if _, err := to.Write(b[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

func (w *clientWire) end(r *relayed) {
	r.once.Do(func() {
		close(r.over)
		_ = r.node.(*net.TCPConn).SetLinger(0) // the node gets a reset, as of a client that is gone
		r.node.Close()
		r.near.Close()
		w.mu.Lock()
		delete(w.conns, r)
		w.mu.Unlock()
	})
}

// drop breaks all connections.
func (w *clientWire) drop() (broken int) {
	w.mu.Lock()
	var all []*relayed
	for r := range w.conns {
		all = append(all, r)
	}
	w.mu.Unlock()
	for _, r := range all {
		w.end(r)
	}
	return len(all)
}

// disturb holds back the traffic between some nodes and their clients for a while. Then the connections break, so that running calls get no answer.
func (x *chaos) disturb(l clientLine, some ...*clusterNode) error {
	for _, n := range some {
		n.clients.set(l)
	}
	time.Sleep(faultLasts)
	broken := 0
	for _, n := range some {
		broken += n.clients.drop()
		n.clients.set(clientLine{})
	}
	x.broken(broken)
	return nil
}

// broken records that connections were broken. A fault without any has tested nothing.
func (x *chaos) broken(n int) {
	if n == 0 {
		x.finding("no connection of a client was there to be broken")
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.counts["connections of clients and game servers that broke"] += n
}

var clientFaults = []fault{
	{"clients are cut from the leader", func(x *chaos, _ *rand.Rand) error {
		return x.disturb(clientLine{requests: true, answers: true}, x.c.leader())
	}},
	{"clients are cut from a follower", func(x *chaos, r *rand.Rand) error {
		return x.disturb(clientLine{requests: true, answers: true}, x.follower(r))
	}},
	{"clients are cut from all nodes", func(x *chaos, _ *rand.Rand) error {
		return x.disturb(clientLine{requests: true, answers: true}, x.c.nodes...)
	}},
	{"no answer reaches a client", func(x *chaos, _ *rand.Rand) error { return x.disturb(clientLine{answers: true}, x.c.nodes...) }},
	{"clients are slow, and their connections break", func(x *chaos, r *rand.Rand) error {
		broken := 0
		for range 5 {
			for _, n := range x.c.nodes {
				n.clients.set(clientLine{delay: time.Duration(r.IntN(200)) * time.Millisecond})
			}
			time.Sleep(faultLasts / 5)
			for _, n := range x.c.nodes {
				broken += n.clients.drop()
			}
		}
		x.broken(broken)
		return nil
	}},
}

func init() { faults = append(faults, clientFaults...) }
