package repository

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/musterhq/muster/internal/s3"
)

// Bucket is a Store in a bucket of S3, or of a store that speaks its protocol and lists what it has just stored, as S3 does.
type Bucket struct {
	Client *s3.Client
	Tell   func(err error, again time.Duration) // called before a failed operation is retried, for people who wait; nil: not called

	pause time.Duration // for tests; 0: firstPause
}

// An operation that still fails after the client's own retries is started again, so that a network outage of a minute or two does not end a backup.
const (
	firstPause = 5 * time.Second // doubles each time
	operations = 5
)

func (b *Bucket) persist(ctx context.Context, operation func() error) error {
	pause := cmp.Or(b.pause, firstPause)
	for n := 1; ; n++ {
		err := operation()
		if err == nil || n == operations || !s3.Again(err) {
			return err
		}
		if b.Tell != nil && ctx.Err() == nil {
			b.Tell(err, pause)
		}
		select {
		case <-time.After(pause):
			pause *= 2
		case <-ctx.Done():
			return err
		}
	}
}

// String implements Store.
func (b *Bucket) String() string { return b.Client.Place().String() }

// Put implements Store.
func (b *Bucket) Put(ctx context.Context, name string, content []byte) error {
	return b.persist(ctx, func() error { return b.Client.PutBytes(ctx, name, content) })
}

// Get implements Store.
func (b *Bucket) Get(ctx context.Context, name string, most int64) (content []byte, err error) {
	err = b.persist(ctx, func() (err error) { content, err = b.Client.Get(ctx, name, most); return err })
	if errors.Is(err, s3.ErrTooLarge) {
		err = damaged("%s", err)
	}
	return content, err
}

// List implements Store.
func (b *Bucket) List(ctx context.Context, below string) (all []Object, now time.Time, err error) {
	err = b.persist(ctx, func() error {
		all = nil
		return b.Client.List(ctx, below, func(at time.Time, page []s3.Info) error {
			for _, x := range page {
				all = append(all, Object{x.Key, x.Size, x.Modified})
			}
			now = at
			return nil
		})
	})
	return all, now, err
}

// Delete implements Store.
func (b *Bucket) Delete(ctx context.Context, name string) error {
	return b.persist(ctx, func() error { return b.Client.Delete(ctx, name) })
}
