package sessionapi

import (
	"bufio"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/identity"
)

type noKeys struct{}

func (noKeys) Find(string) (identity.AccessKey, bool) { return identity.AccessKey{}, false }
func (noKeys) With(string, string, string) (identity.AccessKey, error) {
	return identity.AccessKey{}, identity.ErrUnknown
}

// A node that was given up ends its event streams, and starts none until it is registered again.
func TestGivenUpNodeEndsItsStreams(t *testing.T) {
	var registered atomic.Bool
	registered.Store(true)
	d := NewDoor(Config{Dev: true, Keys: noKeys{}, Registered: registered.Load})
	t.Cleanup(d.Close)
	s := httptest.NewServer(d)
	t.Cleanup(s.Close)
	listen := func() *http.Response {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+Prefix+"events", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("X-Client-Id", "tool")
		got, err := s.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = got.Body.Close() })
		return got
	}
	for range 2 {
		stream := listen()
		if stream.StatusCode != http.StatusOK {
			t.Fatalf("got %d", stream.StatusCode)
		}
		registered.Store(false)
		d.DropStreams()
		if _, err := io.ReadAll(stream.Body); err != nil {
			t.Error(err)
		}
		if got := listen(); got.StatusCode != http.StatusServiceUnavailable {
			t.Errorf("a stream at the lost node: %d", got.StatusCode)
		}
		registered.Store(true)
	}
}

// A reader that returns after events of its stream were dropped learns that, also if nothing of the stream is left.
func TestReturningReaderMissesEvents(t *testing.T) {
	d := NewDoor(Config{Dev: true, Keys: noKeys{}, Limits: Limits{Pending: 100, Kept: 4, KeptBytes: 1 << 20, KeptFor: time.Nanosecond, Readers: 100}})
	t.Cleanup(d.Close)
	s := httptest.NewServer(d)
	t.Cleanup(s.Close)
	publish := func() (last string) {
		c, problem := d.calls.begin(&request{principal: &identity.Principal{}, client: "tool"}, &node{name: "N", event: "OnN"})
		if problem != nil {
			t.Fatal(problem)
		}
		d.calls.complete(c, nil, nil)
		d.calls.mu.Lock()
		defer d.calls.mu.Unlock()
		return d.calls.epoch + "-" + strconv.FormatUint(d.calls.last, 10)
	}
	first := func(last string) string {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+Prefix+"events", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("X-Client-Id", "tool")
		if last != "" {
			r.Header.Set("Last-Event-ID", last)
		}
		got, err := s.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer got.Body.Close()
		for lines := bufio.NewScanner(got.Body); lines.Scan(); {
			if name, ok := strings.CutPrefix(lines.Text(), "event: "); ok {
				return name
			}
		}
		return ""
	}
	seen := publish()
	for range 6 {
		publish()
	}
	if got := first(seen); got != missedEvent {
		t.Errorf("after %s, with newer events: %s", seen, got)
	}
	if got := first(""); got != "OnN" {
		t.Errorf("from the beginning: %s", got)
	}
	time.Sleep(time.Millisecond)
	d.calls.expire()
	if got := first(seen); got != missedEvent {
		t.Errorf("after %s, when all events had expired: %s", seen, got)
	}
	last := publish()
	time.Sleep(time.Millisecond)
	d.calls.expire()
	go func() {
		time.Sleep(100 * time.Millisecond)
		publish()
	}()
	if got := first(last); got != "OnN" {
		t.Errorf("after the last event: %s", got)
	}
}

// Calls may begin while the door closes: the port answers running requests until then. The race detector, or a panic, reports it otherwise.
func TestCallsBeginDuringClose(t *testing.T) {
	for range 20 {
		d := NewDoor(Config{Dev: true, Keys: noKeys{}})
		begun := make(chan struct{})
		go func() {
			defer close(begun)
			for range 5 {
				w := httptest.NewRecorder()
				r := httptest.NewRequest(http.MethodPost, Prefix+"SearchSessions?async=1", strings.NewReader(`{"fleetId":"fleet-1"}`))
				r.Header.Set("Content-Type", "application/json")
				d.ServeHTTP(w, r) // the call itself fails, because there is no engine
				if w.Code != http.StatusAccepted {
					t.Errorf("got %d %s", w.Code, w.Body)
				}
			}
		}()
		d.Close()
		<-begun
	}
}
