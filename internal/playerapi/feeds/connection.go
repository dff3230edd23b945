package feeds

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/musterhq/muster/internal/connlimit"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/frames"
	"github.com/musterhq/muster/internal/jsonbody"
	"github.com/musterhq/muster/internal/playerapi/principal"
	"github.com/musterhq/muster/internal/playerapi/problem"
	"github.com/musterhq/muster/internal/playerapi/rates"
	"github.com/musterhq/muster/internal/playerapi/socket"
	"github.com/musterhq/muster/internal/playerapi/state"
	"github.com/musterhq/muster/internal/rate"
)

// feed is the source of a connection's frames. Only the goroutine of the connection calls its methods. All of them may wait for the journal.
type feed interface {
	// hello returns the first frame, which contains the intervals of heartbeats.
	hello(ctx context.Context, promised *flow.SessionConfig) ([]byte, error)
	// next appends the next frames for the receiver. more: others are waiting. A code other than 0 ends the connection after these frames.
	next(ctx context.Context, frames []byte) (all []byte, more bool, code uint16, err error)
	// take records that the receiver has everything up to a number.
	take(ctx context.Context, no uint64)
}

// connection is the WebSocket of a game server or of the studio's backend. Unlike a player's stream it has no queue: its goroutine reads
// new events from the state, as fast as the receiver takes them. There are far fewer of them than of players. While that goroutine waits for the
// journal, others send heartbeats and read the receiver's frames, so that a stalled disk does not end the connection.
type connection struct {
	feeds *Feeds
	conn  net.Conn
	wakes chan struct{}
	gone  chan struct{} // closed when the connection has ended
	feed  feed

	life     context.Context     // ends when the access key that opened the connection is revoked
	promised *flow.SessionConfig // its intervals of heartbeats stay in force for this connection
	code     atomic.Uint32       // close code; 0: none yet
	write    sync.Mutex          // held while one or more frames are written

	mu     sync.Mutex
	closed bool   // a close frame was sent: later frames of the receiver are ignored
	acked  uint64 // the highest number that the receiver acknowledged since takeAcked
}

// wake reports that new events may exist.
func (l *connection) wake() {
	select {
	case l.wakes <- struct{}{}:
	default: // already awake
	}
}

// end closes the connection with a code.
func (l *connection) end(code uint16) {
	l.code.Store(uint32(code))
	l.wake()
}

// revokedFarewell is the time that a receiver has to close the connection after its access key was revoked.
const revokedFarewell = 500 * time.Millisecond

// connectionPace limits the rate of frames; each frame may acknowledge a single event.
var connectionPace = rate.PerSecond(5_000, 10_000)

// admit checks a request for a connection: its form, principal and rate, and the event after which it continues.
func (x *Feeds) admit(r *http.Request, subprotocol, number string) (by *principal.Principal, after uint64, given bool, refused *problem.Problem) {
	by = x.Auth.Stranger(r)
	if refused = socket.Check(r, subprotocol); refused != nil {
		return by, 0, false, refused
	}
	if refused = x.Auth.Trusted(r, by, principal.PartnerRealm); refused != nil {
		return by, 0, false, refused
	}
	if wait, ok := x.Buckets.Take(rates.Partner, by.Holder()); !ok {
		return by, 0, false, problem.Later(flow.RateLimited, wait, "too many calls with one credential")
	}
	after, given, refused = problem.ParseNumber(r.URL.Query(), number)
	return by, after, given, refused
}

// open upgrades a request. The caller registers the connection and runs it.
func (x *Feeds) open(w http.ResponseWriter, r *http.Request, by *principal.Principal, subprotocol string, f feed) (*connection, bool) {
	if err := connlimit.UseFor(r.Context(), connlimit.PartnerStreams, by.Quota()); err != nil {
		problem.Write(w, problem.Later(flow.RateLimited, problem.Again, "%s", err))
		return nil, false
	}
	conn, err := frames.Upgrade(w, r, subprotocol)
	if err != nil {
		x.State.Log.Debug("upgrade of a partner's stream failed", "error", err)
		return nil, false
	}
	l := &connection{
		feeds: x, conn: conn, wakes: make(chan struct{}, 1), gone: make(chan struct{}), feed: f,
		promised: &x.State.Settings().Sessions, life: by.Life(),
	}
	l.heard()
	return l, true
}

// heard extends the time until the receiver's next heartbeat. It reports whether the connection is open.
func (l *connection) heard() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closed {
		_ = l.conn.SetReadDeadline(time.Now().Add(l.promised.DeadAfter)) // fails on a connection that has ended
	}
	return !l.closed
}

// run sends events until the connection ends or the service stops.
func (l *connection) run(ctx context.Context) {
	defer context.AfterFunc(l.life, l.revoked)()
	defer l.takeAcked(ctx)
	hello, err := l.feed.hello(ctx, l.promised)
	if err != nil || !l.send(socket.Append(nil, socket.Text, hello)) {
		l.close(socket.Draining)
		return
	}
	stop := l.beat()
	code := l.deliver(ctx)
	stop()
	if code != 0 {
		l.close(code)
	}
}

// beat sends heartbeats until stop is called or the connection is lost. None follows stop, as nothing may follow the close frame.
func (l *connection) beat() (stop func()) {
	var mu sync.Mutex
	var timer *time.Timer
	stopped := false
	mu.Lock()
	defer mu.Unlock()
	timer = time.AfterFunc(l.promised.PingInterval, func() {
		defer l.feeds.Panics.Confine(state.PanicDoor, l.drop)
		mu.Lock()
		defer mu.Unlock()
		if !stopped && l.send(socket.Heartbeat) {
			timer.Reset(l.promised.PingInterval)
		}
	})
	return func() {
		mu.Lock()
		defer mu.Unlock()
		stopped = true
		timer.Stop()
	}
}

// deliver sends events and records acknowledgements. It returns the code to close the connection with; 0: the connection is lost.
func (l *connection) deliver(ctx context.Context) (code uint16) {
	var frames []byte
	for {
		l.takeAcked(ctx)
		all, more, code, err := l.feed.next(ctx, frames[:0])
		switch {
		case err != nil:
			return socket.Draining
		case len(all) > 0 && !l.send(all):
			return 0
		case code != 0:
			return code
		}
		if frames = all; cap(frames) > socket.KeptFrame {
			frames = nil
		}
		if code := l.code.Load(); code != 0 {
			return uint16(code)
		}
		var wakes <-chan struct{} = l.wakes
		if more {
			wakes = always
		}
		select {
		case <-wakes:
		case <-l.gone:
			return 0
		case <-ctx.Done():
			l.send(socket.Append(nil, socket.Text, socket.Bye(socket.ComeBack)))
			return socket.Draining
		}
	}
}

// acknowledge notes that the receiver has the events up to a number.
func (l *connection) acknowledge(no uint64) {
	l.mu.Lock()
	l.acked = max(l.acked, no)
	l.mu.Unlock()
	l.wake()
}

// takeAcked records what the receiver has acknowledged.
func (l *connection) takeAcked(ctx context.Context) {
	l.mu.Lock()
	no := l.acked
	l.acked = 0
	l.mu.Unlock()
	if no > 0 {
		l.feed.take(ctx, no)
	}
}

// revoked ends the connection because its access key was revoked. A receiver that does not read, or does not answer the close
// frame, is dropped soon.
func (l *connection) revoked() {
	l.end(socket.Unauthenticated)
	select {
	case <-l.gone:
	case <-time.After(revokedFarewell):
		l.drop()
	}
}

// always is a channel that is always ready.
var always = func() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// send writes frames. It returns false when the connection is lost.
func (l *connection) send(frames []byte) bool {
	l.write.Lock()
	defer l.write.Unlock()
	_ = l.conn.SetWriteDeadline(time.Now().Add(socket.ClientPatience)) // fails on a connection that has ended
	if _, err := l.conn.Write(frames); err != nil {
		l.drop()
		return false
	}
	return true
}

func (l *connection) close(code uint16) {
	l.send(socket.AppendClose(nil, code))
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	_ = l.conn.SetReadDeadline(time.Now().Add(socket.Farewell)) // fails on a connection that has ended
}

// drop closes the connection without waiting for the receiver.
func (l *connection) drop() { frames.Drop(l.conn) }

// receive reads one frame of the receiver.
func (l *connection) receive(data []byte) {
	var f struct {
		Type string `json:"type"`
		No   uint64 `json:"no"`
	}
	switch err := jsonbody.Decode(data, &f); {
	case err != nil:
		l.send(socket.Append(nil, socket.Text, []byte(`{"type":"error","code":"INVALID_ARGUMENT","message":"want a JSON object with a type"}`)))
	case f.Type == "ping":
		l.send(socket.Append(nil, socket.Text, []byte(`{"type":"pong"}`)))
	case f.Type == "ack":
		l.acknowledge(f.No)
	case f.Type != "pong":
		l.send(socket.Append(nil, socket.Text, []byte(`{"type":"error","code":"INVALID_ARGUMENT","message":"want the type ping, pong or ack"}`)))
	}
}

// fromReceiver handles a receiver's frames.
type fromReceiver struct{ *connection }

func (x fromReceiver) Ping(payload []byte) {
	if x.heard() {
		x.send(socket.Append(nil, socket.Pong, payload)) // blocks while the receiver does not read
	}
}

func (x fromReceiver) Pong() { x.heard() }

func (x fromReceiver) Message(data []byte) {
	if x.heard() {
		x.receive(data)
	}
}

func (x fromReceiver) Wrong(v *frames.Violation) { x.end(v.Code) }

// End answers the close frame of a receiver with its own code.
func (x fromReceiver) End(err error) {
	l := x.connection
	defer close(l.gone)
	if closed, ok := errors.AsType[*frames.Closed](err); ok && l.heard() {
		l.send(socket.AppendCloseAnswer(nil, closed.Code))
	}
	l.drop()
}
