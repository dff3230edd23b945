//go:build !race

package gameserver

import (
	"errors"
	"testing"
)

// Not under the race detector: the official SDK reads and writes its current connection unguarded while it
// reconnects.
func TestConnectionThatBreaksIsFoundAgain(t *testing.T) {
	if !ownProcess(t) {
		return
	}
	f := newFakeService(t)
	s := sessionActive(t, f, Callbacks{})
	f.mu.Lock()
	old := f.conn
	f.mu.Unlock()
	_ = old.NetConn().Close() // no close frame: as when the service restarts
	f.until("a second connection", func() bool { return len(f.queries) == 2 })
	err := error(ErrUnavailable)
	for errors.Is(err, ErrUnavailable) { // one written to the old connection at the last moment is lost: the SDK sends none again
		err = s.AcceptPlayer(t.Context(), "psess-1")
	}
	if err != nil {
		t.Error(err)
	}
	if n := f.count("ActivateServerProcess"); n != 1 {
		t.Errorf("got %d ActivateServerProcess, want 1", n)
	}
}
