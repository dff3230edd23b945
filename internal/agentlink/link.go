package agentlink

import (
	"crypto/tls"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/musterhq/muster/internal/agentproto"
	"github.com/musterhq/muster/internal/computetoken"
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/frames"
	"github.com/musterhq/muster/internal/rate"
	"github.com/musterhq/muster/internal/steady"
)

// panicDoor is the label of panics of this door.
const panicDoor = "agentlink"

// Bounds of one connection. A heartbeat comes every few seconds, and the end of each process once; output that is followed live is most of
// the traffic.
var (
	requests = rate.PerSecond(100, 1000)
	pace     = rate.PerSecond(400, 2000) // frames, large ones counted as several
)

const (
	tasksMax    = 256     // requests that wait
	tasksBytes  = 2 << 20 // of them
	outMax      = 2 << 20 // bytes that wait for an agent that does not read
	closeNormal = 1000
	// closeRevoked is that of a policy: the agent is told why when it connects again.
	closeRevoked = 1008
	farewell     = 2 * time.Second // how long an agent may take to answer a close frame
)

// link is one connection of an agent.
type link struct {
	server      *Server
	host        string                  // id of a host that has joined; empty: the agent came with a compute's token
	name        string                  // of the host
	signed      domain.Time             // when the host has signed this connection, by its own clock
	at          atomic.Pointer[compute] // which it is of; changed under Server.mu
	native      bool
	shown       computetoken.Accepted
	conn        net.Conn
	node        domain.UUID // under which this node attached it
	opened      time.Time
	bucket      rate.Bucket
	heard       atomic.Int64                      // when the last frame came, as steady.Nanos
	leaving     atomic.Bool                       // its last heartbeat, or that of a newer connection, said that the agent ends
	report      atomic.Pointer[agentproto.Report] // of its last heartbeat; nil: none came
	told        map[launch]string                 // causes of trouble that are in the fleet's events. Only tasks use it.
	telling     rate.Bucket                       // of these events
	drained     string                            // why the agent was told to start nothing more; empty: it was not. Only tasks use it and settled.
	outdated    time.Time                         // when a heartbeat first came beside a later connection of the same host; zero: none did. Only tasks use it.
	interrupted *compute                          // the one that was drained because its machine is about to be taken away; nil: none was. Only tasks use it.
	settled     bool                              // the agent was told whether it may start anything
	from        string                            // address of the client, as limits by address know it
	asked       atomic.Pointer[asked]             // what policies were asked about it; nil: nothing

	mu         sync.Mutex
	superseded time.Time // zero while no newer one is open
	pinged     time.Time
	waiting    []byte // frames whose writing has not begun
	writing    time.Time
	closed     bool // no frame is accepted any more
	tasks      []task
	bytes      int // of the messages among them
	working    bool
}

func (l *link) compute() compute { return *l.at.Load() }

// task is a piece of work for a link: a message, or, without one, work of the door itself.
type task struct {
	message []byte
	own     func(*link)
}

func (l *link) supersede(now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.superseded.IsZero() {
		l.superseded = now
	}
}

// enqueue adds work of the door itself, whose amount is small by nature.
func (l *link) enqueue(do func(*link)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.add(task{own: do})
}

// receive adds a message, unless too many wait.
func (l *link) receive(message []byte) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.tasks) >= tasksMax || l.bytes+len(message) > tasksBytes {
		return false
	}
	l.bytes += len(message)
	l.add(task{message: message})
	return true
}

// add starts a goroutine for the tasks if there is none: an idle link holds none. l.mu is locked.
func (l *link) add(t task) {
	l.tasks = append(l.tasks, t)
	if !l.working {
		l.working = true
		l.server.running.Go(l.work)
	}
}

func (l *link) work() {
	for {
		l.mu.Lock()
		tasks := l.tasks
		l.tasks, l.bytes = nil, 0
		l.working = len(tasks) > 0
		l.mu.Unlock()
		if len(tasks) == 0 {
			return
		}
		for i := range tasks {
			l.do(&tasks[i])
		}
	}
}

// do carries one task out. When it panics the connection ends.
func (l *link) do(t *task) {
	defer l.server.config.Panics.Confine(panicDoor, l.drop)
	if t.own != nil {
		t.own(l)
	} else {
		l.handle(t.message)
	}
}

// send queues a frame, and never waits.
func (l *link) send(opcode byte, payload []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return
	}
	if len(l.waiting)+len(payload) > outMax {
		l.closed = true
		l.drop() // it has not read for long
		return
	}
	l.waiting = frames.Append(l.waiting, opcode, payload)
	l.closed = opcode == frames.Close // nothing may follow it
	if l.writing.IsZero() {
		l.writing = time.Now()
		l.server.running.Go(l.flush)
	}
}

// flush writes until no frame waits.
func (l *link) flush() {
	defer l.server.config.Panics.Confine(panicDoor, l.drop)
	for {
		l.mu.Lock()
		batch := l.waiting
		l.waiting, l.writing = nil, time.Now()
		if len(batch) == 0 {
			l.writing = time.Time{}
			l.mu.Unlock()
			return
		}
		l.mu.Unlock()
		if _, err := l.conn.Write(batch); err != nil {
			l.mu.Lock()
			l.closed, l.waiting, l.writing = true, nil, time.Time{} // the reading side notices and cleans up
			l.mu.Unlock()
			return
		}
	}
}

// push sends a push.
func (l *link) push(p agentproto.Push) {
	text, err := agentproto.EncodePush(p)
	if err != nil {
		l.server.log.Error("a push to a host agent could not be written", "action", p.Action(), "error", err)
		return
	}
	l.server.counters.pushes.Add(1)
	l.send(frames.Text, text)
}

// drop ends the connection without a close frame, so that the agent connects again.
func (l *link) drop() {
	c := l.conn
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn() // not even a TLS alert, and no waiting behind a stuck write
	}
	_ = c.Close() // it may be closed already
}

// dismiss ends the connection with a close code.
func (l *link) dismiss(code uint16) {
	l.send(frames.Close, []byte{byte(code >> 8), byte(code)})
	_ = l.conn.SetReadDeadline(time.Now().Add(farewell)) // fails on a connection that has ended
}

// incoming handles an agent's frames.
type incoming struct{ link *link }

// Ping is answered.
func (x incoming) Ping(payload []byte) {
	x.Pong()
	x.link.send(frames.Pong, payload)
}

// Pong records a sign of life.
func (x incoming) Pong() { x.link.heard.Store(steady.Now()) }

// Message accepts a request.
func (x incoming) Message(data []byte) {
	x.Pong()
	l := x.link
	s := l.server
	s.counters.requests.Add(1)
	if !l.bucket.Take(requests, steady.Now()) || !l.receive(append([]byte(nil), data...)) {
		s.counters.throttled.Add(1)
		if _, action, id, err := agentproto.DecodeRequest(data); !errors.Is(err, agentproto.ErrGarbage) {
			l.fail(action, id, 429, "too many requests of this agent; send again later")
		}
	}
}

// Wrong ends the connection of an agent that violates the WebSocket protocol. It may come back.
func (x incoming) Wrong(v *frames.Violation) {
	x.link.server.counters.garbage.Add(1)
	x.link.dismiss(v.Code)
}

// End cleans up.
func (x incoming) End(err error) {
	l := x.link
	s := l.server
	last := s.detach(l)
	if closed, ok := errors.AsType[*frames.Closed](err); ok && closed.Code != 0 {
		_ = l.conn.SetWriteDeadline(time.Now().Add(farewell))
		_, _ = l.conn.Write(frames.Append(nil, frames.Close, []byte{byte(closed.Code >> 8), byte(closed.Code)})) // a courtesy
	}
	l.mu.Lock()
	l.closed, l.waiting = true, nil
	l.mu.Unlock()
	l.drop()
	if s.stopping.Err() == nil {
		s.log.Debug("host agent disconnected", "fleet", l.compute().fleet, "compute", l.compute().name, "error", err)
	}
	switch {
	case !last || !l.leaving.Load():
	case l.host != "":
		l.enqueue((*link).leave)
	default:
		l.enqueue((*link).deregister)
	}
}
