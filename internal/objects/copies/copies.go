// Package copies keeps the parts of builds on the disks of a cluster's nodes. A build is recorded once a majority of the voting nodes has
// all of its parts durably; the other nodes, and nodes that join later, copy them as soon as they can. A node that is asked for a part that
// it lacks gets it from another node.
//
// Nodes fetch from each other, and none writes to the disk of another: the node that makes a build asks the others to hold it, and they
// fetch the parts that they lack.
package copies

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/musterhq/muster/internal/buildfiles"
	"github.com/musterhq/muster/internal/cluster/requests"
	"github.com/musterhq/muster/internal/objects"
)

// Bounds.
const (
	fetchesMax  = 8 // parts that this node fetches at a time, each in memory
	copyingMax  = 4 // builds that are copied to this node at a time
	perBuild    = 4 // parts of one build that are fetched at a time
	passingMax  = 8 // parts that this node passes from other nodes to hosts at a time, each in memory
	mirrorEvery = 5 * time.Second
)

// Config configures Copies.
type Config struct {
	Store *objects.Store
	Net   *requests.Net
	// InUse returns the manifests of all builds that this node knows.
	InUse func(ctx context.Context) ([]buildfiles.Digest, error)
	Log   *slog.Logger
}

// Copies has the parts of builds on the disks of the nodes. It implements objects.Parts.
type Copies struct {
	Config

	fetches, copies, passing chan struct{}
	holdFor, headFor         time.Duration

	mu      sync.Mutex
	stalled map[string]time.Time           // when a node last began no answer in time
	whole   map[buildfiles.Digest]struct{} // manifests of builds of which this node has once had all parts
	lacks   int                            // builds in use that this node does not have yet
	said    map[buildfiles.Digest]string   // why, as last logged
}

// New returns the Copies of a node. Run copies the parts that the node lacks.
func New(c Config) *Copies {
	return &Copies{
		Config:  c,
		fetches: make(chan struct{}, fetchesMax), copies: make(chan struct{}, copyingMax), passing: make(chan struct{}, passingMax),
		holdFor: holdFor, headFor: headFor,
		stalled: map[string]time.Time{}, whole: map[buildfiles.Digest]struct{}{}, said: map[buildfiles.Digest]string{},
	}
}

// Lacks returns the number of builds in use of which this node lacks parts.
func (c *Copies) Lacks() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lacks
}

// Missing implements objects.Parts: a part is missing if no reachable node has it.
func (c *Copies) Missing(ctx context.Context, m *buildfiles.Manifest) ([]buildfiles.Digest, error) {
	missing, err := objects.Local{Store: c.Store}.Missing(ctx, m)
	if err != nil || len(missing) == 0 {
		return missing, err
	}
	return c.missingElsewhere(ctx, missing), nil
}

// Put implements objects.Parts. The part is only on this node: until a build needs it, it may be lost, and the client sends it again.
func (c *Copies) Put(_ context.Context, d buildfiles.Digest, content []byte) error {
	return c.Store.Put(d, content)
}

// Commit implements objects.Parts.
func (c *Copies) Commit(ctx context.Context, m *buildfiles.Manifest, record func(manifest buildfiles.Digest) error) error {
	_, err := c.fetchParts(ctx, m, copying{})
	if _, isFull := errors.AsType[*objects.FullError](err); isFull || ctx.Err() != nil {
		return err
	} // after another error, parts are missing, and the client sends them again
	// Commit keeps sweeps away, and a waiting sweep keeps away the copies that other nodes wait for. So the files are spread between two
	// commits: content that the first one has found stays for longer than spreadMax.
	var manifest buildfiles.Digest
	if err := c.Store.Commit(m, func(d buildfiles.Digest) error { manifest = d; return nil }); err != nil {
		return err
	}
	if err := c.spread(ctx, manifest); err != nil {
		return err
	}
	return c.Store.Commit(m, record)
}

// Open implements objects.Parts.
func (c *Copies) Open(ctx context.Context, d buildfiles.Digest) (io.ReadSeekCloser, error) {
	f, err := c.Store.Open(d)
	if err == nil {
		return f, nil
	}
	if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, objects.ErrDamaged) {
		return nil, err
	}
	if err := enter(ctx, c.passing); err != nil {
		return nil, err
	}
	content, err := c.fetch(ctx, d, "")
	if err != nil {
		<-c.passing
		return nil, err
	}
	if err := c.Store.Put(d, content); err != nil {
		c.Log.Debug("part of a build is passed on without being stored", "digest", d.String(), "error", err)
	}
	return objects.InMemory(content, func() { <-c.passing }), nil
}

// Sweep implements objects.Parts. Each node sweeps its own disk, according to the shared state.
func (c *Copies) Sweep(_ context.Context, now time.Time, manifests func() ([]buildfiles.Digest, error)) (objects.Swept, error) {
	return c.Store.Sweep(now, manifests)
}

// enter waits for a free slot.
func enter(ctx context.Context, places chan struct{}) error {
	select {
	case places <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Run copies the builds that this node lacks, until ctx ends.
func (c *Copies) Run(ctx context.Context) {
	for {
		c.mirror(ctx)
		select {
		case <-ctx.Done():
			return
		case <-time.After(mirrorEvery):
		}
	}
}

// mirror copies what this node lacks, one build after another.
func (c *Copies) mirror(ctx context.Context) {
	manifests, err := c.InUse(ctx)
	if err != nil {
		return // the node has not caught up, or it is stopping
	}
	for _, manifest := range c.unknown(manifests) {
		began := time.Now()
		fetched, err := c.copy(ctx, manifest, copying{})
		if ctx.Err() != nil {
			return
		}
		c.copied(manifest, err)
		if err == nil && fetched > 0 {
			c.Log.Info("build copied from other nodes", "manifest", manifest.String(), "parts", fetched, "took", time.Since(began).Round(time.Millisecond))
		}
	}
}

// unknown returns the manifests in use of builds of which this node is not known to have all parts, and forgets those no longer in use.
func (c *Copies) unknown(inUse []buildfiles.Digest) (unknown []buildfiles.Digest) {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.whole
	c.whole = map[buildfiles.Digest]struct{}{}
	said := c.said
	c.said = map[buildfiles.Digest]string{}
	seen := map[buildfiles.Digest]struct{}{}
	for _, d := range inUse {
		if _, twice := seen[d]; twice {
			continue
		}
		seen[d] = struct{}{}
		if _, ok := before[d]; ok {
			c.whole[d] = struct{}{}
			continue
		}
		unknown = append(unknown, d)
		if text, ok := said[d]; ok {
			c.said[d] = text
		}
	}
	c.lacks = len(unknown)
	return unknown
}

// copied records the result of an attempt to copy a build, and logs each new reason for a failure.
func (c *Copies) copied(manifest buildfiles.Digest, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil {
		c.whole[manifest] = struct{}{}
		delete(c.said, manifest)
		c.lacks--
		return
	}
	if text := err.Error(); c.said[manifest] != text {
		c.said[manifest] = text
		c.Log.Warn("build cannot be copied to this node: it tries again, and meanwhile hosts get the build through other nodes", "manifest", manifest.String(), "error", err)
	}
}

// copying defines how a build is copied. The zero value copies from any node, to the end.
type copying struct {
	from     string        // the node that is asked first
	beginFor time.Duration // how long further fetches are started; 0: until all parts are fetched. Fetches in progress are completed
	left     func(int)     // called with the number of parts left; nil: not called
}

// errLater is the error if parts are left because their fetch was not started in time.
var errLater = errors.New("parts are left for later")

func (x *copying) tell(left int) {
	if x.left != nil {
		x.left(left)
	}
}

// copy fetches the parts of a build that this node lacks, and returns their number. If the error is nil, all of them are durable.
func (c *Copies) copy(ctx context.Context, manifest buildfiles.Digest, x copying) (fetched int, err error) {
	if err := enter(ctx, c.copies); err != nil {
		return 0, err
	}
	defer func() { <-c.copies }()
	m, err := c.Store.Manifest(manifest)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, objects.ErrDamaged) {
		var text []byte
		if text, err = c.fetch(ctx, manifest, x.from); err == nil {
			m, err = buildfiles.ParseManifest(text)
		}
	}
	if err != nil {
		return 0, err
	}
	if fetched, err = c.fetchParts(ctx, m, x); err != nil {
		return fetched, err
	}
	return fetched, c.Store.Commit(m, func(buildfiles.Digest) error { return nil })
}

// fetchParts fetches the parts of a build that this node lacks, and returns how many it has fetched.
func (c *Copies) fetchParts(ctx context.Context, m *buildfiles.Manifest, x copying) (int, error) {
	var missing []buildfiles.Digest
	_ = m.Parts(func(p buildfiles.Part) error {
		if !c.Store.HasPart(p) {
			missing = append(missing, p.Digest)
		}
		return nil // so Parts returns nil, too
	})
	var counting sync.Mutex
	fetched, began := 0, time.Now()
	x.tell(len(missing))
	group, fetching := errgroup.WithContext(ctx)
	group.SetLimit(perBuild)
	for i, d := range missing {
		if fetching.Err() != nil || i >= perBuild && x.beginFor > 0 && time.Since(began) >= x.beginFor {
			break // some are always started, so each attempt makes progress
		}
		group.Go(func() error {
			content, err := c.fetch(fetching, d, x.from)
			if err == nil {
				err = c.Store.Put(d, content)
			}
			if err != nil {
				return err
			}
			counting.Lock()
			defer counting.Unlock()
			fetched++
			x.tell(len(missing) - fetched)
			return nil
		})
	}
	err := group.Wait()
	switch {
	case err != nil:
		return fetched, err
	case fetched == len(missing):
		return fetched, nil
	case ctx.Err() != nil:
		return fetched, ctx.Err()
	}
	return fetched, errLater
}
