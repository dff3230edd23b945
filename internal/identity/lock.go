package identity

import (
	"fmt"
	"os"
	"path/filepath"
)

const lockFile = "identity.lock"

// lockDir keeps other processes from changing keys and secret until unlock is called. Readers need no lock: the
// files are replaced as a whole. The lock is apart from the one that a running server holds on its journal, so that
// keys can be made and revoked while it runs.
func lockDir(dir string) (unlock func(), err error) {
	f, err := os.OpenFile(filepath.Join(dir, lockFile), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", dir, err)
	}
	if err := lockFileExclusive(f); err != nil {
		f.Close()
		return nil, fmt.Errorf("lock %s: %w", f.Name(), err)
	}
	return func() { f.Close() }, nil // closing releases the lock
}
