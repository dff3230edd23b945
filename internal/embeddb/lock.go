package embeddb

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// holderFile is next to Pebble's LOCK. The lock file itself must stay empty and unread, because closing any descriptor of a
// locked file releases the lock.
const holderFile = "LOCK.holder"

// Holder describes the process that has a directory open.
type Holder struct {
	PID     int       `json:"pid"`
	Host    string    `json:"host"`
	Program string    `json:"program"`
	Since   time.Time `json:"since"`
}

// InUse is the error of opening a directory that another process has open. The holder is read from the file next to the
// lock and is zero if that cannot be read.
type InUse struct {
	Dir    string
	Holder Holder
	Err    error
}

func (e *InUse) Error() string {
	if e.Holder.PID == 0 {
		return fmt.Sprintf("%s is in use by another process (%v)", e.Dir, e.Err)
	}
	host, _ := os.Hostname()
	elsewhere := ""
	if e.Holder.Host != host {
		elsewhere = " on " + e.Holder.Host
	}
	return fmt.Sprintf("%s is in use by pid %d%s (%s, since %s)",
		e.Dir, e.Holder.PID, elsewhere, e.Holder.Program, e.Holder.Since.Format(time.RFC3339))
}

func (e *InUse) Unwrap() error { return e.Err }

// hold locks dir for this process and writes its holder file.
func hold(files vfs.FS, dir, program string) (*pebble.Lock, error) {
	lock, err := pebble.LockDirectory(dir, files)
	if err != nil {
		if !isConflict(err) {
			return nil, fmt.Errorf("lock %s: %w", dir, err)
		}
		return nil, &InUse{Dir: dir, Holder: readHolder(files, dir), Err: err}
	}
	// Neither synced nor fatal: the lock protects; the file only helps a user who finds the directory in use.
	host, _ := os.Hostname()
	content, err := json.Marshal(Holder{PID: os.Getpid(), Host: host, Program: program, Since: time.Now().UTC().Truncate(time.Second)})
	if err == nil {
		writeHolder(files, dir, content)
	}
	return lock, nil
}

// isConflict distinguishes a held lock from a lock file that cannot be created (no such directory, no permission, no
// space), whose error has a path.
func isConflict(err error) bool {
	if _, ok := errors.AsType[*fs.PathError](err); ok {
		return false
	}
	if runtime.GOOS == "windows" {
		const sharingViolation = syscall.Errno(32)
		return errors.Is(err, sharingViolation)
	}
	return true
}

func writeHolder(files vfs.FS, dir string, content []byte) {
	file, err := files.Create(files.PathJoin(dir, holderFile), vfs.WriteCategoryUnspecified)
	if err != nil {
		return
	}
	_, _ = file.Write(content)
	_ = file.Close()
}

func readHolder(files vfs.FS, dir string) (holder Holder) {
	file, err := files.Open(files.PathJoin(dir, holderFile))
	if err != nil {
		return Holder{}
	}
	defer file.Close()
	content, err := io.ReadAll(io.LimitReader(file, 64<<10))
	if err != nil || json.Unmarshal(content, &holder) != nil {
		return Holder{}
	}
	return holder
}
