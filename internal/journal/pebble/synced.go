package pebble

import (
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/musterhq/muster/internal/embeddb"
	"github.com/musterhq/muster/internal/journal"
)

// lostEntries adds the number of lost entries to the error of a log whose end is lost.
func lostEntries(files vfs.FS, dir string, err error, known embeddb.Synced) error {
	lost, ok := errors.AsType[*journal.Damaged](err)
	if !ok || !lost.Tail || known.Entry == 0 {
		return err
	}
	last, ok := embeddb.LastRecord(files, dir)
	if number, isEntry := entryOfRecord(last); ok && isEntry && number < known.Entry {
		lost.Err = fmt.Errorf("%w: entries %d to %d, %d in all, were on the disk", lost.Err, number+1, known.Entry, known.Entry-number)
	} else {
		lost.Err = fmt.Errorf("%w: entries up to %d were on the disk", lost.Err, known.Entry)
	}
	return err
}

// entryOfRecord returns the number of the entry that a log record appends. A record is a batch of the database: its sequence
// number (8 bytes), the number of its writes (4), and for each write its kind (1), the length of the key (uvarint) and the
// key.
func entryOfRecord(record []byte) (number uint64, ok bool) {
	const header = 12
	if len(record) < header+2+entryKeySize || record[header] != 1 || record[header+1] != entryKeySize {
		return 0, false
	}
	return entryNumber(record[header+2 : header+2+entryKeySize])
}
