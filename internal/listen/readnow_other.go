//go:build !unix

package listen

// readsNow reports whether readNow can read.
const readsNow = false

// readNow reads nothing; await reads instead, into a larger buffer.
func (c *conn) readNow([]byte) (int, error) { return 0, nothingYet{} }

// await waits until data has arrived, and reads it.
func (c *conn) await() error {
	room := c.room[:] // enough for an answer to a ping, even over TLS
	if c.more {
		room = make([]byte, 4096)
	}
	n, err := c.TCPConn.Read(room)
	c.unread, c.more = room[:n], n == len(room)
	return err
}
