package objects

import (
	"bytes"
	"context"
	"io"
	"sync"
	"time"

	"github.com/musterhq/muster/internal/buildfiles"
)

// Parts stores the parts of builds: on the disk of this machine (Local), or on the disks of a cluster (package copies).
type Parts interface {
	// Missing returns the parts of a build that are not stored. The others stay for at least keepFor, so that the client need not send them again.
	Missing(ctx context.Context, m *buildfiles.Manifest) ([]buildfiles.Digest, error)

	// Put stores content that no build needs yet. If the content does not match its digest, the error is a *WrongDigestError; if there is no space,
	// it is a *FullError.
	Put(ctx context.Context, d buildfiles.Digest, content []byte) error

	// Commit makes a build of stored parts. It calls record once all parts are as durable as the build will be, and no sweep removes any of them
	// before record has returned. If parts are missing, it returns a *MissingError and does not call record.
	Commit(ctx context.Context, m *buildfiles.Manifest, record func(manifest buildfiles.Digest) error) error

	// Open opens content that has been checked against its digest since the start. If no place has it, the error wraps fs.ErrNotExist or ErrDamaged.
	Open(ctx context.Context, d buildfiles.Digest) (io.ReadSeekCloser, error)

	// Sweep removes old uploads, and content that no build needs and that is older than keepFor. manifests returns the manifests of all builds.
	Sweep(ctx context.Context, now time.Time, manifests func() ([]buildfiles.Digest, error)) (Swept, error)
}

// InMemory returns content for the result of Open. Its first Close calls closed.
func InMemory(content []byte, closed func()) io.ReadSeekCloser {
	return &inMemory{bytes.NewReader(content), sync.OnceFunc(closed)}
}

type inMemory struct {
	*bytes.Reader
	closed func()
}

func (x *inMemory) Close() error {
	x.closed()
	return nil
}

// Local is Parts with a Store as the only place.
type Local struct{ Store *Store }

// Missing implements Parts.
func (l Local) Missing(_ context.Context, m *buildfiles.Manifest) (missing []buildfiles.Digest, err error) {
	err = m.Parts(func(p buildfiles.Part) error {
		if !l.Store.HasPart(p) {
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
		return nil, err // do not return a nil *os.File in an interface
	}
	return f, nil
}

// Sweep implements Parts.
func (l Local) Sweep(_ context.Context, now time.Time, manifests func() ([]buildfiles.Digest, error)) (Swept, error) {
	return l.Store.Sweep(now, manifests)
}
