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
	"github.com/musterhq/muster/internal/frames"
	"github.com/musterhq/muster/internal/jsonbody"
	"github.com/musterhq/muster/internal/playerapi/rates"
	"github.com/musterhq/muster/internal/playerapi/socket"
	"github.com/musterhq/muster/internal/playerapi/state"
	"github.com/musterhq/muster/internal/steady"
)

const (
	// framesMax is the number of events that may wait for a client that does not read. It gets what it missed when it reconnects.
	framesMax = 256
	// bytesMax bounds their total size, because an event may be large. What a client begins with does not count: the outbox bounds it.
	bytesMax = 1 << 20
)

// stream is one client's connection. It holds no buffer while nothing is in transit.
type stream struct {
	of      *Streams
	number  uint64 // unique among the streams of the cell
	player  string
	session flow.LoginSessionID
	epoch   uint32      // of the login session
	node    domain.UUID // under which this node attached it; zero: a single node
	conn    net.Conn

	attached bool // the core has attached it, as far as this node has followed; guarded by Streams.mu

	promised *flow.SessionConfig // what the client was greeted with

	heard    atomic.Int64 // when the last frame came, as steady.Nanos
	pinged   int64        // this and renewed belong to the goroutine of watch
	renewed  int64
	renewing atomic.Bool // a sign of life of its login session waits or is being recorded

	mu      sync.Mutex
	next    uint64 // number of the next event; 0: the client is not greeted yet
	early   []told // events that came before the greeting
	waiting *[]byte
	frames  int
	begun   int  // the bytes of waiting that do not count, because the client begins with them
	busy    bool // a goroutine is writing
	acked   uint64
	acking  bool // the acknowledgement acked waits or is being recorded
	closed  bool // no further frame is accepted
	over    bool // nothing more will come: the connection ends once the waiting frames are written
}

type told struct {
	seq  uint64
	tail []byte
}

// tell passes on an event, unless the client already has it.
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

// tellNow passes on an event. The caller holds mu.
func (s *stream) tellNow(seq uint64, tail []byte) {
	s.next = seq + 1
	head := strconv.AppendUint([]byte(`{"seq":`), seq, 10)
	s.put(socket.Text, head, comma, tail)
}

var comma = []byte{','}

// greet sends what a client begins with, and then the later events that have arrived meanwhile.
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

// uncounted excludes what waits so far from the bounds. The caller holds mu.
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

// beat sends a heartbeat, unless a write is in progress or the client is not greeted yet.
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

// flush writes until nothing waits. Frames that gather meanwhile go in one write.
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
		_ = s.conn.SetReadDeadline(time.Now().Add(socket.Farewell)) // fails on a connection that has ended
	}
	s.mu.Unlock()
}

// write is called only by the goroutine that made the stream busy.
func (s *stream) write(frames []byte) {
	_ = s.conn.SetWriteDeadline(time.Now().Add(socket.ClientPatience)) // fails on a connection that has ended
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
		*b = (*b)[:0] // the client gets them when it reconnects
	}
	*b = socket.AppendClose(*b, code)
	s.flushSoon()
}

// end handles a connection from which nothing more will come. A client that sent a close frame is owed an answer with its own
// code, which may be absent.
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
func (s *stream) drop() { frames.Drop(s.conn) }

// sayBye tells the client when to come back, and closes the stream.
func (s *stream) sayBye(after time.Duration) {
	s.send(socket.Text, socket.Bye(after))
	s.close(socket.Draining)
}

// frame is what a client may send.
type frame struct {
	Type string `json:"type"`
	Seq  uint64 `json:"seq"`
}

// receive handles one frame of the client.
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
		s.acknowledge(f.Seq)
	default:
		s.send(socket.Text, []byte(`{"type":"error","code":"INVALID_ARGUMENT","message":"want the type ping, pong or ack"}`))
	}
}

// acknowledge notes the number up to which the client has the events. It does not wait for the journal, so that the client's next frames count as
// signs of life meanwhile.
func (s *stream) acknowledge(seq uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.acked = seq
	if !s.acking {
		s.acking = true
		s.of.signs.Make(s.recordAck)
	}
}

// recordAck records the client's last acknowledgement. One that comes meanwhile is recorded after those of other clients. The next one makes up for
// one that fails; the close code informs a client whose session has ended.
func (s *stream) recordAck() error {
	s.mu.Lock()
	seq := s.acked
	s.mu.Unlock()
	_ = s.of.State.Do(s.of.ctx, &playerflow.AckEvents{Player: s.player, LoginSessionID: s.session, Seq: seq})
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.acking = s.acked != seq; s.acking {
		s.of.signs.Make(s.recordAck)
	}
	return nil
}
