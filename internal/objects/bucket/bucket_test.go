package bucket

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"github.com/musterhq/muster/internal/buildfiles"
	"github.com/musterhq/muster/internal/objects"
	"github.com/musterhq/muster/internal/s3"
)

// place is a bucket in memory whose objects have an age, with a node.
type place struct {
	*testing.T
	*Bucket
	age     atomic.Int64                                                             // of what is stored from now on
	before  atomic.Pointer[func(w http.ResponseWriter, r *http.Request) (done bool)] // answers instead of the store
	decides atomic.Bool
}

// GoFakeS3 takes the time of objects from Now, and that of its answers from the clock.
func (p *place) Now() time.Time                  { return time.Now().Add(-time.Duration(p.age.Load())) }
func (p *place) Since(t time.Time) time.Duration { return p.Now().Sub(t) }

func newPlace(t *testing.T) *place {
	t.Helper()
	p := &place{T: t}
	p.decides.Store(true)
	backend := s3mem.New(s3mem.WithTimeSource(p))
	if err := backend.CreateBucket("games"); err != nil {
		t.Fatal(err)
	}
	store := gofakes3.New(backend, gofakes3.WithTimeSource(p), gofakes3.WithTimeSkewLimit(0)).Server()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if before := p.before.Load(); before != nil && (*before)(w, r) {
			return
		}
		store.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	local, err := objects.Open(objects.Options{Dir: t.TempDir(), Quota: 64 << 20, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	p.Bucket = New(Config{
		Client: s3.New(s3.Place{Bucket: "games", Prefix: "muster", Endpoint: server.URL}, credentials.NewStaticCredentialsProvider("a", "b", "")),
		Local:  local, Decides: func(context.Context) bool { return p.decides.Load() }, Log: slog.New(slog.DiscardHandler),
	})
	p.wait = 0
	return p
}

func (p *place) build(seed byte) *buildfiles.Manifest {
	p.Helper()
	content := make([]byte, 3<<20)
	_, _ = rand.NewChaCha8([32]byte{seed}).Read(content) // cannot fail
	f, err := buildfiles.Split(bytes.NewReader(content), 1<<30, func(d buildfiles.Digest, part []byte) error { return p.Put(p.Context(), d, part) })
	if err != nil {
		p.Fatal(err)
	}
	f.Path = "server"
	return &buildfiles.Manifest{Files: []buildfiles.File{f}}
}

func (p *place) commit(m *buildfiles.Manifest) (manifest buildfiles.Digest) {
	p.Helper()
	if err := p.Commit(p.Context(), m, func(d buildfiles.Digest) error { manifest = d; return nil }); err != nil {
		p.Fatal(err)
	}
	return manifest
}

// putManifest stores a manifest without making its parts new.
func (p *place) putManifest(m *buildfiles.Manifest) buildfiles.Digest {
	p.Helper()
	text, err := m.Encode()
	if err == nil {
		err = p.Put(p.Context(), buildfiles.DigestOf(text), text)
	}
	if err != nil {
		p.Fatal(err)
	}
	return buildfiles.DigestOf(text)
}

func (p *place) missing(m *buildfiles.Manifest) int {
	p.Helper()
	missing, err := p.Missing(p.Context(), m)
	if err != nil {
		p.Fatal(err)
	}
	return len(missing)
}

func count(m *buildfiles.Manifest) (n int) {
	_ = m.Parts(func(buildfiles.Part) error { n++; return nil })
	return n
}

// sweep runs a sweep while these builds are in use.
func (p *place) sweep(inUse ...buildfiles.Digest) objects.Swept {
	p.Helper()
	swept, err := p.Sweep(p.Context(), time.Now(), func() ([]buildfiles.Digest, error) { return inUse, nil })
	if err != nil {
		p.Fatal(err)
	}
	return swept
}

// A build reads as it was stored, and a build that lacks a part is not recorded.
func TestBuilds(t *testing.T) {
	p := newPlace(t)
	m := p.build(1)
	part := m.Files[0].Parts[0].Digest
	if err := p.Client.Delete(t.Context(), keyOf(part)); err != nil {
		t.Fatal(err)
	}
	err := p.Commit(t.Context(), m, func(buildfiles.Digest) error { t.Error("recorded"); return nil })
	if missing, ok := errors.AsType[*objects.MissingError](err); !ok || len(missing.Digests) != 1 || missing.Digests[0] != part {
		t.Fatalf("a build that lacks a part: %v", err)
	}
	m = p.build(1)
	p.commit(m)
	for _, x := range m.Files[0].Parts {
		opened, err := p.Open(t.Context(), x.Digest)
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(opened)
		opened.Close()
		if err != nil || buildfiles.DigestOf(content) != x.Digest {
			t.Errorf("part %s: %d bytes, %v", x.Digest, len(content), err)
		}
	}
	if err := p.Put(t.Context(), part, []byte("something else")); err == nil {
		t.Error("content with another digest was stored")
	}
	if err := p.Client.PutBytes(t.Context(), keyOf(part), []byte("damaged")); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Open(t.Context(), part); !errors.Is(err, objects.ErrDamaged) {
		t.Errorf("a damaged part: %v", err)
	}
	if _, err := p.Open(t.Context(), buildfiles.DigestOf([]byte("unknown"))); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a part that there is nowhere: %v", err)
	}
}

// Parts that were stored on the disk before a bucket was configured are still served to hosts, and no sweep of the disk removes them.
func TestPartsOfBefore(t *testing.T) {
	p := newPlace(t)
	content := []byte("an old part")
	d := buildfiles.DigestOf(content)
	if err := p.Local.Put(d, content); err != nil {
		t.Fatal(err)
	}
	opened, err := p.Open(t.Context(), d)
	if err != nil {
		t.Fatal(err)
	}
	opened.Close()
}

// The leader's sweeps remove parts that no build needs once they are a day old. A new build keeps the parts that it shares with an old one.
func TestSweep(t *testing.T) {
	p := newPlace(t)
	p.age.Store(int64(keepFor + time.Hour))
	kept, left, shared := p.build(1), p.build(2), p.build(3)
	inUse := p.putManifest(kept)
	err := p.Commit(t.Context(), kept, func(buildfiles.Digest) error { t.Error("recorded"); return nil })
	if err == nil || !strings.Contains(err.Error(), "is its clock right?") || !strings.Contains(err.Error(), "copied onto itself") {
		t.Errorf("content that stays old: %v", err)
	}
	p.age.Store(0)
	again := p.commit(shared) // its parts are old: they count as new from now on
	p.decides.Store(false)
	if swept := p.sweep(inUse); swept.Parts != 0 {
		t.Errorf("a node that does not decide swept %d parts", swept.Parts)
	}
	p.decides.Store(true)
	if swept := p.sweep(inUse); swept.Parts != count(left) {
		t.Errorf("swept %d parts, want %d", swept.Parts, count(left))
	}
	if p.missing(kept) != 0 || p.missing(shared) != 0 || p.missing(left) != count(left) {
		t.Errorf("missing: %d of a build in use, %d of a new one, %d of one that is in no use", p.missing(kept), p.missing(shared), p.missing(left))
	}
	p.sweep(inUse, again)
}

// While the store does not return a manifest, a sweep removes nothing, because it could remove parts that the manifest names.
func TestFaults(t *testing.T) {
	p := newPlace(t)
	p.age.Store(int64(keepFor + time.Hour))
	m := p.build(1)
	manifest := p.putManifest(m)
	p.build(2)
	deny := func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodDelete {
			t.Errorf("removed %s", r.URL)
		}
		if r.Method != http.MethodGet || !strings.Contains(r.URL.Path, manifest.String()) {
			return false
		}
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, "<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>")
		return true
	}
	p.before.Store(&deny)
	_, err := p.Sweep(t.Context(), time.Now(), func() ([]buildfiles.Digest, error) { return []buildfiles.Digest{manifest}, nil })
	if err == nil || !strings.Contains(err.Error(), "403 AccessDenied") {
		t.Errorf("got %v", err)
	}
	silent := func(w http.ResponseWriter, _ *http.Request) bool {
		w.WriteHeader(http.StatusForbidden)
		return true
	}
	p.before.Store(&silent)
	if err := p.Commit(t.Context(), m, func(buildfiles.Digest) error { t.Error("recorded"); return nil }); !s3.IsFault(err) {
		t.Errorf("a commit while the store refuses: %v", err)
	}
	if _, err := p.Open(t.Context(), manifest); !s3.IsFault(err) || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a part while the store refuses: %v", err)
	}
}
