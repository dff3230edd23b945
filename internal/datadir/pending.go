package datadir

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/google/uuid"

	"github.com/musterhq/muster/internal/atomicfile"
)

// pendingFile records that the directory is being created, restored from a backup, converted from an earlier release, or continued after a loss. It is
// written before the first part is created or renamed, and removed when every part exists, so a crash in between does not look
// like a missing part.
const pendingFile = "installation.pending"

const (
	pendingFormat = 1
)

type pending struct {
	Format   int       `json:"format"`
	ID       uuid.UUID `json:"id"`                 // of the installation
	Had      []Part    `json:"had,omitempty"`      // existing parts; the others are created
	Accepted []loss    `json:"accepted,omitempty"` // losses that are not in the journal yet
	Restores bool      `json:"restores,omitempty"` // a backup is being restored
}

var background = context.Background()

func readPending(dir string) (*pending, error) {
	path := filepath.Join(dir, pendingFile)
	p, err := readJSON[pending](path)
	if err != nil || p == nil {
		return nil, err
	}
	if p.Format != pendingFormat || p.ID == uuid.Nil {
		return nil, fmt.Errorf("read %s: format %d, id %s: this release reads format %d", path, p.Format, p.ID, pendingFormat)
	}
	if p.Restores {
		return nil, &Unfinished{dir}
	}
	return p, nil
}

func (p *pending) write(dir string) error {
	return writeJSON(filepath.Join(dir, pendingFile), p)
}

func removePending(dir string) error { return atomicfile.Remove(filepath.Join(dir, pendingFile)) }
