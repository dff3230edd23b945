package buildfetch

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/musterhq/muster/internal/buildfiles"
	"github.com/musterhq/muster/internal/waittest"
)

// origin serves builds as the service does, and fails as tests require.
type origin struct {
	*httptest.Server
	mu      sync.Mutex
	content map[string][]byte // by digest
	asked   map[string]int    // bytes sent, by digest
	breaks  int               // answers to break off in the middle
	lie     string            // digest of content that is sent with another byte
}

func newOrigin(t *testing.T) *origin {
	o := &origin{content: map[string][]byte{}, asked: map[string]int{}}
	o.Server = httptest.NewServer(o)
	t.Cleanup(o.Close)
	return o
}

func (o *origin) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Query().Get("ticket") != "t" {
		w.WriteHeader(http.StatusForbidden)
		return
	}
	name := r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]
	o.mu.Lock()
	content, ok := o.content[name]
	breaks := o.breaks > 0 && len(content) > 1
	if breaks {
		o.breaks--
	}
	o.asked[name]++
	if o.lie == name {
		content = append(bytes.Clone(content[:len(content)-1]), content[len(content)-1]+1)
	}
	o.mu.Unlock()
	if !ok {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	if breaks {
		w.Header().Set("Content-Length", "1000000")
		_, _ = w.Write(content[:len(content)/2])
		panic(http.ErrAbortHandler)
	}
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(content))
}

// build adds a build to the origin.
func (o *origin) build(t *testing.T, files map[string][]byte) (url string, manifest buildfiles.Digest) {
	t.Helper()
	m := &buildfiles.Manifest{}
	for name, content := range files {
		f, err := buildfiles.Split(bytes.NewReader(content), 1<<40, func(d buildfiles.Digest, part []byte) error {
			o.content[d.String()] = bytes.Clone(part)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		f.Path, f.Executable = name, strings.HasPrefix(name, "bin/")
		m.Files = append(m.Files, f)
	}
	text, err := m.Encode()
	if err != nil {
		t.Fatal(err)
	}
	manifest = buildfiles.DigestOf(text)
	o.content[manifest.String()] = text
	return o.URL + "/builds/v1/" + manifest.String() + "?ticket=t", manifest
}

func host(t *testing.T) *Builds {
	return &Builds{Dir: t.TempDir(), pause: func(context.Context, int) error { return nil }}
}

func noise(seed byte, size int) []byte {
	content := make([]byte, size)
	_, _ = rand.NewChaCha8([32]byte{seed}).Read(content) // cannot fail
	return content
}

// has compares a build on the host with the expected files.
func has(t *testing.T, dir string, files map[string][]byte) {
	t.Helper()
	for name, want := range files {
		got, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %d bytes, %v; want %d", name, len(got), err, len(want))
		}
		if info, err := os.Stat(filepath.Join(dir, name)); err == nil && (info.Mode()&0o111 != 0) != strings.HasPrefix(name, "bin/") && filepath.Separator == '/' {
			t.Errorf("%s has the mode %v", name, info.Mode())
		}
	}
}

func fetchOf(t *testing.T, b *Builds, url string, manifest buildfiles.Digest) string {
	t.Helper()
	dir, err := b.Fetch(t.Context(), url, manifest)
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func keeping(builds ...buildfiles.Digest) func() ([]buildfiles.Digest, bool) {
	return func() ([]buildfiles.Digest, bool) { return builds, true }
}

// A build that is complete by the time the others are removed may have processes, so what is kept is decided only then.
func TestPruneDuringAFetch(t *testing.T) {
	o, b := newOrigin(t), host(t)
	url, manifest := o.build(t, map[string][]byte{"bin/server": []byte("#!/bin/sh\n")})
	o.mu.Lock() // it answers nothing
	fetched := make(chan error, 1)
	go func() {
		_, err := b.Fetch(t.Context(), url, manifest)
		fetched <- err
	}()
	waittest.Until(t, "the fetch has begun", func() bool {
		idle := b.fetching.TryLock()
		if idle {
			b.fetching.Unlock()
		}
		return !idle
	})
	pruned := make(chan error, 1)
	go func() {
		pruned <- b.Prune(func() (used []buildfiles.Digest, ok bool) {
			if _, err := os.Stat(b.Path(manifest)); err == nil {
				used = append(used, manifest)
			}
			return used, true
		})
	}()
	o.mu.Unlock()
	if err := errors.Join(<-fetched, <-pruned); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(b.Path(manifest)); err != nil {
		t.Errorf("a build that was complete before the others were removed: %v", err)
	}
	if err := b.Prune(func() ([]buildfiles.Digest, bool) { return nil, false }); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(b.Path(manifest)); err != nil {
		t.Errorf("removed although it is not known what is used: %v", err)
	}
}

func TestFetch(t *testing.T) {
	o, b := newOrigin(t), host(t)
	files := map[string][]byte{"bin/server": []byte("#!/bin/sh\n"), "data/levels.pak": noise(1, 12<<20), "empty": nil}
	url, manifest := o.build(t, files)
	o.breaks = 5
	dir := fetchOf(t, b, url, manifest)
	has(t, dir, files)
	before := len(o.asked)
	if fetchOf(t, b, url, manifest) != dir || len(o.asked) != before {
		t.Error("a build that is there is fetched again")
	}

	// Of the next version only what changed is sent; equal files are there once.
	files["data/levels.pak"] = append([]byte("a new line"), files["data/levels.pak"]...)
	next, second := o.build(t, files)
	clear(o.asked)
	newDir := fetchOf(t, b, next, second)
	has(t, newDir, files)
	if len(o.asked) > 3 { // the manifest and the parts around the insertion
		t.Errorf("%d requests for a change of ten bytes", len(o.asked))
	}
	one, _ := os.Stat(filepath.Join(dir, "bin/server"))
	two, _ := os.Stat(filepath.Join(newDir, "bin/server"))
	if !os.SameFile(one, two) {
		t.Error("an equal file is there twice")
	}
	if err := b.Prune(keeping(second)); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("the old build is still there")
	}
	has(t, newDir, files)
}

// Content that was changed on the host is not taken for the next build.
func TestDamageOnTheHost(t *testing.T) {
	o, b := newOrigin(t), host(t)
	files := map[string][]byte{"bin/server": []byte("#!/bin/sh\n"), "a": noise(2, 3<<20)}
	url, manifest := o.build(t, files)
	dir := fetchOf(t, b, url, manifest)
	for name := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/ev\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	files["b"] = []byte("new")
	next, second := o.build(t, files)
	has(t, fetchOf(t, b, next, second), files)
}

func TestLyingOrigin(t *testing.T) {
	o, b := newOrigin(t), host(t)
	content := noise(3, 1<<20)
	url, manifest := o.build(t, map[string][]byte{"bin/server": content})
	parts := 0
	for digest := range o.content {
		b = host(t)
		o.lie = digest
		if _, err := b.Fetch(t.Context(), url, manifest); err == nil || !strings.Contains(err.Error(), "digest") {
			t.Errorf("got %v", err)
		}
		parts++
	}
	if _, err := os.Stat(b.Path(manifest)); err == nil || parts < 2 {
		t.Error("the build is there")
	}
	o.lie = ""
	delete(o.content, manifest.String())
	other := host(t)
	if _, err := other.Fetch(t.Context(), url, manifest); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
	if _, err := other.Fetch(t.Context(), strings.Replace(url, "ticket=t", "ticket=x", 1), manifest); !errors.Is(err, ErrTicket) || strings.Contains(err.Error(), "ticket=x") {
		t.Errorf("got %v", err)
	}
}

// answers is a transport that answers without a network.
type answers func(r *http.Request) *http.Response

func (a answers) RoundTrip(r *http.Request) (*http.Response, error) { return a(r), nil }

// Refusals because of the service's load are not attempts, but they are no reason to wait forever.
func TestBusyService(t *testing.T) {
	text := []byte("a part of a build")
	for _, c := range []struct {
		name     string
		busy     time.Duration // how long the service refuses
		failures int           // and how often it fails then
		works    bool
	}{
		{"busy", busyMax - time.Minute, 0, true},
		{"busy, then failing", busyMax / 2, attemptsMax - 1, true},
		{"busy, then failing for good", busyMax / 2, attemptsMax, false},
		{"busy for good", 24 * time.Hour, 0, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			began, failures := time.Now(), 0
			b := &Builds{Dir: t.TempDir(), Client: &http.Client{Transport: answers(func(*http.Request) *http.Response {
				a := &http.Response{StatusCode: http.StatusServiceUnavailable, Header: http.Header{}, Body: http.NoBody}
				switch {
				case time.Since(began) < c.busy:
					a.Header.Set("Retry-After", "1")
				case failures < c.failures:
					failures++
				default:
					a.StatusCode, a.Body = http.StatusOK, io.NopCloser(bytes.NewReader(text))
				}
				return a
			})}}
			var got bytes.Buffer
			err := b.get(t.Context(), "http://service/builds/v1/x", buildfiles.DigestOf(text), 1<<20, func(p []byte, _ int64) error { _, err := got.Write(p); return err })
			if took := time.Since(began); (err == nil) != c.works || took > busyMax+2*time.Minute {
				t.Errorf("%s: %v after %s", c.name, err, took)
			}
		})
	}
}

// An interrupted fetch continues with the stored parts.
func TestInterrupted(t *testing.T) {
	o, b := newOrigin(t), host(t)
	files := map[string][]byte{"a": noise(4, 2<<20), "b": noise(5, 2<<20)}
	url, manifest := o.build(t, files)
	ctx, cancel := context.WithCancel(t.Context())
	o.breaks = 1 << 30
	b.pause = func(context.Context, int) error {
		o.mu.Lock()
		defer o.mu.Unlock()
		if o.breaks = 0; len(o.asked) > 2 {
			cancel()
			return ctx.Err()
		}
		return nil
	}
	if _, err := b.Fetch(ctx, url, manifest); err == nil {
		t.Log("the fetch was faster than its end")
	}
	if _, err := os.Stat(filepath.Join(b.Dir, buildsDir, unfinished+manifest.String())); err != nil {
		if _, err := os.Stat(b.Path(manifest)); err != nil {
			t.Fatal("nothing is left to continue with")
		}
	}
	b.pause = func(context.Context, int) error { return nil }
	has(t, fetchOf(t, b, url, manifest), files)
	if err := b.Prune(keeping()); err != nil {
		t.Fatal(err)
	}
}

// A removal that is interrupted leaves no part of a build below the name of a complete one.
func TestInterruptedPrune(t *testing.T) {
	o, b := newOrigin(t), host(t)
	files := map[string][]byte{"a": noise(6, 1000), "bin/server": noise(7, 1000)}
	url, manifest := o.build(t, files)
	fetchOf(t, b, url, manifest)
	b.remove = func(path string) error {
		if err := os.Remove(filepath.Join(path, "a")); err != nil {
			return nil // the rest, once the build has lost a file
		}
		return errors.New("interrupted")
	}
	if err := b.Prune(keeping()); err == nil {
		t.Fatal("the removal was not interrupted")
	}
	b.remove = nil
	has(t, fetchOf(t, b, url, manifest), files)
	if err := b.Prune(keeping()); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(filepath.Join(b.Dir, buildsDir)); err != nil || len(left) != 0 {
		t.Errorf("%v, %v are left", left, err)
	}
}
