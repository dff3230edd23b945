// Package snapshot implements the storage format of snapshots for all engines: blocks with a checksum each and an end mark, so that a
// half-written, truncated or damaged file never counts as a snapshot. docs/formats/journal-pebble.md describes the layout.
//
// A consumer can use the payload as it arrives, because each block is checked before any of it is returned, and the returned bytes are always
// a prefix of the true payload. Only io.EOF means that the payload is complete. A checksum covers the number of the journal entry and the
// block's index as well as the bytes, so an intact block in the wrong place, or from another snapshot, is detected like a damaged one. The
// end mark contains the total size, so missing blocks are detected, too. CRC-32C detects every burst of up to 32 bits and misses one in
// four billion other errors. It does not protect against deliberate changes to the file.
//
// Writer and Reader buffer one block of 256 KiB, whatever the size of the snapshot. They neither sync nor rename: the engine makes a file the
// latest snapshot after Finish.
package snapshot

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/google/uuid"
)

// BlockBytes is the payload of a full block. It bounds the memory of a reader, which checks a block before returning any of it.
const BlockBytes = 256 << 10

const (
	magic       = "MUSTSNP2"
	magic1      = "MUSTSNP1" // of releases whose snapshots had no installation id
	headerBytes = len(magic) + 8 + 16 + 4
	header1     = len(magic1) + 8 + 4 // magic, entry number, checksum
	frameBytes  = 4 + 4               // length, checksum
)

// ErrDamaged is wrapped in Reader's error for bytes that are not a complete snapshot. All other errors of Reader come from the underlying
// reader.
var ErrDamaged = errors.New("damaged or incomplete snapshot")

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// sum covers the snapshot's entry number and the block's index as well as the payload, so that an intact block in the wrong place is detected.
func sum(at, index uint64, payload []byte) uint32 {
	var place [16]byte
	binary.LittleEndian.PutUint64(place[:], at)
	binary.LittleEndian.PutUint64(place[8:], index)
	return crc32.Update(crc32.Checksum(place[:], castagnoli), castagnoli, payload)
}

// Writer writes one snapshot. The snapshot is complete only after Finish.
type Writer struct {
	out   io.Writer
	at    uint64
	index uint64 // of the block being gathered
	total uint64 // payload written in earlier blocks
	block []byte // frame and payload of the block being gathered
	err   error
}

// Write writes a snapshot of the output of write. It calls goOn before each write to out and aborts with goOn's error.
func Write(out io.Writer, at uint64, installation uuid.UUID, goOn func() error, write func(io.Writer) error) error {
	blocks := NewWriter(&stoppable{goOn, out}, at, installation)
	if err := write(blocks); err != nil {
		return err
	}
	return blocks.Finish()
}

type stoppable struct {
	goOn func() error
	out  io.Writer
}

func (s *stoppable) Write(p []byte) (int, error) {
	if err := s.goOn(); err != nil {
		return 0, err
	}
	return s.out.Write(p)
}

// NewWriter starts the snapshot after entry at of an installation.
func NewWriter(out io.Writer, at uint64, installation uuid.UUID) *Writer {
	w := &Writer{out: out, at: at, block: make([]byte, frameBytes, frameBytes+BlockBytes)}
	header := append(make([]byte, 0, headerBytes), magic...)
	header = binary.LittleEndian.AppendUint64(header, at)
	header = append(header, installation[:]...)
	header = binary.LittleEndian.AppendUint32(header, crc32.Checksum(header, castagnoli))
	_, w.err = out.Write(header)
	return w
}

func (w *Writer) Write(p []byte) (int, error) {
	written := 0
	for len(p) > 0 && w.err == nil {
		n := min(len(p), cap(w.block)-len(w.block))
		w.block = append(w.block, p[:n]...)
		p, written = p[n:], written+n
		if len(w.block) == cap(w.block) {
			w.flush()
		}
	}
	return written, w.err
}

func (w *Writer) flush() {
	payload := w.block[frameBytes:]
	binary.LittleEndian.PutUint32(w.block, uint32(len(payload)))
	binary.LittleEndian.PutUint32(w.block[4:], sum(w.at, w.index, payload))
	if _, err := w.out.Write(w.block); err != nil {
		w.err = err
		return
	}
	w.index++
	w.total += uint64(len(payload))
	w.block = w.block[:frameBytes]
}

// Finish writes the last block and the end mark. The caller makes the file durable.
func (w *Writer) Finish() error {
	if w.err == nil && len(w.block) > frameBytes {
		w.flush()
	}
	if w.err != nil {
		return w.err
	}
	total := binary.LittleEndian.AppendUint64(nil, w.total)
	end := binary.LittleEndian.AppendUint32(nil, 0)
	end = binary.LittleEndian.AppendUint32(end, sum(w.at, w.index, total))
	_, w.err = w.out.Write(append(end, total...))
	return w.err
}

// Reader reads a snapshot's payload. It ends in io.EOF only after an intact end mark.
type Reader struct {
	in     io.Reader
	at     uint64
	index  uint64
	total  uint64
	offset int64  // position of the next frame in the stored bytes
	buffer []byte // for a block
	rest   []byte // part of the block in buffer that was not returned yet
	err    error

	installation uuid.UUID
}

// Installation returns the id of the installation that owns the snapshot; zero if a release without installation ids took it.
func (r *Reader) Installation() uuid.UUID { return r.installation }

// NewReader reads the header. The snapshot must be the one after entry at.
func NewReader(in io.Reader, at uint64) (*Reader, error) {
	r := &Reader{in: in, at: at}
	header := make([]byte, len(magic), headerBytes)
	if _, err := io.ReadFull(in, header); err != nil {
		return nil, r.cut(err)
	}
	switch string(header) {
	case magic:
		header = header[:headerBytes]
	case magic1:
		header = header[:header1]
	default:
		return nil, r.damaged("it begins with %q, not with %q", header, magic)
	}
	if _, err := io.ReadFull(in, header[len(magic):]); err != nil {
		return nil, r.cut(err)
	}
	fields, sum := header[:len(header)-4], header[len(header)-4:]
	switch stored := binary.LittleEndian.Uint64(fields[len(magic):]); {
	case crc32.Checksum(fields, castagnoli) != binary.LittleEndian.Uint32(sum):
		return nil, r.damaged("checksum of the header does not match")
	case stored != at:
		return nil, r.damaged("it was taken after entry %d, expected %d", stored, at)
	}
	copy(r.installation[:], fields[len(magic)+8:])
	r.offset = int64(len(header))
	return r, nil
}

func (r *Reader) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	for len(r.rest) == 0 {
		if r.err != nil {
			return 0, r.err
		}
		r.err = r.next()
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// next reads and checks one block, or the end mark.
func (r *Reader) next() error {
	var frame [frameBytes]byte
	if _, err := io.ReadFull(r.in, frame[:]); err != nil {
		return r.cut(err)
	}
	length := binary.LittleEndian.Uint32(frame[:])
	if length > BlockBytes {
		return r.damaged("block %d of %d bytes, at most %d expected", r.index, length, BlockBytes)
	}
	isEnd := length == 0
	if isEnd {
		length = 8
	}
	if r.buffer == nil {
		r.buffer = make([]byte, BlockBytes)
	}
	payload := r.buffer[:length]
	if _, err := io.ReadFull(r.in, payload); err != nil {
		return r.cut(err)
	}
	if sum(r.at, r.index, payload) != binary.LittleEndian.Uint32(frame[4:]) {
		return r.damaged("checksum of block %d does not match", r.index)
	}
	r.offset += frameBytes + int64(length)
	if isEnd {
		if stored := binary.LittleEndian.Uint64(payload); stored != r.total {
			return r.damaged("%d bytes read, the end mark says %d", r.total, stored)
		}
		return io.EOF
	}
	r.index++
	r.total += uint64(length)
	r.rest = payload
	return nil
}

func (r *Reader) cut(err error) error {
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return r.damaged("it ends before its end mark")
	}
	return fmt.Errorf("snapshot at byte %d: %w", r.offset, err)
}

func (r *Reader) damaged(format string, args ...any) error {
	return fmt.Errorf("%w: at byte %d: %s", ErrDamaged, r.offset, fmt.Sprintf(format, args...))
}
