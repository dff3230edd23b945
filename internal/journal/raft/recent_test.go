package raft

import (
	"bytes"
	"testing"

	"github.com/hashicorp/raft"
)

// Memory has the entries that were stored last, never one that the log has no more, and not more than its bytes.
func TestRecentEntries(t *testing.T) {
	var r recent
	put := func(term, from, to uint64, size int) {
		var logs []*raft.Log
		for index := from; index <= to; index++ {
			logs = append(logs, &raft.Log{Index: index, Term: term, Data: bytes.Repeat([]byte{byte(index)}, size)})
		}
		r.add(logs)
	}
	want := func(what string, term, from, to uint64) {
		t.Helper()
		bytes := 0
		for index := from - min(from, 2); index <= to+2; index++ {
			l, ok := r.get(index)
			if inside := index >= from && index <= to; ok != inside || ok && (l.Index != index || l.Term != term || l.Data[0] != byte(index)) {
				t.Errorf("%s: index %d: %t, %d of term %d; want %d to %d of term %d", what, index, ok, l.Index, l.Term, from, to, term)
			}
			if ok {
				bytes += logSize(&l)
			}
		}
		if r.bytes != bytes {
			t.Errorf("%s: it counts %d bytes and has %d", what, r.bytes, bytes)
		}
	}
	want("nothing", 0, 1, 0)
	put(1, 5, 9, 10)
	want("some", 1, 5, 9)
	r.remove(8, 9)
	want("without the last ones", 1, 5, 7)
	r.remove(1, 5)
	want("without the first ones", 1, 6, 7)
	put(2, 20, 20, 10)
	want("behind a gap", 2, 20, 20)
	put(2, 21, 24, recentBytes/2-logHead)
	want("no more than its bytes", 2, 23, 24)
	put(2, 25, 25, recentBytes)
	want("one that is too large", 2, 26, 25)
	put(2, 26, 26, 1)
	want("behind it", 2, 26, 26)
}
