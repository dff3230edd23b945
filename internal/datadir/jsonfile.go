package datadir

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/musterhq/muster/internal/atomicfile"
)

// jsonMax is the maximum size of a JSON file of a data directory that is read, in bytes.
const jsonMax = 64 << 10

// readJSON reads a JSON file of a data directory, and refuses unknown fields. It returns nil if the file does not exist.
func readJSON[T any](path string) (*T, error) {
	content, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	x := new(T)
	decoder := json.NewDecoder(bytes.NewReader(content[:min(len(content), jsonMax)]))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(x); err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return x, nil
}

// writeJSON replaces such a file atomically.
func writeJSON(path string, x any) error {
	content, err := json.Marshal(x)
	if err != nil {
		return err
	}
	return atomicfile.Write(path, append(content, '\n'), 0o600)
}
