package embeddb

import (
	"context"
	"io"

	"github.com/cockroachdb/pebble/v2"
)

// engine has the methods of Pebble's database that its users need. It, Batch, Iterator and Snapshot are interfaces to shorten compilation: a
// package that mentions one of Pebble's types, even in an unexported field of another package's type, recompiles 460 functions of Pebble's
// generic types. With the types themselves here, fifteen packages did so, at half a second each.
type engine interface {
	Get(key []byte) (value []byte, closer io.Closer, err error)
	Set(key, value []byte, o *pebble.WriteOptions) error
	Delete(key []byte, o *pebble.WriteOptions) error
	DeleteRange(from, to []byte, o *pebble.WriteOptions) error
	Compact(ctx context.Context, from, to []byte, parallelize bool) error
	Flush() error
	AsyncFlush() (<-chan struct{}, error)
	Close() error

	NewBatch() Batch
	NewBatchWithSize(bytes int) Batch
	NewIter(o *pebble.IterOptions) (Iterator, error)
	NewSnapshot() Snapshot

	// DiskUsed returns the total size of its files in bytes.
	DiskUsed() uint64
}

// Batch is a *pebble.Batch.
type Batch interface {
	Set(key, value []byte, o *pebble.WriteOptions) error
	SetDeferred(keyBytes, valueBytes int) *pebble.DeferredBatchOp
	Delete(key []byte, o *pebble.WriteOptions) error
	DeleteRange(from, to []byte, o *pebble.WriteOptions) error
	Len() int
	Commit(o *pebble.WriteOptions) error
	Close() error
}

// Iterator is a *pebble.Iterator.
type Iterator interface {
	First() bool
	Last() bool
	Next() bool
	Valid() bool
	SeekGE(key []byte) bool
	Key() []byte
	ValueAndErr() ([]byte, error)
	Error() error
	Close() error
}

// Snapshot is a *pebble.Snapshot.
type Snapshot interface {
	Get(key []byte) (value []byte, closer io.Closer, err error)
	NewIter(o *pebble.IterOptions) (Iterator, error)
	Close() error
}

type pebbleDB struct{ *pebble.DB }

func (db pebbleDB) NewBatch() Batch { return db.DB.NewBatch() }

func (db pebbleDB) NewBatchWithSize(bytes int) Batch { return db.DB.NewBatchWithSize(bytes) }

func (db pebbleDB) NewIter(o *pebble.IterOptions) (Iterator, error) {
	return iterator(db.DB.NewIter(o))
}

func (db pebbleDB) NewSnapshot() Snapshot { return pebbleSnapshot{db.DB.NewSnapshot()} }

func (db pebbleDB) DiskUsed() uint64 { return db.Metrics().DiskSpaceUsage() }

type pebbleSnapshot struct{ *pebble.Snapshot }

func (s pebbleSnapshot) NewIter(o *pebble.IterOptions) (Iterator, error) {
	return iterator(s.Snapshot.NewIter(o))
}

func iterator(it *pebble.Iterator, err error) (Iterator, error) {
	if err != nil {
		return nil, err
	}
	return it, nil
}
