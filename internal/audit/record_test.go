package audit

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/domain/audit"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/logtest"
)

// notes is an engine that records operations, except for the first attempts, which fail.
type notes struct {
	refuse int
	taken  chan *audit.Note
}

func (n *notes) Do(_ context.Context, cmd kernel.Command) error {
	if n.refuse--; n.refuse >= 0 {
		return errors.New("no node decides")
	}
	n.taken <- cmd.(*audit.Note)
	return nil
}

// TestRecordLater: the operations of commands while no service ran are recorded once the service can, in order, with principal, reason and time.
func TestRecordLater(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	by := Origin{Principal: "ann", Door: DoorOffline, Operation: "restore", Reason: "the disk burnt"}
	for _, id := range []string{"a.backup", "b.backup"} {
		if err := Later(dir, by, "backup", id); err != nil {
			t.Fatal(err)
		}
	}
	e := &notes{refuse: 1, taken: make(chan *audit.Note, 9)}
	l := NewLog(e, dir, time.Now, slog.New(slog.DiscardHandler))
	for _, id := range []string{"a.backup", "b.backup"} {
		x := <-e.taken
		if _, err := time.Parse(time.RFC3339, x.Changes[0].After); x.By != by || x.Kind != "backup" || x.ID != id || err != nil || x.Changes[0].Field != "Time" {
			t.Errorf("recorded %+v, want %s", x, id)
		}
	}
	l.Close()
	if _, err := os.Stat(filepath.Join(dir, laterFile)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the file is still there: %v", err)
	}
}

// TestRecordLaterKeepsWhatItCannotRead: an unreadable list of operations is kept, and the log says so once.
func TestRecordLaterKeepsWhatItCannotRead(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), laterFile)
	if err := os.WriteFile(path, []byte("{}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var log logtest.Log
	l := &Log{engine: &notes{}, log: slog.New(slog.NewTextHandler(&log, nil)), later: path}
	l.recordLater(t.Context())
	l.recordLater(t.Context())
	if _, err := os.Stat(path); err != nil || strings.Count(log.String(), "\n") != 1 || !strings.Contains(log.String(), laterFile) {
		t.Errorf("%v; the log has\n%s", err, log.String())
	}
}

// TestLaterIsBounded: a file that has become too large accepts no more operations.
func TestLaterIsBounded(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, laterFile), make([]byte, laterMax), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Later(dir, Origin{}, "", ""); err == nil || !strings.Contains(err.Error(), "want at most") {
		t.Errorf("got %v", err)
	}
}
