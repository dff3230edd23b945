package raft

import (
	"errors"
	"log/slog"
	"testing"

	"github.com/hashicorp/raft"

	"github.com/musterhq/muster/internal/embeddb/embeddbtest"
)

// A node that could once not record how far its log is synced still opens after its log has become shorter.
func TestShorterThanRecorded(t *testing.T) {
	unrecorded := 0
	for n, met := 1, true; met; n++ {
		disk := embeddbtest.NewDisk()
		open := func() *store {
			s, err := openStore(disk, "raft", "", slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatalf("operation %d failed: %v", n, err)
			}
			return s
		}
		s := open()
		var logs []*raft.Log
		for index := uint64(1); index <= 10; index++ {
			logs = append(logs, &raft.Log{Index: index, Term: 1, Data: []byte("x")})
		}
		if err := s.StoreLogs(logs); err != nil {
			t.Fatal(err)
		}
		disk.FailAt(n, errors.New("failing on purpose"), true)
		err := s.StoreLogs([]*raft.Log{{Index: 11, Term: 1, Data: []byte("x")}})
		if met = disk.Met(); err != nil { // the log itself could not be written
			_ = s.close()
			continue
		} else if met {
			unrecorded++
		}
		disk.FailAt(1<<30, nil, true)
		if err := errors.Join(s.DeleteRange(6, 11), s.close()); err != nil {
			t.Fatal(err)
		}
		if err := open().close(); err != nil {
			t.Fatal(err)
		}
	}
	if unrecorded == 0 {
		t.Error("the record never failed")
	}
}
