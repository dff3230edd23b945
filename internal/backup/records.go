package backup

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/musterhq/muster/internal/archive"
)

// recordMax is the maximum length of a record; it bounds the memory that is allocated for one.
const recordMax = archive.MaxDataBytes + 4*archive.MaxKeyBytes + 64

// AppendRecord appends the length of a record, followed by the record.
func AppendRecord(to []byte, r *archive.Record) []byte {
	body := []byte{byte(r.Kind)}
	body = binary.AppendUvarint(body, uint64(r.Created))
	body = binary.AppendUvarint(body, uint64(r.Ended))
	for _, text := range []string{r.ID, r.Fleet, r.Group, r.Player} {
		body = append(binary.AppendUvarint(body, uint64(len(text))), text...)
	}
	to = binary.AppendUvarint(to, uint64(len(body)+len(r.Data)))
	return append(append(to, body...), r.Data...)
}

var errRecord = errors.New("a record is malformed")

// ReadRecord reads a record that AppendRecord has appended. It returns io.EOF after the last one.
func ReadRecord(from *bufio.Reader) (r archive.Record, err error) {
	size, err := binary.ReadUvarint(from)
	if err != nil {
		return r, err
	}
	if size < 1 || size > recordMax {
		return r, fmt.Errorf("%w: %d bytes", errRecord, size)
	}
	body := make([]byte, size)
	if _, err := io.ReadFull(from, body); err != nil {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return r, err
	}
	r.Kind, body = archive.Kind(body[0]), body[1:]
	number := func() (x uint64) {
		n := 0
		if x, n = binary.Uvarint(body); n <= 0 {
			err, body = errRecord, nil
			return 0
		}
		body = body[n:]
		return x
	}
	r.Created, r.Ended = int64(number()), int64(number())
	for _, text := range []*string{&r.ID, &r.Fleet, &r.Group, &r.Player} {
		n := number()
		if n > uint64(len(body)) {
			return r, errRecord
		}
		*text, body = string(body[:n]), body[n:]
	}
	r.Data = body
	if err != nil {
		return r, err
	}
	return r, r.Check()
}
