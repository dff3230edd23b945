package pebble

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
	"github.com/google/uuid"

	"github.com/musterhq/muster/internal/archive"
	"github.com/musterhq/muster/internal/embeddb"
)

// Installation returns the id of the installation that owns the archive; zero if it was never set.
func (a *Archive) Installation() uuid.UUID {
	a.writing.Lock()
	defer a.writing.Unlock()
	return a.installation
}

// SetInstallation durably records the installation that owns the archive, and the mark.
func (a *Archive) SetInstallation(id uuid.UUID, m archive.Mark) error { return a.setOwner(id, &m) }

// setOwner stores the owner, and the mark unless it is nil.
func (a *Archive) setOwner(id uuid.UUID, m *archive.Mark) error {
	a.writing.Lock()
	defer a.writing.Unlock()
	write := a.db.NewBatch()
	if err := write.Set(ownerKey, id[:], nil); err != nil {
		return err
	}
	if m != nil {
		if err := write.Set(markKey, encodeMark(*m), nil); err != nil {
			return err
		}
	}
	err := a.apply(write)
	if err == nil {
		err = a.checked(a.db.FlushAll())
	}
	if err != nil {
		return fmt.Errorf("set the installation of the archive: %w", err)
	}
	a.installation = id
	return nil
}

func (a *Archive) readInstallation() (id uuid.UUID, err error) {
	value, err := a.small(ownerKey, len(id))
	if value != nil {
		id = uuid.UUID(value)
	}
	return id, err
}

// SetMark implements archive.Archive.
func (a *Archive) SetMark(m archive.Mark) {
	a.mark.Lock()
	defer a.mark.Unlock()
	a.mark.next = &m
}

// Mark implements archive.Archive.
func (a *Archive) Mark() (m archive.Mark, ok bool, err error) {
	value, err := a.small(markKey, markSize)
	if err != nil || value == nil {
		return m, false, err
	}
	return decodeMark(value), true, nil
}

const markSize = 8 + 8

func encodeMark(m archive.Mark) []byte {
	return binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, m.Journal), m.Forgotten)
}

// writeMark adds the mark to a batch of records.
func (a *Archive) writeMark(write embeddb.Batch) error {
	a.mark.Lock()
	defer a.mark.Unlock()
	if a.mark.next == nil {
		return nil
	}
	return write.Set(markKey, encodeMark(*a.mark.next), nil)
}

// small returns a copy of a value of fixed size; nil if there is none.
func (a *Archive) small(key []byte, size int) ([]byte, error) {
	value, closer, err := a.db.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, damaged(err)
	}
	defer closer.Close()
	if len(value) != size {
		return nil, &archive.Damaged{Place: "key " + string(key), Err: fmt.Errorf("%d bytes, %d expected", len(value), size)}
	}
	return append([]byte(nil), value...), nil
}
