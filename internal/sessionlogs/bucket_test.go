package sessionlogs

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/s3"
)

// aged is the time of objects that are stored from now on.
type aged struct{ age atomic.Int64 }

func (a *aged) Now() time.Time                  { return time.Now().Add(-time.Duration(a.age.Load())) }
func (a *aged) Since(t time.Time) time.Duration { return a.Now().Sub(t) }

// Archives are in the bucket and not on the disk, are read through the service, and are removed by age and quota. If the store refuses, no archive is lost:
// the agent gets no Created, and tries again.
func TestBucket(t *testing.T) {
	h := newHouse(t, 3000)
	clock, refuses := &aged{}, atomic.Bool{}
	backend := s3mem.New(s3mem.WithTimeSource(clock))
	if err := backend.CreateBucket("games"); err != nil {
		t.Fatal(err)
	}
	store := gofakes3.New(backend, gofakes3.WithTimeSource(clock), gofakes3.WithTimeSkewLimit(0)).Server()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if refuses.Load() {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		store.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	h.door.Bucket = s3.New(s3.Place{Bucket: "games", Endpoint: server.URL}, credentials.NewStaticCredentialsProvider("a", "b", ""))

	content := bytes.Repeat([]byte("log "), 250)
	put := func(session string) (int, string) {
		return h.do(http.MethodPut, h.door.UploadURL(session), bytes.NewReader(content))
	}
	refuses.Store(true)
	if status, text := put("a"); status != http.StatusServiceUnavailable || !strings.Contains(text, "object store") {
		t.Errorf("while the store refuses: %d %s", status, text)
	}
	_, _, err := h.door.URL(t.Context(), "a")
	if refusal, ok := errors.AsType[*domain.Refusal](err); !ok || refusal.Reason != domain.Overloaded {
		t.Errorf("the URL while the store refuses: %v", err)
	}
	refuses.Store(false)
	if _, ok, err := h.door.URL(t.Context(), "a"); ok || err != nil {
		t.Errorf("the URL of an archive that was not stored: %v, %v", ok, err)
	}
	for _, session := range []string{"a", "b"} {
		if status, text := put(session); status != http.StatusCreated {
			t.Fatalf("%s: %d %s", session, status, text)
		}
	}
	if n, bytes, _ := h.store.Used(); n != 0 || bytes != 0 {
		t.Errorf("the disk has %d archives with %d bytes", n, bytes)
	}
	url, ok, err := h.door.URL(t.Context(), "a")
	if !ok || err != nil {
		t.Fatalf("the URL: %v, %v", ok, err)
	}
	if status, text := h.do(http.MethodGet, url, nil); status != http.StatusOK || text != string(content) {
		t.Errorf("got %d with %d bytes", status, len(text))
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Range", "bytes=996-")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(answer.Body)
	answer.Body.Close()
	if err != nil || answer.StatusCode != http.StatusPartialContent || string(rest) != "log " {
		t.Errorf("a range: %s %q, %v", answer.Status, rest, err)
	}

	has := func(want string) {
		t.Helper()
		got := ""
		for _, session := range []string{"a", "b", "c", "d", "e"} {
			if _, err := h.door.Bucket.Head(t.Context(), keyOf(nameOf(session))); err == nil {
				got += session
			}
		}
		if got != want {
			t.Errorf("the bucket has the archives of %s, want %s", got, want)
		}
	}
	clock.age.Store(int64(Keep + time.Hour))
	put("old")
	clock.age.Store(int64(2 * time.Hour))
	put("c")
	clock.age.Store(int64(time.Hour))
	put("d")
	clock.age.Store(0)
	if err := h.door.SweepBucket(t.Context()); err != nil {
		t.Fatal(err)
	}
	has("abd") // 1,000 bytes each, of 3,000: the oldest one, and the one that was too old, are gone
	if _, err := h.door.Bucket.Head(t.Context(), keyOf(nameOf("old"))); err == nil {
		t.Error("an archive of more than 14 days is still there")
	}
}
