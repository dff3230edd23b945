package listen

import (
	"encoding/binary"
	"io"
	"runtime"
	"time"
)

// turns limits concurrent TLS handshakes. A handshake costs the service half a millisecond of processor time, and game servers give up after
// two to five seconds. If thousands arrived at once and all were computed concurrently, each would take as long as all of them together, so
// every client would give up and start again. So the service first waits for the client's hello, and then for a turn, in the order of
// arrival. A turn ends when the handshake sends its answer or needs more data from its client, so that a slow client does not occupy one. A
// client that has gone gets no turn. And because few handshakes compete for a processor at any time, requests on other connections do not
// wait behind them.
type turns chan struct{}

// turnsOf is the number of turns per processor; with more than one, a processor has work while the next handshake begins.
const turnsOf = 2

func newTurns() turns { return make(turns, turnsOf*runtime.GOMAXPROCS(0)) }

const (
	recordHead = 5       // type, version and length of a TLS record
	helloMax   = 1 << 14 // RFC 8446, 5.1
)

// readHello waits for the first record, which usually contains the whole client hello. The handshake reads the rest of a longer one and
// reports any error in it.
func (c *conn) readHello() error {
	if err := c.SetReadDeadline(time.Now().Add(headerWait)); err != nil {
		return err
	}
	for have := len(c.unread); have < recordHead; have = len(c.unread) {
		n, err := c.TCPConn.Read(c.room[have:])
		if err != nil {
			return err
		}
		c.unread = c.room[:have+n]
	}
	size := int(binary.BigEndian.Uint16(c.unread[3:]))
	if size > helloMax || recordHead+size <= len(c.unread) {
		return nil
	}
	hello := make([]byte, recordHead+size)
	have := copy(hello, c.unread)
	if _, err := io.ReadFull(c.TCPConn, hello[have:]); err != nil {
		return err
	}
	c.unread = hello
	return nil
}

// awaitTurn waits for a turn. It reports false if the client has gone or the port is closed.
func (c *conn) awaitTurn() bool {
	select {
	case c.server.turns <- struct{}{}:
	case <-c.server.closed:
		return false
	}
	c.turn.Store(true)
	return !c.gone()
}

// endTurn ends the connection's turn.
func (c *conn) endTurn() {
	if c.turn.CompareAndSwap(true, false) {
		<-c.server.turns
	}
}

// gone reports whether the client has closed the connection. Data that a client sends after its hello, which is unusual, is kept.
func (c *conn) gone() bool {
	if !readsNow {
		return false
	}
	var more [1]byte
	n, err := c.readNow(more[:])
	c.unread = append(c.unread, more[:n]...)
	_, open := err.(nothingYet)
	return err != nil && !open
}
