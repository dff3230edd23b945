package datadir

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/google/uuid"

	"github.com/musterhq/muster/internal/atomicfile"
)

// pendingFile records that the directory is being created, converted from an earlier release, or continued after a loss. It is
// written before the first part is created or renamed, and removed when every part exists, so a crash in between does not look
// like a missing part.
const pendingFile = "installation.pending"

const (
	pendingFormat = 1
	pendingMax    = 64 << 10 // bytes that are read of it
)

type pending struct {
	Format   int       `json:"format"`
	ID       uuid.UUID `json:"id"`                 // of the installation
	Had      []Part    `json:"had,omitempty"`      // parts that are there; the others are made
	Accepted []loss    `json:"accepted,omitempty"` // losses that are not in the journal yet
}

var background = context.Background()

func readPending(dir string) (*pending, error) {
	path := filepath.Join(dir, pendingFile)
	content, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	p := &pending{}
	decoder := json.NewDecoder(bytes.NewReader(content[:min(len(content), pendingMax)]))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(p); err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	if p.Format != pendingFormat || p.ID == uuid.Nil {
		return nil, fmt.Errorf("read %s: format %d, id %s: this program knows format %d", path, p.Format, p.ID, pendingFormat)
	}
	return p, nil
}

func (p *pending) write(dir string) error {
	content, err := json.Marshal(p)
	if err != nil {
		return err
	}
	return atomicfile.Write(filepath.Join(dir, pendingFile), append(content, '\n'), 0o600)
}

func removePending(dir string) error { return atomicfile.Remove(filepath.Join(dir, pendingFile)) }
