package streams

import (
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/playerflow"
	"github.com/musterhq/muster/internal/jsonbody"
	"github.com/musterhq/muster/internal/playerapi/rates"
	"github.com/musterhq/muster/internal/playerapi/socket"
	"github.com/musterhq/muster/internal/playerapi/state"
	"github.com/musterhq/muster/internal/steady"
)

const (
	// framesMax is how many events may wait for a client that does not read. What it misses it gets when it comes back.
	framesMax = 256
	// bytesMax bounds them, too: an event may be large. What a client begins with is not counted: it is bounded by what is kept.
	bytesMax = 1 << 20
)

// stream is one client's connection. It holds nothing while nothing is on its way.
type stream struct {
	of      *Streams
	number  uint64 // unlike any other stream of the cell
	player  string
	session flow.LoginSessionID
	epoch   uint32      // of the login session
	node    domain.UUID // under which this node attached it; zero: a single node
	conn    net.Conn

	attached bool // the core has attached it, as far as this node has followed; guarded by Streams.mu

	promised *flow.SessionConfig // what the client was greeted with

	heard   atomic.Int64 // when the last frame came, as steady.Nanos
	pinged  int64        // these two belong to the one who watches
	renewed int64

	mu      sync.Mutex
	next    uint64 // number of the next event; 0: the client was not greeted yet
	early   []told // what came before that
	waiting *[]byte
	frames  int
	begun   int  // bytes of waiting that the client begins with, which do not count
	busy    bool // a goroutine writes
	closed  bool // no frame is taken any more
	over    bool // nothing comes any more: the connection ends once what waits is written
}

type told struct {
	seq  uint64
	tail []byte
}

// tell passes an event on, unless the client has it.
func (s *stream) tell(seq uint64, tail []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.next == 0:
		s.early = append(s.early, told{seq, tail})
	case seq >= s.next:
		s.tellNow(seq, tail)
	}
}

// tellNow passes an event on. The caller holds mu.
func (s *stream) tellNow(seq uint64, tail []byte) {
	s.next = seq + 1
	head := strconv.AppendUint([]byte(`{"seq":`), seq, 10)
	s.put(socket.Text, head, comma, tail)
}

var comma = []byte{','}

// greet sends what a client begins with; then come the events behind it that have arrived meanwhile.
func (s *stream) greet(hello []byte, events []told, head uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.put(socket.Text, hello)
	for _, e := range events {
		s.uncounted()
		s.tellNow(e.seq, e.tail)
	}
	s.uncounted()
	s.next = head + 1
	for _, e := range s.early {
		if e.seq >= s.next {
			s.tellNow(e.seq, e.tail)
		}
	}
	s.early = nil
}

// uncounted leaves what waits so far out of the bounds. The caller holds mu.
func (s *stream) uncounted() {
	if s.frames = 0; s.waiting != nil {
		s.begun = len(*s.waiting)
	}
}

// send sends one frame.
func (s *stream) send(opcode byte, payload ...[]byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.put(opcode, payload...)
}

// put queues one frame. The caller holds mu.
func (s *stream) put(opcode byte, payload ...[]byte) {
	if s.closed {
		return
	}
	s.frames++
	if s.frames > framesMax || s.waiting != nil && len(*s.waiting)-s.begun > bytesMax {
		s.closeLocked(socket.TooSlow)
		return
	}
	b := s.buffer()
	*b = socket.Append(*b, opcode, payload...)
	s.flushSoon()
}

func (s *stream) buffer() *[]byte {
	if s.waiting == nil {
		s.waiting = socket.Buffers.Get().(*[]byte)
	}
	return s.waiting
}

// beat sends a heartbeat, unless something else is on its way, or the client was not greeted yet.
func (s *stream) beat() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.busy || s.next == 0 {
		return
	}
	s.busy = true
	s.of.running.Go(func() {
		defer s.of.Panics.Confine(state.PanicDoor, s.drop)
		s.write(socket.Heartbeat)
		s.flush()
	})
}

func (s *stream) flushSoon() {
	if !s.busy {
		s.busy = true
		s.of.running.Go(s.flush)
	}
}

// flush writes until nothing waits. All that gathered meanwhile goes in one write.
func (s *stream) flush() {
	defer s.of.Panics.Confine(state.PanicDoor, s.drop)
	s.mu.Lock()
	for s.waiting != nil {
		batch := s.waiting
		s.waiting, s.frames, s.begun = nil, 0, 0
		s.mu.Unlock()
		s.write(*batch)
		socket.PutBuffer(batch)
		s.mu.Lock()
	}
	s.busy = false
	switch {
	case s.over:
		s.drop()
	case s.closed:
		_ = s.conn.SetReadDeadline(time.Now().Add(socket.Farewell)) // fails on a connection that is gone already
	}
	s.mu.Unlock()
}

// write is for the one who made the stream busy.
func (s *stream) write(frames []byte) {
	_ = s.conn.SetWriteDeadline(time.Now().Add(socket.ClientPatience)) // fails on a connection that is gone already
	if _, err := s.conn.Write(frames); err != nil {
		s.drop()
	}
}

// close ends the stream with a code.
func (s *stream) close(code uint16) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closeLocked(code)
}

func (s *stream) closeLocked(code uint16) {
	if s.closed {
		return
	}
	s.closed = true
	s.of.metrics.ended(code)
	b := s.buffer()
	if code == socket.TooSlow {
		*b = (*b)[:0] // it gets them when it comes back
	}
	*b = socket.AppendClose(*b, code)
	s.flushSoon()
}

// end is for a connection from which nothing comes any more. A client that goes is owed an answer, its own code, which may be
// none.
func (s *stream) end(owed bool, code uint16) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if owed && !s.closed {
		b := s.buffer()
		*b = socket.AppendCloseAnswer(*b, code)
	}
	s.closed, s.over = true, true
	s.flushSoon()
}

// drop ends the connection without waiting for the client.
func (s *stream) drop() { socket.Drop(s.conn) }

// sayBye tells the client when to come again, and closes the stream.
func (s *stream) sayBye(after time.Duration) {
	s.send(socket.Text, socket.Bye(after))
	s.close(socket.Draining)
}

// frame is what a client may send.
type frame struct {
	Type string `json:"type"`
	Seq  uint64 `json:"seq"`
}

// receive takes one frame of the client.
func (s *stream) receive(data []byte) {
	s.heard.Store(steady.Now())
	if _, ok := s.of.Buckets.Take(rates.Frames, s.player); !ok {
		s.close(socket.RateLimited)
		return
	}
	var f frame
	if err := jsonbody.Decode(data, &f); err != nil {
		s.send(socket.Text, []byte(`{"type":"error","code":"INVALID_ARGUMENT","message":"want a JSON object with a type"}`))
		return
	}
	switch f.Type {
	case "ping":
		s.send(socket.Text, []byte(`{"type":"pong"}`))
	case "pong":
	case "ack":
		cmd := &playerflow.AckEvents{Player: s.player, LoginSessionID: s.session, Seq: f.Seq}
		_ = s.of.State.Do(s.of.ctx, cmd) // a session that has ended is told so by its close code
	default:
		s.send(socket.Text, []byte(`{"type":"error","code":"INVALID_ARGUMENT","message":"want the type ping, pong or ack"}`))
	}
}
