package embeddb

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/cockroachdb/pebble/v2"
)

// logger passes Pebble's log lines to slog. Pebble's Infof lines (each file created or deleted) are for developers who
// examine the database, so they become debug lines.
type logger struct {
	log  *slog.Logger
	stop *failstop
}

func (l logger) Infof(format string, args ...any) {
	if l.log.Enabled(context.Background(), slog.LevelDebug) {
		l.log.Debug(fmt.Sprintf(format, args...))
	}
}

func (l logger) Errorf(format string, args ...any) {
	l.log.Error(fmt.Sprintf(format, args...))
}

// Fatalf returns, although Pebble does not expect it to: the database has failed, nothing more is written, and the next call
// returns the error. A library must not end the process.
func (l logger) Fatalf(format string, args ...any) {
	l.stop.fail("database", fmt.Errorf(format, args...))
}

// events fails the database on background errors: if a flush or a compaction cannot read, the disk has lost data, and a
// retry would only hide that. A database with OnDamage continues with what is readable.
func events(log *slog.Logger, stop *failstop, onDamage func(*Damaged)) *pebble.EventListener {
	return &pebble.EventListener{
		BackgroundError: func(err error) {
			switch {
			case errors.Is(err, pebble.ErrCancelledCompaction):
			case onDamage != nil && pebble.IsCorruptionError(err): // the input of the compaction stays unchanged
				onDamage(&Damaged{File: "a compaction", Offset: -1, Err: err})
			default:
				stop.fail("background work", err)
			}
		},
		DataCorruption: func(info pebble.DataCorruptionInfo) {
			damaged := &Damaged{File: info.Path, Offset: -1, Err: info.Details}
			if onDamage != nil {
				onDamage(damaged)
				return
			}
			stop.fail("read "+info.Path, damaged)
		},
		WriteStallBegin: func(info pebble.WriteStallBeginInfo) {
			log.Warn("writes to the database wait for a flush", "reason", info.Reason)
		},
		TableDeleted: func(info pebble.TableDeleteInfo) {
			if info.Err != nil {
				log.Warn("the database could not remove a file", "file", info.Path, "error", info.Err)
			}
		},
		WALDeleted: func(info pebble.WALDeleteInfo) {
			if info.Err != nil {
				log.Warn("the database could not remove a file", "file", info.Path, "error", info.Err)
			}
		},
	}
}
