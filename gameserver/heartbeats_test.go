package gameserver

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"
)

// slowHeartbeat is a log that holds the SDK's first heartbeat between its health check and the connection.
type slowHeartbeat struct {
	slog.Handler
	once   *sync.Once
	held   chan struct{} // closed when the heartbeat is there
	goesOn chan struct{}
}

func (h slowHeartbeat) Enabled(context.Context, slog.Level) bool { return true }
func (h slowHeartbeat) WithAttrs([]slog.Attr) slog.Handler       { return h }
func (h slowHeartbeat) Handle(_ context.Context, r slog.Record) error {
	if strings.HasPrefix(r.Message, "Received health response") {
		h.once.Do(func() {
			close(h.held)
			<-h.goesOn
		})
	}
	return nil
}

func endDuringHeartbeat(t *testing.T) (f *fakeService, s *Server, h slowHeartbeat) {
	t.Helper()
	f = newFakeService(t)
	h = slowHeartbeat{slog.DiscardHandler, &sync.Once{}, make(chan struct{}), make(chan struct{})}
	o := testOptions(f)
	o.Logger = slog.New(h)
	s = New(o, Callbacks{})
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-h.held
	s.askEnd()
	return f, s, h
}

// isOver waits until the heartbeat has ended. One without a connection ends the program.
func (h slowHeartbeat) isOver() {
	close(h.goesOn)
	for bytes.Contains(stacks(), []byte("slowHeartbeat).Handle")) || beating(stacks()) {
		time.Sleep(time.Millisecond)
	}
}

// TestEndDuringHeartbeat: the connection stays until a heartbeat that is on its way has used it.
func TestEndDuringHeartbeat(t *testing.T) {
	if !ownProcess(t) {
		return
	}
	f, s, h := endDuringHeartbeat(t)
	for bytes.Count(stacks(), []byte("(*heartbeats).without(")) == 0 {
		select {
		case <-s.Done():
			t.Error("the end did not wait for the heartbeat")
			h.isOver()
			return
		case <-time.After(time.Millisecond):
		}
	}
	h.isOver()
	if err := s.Wait(); err != nil {
		t.Error(err)
	}
	f.until("the connection is closed", func() bool { return f.gone })
}

// TestEndDuringHeartbeatThatHangs: a heartbeat that never proceeds does not keep the process from its end.
func TestEndDuringHeartbeatThatHangs(t *testing.T) {
	if !ownProcess(t) {
		return
	}
	_, s, h := endDuringHeartbeat(t)
	if err := s.Wait(); err != nil {
		t.Error(err)
	}
	h.isOver()
}
