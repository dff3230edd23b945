// Package canon sorts the snapshot of a cell, so that two cells can be compared: one that ran all the time, one that replayed the
// journal, one that was loaded from a snapshot. Their records have different places, and a snapshot has them in the order of their
// places.
package canon

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
)

// Snapshot is a cell.Snapshot. This package does not import the cell, so that the cell's own tests can use it.
type Snapshot interface{ Write(to io.Writer) error }

// partPlayer is the kind of a part that belongs to the game session before it, in creation order.
const partPlayer = 9

// Dump returns the snapshot with its parts sorted.
func Dump(s Snapshot) ([]byte, error) {
	var snapshot bytes.Buffer
	if err := s.Write(&snapshot); err != nil {
		return nil, err
	}
	var groups [][]byte
	for rest := snapshot.Bytes(); len(rest) > 0; {
		length, n := binary.Uvarint(rest)
		if n <= 0 || length > uint64(len(rest)-n) || length == 0 {
			return nil, errors.New("snapshot is not a sequence of parts")
		}
		part := rest[n : n+int(length)]
		rest = rest[n+int(length):]
		if part[0]>>3 == partPlayer && len(groups) > 0 {
			groups[len(groups)-1] = append(groups[len(groups)-1], part...)
		} else {
			groups = append(groups, slices.Clone(part))
		}
	}
	slices.SortFunc(groups, bytes.Compare)
	return bytes.Join(groups, nil), nil
}

// Differ returns an error that shows the first difference of two snapshots.
func Differ(name string, got, want Snapshot) error {
	a, err := Dump(got)
	if err != nil {
		return err
	}
	b, err := Dump(want)
	if err != nil {
		return err
	}
	if bytes.Equal(a, b) {
		return nil
	}
	at := 0
	for at < min(len(a), len(b)) && a[at] == b[at] {
		at++
	}
	around := func(dump []byte) []byte { return dump[max(0, at-80):min(len(dump), at+80)] }
	return fmt.Errorf("%s differs at byte %d of %d and %d:\n got …%q…\nwant …%q…", name, at, len(a), len(b), around(a), around(b))
}
