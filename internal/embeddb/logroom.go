package embeddb

import (
	"math"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// logRoom is how much of a log is filled with zeros ahead of its records. A sync that adds blocks to a file must also
// commit the file system's own journal and costs about twice as much time and processor time; so one sync in a hundred
// adds blocks for the others. Pebble reuses old logs, which have their blocks, but only after its first
// five, whose sizes start at 256 KiB.
const logRoom = 256 << 10

var zeros [logRoom]byte

// roomyLog is a write-ahead log that is written in order. Pebble and checkTail treat what follows its records, zeros or
// an old log's content, as its end.
type roomyLog struct {
	vfs.File
	end     *logEnd
	written int64
	room    int64 // the file has blocks up to here
}

// withRoom returns a log with preallocated room; a reused log has the room of its old file.
func (s *failstop) withRoom(log vfs.File, name string) vfs.File {
	l := &roomyLog{File: log, end: &s.log}
	number, _ := logNumber(s.FS.PathBase(name))
	l.end.number.Store(number)
	l.end.written.Store(0)
	if info, err := log.Stat(); err == nil {
		l.room = info.Size()
	}
	return l
}

func (l *roomyLog) Write(p []byte) (int, error) {
	n, err := l.File.Write(p)
	l.written += int64(n)
	l.end.written.Store(l.written)
	if err != nil || l.written <= l.room {
		return n, err
	}
	// As with Preallocate, a failure is ignored: without this room, the next records extend the file or fail.
	if _, err := l.File.WriteAt(zeros[:], l.written); err != nil {
		l.room = math.MaxInt64
	} else {
		l.room = l.written + logRoom
	}
	return n, nil
}
