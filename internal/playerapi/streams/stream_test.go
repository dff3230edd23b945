package streams

import (
	"bufio"
	"encoding/binary"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/playerapi/objects"
	"github.com/musterhq/muster/internal/playerapi/socket"
)

// tooMany events close the stream of a client that does not read, whenever its writer begins: the writer puts at most framesMax of them
// into the write that blocks, and one more than framesMax then waits behind it.
const tooMany = 2*framesMax + 1

// The stream of a client that does not read is closed with 4408 before it uses much memory, and no event is cut in two.
func TestSlowClientIsClosed(t *testing.T) {
	ours, theirs := net.Pipe()
	s := &stream{of: &Streams{metrics: newStreamMetrics()}, conn: ours, next: 1}
	for seq := range uint64(tooMany) {
		s.tell(seq+1, []byte(`"type":"OnPartyChanged","data":{}}`))
	}
	s.mu.Lock()
	if !s.closed || s.waiting != nil && len(*s.waiting) > bytesMax {
		t.Errorf("closed %t, %v bytes wait", s.closed, s.waiting)
	}
	s.mu.Unlock()
	frames := bufio.NewReader(theirs)
	for {
		opcode, payload := readFrame(t, frames)
		if opcode != socket.Close {
			continue
		}
		if code := binary.BigEndian.Uint16(payload); code != socket.TooSlow {
			t.Errorf("closed with %d, want %d", code, socket.TooSlow)
		}
		break
	}
	s.of.running.Wait()
}

// A client that begins to read again while a write still waits for it gets the close code: the time for its answer starts with the close
// frame.
func TestSlowClientHearsWhy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := net.Pipe()
		s := &stream{of: &Streams{metrics: newStreamMetrics()}, conn: ours, next: 1}
		reading := make(chan struct{})
		go func() { // as the socket does, which ends when its time is up
			defer close(reading)
			_, _ = ours.Read(make([]byte, 1))
			ours.Close()
		}()
		for seq := range uint64(tooMany) {
			s.tell(seq+1, []byte(`"type":"OnPartyChanged","data":{}}`))
		}
		time.Sleep(socket.ClientPatience / 2)
		frames := bufio.NewReader(theirs)
		for opcode := byte(socket.Text); opcode != socket.Close; {
			opcode, _ = readFrame(t, frames)
		}
		<-reading // it does not answer
		s.of.running.Wait()
	})
}

// Heartbeats come at their interval although streams are looked at only once a second, and not exactly. With the shortest settings, a client that
// answers each of them would otherwise be silent for longer than it may be.
func TestHeartbeatsKeepTheirInterval(t *testing.T) {
	var sent atomic.Int64
	x := &Streams{metrics: newStreamMetrics()}
	config := &flow.SessionConfig{PingInterval: time.Second, DeadAfter: 2 * time.Second, IdleExpiry: time.Hour}
	s := &stream{of: x, conn: sink{bytes: &sent}, next: 1, promised: config}
	for round := range int64(20) {
		late := (round % 2) * int64(time.Millisecond)
		now := (round+1)*int64(watchEvery) - late
		x.look(s, now, config)
		x.running.Wait()
		if sent.Swap(0) == 0 {
			t.Fatalf("round %d: no heartbeat", round)
		}
		s.heard.Store(now) // the client answers
	}
}

// The first frame is always the hello, even if other frames are due while a client attaches. A heartbeat follows it in one piece.
func TestHelloComesFirst(t *testing.T) {
	ours, theirs := net.Pipe()
	s := &stream{of: &Streams{metrics: newStreamMetrics()}, conn: ours}
	s.beat()
	s.tell(1, []byte(`"type":"OnPartyChanged","data":{}}`))
	s.greet([]byte(`{"type":"hello"}`), nil, 0)
	frames := bufio.NewReader(theirs)
	for _, want := range []string{`{"type":"hello"}`, `{"seq":1,"type":"OnPartyChanged","data":{}}`} {
		if opcode, payload := readFrame(t, frames); opcode != socket.Text || string(payload) != want {
			t.Fatalf("got frame %x %s, want %s", opcode, payload, want)
		}
	}
	s.of.running.Wait()
	s.beat()
	s.tell(2, []byte(`"type":"OnPartyChanged","data":{}}`))
	for _, want := range []string{"", `{"type":"ping"}`, `{"seq":2,"type":"OnPartyChanged","data":{}}`} {
		if _, payload := readFrame(t, frames); string(payload) != want {
			t.Fatalf("got frame %s, want %s", payload, want)
		}
	}
	s.of.running.Wait()
}

func readFrame(t *testing.T, r io.Reader) (opcode byte, payload []byte) {
	t.Helper()
	head := make([]byte, 2)
	if _, err := io.ReadFull(r, head); err != nil {
		t.Fatal(err)
	}
	n := int(head[1])
	if n == 126 {
		long := make([]byte, 2)
		if _, err := io.ReadFull(r, long); err != nil {
			t.Fatal(err)
		}
		n = int(binary.BigEndian.Uint16(long))
	}
	payload = make([]byte, n)
	if _, err := io.ReadFull(r, payload); err != nil {
		t.Fatal(err)
	}
	return head[0] & 0x0f, payload
}

// All events that are stored for a client are sent, however many. Otherwise the client would request the same ones again and again.
func TestLongReplayIsNoSlowness(t *testing.T) {
	ours, theirs := net.Pipe()
	s := &stream{of: &Streams{metrics: newStreamMetrics()}, conn: ours}
	const size = 40 << 10
	missed := make([]told, 3*bytesMax/size)
	for i := range missed {
		missed[i] = told{uint64(i) + 1, append(make([]byte, size), '}')}
	}
	head := uint64(len(missed))
	s.tell(head+1, []byte(`"type":"early"}`))
	s.greet([]byte(`{"type":"hello"}`), missed, head)
	s.tell(head+2, []byte(`"type":"late"}`))
	frames := bufio.NewReader(theirs)
	for i := range head + 3 {
		if opcode, payload := readFrame(t, frames); opcode != socket.Text {
			t.Fatalf("frame %d of %d is %x %.20q", i+1, head+3, opcode, payload)
		}
	}
	s.of.running.Wait()
}

// A stream of a replaced login session does not close the stream of its successor, whose client would not
// return by itself.
func TestLateAttachOfAnEarlierLogin(t *testing.T) {
	x := &Streams{metrics: newStreamMetrics(), gate: newGate(), players: map[string]*stream{}, sessions: map[flow.LoginSessionID]*stream{}}
	t.Cleanup(func() { x.running.Wait() })
	made := func(epoch uint32) *stream {
		ours, theirs := net.Pipe()
		go func() { _, _ = io.Copy(io.Discard, theirs) }() // ends with the pipe
		t.Cleanup(func() { ours.Close() })
		return &stream{of: x, number: uint64(epoch), player: "ann", session: flow.LoginSessionID(objects.NewID()), epoch: epoch, conn: ours}
	}
	early, late := made(1), made(2)
	if _, code := x.enter(late); code != 0 {
		t.Fatalf("refused with %d", code)
	}
	if _, code := x.enter(early); code != socket.Replaced || late.closed {
		t.Errorf("the earlier one: %d, want %d; the later one is closed: %t", code, socket.Replaced, late.closed)
	}
	if _, code := x.enter(made(3)); code != 0 || !late.closed {
		t.Errorf("a later one: %d; the one before it is closed: %t", code, late.closed)
	}
}
