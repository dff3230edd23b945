package identity

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/musterhq/muster/internal/atomicfile"
)

const (
	keysFile = "access-keys.json"

	// keysFormat grows when an older Muster could not read the file rightly.
	keysFormat = 1
)

// keyRecord is what the file keeps of a key. The secret is not in it: it is derived from the cell's secret.
type keyRecord struct {
	ID      string    `json:"id"`
	Role    Role      `json:"role"`
	Account string    `json:"account"`
	Name    string    `json:"name"`
	Created time.Time `json:"created"`
	Revoked time.Time `json:"revoked,omitzero"`
}

type keyFileContent struct {
	Format int         `json:"format"`
	Keys   []keyRecord `json:"keys"`
}

// readKeyFile gives the records in order of creation. No file means no keys; info is nil then.
func readKeyFile(dir string) (records []keyRecord, info fs.FileInfo, err error) {
	path := filepath.Join(dir, keysFile)
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("read access keys: %w", err)
	}
	defer f.Close()
	if info, err = f.Stat(); err != nil { // of the open file: the name may point at a newer one by now
		return nil, nil, fmt.Errorf("read access keys: %w", err)
	}
	content, err := io.ReadAll(f)
	if err != nil {
		return nil, nil, fmt.Errorf("read access keys: %w", err)
	}
	var file keyFileContent
	decoder := json.NewDecoder(bytes.NewReader(content))
	decoder.DisallowUnknownFields() // a field we do not know may restrict the key
	if err := decoder.Decode(&file); err != nil {
		return nil, nil, fmt.Errorf("read access keys: %s: %w", path, err)
	}
	if file.Format != keysFormat {
		return nil, nil, fmt.Errorf("read access keys: %s has format %d, this version reads format %d", path, file.Format, keysFormat)
	}
	for _, record := range file.Keys {
		if record.ID == "" || record.Role == NoRole {
			return nil, nil, fmt.Errorf("read access keys: %s: key %q has role %s, want an id and a role", path, record.ID, record.Role)
		}
	}
	return file.Keys, info, nil
}

func writeKeyFile(dir string, records []keyRecord) error {
	content, err := json.MarshalIndent(keyFileContent{Format: keysFormat, Keys: records}, "", "  ")
	if err != nil {
		return fmt.Errorf("write access keys: %w", err)
	}
	return atomicfile.Write(filepath.Join(dir, keysFile), append(content, '\n'), 0o600)
}
