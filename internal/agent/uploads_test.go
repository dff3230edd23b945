package agent

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

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
