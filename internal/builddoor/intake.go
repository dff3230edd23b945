package builddoor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sync"
	"time"

	"github.com/musterhq/muster/internal/audit"
	"github.com/musterhq/muster/internal/buildfiles"
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/excerpt"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/objects"
)

// Times of the intake.
const (
	retryAfter = 30 * time.Second // for an upload that could not be processed because of the disk, or because the service refuses changes
	sweepEvery = 15 * time.Minute
)

// intake turns complete uploads into builds, one at a time, to limit the load on memory and disk.
type intake struct {
	mu      sync.Mutex
	waiting []waiting
	wake    chan struct{}
}

// waiting is a build whose upload is complete.
type waiting struct {
	build string
	by    audit.Origin // of the upload
}

// Principal and operation of uploads in the audit log.
const (
	uploadCredentials = "upload credentials"
	uploadOperation   = "UploadBuild"
)

func newIntake() intake { return intake{wake: make(chan struct{}, 1)} }

func (q *intake) add(x waiting) {
	q.mu.Lock()
	q.waiting = append(q.waiting, x)
	q.mu.Unlock()
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

func (q *intake) next() (x waiting, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) == 0 {
		return x, false
	}
	x, q.waiting = q.waiting[0], q.waiting[1:]
	return x, true
}

// Run turns uploads into builds, including those left by a crash, and removes files that no build needs, until ctx ends.
func (d *Door) Run(ctx context.Context) {
	defer d.commits.close()
	left, err := d.Objects.Uploads()
	if err != nil {
		d.Log.Error("uploads of builds cannot be listed: builds whose uploads were complete at the last stop stay INITIALIZED", "error", err)
	}
	for _, build := range left {
		d.intake.add(waiting{build, audit.Origin{Principal: uploadCredentials, Door: audit.DoorBuilds, Operation: uploadOperation}}) // its address is no longer known
	}
	sweep, retry := time.NewTimer(sweepEvery), time.NewTimer(0)
	defer sweep.Stop()
	defer retry.Stop()
	var failed []waiting
	for ctx.Err() == nil {
		x, ok := d.intake.next()
		if ok {
			if err := d.take(audit.With(ctx, x.by), x.build); err != nil && ctx.Err() == nil {
				d.Log.Error("uploaded build is not READY yet: the service tries again", "build", x.build, "after", retryAfter, "error", err)
				failed = append(failed, x)
				retry.Reset(retryAfter)
			}
			continue
		}
		select {
		case <-ctx.Done():
		case <-d.intake.wake:
		case <-retry.C:
			for _, x := range failed {
				d.intake.add(x)
			}
			failed = nil
		case <-sweep.C:
			d.sweep(ctx)
			sweep.Reset(sweepEvery)
		}
	}
}

func (d *Door) sweep(ctx context.Context) {
	swept, err := d.Parts.Sweep(ctx, d.Now(), func() ([]buildfiles.Digest, error) { return d.inUse(ctx) })
	if err != nil && ctx.Err() == nil {
		d.Log.Error("object store cannot be swept: content that no build needs stays until the next sweep", "error", err)
	}
	if swept.Bytes > 0 {
		d.Log.Info("object store swept", "parts", swept.Parts, "uploads", swept.Uploads, "bytes", swept.Bytes)
	}
}

// inUse returns the manifests of all builds, and of the fleets whose build was deleted.
func (d *Door) inUse(ctx context.Context) (all []buildfiles.Digest, err error) {
	err = d.Engine.Read(ctx, func(v *cell.View) error { all, err = Manifests(v); return err })
	return all, err
}

// Manifests returns the manifests of all builds, and of the fleets whose build was deleted.
func Manifests(v *cell.View) (all []buildfiles.Digest, err error) {
	for _, text := range v.Manifests() {
		digest, err := buildfiles.ParseDigest(text)
		if err != nil {
			return nil, err
		}
		all = append(all, digest)
	}
	return all, nil
}

// uploadable reports whether a build waits for its files.
func (d *Door) uploadable(ctx context.Context, build string) (bool, error) {
	b, ok, err := d.find(ctx, build)
	if err == nil && !ok {
		err = fail(404, "NoSuchKey", "build %s does not exist; it may have been deleted", build)
	}
	return ok && b.Uploadable(), err
}

func (d *Door) find(ctx context.Context, build string) (b fleet.Build, ok bool, err error) {
	err = d.Engine.Read(ctx, func(v *cell.View) error { b, ok = v.Build(build); return nil })
	return b, ok, err
}

// take turns an upload into a build if the upload is complete and not used yet. After a crash, this is either done or can be repeated.
func (d *Door) take(ctx context.Context, build string) error {
	b, exists, err := d.find(ctx, build)
	if err != nil {
		return err
	}
	if !exists {
		_, err := d.Objects.RemoveUpload(build)
		return err
	}
	o, complete, err := d.object(build)
	if err != nil || !complete {
		return err
	}
	if b.Uploadable() {
		if err := d.unpack(ctx, build, o); err != nil {
			return err
		}
	}
	return d.clear(build)
}

// clear removes the files of an upload, except what it takes to answer a repeat of the client's last request.
func (d *Door) clear(build string) error {
	names, err := d.Objects.StagedFiles(build)
	if err != nil {
		return err
	}
	var used []string
	for _, name := range names {
		if name != objectFile {
			used = append(used, name)
		}
	}
	_, err = d.Objects.RemoveStaged(build, used...)
	return err
}

// unpack checks a zip, stores its files, and records the outcome.
func (d *Door) unpack(ctx context.Context, build string, o object) error {
	began := time.Now()
	zip, err := d.joined(build, o)
	if err != nil {
		return err
	}
	defer zip.Close()
	put := func(digest buildfiles.Digest, content []byte) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		return d.Parts.Put(ctx, digest, content)
	}
	m, err := buildfiles.Unzip(zip, zip.size, buildfiles.SizeMax, put)
	var stored buildfiles.Digest
	if err == nil {
		stored, err = d.record(ctx, build, m)
	}
	rejected, isRejected := errors.AsType[*buildfiles.Rejected](err)
	full, isFull := errors.AsType[*objects.FullError](err)
	switch {
	case err == nil:
		d.Log.Info("build uploaded", "build", build, "files", len(m.Files), "bytes", m.Size(), "manifest", stored.String(), "took", time.Since(began).Round(time.Millisecond))
		return nil
	case isRejected:
		return d.failBuild(ctx, build, rejected.Reason)
	case isFull:
		return d.failBuild(ctx, build, full.Reason)
	}
	if domain.IsRefused(err, domain.NotFound, domain.Conflict) {
		return nil // the build was deleted, or got its files in another way
	}
	return err
}

// record makes stored files the content of a build.
func (d *Door) record(ctx context.Context, build string, m *buildfiles.Manifest) (stored buildfiles.Digest, err error) {
	err = d.Parts.Commit(ctx, m, func(manifest buildfiles.Digest) error {
		stored = manifest
		return d.Engine.Do(ctx, &hosting.FinishBuild{ID: build, Manifest: manifest.String(), Size: m.Size()})
	})
	return stored, err
}

const failureMax = 512 // bytes of the reason in the state

func (d *Door) failBuild(ctx context.Context, build, reason string) error {
	d.Log.Warn("uploaded build is FAILED", "build", build, "reason", reason)
	err := d.Engine.Do(ctx, &hosting.FinishBuild{ID: build, Failure: excerpt.Begin(reason, failureMax)})
	if domain.IsRefused(err, domain.NotFound) {
		return nil
	}
	return err
}

// joined reads the files of an object as one file.
type joined struct {
	files []io.ReaderAt
	ends  []int64 // of each file, as an offset in the whole
	size  int64
	close []io.Closer
}

func (d *Door) joined(build string, o object) (j *joined, err error) {
	j = &joined{}
	for _, name := range o.Files {
		f, err := d.Objects.Staged(build, name)
		if err != nil {
			j.Close()
			if errors.Is(err, fs.ErrNotExist) {
				return nil, fmt.Errorf("a file of the upload is missing: %w", err)
			}
			return nil, err
		}
		j.close = append(j.close, f)
		info, err := f.Stat()
		if err != nil {
			j.Close()
			return nil, err
		}
		j.size += info.Size()
		j.files, j.ends = append(j.files, f), append(j.ends, j.size)
	}
	return j, nil
}

func (j *joined) Close() {
	for _, f := range j.close {
		f.Close()
	}
}

// ReadAt implements io.ReaderAt.
func (j *joined) ReadAt(p []byte, at int64) (n int, err error) {
	begin := int64(0)
	for i, end := range j.ends {
		if at+int64(n) < end && n < len(p) {
			want := p[n:min(int64(len(p)), int64(n)+end-at-int64(n))]
			m, err := j.files[i].ReadAt(want, at+int64(n)-begin)
			if n += m; m < len(want) {
				return n, err
			}
		}
		begin = end
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}
