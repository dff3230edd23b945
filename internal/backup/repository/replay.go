package repository

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"time"

	"github.com/musterhq/muster/internal/archive"
	"github.com/musterhq/muster/internal/backup"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/secretkey"
)

// Open returns the backup of a state in the form of a file. Each call reads everything again. key is the service's key for its secrets.
func (p *Point) Open(ctx context.Context, key *secretkey.Key) (io.ReadCloser, error) {
	out, in := io.Pipe()
	go func() { in.CloseWithError(p.write(ctx, in, key)) }()
	return out, nil
}

// secret returns a secret with all generations that a state between two backups may have.
func (p *Point) secret(key *secretkey.Key) (identity.CellSecret, error) {
	before, err := backup.OpenSecret(p.Base.Secret, key)
	if err != nil {
		return before, err
	}
	behind, err := backup.OpenSecret(p.later.Secret, key)
	return behind.With(before), err
}

func (p *Point) write(ctx context.Context, out io.Writer, key *secretkey.Key) error {
	c := backup.Content{Head: p.Base.Head, Sealed: p.Base.Secret}
	c.Head.From = 0
	damagedPlaces := p.Base.Damaged
	if p.Entry == p.Base.Head.Entry {
		c.State = func(w io.Writer) error { return p.repository.copy(ctx, w, p.Base.State) }
		c.Records = p.repository.records(ctx, p.Base.Records)
	} else {
		var err error
		if c.Secret, err = p.secret(key); err != nil {
			return err
		}
		c.Sealed, c.Key = nil, key
		state, err := p.replay(ctx, func([]archive.Record) error { return nil })
		if err != nil {
			return err
		}
		c.Head.Entry, c.Head.Level, c.Head.State, c.Head.Forgotten = p.Entry, state.Level(), state.Last().Std(), state.Forgotten()
		frozen := state.Freeze()
		c.State = frozen.Write
		c.Records = p.replayedRecords(ctx)
	}
	_, err := backup.WriteCounted(ctx, out, c, damagedPlaces)
	return err
}

// replay returns the state, and passes to keep the records that left memory after the base.
func (p *Point) replay(ctx context.Context, keep func([]archive.Record) error) (*cell.Cell, error) {
	c := cell.New(cell.DefaultConfig())
	state := p.repository.reader(ctx, p.Base.State)
	defer state.Close()
	if err := c.Load(state); err != nil {
		return nil, loading(err)
	}
	if p.Entry == p.Base.Head.Entry {
		return c, nil
	}
	retention := time.Duration(p.Base.Head.Retention) * time.Millisecond
	for e, err := range p.repository.entries(ctx, p.journal, p.Base.Head.Entry, p.Entry) {
		if err != nil {
			return nil, err
		}
		if err := engine.Replay(c, e, retention, keep); err != nil {
			return nil, fmt.Errorf("replay journal entry %d: %w", e.Number, err)
		}
	}
	return c, nil
}

func loading(err error) error {
	if _, later := errors.AsType[*kernel.LaterRelease](err); later || errors.Is(err, backup.ErrDamaged) {
		return err
	}
	return damaged("the state cannot be loaded: %s", err)
}

func (p *Point) replayedRecords(ctx context.Context) iter.Seq2[archive.Record, error] {
	return func(yield func(archive.Record, error) bool) {
		for x, err := range p.repository.records(ctx, p.Base.Records) {
			if !yield(x, err) || err != nil {
				return
			}
		}
		enough := errors.New("enough")
		_, err := p.replay(ctx, func(some []archive.Record) error {
			for _, x := range some {
				if !yield(x, nil) {
					return enough
				}
			}
			return nil
		})
		if err != nil && !errors.Is(err, enough) {
			yield(archive.Record{}, err)
		}
	}
}

func (r *Repository) copy(ctx context.Context, to io.Writer, parts []Ref) error {
	from := r.reader(ctx, parts)
	defer from.Close()
	_, err := io.Copy(to, from)
	return err
}

// records yields the records of segments.
func (r *Repository) records(ctx context.Context, segments []Segment) iter.Seq2[archive.Record, error] {
	return func(yield func(archive.Record, error) bool) {
		var all []Ref
		for _, x := range segments {
			all = append(all, x.Ref)
		}
		from := r.reader(ctx, all)
		defer from.Close()
		buffered := bufio.NewReaderSize(from, 64<<10)
		for {
			x, err := backup.ReadRecord(buffered)
			if err == io.EOF {
				return
			}
			if !yield(x, err) || err != nil {
				return
			}
		}
	}
}
