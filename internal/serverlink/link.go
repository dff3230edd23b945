package serverlink

import (
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/frames"
)

// outMax is how many bytes may be queued for a game server that does not read: three of the largest pushes.
const outMax = 4 << 20

// link is one connection of a game server process. A process usually has one; while it reconnects, it may have several.
type link struct {
	id      uint64      // unique among the connections of the cell
	node    domain.UUID // the id under which this node attached it; zero: a single node
	process *process
	conn    net.Conn // TCP, or TLS over it

	endpoint string     // how this process reached the service
	shown    credential // with which it was authenticated
	outlive  keyWatch

	// The fields below are guarded by process.mu.
	pinged       time.Time   // when the last ping left
	mute         bool        // the previous ping was not answered
	refreshAfter time.Time   // no RefreshConnection before this time
	stale        bool        // its token is void, but an operator lets it stay until it has the new one
	superseded   time.Time   // zero while it is the current one
	evicted      bool        // asked to end because its process counted as crashed
	endBy        domain.Time // asked to end until then; SDKs call the game's OnProcessTerminate for each such push

	heard     atomic.Int64 // when the last frame arrived, as steady.Nanos
	dismissed atomic.Bool
	over      atomic.Bool // the connection has ended, and the core knows it

	out struct {
		sync.Mutex
		waiting *[]byte   // sealed frames that are not being written yet
		pong    []byte    // the answer to the latest ping that arrived during a write
		busy    bool      // a goroutine is writing
		since   time.Time // since when
		closed  bool      // no further frames are accepted
		over    bool      // the connection ends after the waiting frames are written
	}

	work struct {
		sync.Mutex
		tasks    []task
		bytes    int  // total size of queued requests
		requests int  // number of requests that are queued or being executed
		busy     bool // a goroutine is executing tasks
	}
}

// send takes a buffer from newFrame and writes it, or leaves it to the goroutine that is already writing. It may block as long as
// the connection does; post never blocks.
func (l *link) send(b *[]byte, opcode byte) {
	if l.queue(b, opcode) {
		l.flush()
	}
}

// post is send for callers that must not block on a slow game server.
func (l *link) post(b *[]byte, opcode byte) {
	if l.queue(b, opcode) {
		l.process.server.running.Go(l.flush)
	}
}

// queue appends a frame to the waiting ones and reports whether the caller must flush.
func (l *link) queue(b *[]byte, opcode byte) (flush bool) {
	defer putFrame(b)
	l.out.Lock()
	defer l.out.Unlock()
	switch {
	case l.out.closed:
		return false
	case l.out.busy && opcode == frames.Pong:
		// Only the latest ping needs an answer (RFC 6455, 5.5.3), so pings of a game server that does not read take no room.
		l.out.pong = append(l.out.pong[:0], seal(*b, frames.Pong)...)
		return false
	case l.out.waiting == nil:
		l.out.waiting = frameBuffers.Get().(*[]byte)
		*l.out.waiting = (*l.out.waiting)[:0]
	case len(*l.out.waiting)+len(*b) > outMax:
		l.out.closed = true
		l.drop() // it has not read for a long time
		return false
	}
	*l.out.waiting = append(*l.out.waiting, seal(*b, opcode)...)
	l.out.closed = opcode == frames.Close // no frame may follow it
	if l.out.busy {
		return false
	}
	l.out.busy, l.out.since = true, time.Now()
	return true
}

// flush writes until no frame is waiting. It writes frames that were queued meanwhile in one go.
func (l *link) flush() {
	defer l.process.server.config.Panics.Confine(panicDoor, l.drop)
	l.out.Lock()
	for {
		batch := l.takeWaiting()
		if batch == nil {
			break
		}
		l.out.since = time.Now()
		l.out.Unlock()
		_, err := l.conn.Write(*batch)
		putFrame(batch)
		l.out.Lock()
		if err != nil {
			l.out.closed = true // the reading side notices the failure and cleans up
		}
	}
	l.out.busy = false
	over := l.out.over
	l.out.Unlock()
	if over {
		l.drop()
	}
}

// takeWaiting returns the frames to write next; nil if there are none. l.out must be locked.
func (l *link) takeWaiting() *[]byte {
	batch := l.out.waiting
	l.out.waiting = nil
	if l.out.pong != nil {
		if batch == nil {
			batch = frameBuffers.Get().(*[]byte)
			*batch = (*batch)[:0]
		}
		if !l.out.closed { // no frame may follow a close frame
			*batch = append(*batch, l.out.pong...)
		}
		l.out.pong = nil
	}
	return batch
}

// stuckSince returns when the current write began; zero if there is none.
func (l *link) stuckSince() time.Time {
	l.out.Lock()
	defer l.out.Unlock()
	if !l.out.busy {
		return time.Time{}
	}
	return l.out.since
}

// alive reports whether the connection accepts frames.
func (l *link) alive() bool {
	l.out.Lock()
	defer l.out.Unlock()
	return !l.out.closed
}

// drop ends the connection without a close frame, so that every SDK that can reconnect does so.
func (l *link) drop() { frames.Drop(l.conn) }

// farewell is how long a game server has to answer a close frame. Closing at once could cause a reset that overtakes the frame.
const farewell = 2 * time.Second

// dismiss ends the connection with a close code. Code 1000 tells the game server not to reconnect.
func (l *link) dismiss(code uint16) {
	if l.dismissed.Swap(true) {
		return // its time to answer is already running
	}
	l.post(closeFrame(code), frames.Close)
	_ = l.conn.SetReadDeadline(time.Now().Add(farewell)) // fails if the connection has ended
}

// answerClose answers a game server's close frame with the same code, then ends the connection.
func (l *link) answerClose(code uint16) {
	_ = l.conn.SetWriteDeadline(time.Now().Add(farewell)) // fails if the connection has ended
	flush := l.queue(closeFrame(code), frames.Close)
	l.out.Lock()
	l.out.over = true
	writing := l.out.busy
	l.out.Unlock()
	switch {
	case flush:
		l.flush()
	case !writing:
		l.drop()
	}
}

// closeFrame returns the payload of a close frame; a code of 0 means no code.
func closeFrame(code uint16) *[]byte {
	b := newFrame()
	if code != 0 {
		*b = append(*b, byte(code>>8), byte(code))
	}
	return b
}
