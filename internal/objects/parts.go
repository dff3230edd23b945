package objects

import (
	"context"
	"io"
	"time"

	"github.com/musterhq/muster/internal/buildfiles"
)

// Parts is where the parts of builds are kept: on the disk of this machine (Local), or on the disks of a cluster (package copies).
type Parts interface {
	// Missing lists the parts of a build that are not there. The others stay for keepFor at least, so that the client need not send them again.
	Missing(ctx context.Context, m *buildfiles.Manifest) ([]buildfiles.Digest, error)

	// Put stores content, which no build needs yet. The error of content that is not what its digest says is a *WrongDigestError, that of a lack of space a *FullError.
	Put(ctx context.Context, d buildfiles.Digest, content []byte) error

	// Commit makes a build of parts: it calls record once all parts are kept as durably as the build will be, and no sweep removes one of them before
	// record has returned. If some are missing, it returns a *MissingError and does not call record.
	Commit(ctx context.Context, m *buildfiles.Manifest, record func(manifest buildfiles.Digest) error) error

	// Open opens content, which has been checked against its digest since the start. The error wraps fs.ErrNotExist or ErrDamaged if it is nowhere.
	Open(ctx context.Context, d buildfiles.Digest) (io.ReadSeekCloser, error)

	// Sweep removes the content that no build needs, once it is older than keepFor, and old uploads. manifests returns those of all builds.
	Sweep(ctx context.Context, now time.Time, manifests func() ([]buildfiles.Digest, error)) (Swept, error)
}

// Local is a Store as the only place of parts.
type Local struct{ Store *Store }

// Missing implements Parts.
func (l Local) Missing(_ context.Context, m *buildfiles.Manifest) (missing []buildfiles.Digest, err error) {
	err = m.Parts(func(p buildfiles.Part) error {
		if !l.Store.Has(p.Digest) {
			missing = append(missing, p.Digest)
		}
		return nil
	})
	return missing, err
}

// Put implements Parts.
func (l Local) Put(_ context.Context, d buildfiles.Digest, content []byte) error {
	return l.Store.Put(d, content)
}

// Commit implements Parts.
func (l Local) Commit(_ context.Context, m *buildfiles.Manifest, record func(manifest buildfiles.Digest) error) error {
	return l.Store.Commit(m, record)
}

// Open implements Parts.
func (l Local) Open(_ context.Context, d buildfiles.Digest) (io.ReadSeekCloser, error) {
	f, err := l.Store.Open(d)
	if err != nil {
		return nil, err // not a nil *os.File within an interface
	}
	return f, nil
}

// Sweep implements Parts.
func (l Local) Sweep(_ context.Context, now time.Time, manifests func() ([]buildfiles.Digest, error)) (Swept, error) {
	return l.Store.Sweep(now, manifests)
}
