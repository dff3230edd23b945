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

func TestEndIsReportedAgainAfterItsConnectionBroke(t *testing.T) {
	if !ownProcess(t) {
		return
	}
	t.Setenv("SERVICE_CALL_TIMEOUT", "2s") // the SDK waits so long for an answer, also over a connection that broke
	f := newFakeService(t)
	s := sessionActive(t, f, Callbacks{})
	broken := false
	f.answer = func(fr frame) map[string]any {
		if fr.action() != "TerminateServerProcess" || broken {
			return nil
		}
		broken = true
		f.mu.Lock()
		_ = f.conn.NetConn().Close()
		f.mu.Unlock()
		return map[string]any{"StatusCode": 0}
	}
	if err := s.End(t.Context()); err != nil {
		t.Error(err)
	}
	if n := f.count("TerminateServerProcess"); n < 2 {
		t.Errorf("got %d TerminateServerProcess, want another one", n)
	}
}
