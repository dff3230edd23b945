package engine

import (
	"context"
	"fmt"
	"sync"

	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/wire"
)

// piece is a run of consecutive journal entries, and the error that stopped the reader after them.
type piece struct {
	entries []kernel.Entry
	bytes   int64 // of the entries in the journal
	err     error
}

// pieceBytes is the size from which on a piece takes no more entries. Three pieces are in memory at a time, which bounds their total, apart from the
// three largest entries.
const pieceBytes = 256 << 10

// replay applies the journal after entry `after` to a cell, up to entry `until` or the last one. It returns the number of that entry and the total
// size of the applied entries. A goroutine reads and decodes entries while earlier ones are applied.
func replay(ctx context.Context, c *cell.Cell, from store, after, until uint64) (last uint64, bytes int64, err error) {
	ctx, cancel := context.WithCancel(ctx)
	pieces := make(chan piece, 1)
	var reader sync.WaitGroup
	defer reader.Wait()
	defer cancel()
	reader.Go(func() {
		defer close(pieces)
		readPieces(ctx, c, from, after, until, pieces)
	})
	last = after
	for p := range pieces {
		for _, entry := range p.entries {
			c.ReplayEntry(entry)
			last = entry.Number
		}
		bytes += p.bytes
		if p.err != nil {
			return last, bytes, p.err
		}
	}
	return last, bytes, ctx.Err()
}

// readPieces sends the journal to replay until ctx ends.
func readPieces(ctx context.Context, c *cell.Cell, from store, after, until uint64, to chan<- piece) {
	var p piece
	send := func() {
		select {
		case to <- p:
			p = piece{}
		case <-ctx.Done():
		}
	}
	var r wire.Reader
	last := after
	for stored, err := range from.Read(ctx, after+1) {
		if err != nil {
			p.err = fmt.Errorf("read the journal after entry %d: %w", last, err)
			break
		}
		if stored.Number > until {
			break
		}
		entry, err := c.ReadEntry(&r, stored.Number, stored.Batch)
		if err != nil {
			p.err = fmt.Errorf("replay journal entry %d: %w", stored.Number, err)
			break
		}
		p.entries = append(p.entries, entry)
		p.bytes += int64(len(stored.Batch))
		last = stored.Number
		if p.bytes >= pieceBytes {
			send()
		}
		if ctx.Err() != nil {
			return
		}
	}
	send()
}
