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

// jsonMax is how many bytes are read of a JSON file of a data directory.
const jsonMax = 64 << 10

// readJSON reads a JSON file of a data directory, and refuses fields that it does not know. There is no file when it returns nil.
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

// writeJSON replaces such a file as a whole.
func writeJSON(path string, x any) error {
	content, err := json.Marshal(x)
	if err != nil {
		return err
	}
	return atomicfile.Write(path, append(content, '\n'), 0o600)
}
