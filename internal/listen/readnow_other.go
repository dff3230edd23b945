//go:build !unix

package listen

// readsNow says whether readNow can read.
const readsNow = false

// readNow reads nothing: Await does, with more room.
func (c *conn) readNow([]byte) (int, error) { return 0, nothingYet{} }
