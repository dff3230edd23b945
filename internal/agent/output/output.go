// Package output keeps what server processes print. A process writes directly to a file, so it can keep printing while the agent is down or being
// replaced, and never dies of a closed pipe. The agent moves the beginning of that file into rotated files, and drops output that exceeds the limits
// (docs/decisions/0070-output-in-files.md).
package output

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// Policy bounds the output of one process.
type Policy struct {
	Size  int64 // bytes at which the file is rotated; if it is checked often enough, it never holds more than twice as much
	Files int   // maximum number, including the one to which the process writes
	// Pause is the minimum time between two rotations. If a process writes more than Size in that time, whatever exceeds twice Size is lost.
	Pause time.Duration
}

// Default returns a policy of ten files of 10 MiB.
func Default() Policy { return Policy{Size: 10 << 20, Files: 10, Pause: time.Second} }

// TailMax is how many bytes at the end of a process's output are kept with its game session.
const TailMax = 64 << 10

// name of the file that the process writes to; rotated ones are output.1.log (the newest) and so on.
const name = "output.log"

// Log is the output of one process. It has a directory of its own into which the process itself cannot write, because a link in place of a file would
// make the agent read files that the process may not read. Its methods are safe for concurrent use.
type Log struct {
	dir    string
	policy Policy

	mu      sync.Mutex
	moved   int64 // bytes that have left the file: rotated or dropped
	rotated time.Time
	Dropped int64 // bytes that were never kept; under mu, read by tests and after the end
}

// New returns the log in an existing directory.
func New(dir string, policy Policy) *Log { return &Log{dir: dir, policy: policy} }

// Writer opens the file for the process. The agent closes its own copy once the process runs.
func (l *Log) Writer() (*os.File, error) {
	return os.OpenFile(l.path(0), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o640)
}

// path returns the path of the file with a number; 0 is the file to which the process writes.
func (l *Log) path(number int) string {
	if number == 0 {
		return filepath.Join(l.dir, name)
	}
	return filepath.Join(l.dir, fmt.Sprintf("output.%d.log", number))
}

// Trim rotates the file if it is long enough. floods reports that the process writes so much that the file should be trimmed again soon.
func (l *Log) Trim(now time.Time) (floods bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	info, err := os.Stat(l.path(0))
	if err != nil || info.Size() < l.policy.Size {
		return false, err
	}
	file, err := os.OpenFile(l.path(0), os.O_RDWR, 0)
	if err != nil {
		return false, err
	}
	defer file.Close()
	floods = info.Size() > 2*l.policy.Size
	if now.Sub(l.rotated) < l.policy.Pause && now.After(l.rotated) {
		if !floods {
			return false, nil
		}
		return true, l.drop(file, info.Size()-l.policy.Size)
	}
	if floods {
		if err := l.drop(file, info.Size()-l.policy.Size); err != nil {
			return true, err
		}
	}
	l.rotated = now
	return floods, l.rotate(file)
}

// drop removes bytes at the beginning of the file without keeping them.
func (l *Log) drop(file *os.File, n int64) error {
	removed, err := cut(file, n, nil)
	if errors.Is(err, errWhole) { // the whole file has to go, but the end of the output must stay readable
		end, _, readErr := tail(l.path(0), TailMax)
		next, openErr := os.OpenFile(l.path(1), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o640)
		if openErr == nil {
			_, openErr = next.Write(end)
			openErr = errors.Join(openErr, next.Close())
		}
		info, statErr := file.Stat()
		if statErr != nil {
			return statErr
		}
		removed, err = info.Size(), errors.Join(file.Truncate(0), readErr, openErr)
	}
	l.moved += removed
	l.Dropped += removed
	return err
}

// rotate moves the file's content to a new output.1.log, after renaming the existing ones to the next number.
func (l *Log) rotate(file *os.File) error {
	for i := l.policy.Files - 1; i > 1; i-- {
		if err := os.Rename(l.path(i-1), l.path(i)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	next, err := os.OpenFile(l.path(1), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o640)
	if err != nil {
		return err
	}
	info, err := file.Stat()
	if err != nil {
		next.Close()
		return err
	}
	removed, err := cut(file, info.Size(), next)
	l.moved += removed
	if err == nil {
		return next.Close()
	}
	next.Close()
	os.Remove(l.path(1))
	// Most likely the disk is full. The output must not make that worse, so the oldest is removed first.
	os.Remove(l.path(l.policy.Files - 1))
	return errors.Join(fmt.Errorf("rotate %s: %w", l.path(0), err), l.drop(file, info.Size()-removed))
}

// errWhole is the error of a file system that cannot remove the beginning of a file.
var errWhole = errors.New("only the whole file can be emptied")

// cut removes about n bytes at the beginning of the file, after copying them to a writer if there is one, and returns how many it removed. The
// process appends meanwhile. If the file system cannot remove the beginning of a file, cut copies and empties the whole file, which loses what the
// process wrote between the last read and the truncation; without a writer it returns errWhole and changes nothing.
func cut(file *os.File, n int64, to *os.File) (int64, error) {
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return 0, err
	}
	info, err := file.Stat()
	if err != nil {
		return 0, err
	}
	whole := n - n%blockSize
	if whole >= info.Size() { // the system call cannot remove the end of the file
		whole -= blockSize
	}
	copied := int64(0)
	if whole > 0 && to != nil {
		if copied, err = io.CopyN(to, file, whole); err != nil {
			return 0, err
		}
	}
	if whole > 0 && collapse(file, whole) == nil {
		return whole, nil
	}
	if to == nil {
		return 0, errWhole
	}
	rest, err := io.Copy(to, io.LimitReader(file, 4*n)) // bounded, in case the process writes as fast as this copies
	if err != nil {
		return 0, err
	}
	return copied + rest, file.Truncate(0)
}

// Tail returns the last bytes of the output, at most n.
func (l *Log) Tail(n int64) ([]byte, error) {
	text, _, err := l.TailEnd(n)
	return text, err
}

// TailEnd returns the last bytes of the output, at most n, and the offset after them, at which Read continues.
func (l *Log) TailEnd(n int64) (text []byte, end int64, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	text, size, err := tail(l.path(0), n)
	end = l.moved + size
	if err != nil || int64(len(text)) == n {
		return text, end, err
	}
	before, _, err := tail(l.path(1), n-int64(len(text)))
	if errors.Is(err, os.ErrNotExist) {
		return text, end, nil
	}
	return append(before, text...), end, err
}

// tail returns the last bytes of a file, at most n, and the size of the file up to them.
func tail(path string, n int64) (text []byte, size int64, err error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, 0, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, 0, err
	}
	part := make([]byte, min(n, info.Size()))
	got, err := file.ReadAt(part, info.Size()-int64(len(part)))
	if errors.Is(err, io.EOF) { // cut meanwhile: cannot happen under the lock, except by other programs
		err = nil
	}
	return part[:got], info.Size(), err
}

// Read fills p with output from an offset, which counts all bytes since the agent started to follow the process. It returns the number of bytes read
// and the offset after them. It skips output that is no longer in the file or in output.1.log. n is 0 when the process has written nothing more.
func (l *Log) Read(p []byte, offset int64) (n int, next int64, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if offset < l.moved {
		if n, err = l.readRotated(p, offset); n > 0 || err != nil {
			return n, offset + int64(n), err
		}
		offset = l.moved
	}
	n, err = readAt(l.path(0), p, offset-l.moved)
	return n, offset + int64(n), err
}

// readRotated reads from output.1.log if it contains the offset.
func (l *Log) readRotated(p []byte, offset int64) (int, error) {
	info, err := os.Stat(l.path(1))
	if err != nil || l.Dropped > 0 { // dropped bytes shift the offsets of the rotated file, so it is skipped
		return 0, nil
	}
	if begin := l.moved - info.Size(); offset >= begin {
		return readAt(l.path(1), p, offset-begin)
	}
	return 0, nil
}

func readAt(path string, p []byte, offset int64) (int, error) {
	file, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer file.Close()
	n, err := file.ReadAt(p, offset)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return n, err
}

// Files returns the paths of all files with output, the oldest first.
func (l *Log) Files() (paths []string) {
	for number := l.policy.Files - 1; number >= 0; number-- {
		if _, err := os.Stat(l.path(number)); err == nil {
			paths = append(paths, l.path(number))
		}
	}
	return paths
}
