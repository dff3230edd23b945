package raft

import (
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
	"github.com/hashicorp/raft"

	"github.com/musterhq/muster/internal/embeddb"
	"github.com/musterhq/muster/internal/journal"
)

// IsMonotonic declares that the log has no gaps, so that Raft removes all entries after it has installed a snapshot.
func (s *store) IsMonotonic() bool { return true }

// FirstIndex implements raft.LogStore.
func (s *store) FirstIndex() (uint64, error) { return s.first.Load(), nil }

// LastIndex implements raft.LogStore.
func (s *store) LastIndex() (uint64, error) { return s.last.Load(), nil }

// GetLog implements raft.LogStore. At the log's origin, a follower that compares its log with the leader's request gets the term.
func (s *store) GetLog(index uint64, l *raft.Log) error {
	if kept, ok := s.recent.get(index); ok {
		*l = kept
		return nil
	}
	err := s.read(index, func(stored *raft.Log) error {
		*l = *stored
		l.Data = append(make([]byte, 0, len(stored.Data)), stored.Data...)
		l.Extensions = append([]byte(nil), stored.Extensions...)
		return nil
	})
	if errors.Is(err, raft.ErrLogNotFound) {
		if o := s.origin.Load(); o.index == index && s.first.Load() == index+1 && compares() {
			*l = raft.Log{Index: index, Term: o.term}
			return nil
		}
		return err
	}
	if err != nil {
		return s.end(err)
	}
	return nil
}

// read calls use with the entry. Its slices are valid only until use returns.
func (s *store) read(index uint64, use func(*raft.Log) error) error {
	done, err := s.db.Use()
	if err != nil {
		return err
	}
	defer done()
	if kept, ok := s.recent.get(index); ok {
		return use(&kept)
	}
	value, closer, err := s.db.Get(logKey(index))
	if errors.Is(err, pebble.ErrNotFound) {
		return raft.ErrLogNotFound
	}
	if err != nil {
		return s.explain(err)
	}
	defer closer.Close()
	var l raft.Log
	if err := parseLog(index, value, &l); err != nil {
		return s.explain(&journal.Damaged{File: fmt.Sprintf("index %d of Raft's log", index), Err: err})
	}
	return use(&l)
}

// StoreLog implements raft.LogStore.
func (s *store) StoreLog(l *raft.Log) error { return s.StoreLogs([]*raft.Log{l}) }

// StoreLogs implements raft.LogStore. The same commit removes the entries from the first new index on, so the log never contains entries of
// two histories, whatever Raft has removed before.
func (s *store) StoreLogs(logs []*raft.Log) error {
	if len(logs) == 0 {
		return nil
	}
	s.writing.Lock()
	defer s.writing.Unlock()
	from, to := logs[0].Index, logs[len(logs)-1].Index
	if to-from != uint64(len(logs))-1 {
		return s.failed(fmt.Errorf("store %d entries from index %d to %d: not one after the other", len(logs), from, to))
	}
	first, last := s.first.Load(), s.last.Load()
	size := 0
	for _, l := range logs {
		size += logSize(l) + 32
	}
	write := s.db.NewBatchWithSize(size + 64)
	switch {
	case last != 0 && from > last+1: // after a gap, which only an installed snapshot explains
		if err := write.DeleteRange(logKey(0), logKey(from), nil); err != nil {
			return err
		}
		first = from
	case last != 0 && from <= last:
		s.noteShorter(from - 1)
		s.recent.remove(from, last)
		if err := write.DeleteRange(logKey(from), logKey(last+1), nil); err != nil {
			return err
		}
		first = min(first, from)
	case last == 0:
		first = from
	}
	for _, l := range logs {
		set := write.SetDeferred(logKeySize, logSize(l))
		copy(set.Key, logKey(l.Index))
		putLog(set.Value, l)
		if err := set.Finish(); err != nil {
			return err
		}
	}
	if err := s.commitBatch(write); err != nil {
		return s.failed(err)
	}
	s.recent.add(logs)
	s.first.Store(first)
	s.last.Store(to)
	s.note()
	return nil
}

// DeleteRange implements raft.LogStore. Raft removes the end of the log if a deposed leader wrote it, or the whole log.
func (s *store) DeleteRange(from, to uint64) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	if s.keepNext {
		s.keepNext = false
		return nil
	}
	return s.deleteRange(from, to, nil)
}

// deleteRange must be called with writing held. besides adds to its commit.
func (s *store) deleteRange(from, to uint64, besides func(embeddb.Batch) error) error {
	first, last := s.first.Load(), s.last.Load()
	if from > first && to < last {
		return fmt.Errorf("delete indexes %d to %d of Raft's log, which has %d to %d: it would have a gap", from, to, first, last)
	}
	if to >= last && from > first {
		s.noteShorter(from - 1)
	} else if to >= last {
		s.noteShorter(0)
	}
	s.recent.remove(from, to)
	err := s.commit(func(b embeddb.Batch) error {
		if besides != nil {
			if err := besides(b); err != nil {
				return err
			}
		}
		return b.DeleteRange(logKey(from), logKey(to+1), nil)
	})
	if err != nil {
		return s.failed(err)
	}
	switch {
	case from <= first && to >= last:
		first, last = 0, 0
	case from <= first:
		first = max(first, to+1)
	default:
		last = from - 1
	}
	s.first.Store(first)
	s.last.Store(last)
	s.note()
	return nil
}

// trim removes the log up to index to, if any, and records which entries readers can still read.
func (s *store) trim(to uint64, t trimmed) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	record := func(b embeddb.Batch) error { return b.Set(trimmedKey, t.encode(), nil) }
	first := s.first.Load()
	if first == 0 || to < first {
		if err := s.commit(record); err != nil {
			return s.failed(err)
		}
		s.note()
		return nil
	}
	return s.deleteRange(first, to, record)
}
