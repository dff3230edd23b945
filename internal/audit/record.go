package audit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/musterhq/muster/internal/atomicfile"
	"github.com/musterhq/muster/internal/domain/audit"
)

// recordWait is how long Record waits for the leader.
const recordWait = 10 * time.Second

// Record records a completed operation that is not a command of the core, with the origin in the context; without an origin it records nothing. A
// command's entry is part of its transaction, but this one is not, so a crash after the operation loses it. If recording fails, the service's log
// says so.
func (l *Log) Record(ctx context.Context, kind, id string, changes ...audit.Change) {
	by, given := From(ctx)
	if l == nil || !given {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordWait)
	defer cancel()
	if err := l.engine.Do(Without(ctx), &audit.Note{By: by, Kind: kind, ID: id, Changes: changes}); err != nil {
		l.log.Error("an operation was carried out and has no entry in the audit log", "operation", by.Operation, "principal", by.Principal, "kind", kind, "id", id, "error", err)
	}
}

// laterFile has operations of commands that ran while the service was stopped, and that its next start records. Each line is a postponed as JSON.
const (
	laterFile = "audit-later.jsonl"
	laterMax  = 1 << 20 // bytes
)

type postponed struct {
	At       time.Time
	By       Origin
	Kind, ID string
	Changes  []audit.Change `json:",omitempty"`
}

// Later makes the next start of the service on a data directory record an operation that happens now, because no running service can record it. If
// that start crashes, the operation may be recorded twice.
func Later(dir string, by Origin, kind, id string, changes ...audit.Change) error {
	path := filepath.Join(dir, laterFile)
	before, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("audit log: %w", err)
	}
	line, err := json.Marshal(postponed{At: time.Now().UTC().Truncate(time.Second), By: by.Cut(), Kind: kind, ID: id, Changes: changes})
	if err != nil {
		return fmt.Errorf("audit log: %w", err)
	}
	content := append(append(before, line...), '\n')
	if len(content) > laterMax {
		return fmt.Errorf("audit log: %s would have %d bytes, want at most %d: start the service, which records what is in it", path, len(content), laterMax)
	}
	if err := atomicfile.Write(path, content, 0o600); err != nil {
		return fmt.Errorf("audit log: %w", err)
	}
	return nil
}

// recordLater records the operations in the file and removes it. While there is no leader, it leaves the file for the next attempt.
func (l *Log) recordLater(ctx context.Context) {
	if l.later == "" {
		return
	}
	content, err := os.ReadFile(l.later)
	if errors.Is(err, fs.ErrNotExist) {
		l.later = ""
		return
	}
	for line := range bytes.Lines(content) {
		var x postponed
		if err = json.Unmarshal(line, &x); err != nil {
			break
		}
		changes := append([]audit.Change{{Field: "Time", After: x.At.UTC().Format(time.RFC3339)}}, x.Changes...)
		if l.engine.Do(Without(ctx), &audit.Note{By: x.By, Kind: x.Kind, ID: x.ID, Changes: changes}) != nil {
			return
		}
	}
	if err == nil {
		err = atomicfile.Remove(l.later)
	}
	if err != nil {
		l.log.Error("operations of commands that ran while the service was stopped are not in the audit log: look at the file, and remove it", "file", l.later, "error", err)
	}
	l.later = ""
}
