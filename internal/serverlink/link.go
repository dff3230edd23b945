package serverlink

import (
	"crypto/tls"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lxzan/gws"

	"github.com/musterhq/muster/internal/domain"
)

// outMax is how many bytes may wait for a game server that does not read. Three of the largest pushes fit in.
const outMax = 4 << 20

// link is one connection of a game server process. A process has one, for moments several.
type link struct {
	id      uint64 // unlike any other connection of the cell
	process *process
	conn    net.Conn // TCP, or TLS over it; frames go out here, gws only reads
	socket  *gws.Conn

	endpoint string     // how this process reached the service
	shown    credential // what authorised it

	// These are guarded by process.mu.
	pinged       time.Time   // when the last ping left
	mute         bool        // the ping before that one was not answered
	refreshAfter time.Time   // no RefreshConnection before it
	stale        bool        // the token that it came with is void, and an operator lets it stay until it has the new one
	superseded   time.Time   // zero while it is the current one
	evicted      bool        // told to end, as the survivor of a process that was given up
	endBy        domain.Time // told to end until then; SDKs call the game's OnProcessTerminate for each such push

	heard     atomic.Int64 // when the last frame came, Unix nanoseconds
	dismissed atomic.Bool
	over      atomic.Bool // the connection has ended, and the core knows

	out struct {
		sync.Mutex
		waiting *[]byte   // sealed frames that nobody has begun to write
		busy    bool      // somebody writes
		since   time.Time // since when
		closed  bool      // no frame will be taken any more
	}

	work struct {
		sync.Mutex
		tasks []task
		busy  bool // a goroutine carries them out
	}
}

// send takes a buffer from newFrame and writes it, or leaves it to whoever is writing already. It may block as long as
// the connection does; post never does.
func (l *link) send(b *[]byte, opcode byte) {
	if l.queue(b, opcode) {
		l.flush()
	}
}

// post is send for those who must not wait for a slow game server.
func (l *link) post(b *[]byte, opcode byte) {
	if l.queue(b, opcode) {
		l.process.server.running.Go(l.flush)
	}
}

// queue puts a frame behind those that wait and reports whether its caller has to flush.
func (l *link) queue(b *[]byte, opcode byte) (flush bool) {
	defer putFrame(b)
	l.out.Lock()
	defer l.out.Unlock()
	switch {
	case l.out.closed:
		return false
	case l.out.waiting == nil:
		l.out.waiting = frameBuffers.Get().(*[]byte)
		*l.out.waiting = (*l.out.waiting)[:0]
	case len(*l.out.waiting)+len(*b) > outMax:
		l.out.closed = true
		l.drop() // it has not read for long
		return false
	}
	*l.out.waiting = append(*l.out.waiting, seal(*b, opcode)...)
	l.out.closed = opcode == opClose // nothing may follow it
	if l.out.busy {
		return false
	}
	l.out.busy, l.out.since = true, time.Now()
	return true
}

// flush writes until nothing waits. All that gathered meanwhile goes in one write.
func (l *link) flush() {
	l.out.Lock()
	for l.out.waiting != nil {
		batch := l.out.waiting
		l.out.waiting = nil
		l.out.since = time.Now()
		l.out.Unlock()
		_, err := l.conn.Write(*batch)
		putFrame(batch)
		l.out.Lock()
		if err != nil {
			l.out.closed = true // the reading side notices and cleans up
		}
	}
	l.out.busy = false
	l.out.Unlock()
}

// stuckSince is when the write that is still going on began; zero when none is.
func (l *link) stuckSince() time.Time {
	l.out.Lock()
	defer l.out.Unlock()
	if !l.out.busy {
		return time.Time{}
	}
	return l.out.since
}

// alive reports whether the connection takes frames.
func (l *link) alive() bool {
	l.out.Lock()
	defer l.out.Unlock()
	return !l.out.closed
}

// drop ends the connection without a close frame, which makes every SDK that can reconnect do so.
func (l *link) drop() {
	c := l.conn
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn() // not even a TLS alert, and no waiting behind a stuck write
	}
	_ = c.Close() // closed already is as good
}

// farewell is how long a game server may take to answer a close frame. Closing at once could turn into a reset, which
// overtakes the frame.
const farewell = 2 * time.Second

// dismiss ends the connection with close code 1000, which tells the game server not to come back.
func (l *link) dismiss() {
	if l.dismissed.Swap(true) {
		return // its time to answer runs
	}
	b := newFrame()
	*b = append(*b, 1000>>8, 1000&0xFF)
	l.post(b, opClose)
	_ = l.conn.SetReadDeadline(time.Now().Add(farewell)) // fails on a connection that is gone already
}
