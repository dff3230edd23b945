package identity

import (
	"fmt"
	"os"
	"path/filepath"
)

// LockFile is the name of the file in a data directory that LockDir locks.
const LockFile = "identity.lock"

// LockDir keeps other processes from creating or renaming parts of a data directory until unlock is called. It waits for a process that holds
// the lock. Only opening the directory needs it: after that, the journal's own lock protects the directory.
func LockDir(dir string) (unlock func(), err error) {
	f, err := os.OpenFile(filepath.Join(dir, LockFile), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", dir, err)
	}
	if err := lockFileExclusive(f); err != nil {
		f.Close()
		return nil, fmt.Errorf("lock %s: %w", f.Name(), err)
	}
	return func() { f.Close() }, nil // closing releases the lock
}
