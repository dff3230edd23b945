package listen

import (
	"crypto/tls"
	"errors"
	"net"
	"time"
)

// tlsHandshake is the first byte of every TLS connection, the record type of a ClientHello (RFC 8446, 5.1). No HTTP
// method starts with it.
const tlsHandshake = 0x16

// conn is an accepted connection of which some may have been read already.
type conn struct {
	*net.TCPConn
	server  *Server
	secured *tls.Conn // what reads from it, once a WebSocket door has taken it over

	unread []byte // what has been read and not handed out yet
	room   [64]byte
	more   bool // the last read found as much as there was room for
	noWait bool // Read hands out what Await has found

	closed bool // guarded by server.mu
}

func (c *conn) Read(p []byte) (int, error) {
	if len(c.unread) > 0 {
		n := copy(p, c.unread)
		c.unread = c.unread[n:]
		return n, nil
	}
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

// ReadNoWait is for those who read from many connections that are silent most of the time. From now on Await waits until
// something has come, and Read, also that of TLS over this connection, fails behind it, with an error that says NothingYet.
func (c *conn) ReadNoWait() { c.noWait = true }

// Await waits until the peer has sent something, and keeps next to nothing meanwhile. Nobody may read at the same time.
func (c *conn) Await() error {
	if len(c.unread) > 0 {
		return nil
	}
	if c.secured != nil {
		emptyBuffers(c.secured)
	}
	c.unread = nil
	room := c.room[:] // enough for an answer to a ping, over TLS too
	if c.more && !readsNow {
		room = make([]byte, 4096)
	}
	n, err := c.TCPConn.Read(room)
	c.unread, c.more = room[:n], n == len(room)
	return err
}

// nothingYet is temporary: TLS goes on after it.
type nothingYet struct{}

func (nothingYet) Error() string    { return "nothing has come yet" }
func (nothingYet) Timeout() bool    { return true }
func (nothingYet) Temporary() bool  { return true }
func (nothingYet) NothingYet() bool { return true }

// Close also forgets the connection, so that an idle service holds nothing of connections that are gone.
func (c *conn) Close() error {
	c.server.mu.Lock()
	c.closed = true
	delete(c.server.upgraded, c)
	c.server.mu.Unlock()
	return c.TCPConn.Close()
}

// acceptAll accepts until the port is closed. It never reads: one silent client must not hold up the port.
func (s *Server) acceptAll() error {
	var pause time.Duration
	for {
		tcp, err := s.tcp.AcceptTCP()
		if err == nil {
			pause = 0
			s.admit(tcp)
			continue
		}
		select {
		case <-s.closing:
			return nil
		default:
		}
		if !passing(err) {
			s.stopAccepting()
			return err
		}
		// Out of descriptors, most likely. Waiting is all that helps, and it must not become a busy loop.
		pause = min(max(2*pause, 5*time.Millisecond), time.Second)
		s.log.Warn("cannot accept connections", "err", err, "retry_in", pause)
		select {
		case <-time.After(pause):
		case <-s.closing:
			return nil
		}
	}
}

// passing reports whether accept may succeed later, with other connections closed or a client less.
func passing(err error) bool {
	t, ok := errors.AsType[interface {
		error
		Temporary() bool
	}](err)
	return ok && t.Temporary()
}

func (s *Server) admit(tcp *net.TCPConn) {
	c := &conn{TCPConn: tcp, server: s}
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.closing:
		_ = tcp.Close() // came in while the port was closing
		return
	default:
	}
	s.waiting[c] = struct{}{}
	s.sniffs.Add(1)
	go func() {
		defer s.sniffs.Done()
		defer s.panics.Confine(panicDoor, func() { _ = c.Close() })
		s.tellApart(c)
	}()
}

// tellApart waits for the first byte and hands the connection on as plain HTTP or TLS.
func (s *Server) tellApart(c *conn) {
	first := c.room[:1]
	err := c.SetReadDeadline(time.Now().Add(firstByteWait))
	if err == nil {
		_, err = c.TCPConn.Read(first)
	}
	s.mu.Lock()
	delete(s.waiting, c)
	s.mu.Unlock()
	if err == nil {
		err = c.SetReadDeadline(time.Time{})
	}
	if err != nil {
		s.stats.silent.Add(1)
		_ = c.Close() // it was of no use and nobody waits for it
		return
	}
	c.unread = first

	var next net.Conn = c
	switch {
	case first[0] != tlsHandshake:
		s.stats.plain.Add(1)
	case s.tls == nil:
		s.stats.turnedAway.Add(1)
		s.log.Debug("TLS connection turned away: no certificate is configured", "from", c.RemoteAddr())
		_ = c.Close() // no TLS alert without TLS
		return
	default:
		s.stats.tls.Add(1)
		next = tls.Server(c, s.tls) // net/http does the handshake, in the connection's goroutine and with a deadline
	}
	select {
	case s.ready <- next:
	case <-s.closing:
		_ = c.Close() // the port closed before anybody could serve it
	}
}

// funnel is the net.Listener that net/http sees: connections that were told apart already.
type funnel struct{ s *Server }

func (f funnel) Accept() (net.Conn, error) {
	select {
	case c := <-f.s.ready:
		return c, nil
	case <-f.s.closing:
		return nil, net.ErrClosed
	}
}

func (f funnel) Close() error {
	f.s.stopAccepting()
	return nil
}

func (f funnel) Addr() net.Addr { return f.s.Addr() }
