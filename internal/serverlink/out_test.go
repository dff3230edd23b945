package serverlink

import (
	"io"
	"net"
	"testing"

	"github.com/musterhq/muster/internal/frames"
)

// The frames that wait for a game server that does not read are bounded by outMax: a frame that would exceed it ends the
// connection.
func TestUnreadAnswersAreBounded(t *testing.T) {
	ours, theirs := net.Pipe() // has no buffer: nothing leaves until the other side reads
	defer theirs.Close()
	l := &link{conn: ours, process: &process{server: &Server{}}}
	flushed := make(chan struct{})
	const size = 64 << 10
	taken := 0
	for closed := false; !closed; {
		b := newFrame()
		*b = append(*b, make([]byte, size)...)
		if l.queue(b, frames.Text) {
			go func() { // stays with the first frame
				defer close(flushed)
				l.flush()
			}()
		}
		l.out.Lock()
		closed = l.out.closed
		if l.out.waiting != nil && len(*l.out.waiting) > outMax {
			t.Errorf("%d bytes wait, want at most %d", len(*l.out.waiting), outMax)
		}
		l.out.Unlock()
		if taken++; taken > 2*outMax/size {
			t.Fatalf("%d bytes were taken for a connection that does not read", taken*size)
		}
	}
	if taken*size < outMax {
		t.Errorf("the connection ended with %d bytes, want it to bear %d", taken*size, outMax)
	}
	if _, err := io.Copy(io.Discard, theirs); err != nil {
		t.Errorf("the end of the connection: %v", err)
	}
	<-flushed
}
