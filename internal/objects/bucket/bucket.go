// Package bucket keeps the parts of builds in an object store of the operator, which any number of nodes share. Uploads stay on the disk of
// the node that received them until they are builds.
//
// The store is trusted only for durability: content is checked against its digest whenever it is read.
package bucket

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/musterhq/muster/internal/buildfiles"
	"github.com/musterhq/muster/internal/objects"
	"github.com/musterhq/muster/internal/s3"
)

const partsBelow = "parts/" // parts/abcd…: content by digest

// Times and bounds.
const (
	// keepFor is how long content that no build needs is kept, by the store's clock.
	keepFor = 24 * time.Hour
	// roundsMax is how often touched content is checked again after the round that touched it.
	roundsMax = 2
	// freshFor is the age from which on content that a new build needs is touched, so that no sweep considers it old.
	freshFor = keepFor / 2
	// commitMax bounds a Commit. It is less than the remainder of keepFor for content that is not touched.
	commitMax = keepFor / 4
	// removeWait bounds the time between a sweep's check of some content and its removal. A build that touched content which was old enough
	// for a sweep waits longer than that, and checks again.
	removeWait = 10 * time.Second
	sweptWait  = 2 * removeWait
	questions  = 16 // concurrent requests to the store on behalf of one request
	passingMax = 16 // parts that are passed to hosts at a time, each in memory
)

// Config configures a Bucket.
type Config struct {
	Client *s3.Client
	// Local has the uploads, and the parts of builds from before the bucket was configured.
	Local *objects.Store
	// Decides reports whether this node is the one that sweeps.
	Decides func(ctx context.Context) bool
	Log     *slog.Logger
}

// Bucket has the parts of builds in an object store. It implements objects.Parts.
type Bucket struct {
	Config
	passing chan struct{}
	wait    time.Duration // sweptWait, except in tests
}

// New returns a Bucket.
func New(c Config) *Bucket {
	return &Bucket{Config: c, passing: make(chan struct{}, passingMax), wait: sweptWait}
}

func keyOf(d buildfiles.Digest) string { return partsBelow + d.String() }

// fresh reports whether the content of a digest exists with a size (0: any), and makes it count as new for sweeps. risky reports that it
// was old enough for one.
func (b *Bucket) fresh(ctx context.Context, d buildfiles.Digest, size int64) (there, risky bool, err error) {
	info, err := b.Client.Head(ctx, keyOf(d))
	if errors.Is(err, fs.ErrNotExist) || err == nil && size > 0 && info.Size != size {
		return false, false, nil
	}
	if err != nil {
		return false, false, err
	}
	age := time.Since(info.Modified)
	if age < freshFor {
		return true, false, nil
	}
	if err := b.Client.Touch(ctx, keyOf(d)); errors.Is(err, fs.ErrNotExist) {
		return false, false, nil
	} else if err != nil {
		return false, false, err
	}
	return true, true, nil
}

// Missing implements objects.Parts.
func (b *Bucket) Missing(ctx context.Context, m *buildfiles.Manifest) (missing []buildfiles.Digest, err error) {
	missing, _, err = b.look(ctx, m)
	return missing, err
}

// look returns the parts of a build that do not exist. risky reports that some of the others were old enough for a sweep.
func (b *Bucket) look(ctx context.Context, m *buildfiles.Manifest) (missing []buildfiles.Digest, risky bool, err error) {
	var found sync.Mutex
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(questions)
	_ = m.Parts(func(p buildfiles.Part) error {
		group.Go(func() error {
			there, old, err := b.fresh(ctx, p.Digest, p.Size)
			found.Lock()
			defer found.Unlock()
			risky = risky || old
			if err == nil && !there {
				missing = append(missing, p.Digest)
			}
			return err
		})
		return ctx.Err()
	})
	err = group.Wait() // before the results are read
	return missing, risky, err
}

// Put implements objects.Parts.
func (b *Bucket) Put(ctx context.Context, d buildfiles.Digest, content []byte) error {
	if got := buildfiles.DigestOf(content); got != d {
		return &objects.WrongDigestError{Want: d, Got: got}
	}
	if there, _, err := b.fresh(ctx, d, int64(len(content))); there || err != nil {
		return err
	}
	return b.Client.Put(ctx, keyOf(d), bytes.NewReader(content), int64(len(content)), d)
}

// Commit implements objects.Parts.
func (b *Bucket) Commit(ctx context.Context, m *buildfiles.Manifest, record func(manifest buildfiles.Digest) error) error {
	ctx, cancel := context.WithTimeout(ctx, commitMax)
	defer cancel()
	text, err := m.Encode()
	if err != nil {
		return err
	}
	manifest := buildfiles.DigestOf(text)
	if err := b.Put(ctx, manifest, text); err != nil {
		return err
	}
	for round := 0; ; round++ {
		missing, risky, err := b.look(ctx, m)
		if err != nil {
			return err
		}
		there, old, err := b.fresh(ctx, manifest, int64(len(text)))
		if err != nil {
			return err
		}
		if !there {
			missing = append(missing, manifest)
		}
		if len(missing) > 0 {
			return &objects.MissingError{Digests: missing}
		}
		if !risky && !old {
			break
		}
		if round == roundsMax {
			return fmt.Errorf("the object store says that content is older than %s which was touched %s ago: is its clock right? A store also has to renew the time of an object that is copied onto itself, as S3 does", freshFor, b.wait)
		}
		select {
		case <-time.After(b.wait):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return record(manifest)
}

// Open implements objects.Parts. Content that the bucket lacks may be on the disk, from before the bucket was configured.
func (b *Bucket) Open(ctx context.Context, d buildfiles.Digest) (io.ReadSeekCloser, error) {
	select {
	case b.passing <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	content, err := b.read(ctx, d)
	if err != nil {
		<-b.passing
		if errors.Is(err, fs.ErrNotExist) {
			return objects.Local{Store: b.Local}.Open(ctx, d)
		}
		return nil, err
	}
	return objects.InMemory(content, func() { <-b.passing }), nil
}

// read returns content, and checks it against its digest.
func (b *Bucket) read(ctx context.Context, d buildfiles.Digest) ([]byte, error) {
	content, err := b.Client.Get(ctx, keyOf(d), buildfiles.ManifestMax)
	if err != nil {
		return nil, err
	}
	if got := buildfiles.DigestOf(content); got != d {
		b.Log.Error("part of a build is damaged in the object store: remove the object and push the build again", "key", keyOf(d), "bytes", len(content), "got", got.String())
		return nil, objects.ErrDamaged
	}
	return content, nil
}

// Sweep implements objects.Parts. Each node removes old uploads from its disk; the node that decides removes content that no build needs
// from the bucket.
func (b *Bucket) Sweep(ctx context.Context, now time.Time, manifests func() ([]buildfiles.Digest, error)) (swept objects.Swept, err error) {
	swept, err = b.Local.Sweep(now, func() ([]buildfiles.Digest, error) {
		all, err := manifests()
		return slices.DeleteFunc(slices.Clone(all), func(d buildfiles.Digest) bool { return !b.Local.Has(d) }), err
	})
	if err != nil || !b.Decides(ctx) {
		return swept, err
	}
	roots, err := manifests()
	if err != nil {
		return swept, err
	}
	needed, err := b.needed(ctx, roots)
	if err != nil {
		return swept, err // an unreadable manifest may name content that would then be lost
	}
	err = b.Client.List(ctx, partsBelow, func(storeNow time.Time, page []s3.Info) error {
		for _, x := range page {
			d, err := buildfiles.ParseDigest(x.Key[min(len(partsBelow), len(x.Key)):])
			if _, ok := needed[d]; ok || err != nil || storeNow.Sub(x.Modified) < keepFor {
				continue
			}
			removed, err := b.remove(ctx, d, storeNow)
			if err != nil {
				return err
			}
			if removed {
				swept.Parts, swept.Bytes = swept.Parts+1, swept.Bytes+x.Size
			}
		}
		return nil
	})
	return swept, err
}

// remove removes content that is still old.
func (b *Bucket) remove(ctx context.Context, d buildfiles.Digest, now time.Time) (removed bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, removeWait)
	defer cancel()
	info, err := b.Client.Head(ctx, keyOf(d))
	if errors.Is(err, fs.ErrNotExist) || err == nil && now.Sub(info.Modified) < keepFor {
		return false, nil
	}
	if err == nil {
		err = b.Client.Delete(ctx, keyOf(d))
	}
	return err == nil, err
}

// needed returns the digests that builds need.
func (b *Bucket) needed(ctx context.Context, roots []buildfiles.Digest) (map[buildfiles.Digest]struct{}, error) {
	needed := map[buildfiles.Digest]struct{}{}
	for _, root := range roots {
		if _, twice := needed[root]; twice {
			continue
		}
		needed[root] = struct{}{}
		text, err := b.read(ctx, root)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue // it is on a disk, or lost together with all content that it names
		case err != nil:
			return nil, err
		}
		m, err := buildfiles.ParseManifest(text)
		if err != nil {
			return nil, fmt.Errorf("manifest %s: %w", root, err)
		}
		_ = m.Parts(func(p buildfiles.Part) error {
			needed[p.Digest] = struct{}{}
			return nil // so Parts returns nil, too
		})
	}
	return needed, nil
}
