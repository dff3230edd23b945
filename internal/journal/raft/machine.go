package raft

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/hashicorp/raft"
)

// machine is the replicated state machine: it has the numbers of the journal's entries. The entries themselves stay in Raft's log, and the
// engine above keeps the state that they describe.
//
// Numbers have no gaps; the indexes of the log between them belong to Raft's own entries and to rejected commands. The map from number to
// index is therefore a list of runs without gaps, which grows only with elections and changes of members.
type machine struct {
	install  func(io.Reader) error // called when Raft has received a snapshot
	rejected func(index uint64, err error)

	mu      sync.Mutex
	first   uint64 // number of the oldest entry that readers may read; number+1 if none
	number  uint64 // of the last committed entry
	index   uint64 // of the last command applied
	rewound uint64 // after a redundant snapshot, Raft applies again from here; 0: it does not
	runs    []run  // ascending
	members []members
	wake    chan struct{} // closed and replaced when number or first changes
}

// run is a number of consecutive entries at consecutive indexes, up to the next run.
type run struct{ number, index uint64 }

// members is a committed configuration of the cluster.
type members struct {
	index         uint64
	configuration raft.Configuration
}

var _ raft.ConfigurationStore = (*machine)(nil)

func newMachine() *machine { return &machine{first: 1, wake: make(chan struct{})} }

var (
	errStale = errors.New("it was appended by a run that has ended")
	errGap   = errors.New("it is not the next one")
)

// accepts is the rule by which all nodes, at every replay, agree which commands are entries: the command has the next number, and it
// entered the log in the term of the run that sent it. The second condition rejects an append that a deposed leader had in flight when it
// was elected again: the state of its new run does not contain that append.
func accepts(l *raft.Log, last uint64) (number uint64, err error) {
	number, term, _, err := parseCommand(l.Data)
	switch {
	case err != nil:
		return 0, err
	case term != l.Term:
		return number, fmt.Errorf("command %d of term %d in term %d: %w", number, term, l.Term, errStale)
	case number != last+1:
		return number, fmt.Errorf("command %d after entry %d: %w", number, last, errGap)
	}
	return number, nil
}

// Apply implements raft.FSM. It returns nil or the error of a rejected command.
func (m *machine) Apply(l *raft.Log) any {
	m.mu.Lock()
	defer m.mu.Unlock()
	if l.Index <= m.index {
		return nil // a repetition after a redundant snapshot
	}
	m.rewound = 0
	if err := m.applyLocked(l); err != nil {
		m.rejected(l.Index, err)
		return err
	}
	m.wakeLocked()
	return nil
}

func (m *machine) applyLocked(l *raft.Log) error {
	m.index = l.Index
	number, err := accepts(l, m.number)
	if err != nil {
		return err
	}
	m.number = number
	if n := len(m.runs); n == 0 || m.runs[n-1].index+(number-m.runs[n-1].number) != l.Index {
		m.runs = append(m.runs, run{number, l.Index})
	}
	return nil
}

func (m *machine) wakeLocked() {
	close(m.wake)
	m.wake = make(chan struct{})
}

// StoreConfiguration implements raft.ConfigurationStore.
func (m *machine) StoreConfiguration(index uint64, configuration raft.Configuration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if n := len(m.members); n == 0 || m.members[n-1].index < index {
		m.members = append(m.members, members{index, configuration})
	}
}

// Snapshot implements raft.FSM. The node itself saves snapshots, at the entry that the engine chooses, so Raft never needs to.
func (m *machine) Snapshot() (raft.FSMSnapshot, error) {
	return nil, errors.New("snapshots are saved by the journal")
}

// Restore implements raft.FSM.
func (m *machine) Restore(snapshot io.ReadCloser) error {
	return m.install(snapshot)
}

// begin sets the state that a snapshot represents.
func (m *machine) begin(at place, conf members) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.first, m.number, m.index = at.number+1, at.number, at.index
	m.runs = []run{{at.number, at.index}}
	m.members = []members{conf}
	m.wakeLocked()
}

// place is an entry of the journal in Raft's log.
type place struct{ number, index, term uint64 }

func (m *machine) last() uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.number
}

// at returns the numbers of the oldest readable and the last entry, and a channel that is closed when they change.
func (m *machine) at() (first, last uint64, changed <-chan struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.first, m.number, m.wake
}

// locate returns the index of an entry; ok is false if the machine no longer knows it.
func (m *machine) locate(number uint64) (index uint64, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.locateLocked(number)
}

func (m *machine) locateLocked(number uint64) (index uint64, ok bool) {
	if number > m.number {
		return 0, false
	}
	n, found := slices.BinarySearchFunc(m.runs, number, func(r run, number uint64) int {
		switch {
		case r.number < number:
			return -1
		case r.number > number:
			return 1
		}
		return 0
	})
	if !found {
		n--
	}
	if n < 0 {
		return 0, false
	}
	return m.runs[n].index + (number - m.runs[n].number), true
}

// entryAt returns the number of the newest entry at or below an index; 0 if the machine knows none.
func (m *machine) entryAt(index uint64) uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	for n := len(m.runs) - 1; n >= 0; n-- {
		if r := m.runs[n]; r.index <= index {
			last := m.number
			if n+1 < len(m.runs) {
				last = m.runs[n+1].number - 1
			}
			return min(last, r.number+(index-r.index))
		}
	}
	return 0
}

// membersAt returns the configuration that was in force at an index.
func (m *machine) membersAt(index uint64) (members, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for n := len(m.members) - 1; n >= 0; n-- {
		if m.members[n].index <= index {
			return m.members[n], true
		}
	}
	return members{}, false
}

// forget makes first the oldest entry that readers may read.
func (m *machine) forget(first uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if first <= m.first {
		return
	}
	m.first = first
	m.wakeLocked()
}

// dropBefore forgets the runs and configurations that end before an index.
func (m *machine) dropBefore(index uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for len(m.runs) > 1 && m.runs[1].index <= index {
		m.runs = m.runs[1:]
	}
	for len(m.members) > 1 && m.members[1].index <= index {
		m.members = m.members[1:]
	}
}
