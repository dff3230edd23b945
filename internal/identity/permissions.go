package identity

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

	"github.com/musterhq/muster/internal/fileowner"
)

// The bits of a file's mode that matter here.
const (
	othersRead, othersWrite, othersEnter = 0o004, 0o002, 0o001
	groupRead, groupWrite                = 0o040, 0o020
	sticky                               = fs.ModeSticky // only the owner of a file may replace it
)

// CheckPermissions checks which users can read and replace the secret and the data. A mode that allows every user of the machine to take
// over the installation is an error: a secret that others can read or write, or a directory in which they can replace it. A mode that may
// be intended, such as a directory that a group can read, is a warning. Windows has no such bits and is not checked.
func CheckPermissions(dir string) (warnings []string, err error) {
	if runtime.GOOS == "windows" {
		return nil, nil
	}
	info, err := os.Stat(dir)
	if err != nil {
		return nil, fmt.Errorf("data directory: %w", err)
	}
	switch mode := info.Mode(); {
	case mode&othersWrite != 0 && mode&sticky == 0:
		return nil, fmt.Errorf("data directory %s has mode %#o: every user of this machine could replace the secret and the keys in it; want chmod 700 %[1]s", dir, mode.Perm())
	case mode&(othersRead|othersEnter) != 0:
		warnings = append(warnings, fmt.Sprintf("data directory %s has mode %#o: every user of this machine can read the journal, which holds players' data; chmod 700 %[1]s prevents that", dir, mode.Perm()))
	case mode&groupWrite != 0:
		warnings = append(warnings, fmt.Sprintf("data directory %s has mode %#o: its group can replace the secret and the keys in it; chmod 700 %[1]s prevents that", dir, mode.Perm()))
	}
	if err := fileowner.Check(dir, info); err != nil {
		return nil, err
	}
	path := filepath.Join(dir, secretFile)
	info, err = os.Stat(path)
	switch {
	case os.IsNotExist(err):
		return warnings, nil // made soon, with mode 0600
	case err != nil:
		return nil, fmt.Errorf("cell secret: %w", err)
	}
	switch mode := info.Mode(); {
	case mode&(othersRead|othersWrite) != 0:
		return nil, fmt.Errorf("cell secret %s has mode %#o: every user of this machine may know it, and with it the secrets of all keys and tokens; "+
			"want chmod 600 %[1]s, and if others have used this machine, a new installation", path, mode.Perm())
	case mode&(groupRead|groupWrite) != 0:
		warnings = append(warnings, fmt.Sprintf("cell secret %s has mode %#o: users of its group can act as any principal of this service; want chmod 600 %[1]s", path, mode.Perm()))
	}
	return warnings, fileowner.Check(path, info)
}
