package listen

import (
	"crypto/tls"
	"errors"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/musterhq/muster/internal/connlimit"
)

// tlsHandshake is the first byte of every TLS connection, the record type of a ClientHello (RFC 8446, 5.1). No HTTP
// method starts with it.
const tlsHandshake = 0x16

// conn is an accepted connection whose first byte may have been read already.
type conn struct {
	*net.TCPConn
	server  *Server
	secured *tls.Conn // the TLS connection of a WebSocket above it; nil: its buffers are kept

	unread []byte // read and not returned yet
	room   [64]byte
	turn   atomic.Bool // its TLS handshake has a turn
	more   bool        // the last read filled its buffer, or unread data has arrived
	noWait bool        // Read returns only data that Await has found

	closed bool        // guarded by server.mu
	waits  atomic.Bool // counted in server.idle

	counted *connlimit.Conn // nil without limits

	reading struct {
		sync.Mutex
		proven bool      // has presented a credential: only the requested deadline applies
		latest time.Time // deadline that applies until then
		idle   bool      // a request was answered and no other has begun
		asked  time.Time // the requested deadline; zero for none
	}
}

// SetReadDeadline sets the requested deadline, or the end of an unproven connection if that comes first.
func (c *conn) SetReadDeadline(t time.Time) error {
	c.reading.Lock()
	defer c.reading.Unlock()
	c.reading.asked = t
	return c.TCPConn.SetReadDeadline(c.deadline())
}

// deadline returns the deadline that applies now; c.reading is locked.
func (c *conn) deadline() time.Time {
	t := c.reading.asked
	if c.reading.proven {
		return t
	}
	latest := c.reading.latest
	if idle := time.Now().Add(unprovenIdle); c.reading.idle && idle.Before(latest) {
		latest = idle
	}
	if t.IsZero() || t.After(latest) {
		return latest
	}
	return t
}

// SetDeadline is SetReadDeadline that also sets the write deadline.
func (c *conn) SetDeadline(t time.Time) error {
	return errors.Join(c.SetWriteDeadline(t), c.SetReadDeadline(t))
}

// proven lifts the bounds for connections that have presented no credential.
func (c *conn) proven() {
	c.reading.Lock()
	defer c.reading.Unlock()
	c.reading.proven = true
	_ = c.TCPConn.SetReadDeadline(c.deadline()) // fails if the connection is closed
}

// answered records that a request was answered, or that the next one has begun.
func (c *conn) answered(idle bool) {
	c.waitsForRequest(idle)
	c.reading.Lock()
	began := c.reading.idle && !idle
	c.reading.idle = idle
	if began && !c.reading.proven { // net/http has already set the request's deadline, which the one between requests may have cut short
		_ = c.TCPConn.SetReadDeadline(c.deadline()) // fails if the connection is closed
	}
	c.reading.Unlock()
	if c.counted != nil {
		c.counted.Busy(!idle)
	}
}

// waitsForRequest counts the connections whose clients may send another request.
func (c *conn) waitsForRequest(waits bool) {
	switch {
	case !c.waits.CompareAndSwap(!waits, waits):
	case waits:
		c.server.idle.Add(1)
	default:
		c.server.idle.Add(-1)
	}
}

// hijacked bounds a WebSocket that was opened without a credential: it is sent the reason of its refusal and closed.
func (c *conn) hijacked() {
	c.answered(true)
	c.waitsForRequest(false)
	_ = c.SetReadDeadline(time.Time{}) // no deadline for a proven one; fails if the connection is closed
}

// agedUnproven reports whether the connection should end with the next answer.
func (c *conn) agedUnproven() bool {
	c.reading.Lock()
	defer c.reading.Unlock()
	return !c.reading.proven && time.Until(c.reading.latest) < unprovenWait/2
}

// reset closes the connection at once: the system sends a reset, and does not wait for the peer.
func (c *conn) reset() {
	_ = c.SetLinger(0) // fails if the connection is closed, as does Close
	_ = c.TCPConn.Close()
}

func (c *conn) Read(p []byte) (int, error) {
	if len(c.unread) > 0 {
		n := copy(p, c.unread)
		if c.unread = c.unread[n:]; len(c.unread) == 0 {
			c.unread = nil // a client's hello is large
		}
		return n, nil
	}
	c.endTurn()
	switch {
	case !c.noWait:
		return c.TCPConn.Read(p)
	case !c.more:
		return 0, nothingYet{}
	}
	n, err := c.readNow(p)
	c.more = c.more && (!readsNow || n == len(p))
	return n, err
}

func (c *conn) Write(p []byte) (int, error) {
	c.endTurn()
	return c.TCPConn.Write(p)
}

// ReadNoWait is for readers of many connections that are silent most of the time. From now on, Await waits until data has arrived. Read,
// including that of a TLS connection above this one, fails when no data is left, with an error that has NothingYet.
func (c *conn) ReadNoWait() { c.noWait = true }

// Await waits until the peer has sent data, and uses almost no memory meanwhile. No other goroutine may read concurrently.
func (c *conn) Await() error {
	if len(c.unread) > 0 {
		return nil
	}
	if c.secured != nil {
		emptyBuffers(c.secured)
	}
	c.unread = nil
	return c.await()
}

// Ended returns an error if the connection was closed or its read deadline has passed. Only the goroutine that reads may call it.
func (c *conn) Ended() error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	return raw.Read(func(uintptr) bool { return true }) // fails before it would read
}

// nothingYet is a temporary error, after which TLS can continue.
type nothingYet struct{}

func (nothingYet) Error() string    { return "nothing has come yet" }
func (nothingYet) Timeout() bool    { return true }
func (nothingYet) Temporary() bool  { return true }
func (nothingYet) NothingYet() bool { return true }

// Close also removes the connection from the server's sets, so that an idle service keeps no memory of closed connections.
func (c *conn) Close() error {
	c.endTurn()
	c.waitsForRequest(false)
	c.server.mu.Lock()
	c.closed = true
	delete(c.server.upgraded, c)
	c.server.mu.Unlock()
	err := c.TCPConn.Close()
	if c.counted != nil {
		c.counted.Release() // only after the descriptor is free
	}
	return err
}

// acceptAll accepts connections until the port is closed. It never reads, so that a silent client does not block the port.
func (s *Server) acceptAll() error {
	err := Accept(s.tcp, s.closing, s.log, s.admit)
	if err != nil {
		s.close()
	}
	return err
}

func (s *Server) admit(tcp *net.TCPConn) {
	c := &conn{TCPConn: tcp, server: s}
	c.reading.proven = s.limits == nil
	c.reading.latest = time.Now().Add(unprovenWait)
	if s.limits != nil {
		if c.counted = s.limits.Admit(addressOf(tcp), c.reset, c.proven); c.counted == nil {
			c.reset()
			return
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.closed:
		c.discard() // was accepted while the port was closing
		return
	default:
	}
	s.waiting[c] = struct{}{}
	s.sniffs.Add(1)
	s.sniffing.Add(1)
	go func() {
		defer s.sniffs.Done()
		defer s.sniffing.Add(-1)
		defer s.panics.Confine(panicDoor, func() { _ = c.Close() })
		s.tellApart(c)
	}()
}

// discard closes a connection that is in no set of the server.
func (c *conn) discard() {
	_ = c.TCPConn.Close()
	if c.counted != nil {
		c.counted.Release()
	}
}

func addressOf(tcp *net.TCPConn) netip.Addr {
	if a, ok := tcp.RemoteAddr().(*net.TCPAddr); ok {
		return a.AddrPort().Addr().Unmap()
	}
	return netip.Addr{} // the connection is already gone
}

// tellApart waits for the first bytes and passes the connection to net/http as plain HTTP or TLS.
func (s *Server) tellApart(c *conn) {
	secure, err := c.readFirst(s.tls != nil)
	s.mu.Lock()
	delete(s.waiting, c)
	s.mu.Unlock()
	if err != nil {
		s.stats.silent.Add(1)
		_ = c.Close() // it was not used, so the error does not matter
		return
	}
	var next net.Conn = c
	switch {
	case !secure:
		s.stats.plain.Add(1)
	case s.tls == nil:
		s.stats.turnedAway.Add(1)
		if write, silent := s.noCertificate.Note(time.Now()); write {
			s.log.Warn("a TLS client was refused: this service has no certificate, which C++ and Unreal game servers need; use --tls-cert or --tls-acme-email, or --dev on this machine",
				"address", c.RemoteAddr(), "unlogged", silent)
		}
		_ = c.Close() // no TLS alert without TLS
		return
	default:
		s.stats.tls.Add(1)
		if !c.awaitTurn() {
			_ = c.Close() // it does not matter if its client has closed it
			return
		}
		next = tls.Server(c, s.tls) // net/http does the handshake, in the connection's goroutine and with a deadline
	}
	select {
	case s.ready <- next:
	case <-s.closed:
		_ = c.Close() // the port was closed before it could be served
	}
}

// readFirst waits for the first bytes of a connection and reports whether they are TLS. If the client's hello is wanted, it waits for that
// as well.
func (c *conn) readFirst(hello bool) (secure bool, err error) {
	if err := c.SetReadDeadline(time.Now().Add(firstByteWait)); err != nil {
		return false, err
	}
	n, err := c.TCPConn.Read(c.room[:])
	if err != nil {
		return false, err
	}
	c.unread = c.room[:n]
	secure = c.room[0] == tlsHandshake
	if secure && hello {
		err = c.readHello()
	}
	return secure, errors.Join(err, c.SetReadDeadline(time.Time{}))
}

// funnel is the net.Listener of net/http: it accepts the connections that tellApart passes on.
type funnel struct{ s *Server }

func (f funnel) Accept() (net.Conn, error) {
	select {
	case c := <-f.s.ready:
		return c, nil
	case <-f.s.closed:
		return nil, net.ErrClosed
	}
}

func (f funnel) Close() error {
	f.s.close()
	return nil
}

func (f funnel) Addr() net.Addr { return f.s.Addr() }
