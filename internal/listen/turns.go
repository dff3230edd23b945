package listen

import (
	"encoding/binary"
	"io"
	"runtime"
	"time"
)

// turns are given to TLS handshakes. A handshake costs the service half a millisecond of a processor, and game servers give up after two
// to five seconds. If thousands came at once and all were computed side by side, each would take as long as all of them, so every client
// would give up and begin again. So the service waits for the client's hello first, and then for a turn, in the order of arrival. A turn ends
// when the handshake sends its answer or needs more from its client: a slow client takes none from others. A client that has gone meanwhile
// gets none. And since few handshakes are queued for a processor at any time, requests on other connections do not wait behind them.
type turns chan struct{}

// turnsOf is how many handshakes have a turn for each processor, so that it has work while the next one begins.
const turnsOf = 2

func newTurns() turns { return make(turns, turnsOf*runtime.GOMAXPROCS(0)) }

const (
	recordHead = 5       // type, version and length of a TLS record
	helloMax   = 1 << 14 // RFC 8446, 5.1
)

// readHello waits for the first record, which is all of the client's hello as a rule. The rest of a longer one is read in the handshake, and
// what is wrong with it is said there.
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

// awaitTurn waits until the handshake may be computed. It reports whether that is of use: neither has the client gone nor is the port closed.
func (c *conn) awaitTurn() bool {
	select {
	case c.server.turns <- struct{}{}:
	case <-c.server.closing:
		return false
	}
	c.turn.Store(true)
	return !c.gone()
}

// endTurn lets the next one have its turn.
func (c *conn) endTurn() {
	if c.turn.CompareAndSwap(true, false) {
		<-c.server.turns
	}
}

// gone reports whether the client has closed the connection. A client sends nothing behind its hello; what it does send is kept.
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
