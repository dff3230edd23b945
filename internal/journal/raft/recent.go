package raft

import (
	"slices"
	"sync"

	"github.com/hashicorp/raft"
)

// recentBytes bounds the entries kept in memory, also of an idle node.
const recentBytes = 2 << 20

// recent has the entries that were stored last. Each is read several times within milliseconds. The leader reads it for each follower, and
// once more as the predecessor of the next entry, of which Raft needs only the term. A follower reads it when it is committed, and then for
// the engine. Each read from the database would compare checksums and, for Raft, make a copy.
//
// Nothing changes an entry once it is stored, so readers share its bytes.
type recent struct {
	mu    sync.RWMutex
	logs  []raft.Log // at consecutive indexes
	bytes int
}

// get returns an entry, if recent has it.
func (r *recent) get(index uint64) (l raft.Log, ok bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if len(r.logs) == 0 || index < r.logs[0].Index || index-r.logs[0].Index >= uint64(len(r.logs)) {
		return l, false
	}
	return r.logs[index-r.logs[0].Index], true
}

// add adds entries that are on disk, and drops the oldest ones.
func (r *recent) add(logs []*raft.Log) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if n := len(r.logs); n > 0 && r.logs[n-1].Index+1 != logs[0].Index {
		r.logs, r.bytes = nil, 0
	}
	for _, l := range logs {
		r.logs = append(r.logs, *l)
		r.bytes += logSize(l)
	}
	n := 0
	for ; r.bytes > recentBytes; n++ {
		r.bytes -= logSize(&r.logs[n])
	}
	clear(r.logs[:n]) // the rest is copied only when the slice grows
	r.logs = r.logs[n:]
}

// remove drops the entries from one index to another, which are the first or the last of the log.
func (r *recent) remove(from, to uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.logs = slices.DeleteFunc(r.logs, func(l raft.Log) bool { return l.Index >= from && l.Index <= to })
	r.bytes = 0
	for i := range r.logs {
		r.bytes += logSize(&r.logs[i])
	}
}
