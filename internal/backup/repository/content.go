package repository

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"math/bits"
	"sync"

	"crypto/sha256"

	"github.com/klauspost/compress/zstd"
	"golang.org/x/sync/errgroup"
)

// Bounds.
const (
	contentMax = 80 << 20 // bytes of an object; a journal entry has at most 64 MiB
	segmentMax = 4 << 20  // bytes of a segment of the archive or the journal, unless a single record or entry is larger
	putsMax    = 4        // objects stored at a time
	ahead      = 4        // objects read ahead

	chunkMin, chunkMax = 128 << 10, 4 << 20 // bytes of a piece of the state
	chunkBits          = 19                 // on average, a piece exceeds the minimum by 512 KiB
)

// newCoders returns the encoder and the decoder of objects. They occupy memory as long as they are reachable.
var newCoders = sync.OnceValues(func() (*zstd.Encoder, *zstd.Decoder) {
	e, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(putsMax))
	if err != nil {
		panic(err) // the options are valid
	}
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(ahead), zstd.WithDecoderMaxMemory(contentMax))
	if err != nil {
		panic(err)
	}
	return e, d
})

func objectName(name string) string { return objectsBelow + name[:2] + "/" + name }

// putter stores the objects of a backup, several at a time.
type putter struct {
	store Store
	run   string
	known map[string]*Ref // objects that may be used, by the SHA-256 of their content
	young map[string]Ref  // likewise, of unknown size
	group *errgroup.Group
	ctx   context.Context

	lock sync.Mutex
	made int64 // bytes of new objects
}

func newPutter(ctx context.Context, s Store, run string) *putter {
	p := &putter{store: s, run: run, known: map[string]*Ref{}}
	p.group, p.ctx = errgroup.WithContext(ctx)
	p.group.SetLimit(putsMax)
	return p
}

// put stores content, which it may use until wait returns. The Ref is complete by then.
func (p *putter) put(content []byte) (*Ref, error) {
	if p.ctx.Err() != nil {
		return nil, context.Cause(p.ctx)
	}
	sum := sumOf(content)
	if r, ok := p.known[sum]; ok && r.Bytes == int64(len(content)) {
		return r, nil
	}
	r := &Ref{Name: sum + "." + p.run, Bytes: int64(len(content))}
	if young, ok := p.young[sum]; ok {
		r.Name, r.Stored = young.Name, young.Stored
		p.known[sum] = r
		return r, nil
	}
	p.known[sum] = r
	p.group.Go(func() error {
		encoder, _ := newCoders()
		stored := encoder.EncodeAll(content, nil)
		if err := p.store.Put(p.ctx, objectName(r.Name), stored); err != nil {
			return err
		}
		r.Stored = int64(len(stored))
		p.lock.Lock()
		p.made += r.Stored
		p.lock.Unlock()
		return nil
	})
	return r, nil
}

// wait returns once everything is stored.
func (p *putter) wait() error { return p.group.Wait() }

// get returns the content of an object.
func (r *Repository) get(ctx context.Context, ref Ref) ([]byte, error) {
	stored, err := r.store.Get(ctx, objectName(ref.Name), ref.Stored)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, damaged("object %s is missing", ref.Name)
	}
	if err != nil {
		return nil, err
	}
	_, decoder := newCoders()
	content, err := decoder.DecodeAll(stored, make([]byte, 0, ref.Bytes))
	if err != nil {
		return nil, damaged("object %s cannot be decompressed: %s", ref.Name, err)
	}
	if int64(len(content)) != ref.Bytes || sumOf(content) != ref.Name[:2*sha256.Size] {
		return nil, damaged("object %s: its checksum does not match", ref.Name)
	}
	return content, nil
}

// reader reads the contents of objects one after another, and fetches some ahead.
func (r *Repository) reader(ctx context.Context, refs []Ref) io.ReadCloser {
	ctx, cancel := context.WithCancel(ctx)
	type fetched struct {
		content []byte
		err     error
	}
	next := make(chan chan fetched, ahead-1)
	go func() {
		defer close(next)
		for _, ref := range refs {
			one := make(chan fetched, 1)
			select {
			case next <- one:
			case <-ctx.Done():
				return
			}
			go func() {
				content, err := r.get(ctx, ref)
				one <- fetched{content, err}
			}()
		}
	}()
	return &contents{cancel: cancel, next: func() ([]byte, error) {
		one, more := <-next
		if !more {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			return nil, io.EOF
		}
		x := <-one
		return x.content, x.err
	}}
}

type contents struct {
	cancel func()
	next   func() ([]byte, error)
	rest   []byte
}

func (c *contents) Read(p []byte) (int, error) {
	for len(c.rest) == 0 {
		var err error
		if c.rest, err = c.next(); err != nil {
			return 0, err
		}
	}
	n := copy(p, c.rest)
	c.rest = c.rest[n:]
	return n, nil
}

func (c *contents) Close() error {
	c.cancel()
	return nil
}

// gear has numbers for a rolling hash of the last 64 bytes.
var gear = func() (all [256]uint64) {
	for i := range all {
		sum := sha256.Sum256([]byte{'m', 'u', 's', 't', 'e', 'r', byte(i)})
		all[i] = binary.LittleEndian.Uint64(sum[:])
	}
	return all
}()

// cutter cuts a stream at places that its content determines, so that common parts of two streams are cut alike.
type cutter struct {
	piece []byte
	hash  uint64
	done  func(piece []byte) error // stores the piece
}

func (c *cutter) Write(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 {
		end := c.cut(p)
		c.piece = append(c.piece, p[:end]...)
		p = p[end:]
		if len(c.piece) >= chunkMax || len(c.piece) >= chunkMin && bits.LeadingZeros64(c.hash) >= chunkBits {
			if err := c.flush(); err != nil {
				return 0, err
			}
		}
	}
	return n, nil
}

// cut returns how many bytes of p belong to the piece.
func (c *cutter) cut(p []byte) int {
	for i, b := range p {
		c.hash = c.hash<<1 + gear[b]
		if at := len(c.piece) + i + 1; at >= chunkMax || at >= chunkMin && bits.LeadingZeros64(c.hash) >= chunkBits {
			return i + 1
		}
	}
	return len(p)
}

func (c *cutter) flush() error {
	if len(c.piece) == 0 {
		return nil
	}
	piece := bytes.Clone(c.piece)
	c.piece, c.hash = c.piece[:0], 0
	return c.done(piece)
}
