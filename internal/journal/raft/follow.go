package raft

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/hashicorp/raft"

	"github.com/musterhq/muster/internal/journal"
)

// Read implements journal.Journal: it returns the entries from number from on, up to those that this node knew to be committed at the call.
func (n *Node) Read(ctx context.Context, from uint64) iter.Seq2[journal.Entry, error] {
	return n.entries(ctx, from, false, n.usable)
}

// Follow returns the committed entries from number from on, and continues with new ones as they are committed, on the leader as on
// followers, until ctx ends. ErrTrimmed means that entry from, or the next one, is no longer here, because the node has trimmed its journal
// or has received a snapshot in its place: the caller starts again from LatestSnapshot.
func (n *Node) Follow(ctx context.Context, from uint64) iter.Seq2[journal.Entry, error] {
	return n.entries(ctx, from, true, n.usable)
}

func (n *Node) entries(ctx context.Context, from uint64, follow bool, usable func() error) iter.Seq2[journal.Entry, error] {
	return func(yield func(journal.Entry, error) bool) {
		if err := n.each(ctx, from, follow, usable, yield); err != nil {
			yield(journal.Entry{}, fmt.Errorf("read journal from entry %d: %w", from, err))
		}
	}
}

func (n *Node) each(ctx context.Context, from uint64, follow bool, usable func() error, yield func(journal.Entry, error) bool) error {
	first, last, changed := n.machine.at()
	if from == 0 {
		from = first
	}
	for number := from; ; {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := usable(); err != nil {
			return err
		}
		switch {
		case number < first && (follow || number <= last || number == from):
			return fmt.Errorf("%w: the oldest is %d", journal.ErrTrimmed, first)
		case number <= last:
			more, err := n.entry(number, yield)
			if err != nil || !more {
				return err
			}
			number++
			upTo := last
			if first, last, changed = n.machine.at(); !follow {
				last = upTo
			}
			continue
		case !follow:
			return nil
		}
		select {
		case <-changed:
			first, last, changed = n.machine.at()
		case <-ctx.Done():
		case <-n.failed:
		case <-n.closing:
		}
	}
}

// entry yields one entry. more reports whether the loop continues.
func (n *Node) entry(number uint64, yield func(journal.Entry, error) bool) (more bool, err error) {
	index, known := n.machine.locate(number)
	err = raft.ErrLogNotFound
	if known {
		err = n.store.read(index, func(l *raft.Log) error {
			stored, _, batch, err := parseCommand(l.Data)
			if err != nil || l.Type != raft.LogCommand || stored != number {
				return &journal.Damaged{Entry: number, File: fmt.Sprintf("index %d of Raft's log", index), Err: errMissing}
			}
			more = yield(journal.Entry{Number: number, Batch: batch}, nil)
			return nil
		})
	}
	if err == nil || !errors.Is(err, raft.ErrLogNotFound) {
		if failure := n.usable(); err != nil && failure != nil {
			err = failure
		}
		return more, err
	}
	if first, _, _ := n.machine.at(); number < first {
		return false, fmt.Errorf("%w: the oldest is %d", journal.ErrTrimmed, first)
	}
	return false, &journal.Damaged{Entry: number, Err: errMissing}
}
