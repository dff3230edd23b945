package sessionlogs

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/agentproto"
	"github.com/musterhq/muster/internal/identity"
)

// house is a door with its store and its own clock.
type house struct {
	*testing.T
	dir   string
	now   time.Time
	store *Store
	door  *Door
	port  *httptest.Server
}

func newHouse(t *testing.T, quota int64) *house {
	h := &house{T: t, dir: t.TempDir(), now: time.Now()}
	secret, err := identity.OpenCellSecret(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	h.open(quota)
	h.door = New(Config{Store: h.store, Secret: secret, Log: slog.New(slog.DiscardHandler)})
	h.port = httptest.NewServer(h.door)
	h.door.Config.URL = h.port.URL + "/"
	t.Cleanup(h.port.Close)
	return h
}

func (h *house) open(quota int64) {
	h.Helper()
	var err error
	h.store, err = Open(Options{Dir: h.dir, Quota: quota, Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return h.now }})
	if err != nil {
		h.Fatal(err)
	}
}

func (h *house) do(method, url string, body io.Reader) (int, string) {
	h.Helper()
	r, err := http.NewRequestWithContext(h.Context(), method, url, body)
	if err != nil {
		h.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		h.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		h.Fatal(err)
	}
	return answer.StatusCode, string(text)
}

func (h *house) upload(session string, size int) {
	h.Helper()
	if status, text := h.do(http.MethodPut, h.door.UploadURL(session), bytes.NewReader(make([]byte, size))); status != http.StatusCreated {
		h.Fatalf("upload for %s: %d %s", session, status, text)
	}
}

func (h *house) has(want ...string) {
	h.Helper()
	for _, session := range []string{"a", "b", "c", "d"} {
		wanted := strings.Contains(strings.Join(want, " "), session)
		if h.store.Has(session) != wanted {
			h.Errorf("log of session %s: kept %v, want %v", session, !wanted, wanted)
		}
	}
	_, used, _ := h.store.Used()
	on := int64(0)
	_ = filepath.WalkDir(h.dir, func(_ string, e os.DirEntry, _ error) error {
		if info, err := e.Info(); err == nil && !e.IsDir() {
			on += info.Size()
		}
		return nil
	})
	if used != on {
		h.Errorf("%d bytes counted, %d on the disk", used, on)
	}
}

func TestUploadAndFetch(t *testing.T) {
	h := newHouse(t, 1<<20)
	if _, ok, _ := h.door.URL(t.Context(), "a"); ok {
		t.Error("a URL of a log that is not there")
	}
	for range 2 { // an agent may repeat an upload
		if status, text := h.do(http.MethodPut, h.door.UploadURL("a"), strings.NewReader("content")); status != http.StatusCreated {
			t.Fatal(status, text)
		}
		h.has("a")
	}
	url, _, _ := h.door.URL(t.Context(), "a")
	if status, text := h.do(http.MethodGet, url, nil); status != http.StatusOK || text != "content" {
		t.Errorf("%d %s", status, text)
	}
	h.upload("b", 1)
	other, _, _ := h.door.URL(t.Context(), "b")
	_, ticket, _ := strings.Cut(other, "?")
	path, _, _ := strings.Cut(url, "?")
	for what, c := range map[string]struct {
		method, url string
		body        string
		status      int
	}{
		"the ticket of another session":   {http.MethodGet, path + "?" + ticket, "", http.StatusForbidden},
		"an upload with a ticket to read": {http.MethodPut, url, "x", http.StatusForbidden},
		"a read with one to upload":       {http.MethodGet, h.door.UploadURL("a"), "", http.StatusForbidden},
		"no ticket":                       {http.MethodGet, path, "", http.StatusForbidden},
		"another path":                    {http.MethodGet, h.port.URL + Prefix + "../x?" + ticket, "", http.StatusForbidden},
		"another method":                  {http.MethodPost, url, "x", http.StatusMethodNotAllowed},
		"nothing":                         {http.MethodPut, h.door.UploadURL("a"), "", http.StatusRequestEntityTooLarge},
		"more than there is room for":     {http.MethodPut, h.door.UploadURL("a"), strings.Repeat("x", 2<<20), http.StatusInsufficientStorage},
	} {
		if status, text := h.do(c.method, c.url, strings.NewReader(c.body)); status != c.status {
			t.Errorf("%s: %d %s, want %d", what, status, text, c.status)
		}
	}
	h.now = h.now.Add(URLLife - time.Second)
	if status, _ := h.do(http.MethodHead, url, nil); status != http.StatusOK {
		t.Errorf("within its life: %d", status)
	}
	h.now = h.now.Add(2 * time.Second)
	if status, _ := h.do(http.MethodGet, url, nil); status != http.StatusForbidden {
		t.Errorf("an old URL: %d", status)
	}
	h.has("a", "b")
}

// An upload that lies about its length, or breaks off, leaves nothing behind.
func TestBrokenUploads(t *testing.T) {
	h := newHouse(t, 1<<20)
	for _, length := range []int64{-1, agentproto.LogBundleMax + 1} {
		r := httptest.NewRequest(http.MethodPut, h.door.UploadURL("a"), strings.NewReader("x"))
		r.ContentLength = length
		w := httptest.NewRecorder()
		if h.door.ServeHTTP(w, r); w.Code != http.StatusRequestEntityTooLarge {
			t.Errorf("length %d: %d", length, w.Code)
		}
	}
	r := httptest.NewRequest(http.MethodPut, h.door.UploadURL("a"), io.MultiReader(strings.NewReader("x"), failing{}))
	r.ContentLength = 1000
	w := httptest.NewRecorder()
	if h.door.ServeHTTP(w, r); w.Code != http.StatusBadRequest {
		t.Errorf("broken off: %d", w.Code)
	}
	h.has()
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errors.New("reset") }

// The oldest logs make room for new ones, none is kept for longer than 14 days, and the same holds after a restart.
func TestOldLogsGo(t *testing.T) {
	h := newHouse(t, 1000)
	h.upload("a", 400)
	h.upload("b", 400)
	h.upload("c", 400)
	h.has("b", "c")
	h.upload("b", 200) // is now the newest
	h.has("b", "c")
	h.upload("d", 700)
	h.has("b", "d")
	if err := os.WriteFile(filepath.Join(h.dir, temporary+"x"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	for i, session := range []string{"b", "d"} {
		at := h.now.Add(time.Duration(i) * time.Hour)
		if err := os.Chtimes(h.store.pathOf(nameOf(session)), at, at); err != nil {
			t.Fatal(err)
		}
	}
	h.open(1000)
	h.has("b", "d")
	h.open(800)
	h.has("d")
	h.now = h.now.Add(Keep + 2*time.Hour)
	if h.store.Has("d") {
		t.Error("a log that is too old")
	}
	if err := h.store.Sweep(); err != nil {
		t.Fatal(err)
	}
	h.has()
}

func TestUploadsAtATime(t *testing.T) {
	h := newHouse(t, 1<<20)
	for range uploadsMax {
		h.door.uploads <- struct{}{}
	}
	for range fetchesMax {
		h.door.fetches <- struct{}{}
	}
	if status, _ := h.do(http.MethodPut, h.door.UploadURL("a"), strings.NewReader("x")); status != http.StatusServiceUnavailable {
		t.Errorf("upload: %d", status)
	}
	<-h.door.uploads
	h.upload("a", 1)
	url, _, _ := h.door.URL(t.Context(), "a")
	if status, _ := h.do(http.MethodGet, url, nil); status != http.StatusServiceUnavailable {
		t.Errorf("download: %d", status)
	}
}

// While less disk space is free than the reserve for others, no log is accepted.
func TestReserveOfTheDisk(t *testing.T) {
	h := newHouse(t, 1<<20)
	h.store.Reserve = 1 << 62
	if status, text := h.do(http.MethodPut, h.door.UploadURL("a"), strings.NewReader("x")); status != http.StatusInsufficientStorage || !strings.Contains(text, "reserved") {
		t.Errorf("%d %s", status, text)
	}
	h.has()
}
