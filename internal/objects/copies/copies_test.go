package copies

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/buildfiles"
	"github.com/musterhq/muster/internal/cluster/requests/requeststest"
	"github.com/musterhq/muster/internal/objects"
)

// place is a cluster whose nodes share a state that consists only of the manifests in use.
type place struct {
	*testing.T
	cluster *requeststest.Cluster

	mu    sync.Mutex
	inUse []buildfiles.Digest
}

func newPlace(t *testing.T) *place { return &place{T: t, cluster: requeststest.New(t)} }

// node is one of them.
type node struct {
	*Copies
	dir string
}

func (p *place) node(id string, quota int64) *node {
	p.Helper()
	dir := p.TempDir()
	store, err := objects.Open(objects.Options{Dir: dir, Quota: quota, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		p.Fatal(err)
	}
	n := &node{dir: dir}
	n.Copies = New(Config{Store: store, Net: p.cluster.Join(id), Log: slog.New(slog.DiscardHandler), InUse: func(context.Context) ([]buildfiles.Digest, error) {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.inUse, nil
	}})
	n.Net.Handle(n, http.NotFoundHandler())
	return n
}

func (p *place) record(d buildfiles.Digest) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.inUse = append(p.inUse, d)
	return nil
}

func noise(size int, seed byte) []byte {
	content := make([]byte, size)
	_, _ = rand.NewChaCha8([32]byte{seed}).Read(content) // cannot fail
	return content
}

// build makes a manifest of one file, whose parts go to put.
func (p *place) build(content []byte, put func(buildfiles.Digest, []byte) error) *buildfiles.Manifest {
	p.Helper()
	f, err := buildfiles.Split(bytes.NewReader(content), 1<<30, put)
	if err != nil {
		p.Fatal(err)
	}
	f.Path = "server"
	return &buildfiles.Manifest{Files: []buildfiles.File{f}}
}

func (n *node) put(d buildfiles.Digest, content []byte) error {
	return n.Put(context.Background(), d, content)
}

// has reports whether the disk of a node has all of a build.
func (n *node) has(m *buildfiles.Manifest) bool {
	text, err := m.Encode()
	if err != nil {
		return false
	}
	all := n.Store.Has(buildfiles.DigestOf(text))
	_ = m.Parts(func(part buildfiles.Part) error {
		all = all && n.Store.Has(part.Digest)
		return nil
	})
	return all
}

func count(of *buildfiles.Manifest, nodes ...*node) (held int) {
	for _, n := range nodes {
		if n.has(of) {
			held++
		}
	}
	return held
}

// A build is recorded once a majority holds it, even while the third node is down. That node copies the build later.
func TestMajority(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	a, b, c := p.node("a", 64<<20), p.node("b", 64<<20), p.node("c", 64<<20)
	p.cluster.Cut("c")
	m := p.build(noise(5<<20, 1), a.put)
	err := a.Commit(t.Context(), m, func(d buildfiles.Digest) error {
		if !b.has(m) {
			t.Error("recorded while one node of three has it")
		}
		return p.record(d)
	})
	if err != nil {
		t.Fatal(err)
	}
	c.mirror(t.Context())
	if c.Lacks() != 1 || c.has(m) {
		t.Errorf("a node that is cut off lacks %d builds", c.Lacks())
	}
	p.cluster.Mend("c")
	p.cluster.Cut("a") // the node that took the upload is gone
	c.mirror(t.Context())
	if c.Lacks() != 0 || !c.has(m) {
		t.Errorf("a node that is back lacks %d builds", c.Lacks())
	}
	d := p.node("d", 64<<20)
	d.mirror(t.Context())
	if !d.has(m) {
		t.Error("a node that joins does not copy the build")
	}
}

// A sweep does not wait for a build that waits for other nodes. Otherwise all later commits at this node would wait for the sweep, and the copies for builds
// of the other nodes with them.
func TestSweepWhileSpreading(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	a, b := p.node("a", 64<<20), p.node("b", 64<<20)
	b.Net.Handle(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := a.Sweep(r.Context(), time.Now(), func() ([]buildfiles.Digest, error) { return nil, nil }); err != nil {
			t.Error(err)
		}
		b.ServeHTTP(w, r)
	}), http.NotFoundHandler())
	if err := a.Commit(t.Context(), p.build(noise(1<<20, 9), a.put), p.record); err != nil {
		t.Error(err)
	}
}

// On a slow network a node finishes the parts that it has begun to fetch, although each takes longer than the request waits for its answer.
func TestSlowNetwork(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	a, b := p.node("a", 64<<20), p.node("b", 64<<20)
	b.holdFor = 10 * time.Millisecond
	a.Net.Handle(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(5 * b.holdFor)
		a.ServeHTTP(w, r)
	}), http.NotFoundHandler())
	m := p.build(noise(60<<20, 10), a.put)
	if err := a.Commit(t.Context(), m, p.record); err != nil {
		t.Fatal(err)
	}
	if !b.has(m) {
		t.Error("recorded while one node of two has it")
	}
}

// A node that accepts requests and answers none, because its disk hangs or it was stopped, delays the first parts only: from then on it is asked last.
func TestStalledNode(t *testing.T) {
	t.Parallel()
	content := noise(40<<20, 12)
	for headFor := time.Second; ; headFor *= 4 { // on a busy machine the other node may take longer to begin its answer
		err := fetchBesideStalled(t, content, headFor)
		if err == nil {
			return
		}
		if headFor > 10*time.Second {
			t.Fatal(err)
		}
	}
}

// fetchBesideStalled makes one node fetch a build from two others, of which one is stalled.
func fetchBesideStalled(t *testing.T, content []byte, headFor time.Duration) error {
	p := newPlace(t)
	a, b, c := p.node("a", 64<<20), p.node("b", 64<<20), p.node("c", 64<<20)
	a.headFor = headFor
	var asked atomic.Int64
	b.Net.Handle(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		<-r.Context().Done()
	}), http.NotFoundHandler())
	m := p.build(content, c.put)
	n, err := a.fetchParts(t.Context(), m, copying{})
	if err != nil {
		return err
	}
	if got := asked.Load(); got > perBuild || n <= perBuild {
		return fmt.Errorf("the stalled node was asked for %d of %d parts", got, n)
	}
	return nil
}

// Without a majority nothing is recorded, and the error names the missing node. A node without disk space counts as missing.
func TestNoMajority(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	a, _, _ := p.node("a", 64<<20), p.node("b", 1<<20), p.node("c", 64<<20)
	p.cluster.Cut("c")
	m := p.build(noise(3<<20, 2), a.put)
	ctx, cancel := context.WithTimeout(t.Context(), 2*askAgain) // the nodes are asked several times
	defer cancel()
	states := map[string]holding{"b": a.askToHold(t.Context(), "b", p.manifestAt(a, m)), "c": a.askToHold(t.Context(), "c", p.manifestAt(a, m))}
	held, want := a.count(states)
	err := a.notHeld(states, held, want)
	for _, says := range []string{"at 1 of", "want 2", "node b: 507", "--builds-max", "node c: "} {
		if !strings.Contains(err.Error(), says) {
			t.Errorf("the error does not say %q: %v", says, err)
		}
	}
	err = a.Commit(ctx, m, func(buildfiles.Digest) error {
		t.Error("recorded without a majority")
		return nil
	})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}

// manifestAt stores a manifest at a node as Commit does.
func (p *place) manifestAt(n *node, m *buildfiles.Manifest) buildfiles.Digest {
	p.Helper()
	text, err := m.Encode()
	if err == nil {
		err = n.Store.Put(buildfiles.DigestOf(text), text)
	}
	if err != nil {
		p.Fatal(err)
	}
	return buildfiles.DigestOf(text)
}

// The parts of a push may be at several nodes: none counts as missing, and the node that makes the build fetches those that it lacks.
func TestPartsAtSeveralNodes(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	a, b, c := p.node("a", 64<<20), p.node("b", 64<<20), p.node("c", 64<<20)
	next := 0
	lost := buildfiles.Digest{}
	m := p.build(noise(20<<20, 3), func(d buildfiles.Digest, content []byte) error {
		next++
		if next == 3 {
			lost = d
			return nil
		}
		return []*node{a, b, c}[next%3].put(d, content)
	})
	if next < 4 {
		t.Fatalf("the content has %d parts only", next)
	}
	missing, err := a.Missing(t.Context(), m)
	if err != nil || len(missing) != 1 || missing[0] != lost {
		t.Fatalf("missing %v, %v; want %s", missing, err, lost)
	}
	err = a.Commit(t.Context(), m, p.record)
	if incomplete, ok := errors.AsType[*objects.MissingError](err); !ok || len(incomplete.Digests) == 0 {
		t.Fatalf("a build that lacks a part: %v", err)
	}
	p.build(noise(20<<20, 3), func(d buildfiles.Digest, content []byte) error {
		if d != lost {
			return nil
		}
		return b.put(d, content)
	})
	if err := a.Commit(t.Context(), m, p.record); err != nil {
		t.Fatal(err)
	}
	if held := count(m, a, b, c); held < 2 {
		t.Errorf("recorded with the files at %d nodes", held)
	}
}

// A part that this node lacks, or that was damaged on its disk, is fetched from another node, verified by its digest, and stored here.
func TestOpenElsewhere(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	a, b := p.node("a", 64<<20), p.node("b", 64<<20)
	content := noise(1<<20, 4)
	digest := buildfiles.DigestOf(content)
	if err := b.put(digest, content); err != nil {
		t.Fatal(err)
	}
	for range 2 { // from the other node, and from the disk
		opened, err := a.Open(t.Context(), digest)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(opened)
		if err != nil || !bytes.Equal(got, content) {
			t.Errorf("read %d bytes, %v", len(got), err)
		}
		opened.Close()
	}
	if !a.Store.Has(digest) {
		t.Error("the part was not stored")
	}
	if _, err := a.Open(t.Context(), buildfiles.DigestOf([]byte("unknown"))); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("content that no node has: %v", err)
	}
	p.cluster.Cut("b")
	if _, err := a.Open(t.Context(), buildfiles.DigestOf([]byte("unknown"))); err == nil || errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "node b: ") {
		t.Errorf("content that a silent node may have: %v", err)
	}
	p.cluster.Mend("b")
	full := p.node("full", 1<<10)
	opened, err := full.Open(t.Context(), digest)
	if err != nil {
		t.Fatalf("a node without space does not pass a part on: %v", err)
	}
	opened.Close()
	if parts, _ := filepath.Glob(filepath.Join(full.dir, "parts", "*", "*")); len(parts) != 0 {
		t.Errorf("a node stored %v beyond its quota", parts)
	}
}

// A node whose disk has truncated a part of a build gets it again from another node.
func TestTruncatedPart(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	a, b := p.node("a", 64<<20), p.node("b", 64<<20)
	m := p.build(noise(1<<20, 5), a.put)
	if err := a.Commit(t.Context(), m, p.record); err != nil {
		t.Fatal(err)
	}
	part := m.Files[0].Parts[0].Digest.String()
	if err := os.Truncate(filepath.Join(b.dir, "parts", part[:2], part), 3); err != nil {
		t.Fatal(err)
	}
	b.mirror(t.Context())
	if b.Lacks() != 0 {
		t.Fatal("the part was not copied again")
	}
	if content, err := b.Store.Read(m.Files[0].Parts[0].Digest); err != nil || len(content) == 3 {
		t.Errorf("%d bytes, %v", len(content), err)
	}
}

// A push to a node that lacks a part, of which the only other copy is truncated, gets that part from the client: the first attempt to make the build
// says that it is missing.
func TestTruncatedPartElsewhere(t *testing.T) {
	t.Parallel()
	for _, verified := range []bool{false, true} { // since the start of the node that has it
		p := newPlace(t)
		a, b := p.node("a", 64<<20), p.node("b", 64<<20)
		content := noise(1<<20, 6)
		m := p.build(content, b.put)
		part := m.Files[0].Parts[0].Digest
		if verified {
			if _, err := b.Store.Read(part); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Truncate(filepath.Join(b.dir, "parts", part.String()[:2], part.String()), 3); err != nil {
			t.Fatal(err)
		}
		err := a.Commit(t.Context(), m, p.record)
		if missing, ok := errors.AsType[*objects.MissingError](err); !ok || !slices.Contains(missing.Digests, part) {
			t.Fatalf("verified %t: %v, want the part to be missing", verified, err)
		}
		p.build(content, a.put) // the client sends it
		if err := a.Commit(t.Context(), m, p.record); err != nil || count(m, a, b) != 2 {
			t.Errorf("verified %t: %v, %d nodes hold the build", verified, err, count(m, a, b))
		}
		if whole, err := b.Store.Read(part); err != nil || len(whole) == 3 {
			t.Errorf("verified %t: %d bytes, %v", verified, len(whole), err)
		}
	}
}

func TestStatusesOfInvalidRequests(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	a, _ := p.node("a", 64<<20), p.node("b", 64<<20)
	for _, q := range []struct {
		method, path, body string
		want               int
	}{
		{"GET", partsPath + "../../secret", "", http.StatusBadRequest},
		{"GET", partsPath + strings.Repeat("0", 64), "", http.StatusNotFound},
		{"POST", holdPath + "x", "", http.StatusBadRequest},
		{"POST", holdPath + strings.Repeat("0", 64), "", http.StatusBadGateway},
		{"POST", missingPath, "short", http.StatusBadRequest},
		{"GET", Prefix + "later", "", http.StatusNotImplemented},
	} {
		answer, err := a.ask(t.Context(), "b", q.method, q.path, strings.NewReader(q.body))
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if answer.StatusCode != q.want {
			t.Errorf("%s %s: %s, want %d", q.method, q.path, answer.Status, q.want)
		}
	}
}
