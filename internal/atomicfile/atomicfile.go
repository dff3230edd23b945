// Package atomicfile is for small files that must never be seen half written: after a crash at any moment the
// path holds the old content or the new one, complete.
package atomicfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// Write replaces the content of path. The new content is on the disk before the name points at it, so an error
// means that the old file is still there (or, if only the directory could not be synced, that a power cut may bring
// it back). Calling again is safe.
func Write(path string, content []byte, mode fs.FileMode) (err error) {
	dir := filepath.Dir(path)
	temp, err := os.CreateTemp(dir, tempPrefix(filepath.Base(path))+"*") // created with mode 0600: secrets are never readable meanwhile
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	defer func() {
		if err != nil {
			temp.Close()
			os.Remove(temp.Name())
			err = fmt.Errorf("write %s: %w", path, err)
		}
	}()
	if _, err = temp.Write(content); err != nil {
		return err
	}
	if err = temp.Chmod(mode); err != nil && runtime.GOOS != "windows" {
		return err
	}
	if err = temp.Sync(); err != nil {
		return err
	}
	if err = temp.Close(); err != nil {
		return err
	}
	if err = rename(temp.Name(), path); err != nil {
		return err
	}
	return SyncDir(dir)
}

func tempPrefix(name string) string { return "." + name + "." }

// IsTemp reports whether a file was left by a Write of a file in the same directory, whose process was killed.
func IsTemp(left, name string) bool { return strings.HasPrefix(left, tempPrefix(name)) }

// SyncDir makes the names in a directory durable. Windows has no such call; its file system journals names by itself.
func SyncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

// Remove removes a file durably. One that is not there is no error.
func Remove(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return SyncDir(filepath.Dir(path))
}

// Rename durably gives a file another name in the same directory, and replaces a file of that name.
func Rename(from, to string) error {
	if err := rename(from, to); err != nil {
		return err
	}
	return SyncDir(filepath.Dir(to))
}

// readersPatience is how long rename waits for other programs to close the file.
const readersPatience = time.Second

// rename renames a file. Windows refuses that while another program has the file open, such as a command that reads it or a virus scanner.
func rename(from, to string) error {
	err := os.Rename(from, to)
	for end := time.Now().Add(readersPatience); err != nil && isOpen(err) && time.Now().Before(end); {
		time.Sleep(readersPatience / 100)
		err = os.Rename(from, to)
	}
	return err
}

// isOpen reports whether an error of Windows may mean that another program has the file open.
func isOpen(err error) bool {
	const accessDenied, sharingViolation = syscall.Errno(5), syscall.Errno(32)
	return runtime.GOOS == "windows" && (errors.Is(err, accessDenied) || errors.Is(err, sharingViolation))
}

// MakeDir makes a directory with its missing parents, durably: after a power cut a directory whose name was never synced is
// gone, with all that was synced in it. The name of an existing directory is synced, too, since the program that created it
// may not have. What this user may not read cannot be synced and is left to the file system.
func MakeDir(dir string, mode fs.FileMode) error {
	made := []string{dir}
	for {
		top := made[len(made)-1]
		if _, err := os.Stat(top); err == nil || filepath.Dir(top) == top {
			break
		}
		made = append(made, filepath.Dir(top))
	}
	if err := os.MkdirAll(dir, mode); err != nil {
		return err
	}
	for _, name := range made {
		if err := SyncDir(filepath.Dir(name)); err != nil && !errors.Is(err, fs.ErrPermission) {
			return fmt.Errorf("make directory %s: %w", dir, err)
		}
	}
	return nil
}
