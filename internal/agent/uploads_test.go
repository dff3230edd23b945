package agent

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/agent/agenttest"
	"github.com/musterhq/muster/internal/agentproto"
)

// Logs that cannot be uploaded at first are uploaded later, even by the next agent. Logs of a process that never registered are not.
func TestLogsAreUploaded(t *testing.T) {
	s := newService(t, play(1, "wait"))
	var mu sync.Mutex
	failures, archives := 1, []string(nil)
	port := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		if failures > 0 {
			failures--
			http.Error(w, "later", http.StatusServiceUnavailable)
			return
		}
		archives = append(archives, r.Method+" "+string(body[:min(2, len(body))]))
		w.WriteHeader(http.StatusCreated)
	}))
	defer port.Close()
	s.set(func() { s.uploadURL = port.URL + "/x?ticket=y" })
	dir := dirs(t)
	stop := s.runIn(dir, nil)
	first := s.some(agentproto.ProcessStarting, 1)[0].ProcessID
	s.push(&agentproto.ForceExitServerProcess{ProcessID: first}) // never registered
	s.ended(first)
	second := ""
	s.eventually("another process", func() bool {
		if s.beat != nil && len(s.beat.ProcessList) == 1 {
			second = s.beat.ProcessList[0]
		}
		return second != "" && second != first
	})
	s.push(&agentproto.NotifyProcessRegistered{ProcessID: second, LogPaths: []string{"/nonexistent"}})
	s.push(&agentproto.NotifyGameSessionActivated{ProcessID: second, GameSessionID: "gs-1"})
	s.some(agentproto.ProcessRunning, 1)
	s.push(&agentproto.ForceExitServerProcess{ProcessID: second})
	s.eventually("a failed upload", func() bool { mu.Lock(); defer mu.Unlock(); return failures == 0 })
	stop()
	s.runIn(dir, nil)
	s.eventually("an upload", func() bool { mu.Lock(); defer mu.Unlock(); return len(archives) == 1 })
	s.set(func() {
		for _, r := range s.uploadRequests {
			if r.ProcessID != second || r.GameSessionID != "gs-1" {
				t.Errorf("asked for %+v", r)
			}
		}
	})
	mu.Lock()
	defer mu.Unlock()
	if !strings.HasPrefix(archives[0], "PUT PK") {
		t.Errorf("uploaded %q", archives[0])
	}
}

// Logs that cannot be uploaded, or whose upload hangs, delay those of no other process.
func TestUploadsPassStuckOnes(t *testing.T) {
	s := newService(t, play(3, "wait"))
	release, stored := make(chan struct{}), make(chan struct{}, 100)
	var n atomic.Int32
	port := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		switch n.Add(1) {
		case 1:
			http.Error(w, "later", http.StatusServiceUnavailable)
		case 2:
			<-release
		default:
			w.WriteHeader(http.StatusCreated)
			stored <- struct{}{}
		}
	}))
	defer port.Close()
	defer close(release)
	s.set(func() { s.uploadURL = port.URL + "/x?ticket=y" })
	s.run(nil)
	for _, x := range s.some(agentproto.ProcessStarting, 3) {
		s.push(&agentproto.NotifyProcessRegistered{ProcessID: x.ProcessID})
		s.push(&agentproto.NotifyGameSessionActivated{ProcessID: x.ProcessID, GameSessionID: "gs-" + x.ProcessID})
		s.push(&agentproto.ForceExitServerProcess{ProcessID: x.ProcessID})
	}
	select {
	case <-stored:
	case <-time.After(agenttest.Patience):
		t.Error("the logs of no process are uploaded")
	}
}
