package raft

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/hashicorp/raft"
)

// A leader sends its snapshot when it no longer has the entries that a follower needs. Sometimes the follower does not need it: if the
// follower's answers were lost, the leader considers it behind, and a transfer that the leader has given up may arrive late. Raft's library
// then replaces the log by the snapshot, and forgets later entries that the follower has acknowledged. Raft as published keeps them. The
// node therefore checks first: if its log has the snapshot's last entry, in the same term, the snapshot is redundant. The node receives and
// discards it, applies the entries up to that one, which the snapshot proves to be committed, and keeps its log. From then on the library
// uses the members of the snapshot. If the log has newer members, the node must be opened again, or it would count majorities of members
// that the cluster does not have.

// redundant reports whether this node has everything that a snapshot offers. Raft's main goroutine calls it.
func (n *Node) redundant(index, term uint64) (bool, error) {
	latest := n.snaps.get()
	logged := false
	err := n.store.read(index, func(l *raft.Log) error { logged = l.Term == term; return nil })
	if err != nil && !errors.Is(err, raft.ErrLogNotFound) {
		return false, err
	}
	n.redundantly = 0
	switch saved := latest.place.index == index && latest.term == term; {
	case logged, saved && n.store.last.Load() > index:
		n.redundantly = index
		return true, nil
	case !saved && index <= latest.place.index: // late: its sender has already sent a newer one
		return false, fmt.Errorf("a snapshot up to index %d: this node has one up to %d", index, latest.place.index)
	}
	return false, nil
}

// install makes a received snapshot the beginning of this node's state. The machine's goroutine calls it, and Raft's main goroutine waits.
func (n *Node) install(snapshot io.Reader) error {
	n.trimming.Lock()
	defer n.trimming.Unlock()
	if index := n.redundantly; index != 0 {
		n.redundantly = 0
		return n.catchUp(index)
	}
	head := make([]byte, streamHead)
	if _, err := io.ReadFull(snapshot, head); err != nil {
		return err
	}
	latest := n.snaps.get()
	if number := binary.LittleEndian.Uint64(head[8:]); number != latest.number {
		return fmt.Errorf("a snapshot after entry %d, the latest one is after entry %d", number, latest.number)
	}
	next := trimmed{latest.number + 1, latest.number}
	if err := n.store.begin(origin{latest.place.index, latest.term}, next); err != nil {
		return err
	}
	n.trimmed = next
	n.machine.begin(latest.place, latest.members)
	n.log.Info("a snapshot of the leader has replaced this node's journal", "entry", latest.number, "bytes", latest.size)
	if last := n.store.last.Load(); last >= latest.place.index {
		// Raft removes the log after this, but still assumes that its last entry exists.
		n.fail(fmt.Errorf("%w: the leader's snapshot has replaced entries up to index %d that were never committed", ErrReopen, last))
	}
	return nil
}

// catchUp applies the log up to index, and keeps it.
func (n *Node) catchUp(index uint64) error {
	for at := n.machine.applied() + 1; at <= index; at++ {
		err := n.store.read(at, func(l *raft.Log) error {
			switch l.Type {
			case raft.LogCommand:
				n.machine.Apply(l)
			case raft.LogConfiguration:
				n.machine.StoreConfiguration(at, raft.DecodeConfiguration(l.Data))
			}
			return nil
		})
		if err != nil {
			return n.missing(at, err)
		}
	}
	n.machine.rewind(index)
	n.store.writing.Lock()
	n.store.keepNext = true
	n.store.writing.Unlock()
	return n.lookForMembers(index + 1)
}

// lookForMembers records whether the log, from an index on, has members that Raft's library is about to forget.
func (n *Node) lookForMembers(from uint64) error {
	for at, last := from, n.store.last.Load(); at <= last; at++ {
		err := n.store.read(at, func(l *raft.Log) error {
			if l.Type == raft.LogConfiguration {
				n.outdated.Store(true)
			}
			return nil
		})
		if err != nil {
			return n.missing(at, err)
		}
	}
	return nil
}

// watchMembers fails a node whose library has forgotten the newest members. It is called a moment after the snapshot, so that the leader
// has its answer and does not send the snapshot again, but before the node can stand for election, because it has just heard from its leader.
func (n *Node) watchMembers() {
	if n.outdated.Load() {
		n.fail(fmt.Errorf("%w: after a snapshot that it did not need, the node uses an older list of members than its log has", ErrReopen))
	}
}

func (m *machine) applied() uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.index
}

// rewind records that Raft will apply the entries after index again, so the log must keep them.
func (m *machine) rewind(index uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.rewound = index
}

// mayTrim returns the index up to which this machine no longer needs the log.
func (m *machine) mayTrim() uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.rewound != 0 {
		return m.rewound
	}
	return math.MaxUint64
}
