package agentlink

import (
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/musterhq/muster/internal/agentproto"
	"github.com/musterhq/muster/internal/computetoken"
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/hosts"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/frames"
	"github.com/musterhq/muster/internal/rate"
	"github.com/musterhq/muster/internal/steady"
)

// panicDoor is the label of panics of this door.
const panicDoor = "agentlink"

// Bounds of one connection. Heartbeats come every few seconds, and the end of each process once; live output is most of the traffic.
var (
	requests = rate.PerSecond(100, 1000)
	pace     = rate.PerSecond(400, 2000) // frames, large ones counted as several
)

const (
	tasksMax    = 256     // queued requests
	tasksBytes  = 2 << 20 // total size of queued requests
	outMax      = 2 << 20 // bytes queued for an agent that does not read
	closeNormal = 1000
	// closeRevoked is the WebSocket close code for a policy violation; the agent learns the reason when it reconnects.
	closeRevoked = 1008
	farewell     = 2 * time.Second // how long an agent has to answer a close frame
)

// link is one connection of an agent.
type link struct {
	server      *Server
	host        string                  // id of a joined host; empty: the agent used a compute's token
	name        string                  // of the host
	signed      domain.Time             // when the host signed this connection, by its own clock
	latest      domain.Time             // the latest signed of the agent's connections that end with this one; changed under Server.mu
	at          atomic.Pointer[compute] // the compute that it belongs to; changed under Server.mu
	native      bool
	shown       computetoken.Accepted
	conn        net.Conn
	node        domain.UUID // the id under which this node attached it
	opened      time.Time
	bucket      rate.Bucket
	heard       atomic.Int64                      // when the last frame arrived, as steady.Nanos
	leaving     atomic.Bool                       // its last heartbeat, or that of a newer connection, announced that the agent ends
	report      atomic.Pointer[agentproto.Report] // from its last heartbeat; nil: none yet
	told        map[launch]string                 // problems that are already in the fleet's events. Only used by tasks.
	telling     rate.Bucket                       // of these events
	drained     string                            // why the agent was told to start nothing more; empty: it was not. Only used by tasks.
	outdated    time.Time                         // when a heartbeat first arrived despite a later connection of the same host; zero: never. Only used by tasks.
	interrupted *compute                          // the compute drained because its machine will be taken away; nil: none. Only used by tasks.
	settled     bool                              // the agent was told whether it may start anything
	from        string                            // client address in the form used for limits by address
	asked       atomic.Pointer[asked]             // the last policy check; nil: none
	dismissed   atomic.Bool                       // it has been sent a close frame

	mu         sync.Mutex
	superseded time.Time // zero while there is no newer one
	pinged     time.Time
	waiting    []byte // frames that are not being written yet
	writing    time.Time
	closed     bool // no further frames are accepted
	tasks      []task
	bytes      int // total size of queued messages
	working    bool
}

func (l *link) compute() compute { return *l.at.Load() }

// task is a unit of work of a link: a message or, without one, work of the door itself.
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

// enqueue adds work of the door itself, which is small by nature.
func (l *link) enqueue(do func(*link)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.add(task{own: do})
}

// receive adds a message, unless too many are queued.
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

// add adds a task, and starts a goroutine if none is running: an idle link holds none. l.mu must be locked.
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

// do executes one task. If it panics, the connection ends.
func (l *link) do(t *task) {
	defer l.server.config.Panics.Confine(panicDoor, l.drop)
	if t.own != nil {
		t.own(l)
	} else {
		l.handle(t.message)
	}
}

// send queues a frame without blocking.
func (l *link) send(opcode byte, payload []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return
	}
	if len(l.waiting)+len(payload) > outMax {
		l.closed = true
		l.drop() // it has not read for a long time
		return
	}
	l.waiting = frames.Append(l.waiting, opcode, payload)
	l.closed = opcode == frames.Close // no frame may follow it
	if l.writing.IsZero() {
		l.writing = time.Now()
		l.server.running.Go(l.flush)
	}
}

// flush writes until no frame is waiting.
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
			l.closed, l.waiting, l.writing = true, nil, time.Time{} // the reading side notices the failure and cleans up
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

// drop ends the connection without a close frame, so that the agent reconnects.
func (l *link) drop() { frames.Drop(l.conn) }

// dismiss ends the connection with a close code.
func (l *link) dismiss(code uint16) {
	if l.dismissed.Swap(true) {
		return // its time to answer is already running
	}
	l.send(frames.Close, []byte{byte(code >> 8), byte(code)})
	_ = l.conn.SetReadDeadline(time.Now().Add(farewell)) // fails if the connection has ended
}

// ended reports to the core that an agent has ended, as its last heartbeat announced: a host has left with its server processes, another compute is
// deregistered.
func (l *link) ended() {
	s := l.server
	warned := false
	s.reports.Make(func() error {
		at := l.compute()
		if s.current(at) != nil {
			return nil // a new agent has connected meanwhile
		}
		var cmd kernel.Command = &hosting.DeregisterCompute{Fleet: at.fleet, Name: at.name}
		if l.host != "" { // a new agent may be about to attach, or be connected to another node
			cmd = &hosts.Leave{Host: l.host, Signed: l.latest}
		}
		err := s.engine.Do(s.ctx, cmd)
		if r, refused := errors.AsType[*domain.Refusal](err); err != nil && !warned && (!refused || r.Reason != domain.NotFound) {
			warned = true
			s.log.Warn("the end of a host agent could not be recorded; the service tries again if that may pass", "fleet", at.fleet, "compute", at.name, "host", l.host, "error", err)
		}
		return err
	})
}

// incoming handles an agent's frames.
type incoming struct{ link *link }

// Ping answers with a pong.
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

// Wrong closes the connection of an agent that violates the WebSocket protocol. The agent may reconnect.
func (x incoming) Wrong(v *frames.Violation) {
	x.link.server.counters.garbage.Add(1)
	x.link.dismiss(v.Code)
}

// End cleans up after a connection.
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
	if last && l.leaving.Load() {
		l.enqueue((*link).ended) // after what the agent has reported
	}
}
