package feeds

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/musterhq/muster/internal/connlimit"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/frames"
	"github.com/musterhq/muster/internal/playerapi/principal"
	"github.com/musterhq/muster/internal/playerapi/problem"
	"github.com/musterhq/muster/internal/playerapi/rates"
	"github.com/musterhq/muster/internal/playerapi/socket"
	"github.com/musterhq/muster/internal/rate"
)

// feed is where the frames of a connection come from. Only the goroutine of the connection calls it, except take.
type feed interface {
	// hello is the first frame. It promises the intervals of heartbeats.
	hello(ctx context.Context, promised *flow.SessionConfig) ([]byte, error)
	// next appends what the receiver does not have yet to frames. more: there is some behind it already. A code ends the connection
	// behind these frames.
	next(ctx context.Context, frames []byte) (all []byte, more bool, code uint16, err error)
	// take notes that the receiver has what came up to a number.
	take(ctx context.Context, no uint64)
}

// connection is the WebSocket of a game server or of the studio's backend. Unlike a player's stream it holds nothing that waits: its
// goroutine reads what is new from the state, as fast as the receiver takes it. There are far fewer of them than of players.
type connection struct {
	feeds *Feeds
	conn  net.Conn
	wakes chan struct{}
	gone  chan struct{} // closed when the connection has ended
	feed  feed

	life     context.Context     // of the access key that it was opened with
	promised *flow.SessionConfig // of which the times of heartbeats hold for this line, whatever is set later
	code     atomic.Uint32       // how it is to be closed; 0: not
	write    sync.Mutex          // for one frame or more

	mu     sync.Mutex
	closed bool // the receiver was told so: what it says then does not count, and keeps nothing open
}

// wake says that there may be something new.
func (l *connection) wake() {
	select {
	case l.wakes <- struct{}{}:
	default: // it will look anyway
	}
}

// end closes the connection with a code.
func (l *connection) end(code uint16) {
	l.code.Store(uint32(code))
	l.wake()
}

// revokedFarewell is how long a receiver has to close the connection after its access key was revoked.
const revokedFarewell = 500 * time.Millisecond

// connectionPace is for acknowledgements, of which each may be for one event.
var connectionPace = rate.PerSecond(5_000, 10_000)

// admit checks a request for a connection: what it is, by whom, how often, and after which event it continues.
func (x *Feeds) admit(r *http.Request, subprotocol, number string) (by *principal.Principal, after uint64, given bool, refused *problem.Problem) {
	by = x.Auth.Stranger(r)
	if refused = socket.Check(r, subprotocol); refused != nil {
		return by, 0, false, refused
	}
	if refused = x.Auth.Trusted(r, by, principal.PartnerRealm); refused != nil {
		return by, 0, false, refused
	}
	if wait, ok := x.Buckets.Take(rates.Partner, by.ID); !ok {
		return by, 0, false, problem.Later(flow.RateLimited, wait, "too many calls with one credential")
	}
	after, given, refused = problem.ParseNumber(r.URL.Query(), number)
	return by, after, given, refused
}

// open makes a connection of a request. The caller registers it and runs it.
func (x *Feeds) open(w http.ResponseWriter, r *http.Request, by *principal.Principal, subprotocol string, f feed) (*connection, bool) {
	if connlimit.Use(r.Context(), connlimit.PartnerStreams) != nil {
		problem.Write(w, problem.Later(flow.RateLimited, problem.Again, "%s", connlimit.ErrFull))
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

// heard gives the receiver time until its next sign of life. It reports whether there is still one to hear.
func (l *connection) heard() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closed {
		_ = l.conn.SetReadDeadline(time.Now().Add(l.promised.DeadAfter)) // fails on a connection that is gone already
	}
	return !l.closed
}

// run tells until the connection ends, or the service stops.
func (l *connection) run(ctx context.Context) {
	defer context.AfterFunc(l.life, l.revoked)()
	ping := time.NewTicker(l.promised.PingInterval)
	defer ping.Stop()
	frames, err := l.feed.hello(ctx, l.promised)
	if err != nil || !l.send(socket.Append(nil, socket.Text, frames)) {
		l.close(socket.Draining)
		return
	}
	frames = nil
	for {
		all, more, code, err := l.feed.next(ctx, frames[:0])
		switch {
		case err != nil:
			l.close(socket.Draining)
			return
		case len(all) > 0 && !l.send(all):
			return
		case code != 0:
			l.close(code)
			return
		}
		if frames = all; cap(frames) > socket.KeptFrame {
			frames = nil
		}
		if code := l.code.Load(); code != 0 {
			l.close(uint16(code))
			return
		}
		var wakes <-chan struct{} = l.wakes
		if more {
			wakes = always
		}
		select {
		case <-wakes:
		case <-ping.C:
			if !l.send(socket.Heartbeat) {
				return
			}
		case <-l.gone:
			return
		case <-ctx.Done():
			l.send(socket.Append(nil, socket.Text, socket.Bye(socket.ComeBack)))
			l.close(socket.Draining)
			return
		}
	}
}

// revoked ends the connection because its access key was revoked. A receiver that does not read, or does not answer the close
// frame, is left alone soon.
func (l *connection) revoked() {
	l.end(socket.Unauthenticated)
	select {
	case <-l.gone:
	case <-time.After(revokedFarewell):
		l.drop()
	}
}

// always is ready.
var always = func() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// send writes frames; false when the connection is lost.
func (l *connection) send(frames []byte) bool {
	l.write.Lock()
	defer l.write.Unlock()
	_ = l.conn.SetWriteDeadline(time.Now().Add(socket.ClientPatience)) // fails on a connection that is gone already
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
	_ = l.conn.SetReadDeadline(time.Now().Add(socket.Farewell)) // fails on a connection that is gone already
}

// drop ends the connection without waiting for the receiver.
func (l *connection) drop() { socket.Drop(l.conn) }

// receive takes one frame of the receiver.
func (l *connection) receive(data []byte) {
	var f struct {
		Type string `json:"type"`
		No   uint64 `json:"no"`
	}
	switch err := json.Unmarshal(data, &f); {
	case err != nil:
		l.send(socket.Append(nil, socket.Text, []byte(`{"type":"error","code":"INVALID_ARGUMENT","message":"want a JSON object with a type"}`)))
	case f.Type == "ping":
		l.send(socket.Append(nil, socket.Text, []byte(`{"type":"pong"}`)))
	case f.Type == "ack":
		l.feed.take(l.feeds.ctx, f.No)
	case f.Type != "pong":
		l.send(socket.Append(nil, socket.Text, []byte(`{"type":"error","code":"INVALID_ARGUMENT","message":"want the type ping, pong or ack"}`)))
	}
}

// fromReceiver is what a receiver's frames lead to.
type fromReceiver struct{ *connection }

func (x fromReceiver) Ping(payload []byte) {
	if x.heard() {
		x.send(socket.Append(nil, socket.Pong, payload)) // waits for a receiver that does not read
	}
}

func (x fromReceiver) Pong() { x.heard() }

func (x fromReceiver) Message(data []byte) {
	if x.heard() {
		x.receive(data)
	}
}

func (x fromReceiver) Wrong(v *frames.Violation) { x.end(v.Code) }

// End answers a receiver that goes with its own code.
func (x fromReceiver) End(err error) {
	l := x.connection
	defer close(l.gone)
	if closed, ok := errors.AsType[*frames.Closed](err); ok && l.heard() {
		l.send(socket.AppendCloseAnswer(nil, closed.Code))
	}
	l.drop()
}
