package backup

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
)

const (
	magic      = "MUSTBAK1"
	frameBytes = 1 + 4 + 4 // kind, length, checksum
	blockBytes = 256 << 10 // of a full block; it bounds the memory of a reader
)

// Kinds of blocks, in their order within a file.
const (
	headBlock    = 1 // JSON
	secretBlock  = 2
	stateBlock   = 3 // part of the state, in the format of snapshots
	archiveBlock = 4 // part of the archive's records
	endBlock     = 5 // JSON
	entryBlock   = 6 // part of the journal; only in streams to a repository
)

// rank returns the position of a kind of block among the others.
func rank(kind byte) int {
	if i := bytes.IndexByte([]byte{headBlock, secretBlock, stateBlock, entryBlock, archiveBlock, endBlock}, kind); i >= 0 {
		return i
	}
	return math.MaxInt
}

// ErrDamaged is wrapped by the error for a file that is not a whole backup.
var ErrDamaged = errors.New("damaged or incomplete backup")

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// blockWriter writes the blocks of a file. It collects written bytes in a block of the current kind.
type blockWriter struct {
	out     io.Writer
	kind    byte
	sum     uint32 // checksum of everything before
	block   []byte
	written int64
	err     error
}

func newBlockWriter(out io.Writer) *blockWriter {
	w := &blockWriter{out: out, sum: crc32.Checksum([]byte(magic), castagnoli), block: make([]byte, frameBytes, frameBytes+blockBytes)}
	w.write([]byte(magic))
	return w
}

func (w *blockWriter) write(p []byte) {
	if w.err == nil {
		_, w.err = w.out.Write(p)
		w.written += int64(len(p))
	}
}

// begin ends the current block. Whatever is written next has the new kind.
func (w *blockWriter) begin(kind byte) error {
	w.flush()
	w.kind = kind
	return w.err
}

func (w *blockWriter) Write(p []byte) (n int, err error) {
	for len(p) > 0 && w.err == nil {
		room := min(len(p), cap(w.block)-len(w.block))
		w.block = append(w.block, p[:room]...)
		p, n = p[room:], n+room
		if len(w.block) == cap(w.block) {
			w.flush()
		}
	}
	return n, w.err
}

func (w *blockWriter) flush() {
	if len(w.block) == frameBytes {
		return
	}
	w.block[0] = w.kind
	binary.LittleEndian.PutUint32(w.block[1:], uint32(len(w.block)-frameBytes))
	w.sum = blockSum(w.sum, w.block[:5], w.block[frameBytes:])
	binary.LittleEndian.PutUint32(w.block[5:], w.sum)
	w.write(w.block)
	w.block = w.block[:frameBytes]
}

func blockSum(before uint32, frame, payload []byte) uint32 {
	return crc32.Update(crc32.Update(before, castagnoli, frame), castagnoli, payload)
}

// blockReader reads the blocks of a file. It checks each block before it returns any of it.
type blockReader struct {
	in     io.Reader
	sum    uint32
	offset int64
	kind   byte   // of the block in rest; 0: none was read
	rest   []byte // of the block, not yet returned
	buffer []byte
}

func newBlockReader(in io.Reader) (*blockReader, error) {
	r := &blockReader{in: in, sum: crc32.Checksum([]byte(magic), castagnoli), buffer: make([]byte, blockBytes)}
	begins := make([]byte, len(magic))
	if _, err := io.ReadFull(in, begins); err != nil {
		return nil, r.cut(err)
	}
	if string(begins) != magic {
		return nil, r.damaged("it begins with %q, not with %q", begins, magic)
	}
	r.offset = int64(len(magic))
	return r, r.next()
}

// next reads the next block.
func (r *blockReader) next() error {
	var frame [frameBytes]byte
	if _, err := io.ReadFull(r.in, frame[:]); err != nil {
		return r.cut(err)
	}
	kind, length := frame[0], binary.LittleEndian.Uint32(frame[1:])
	if length == 0 || length > blockBytes {
		return r.damaged("a block of %d bytes, want 1 to %d", length, blockBytes)
	}
	payload := r.buffer[:length]
	if _, err := io.ReadFull(r.in, payload); err != nil {
		return r.cut(err)
	}
	sum := blockSum(r.sum, frame[:5], payload)
	if sum != binary.LittleEndian.Uint32(frame[5:]) {
		return r.damaged("the checksum of a block does not match")
	}
	if r.kind != 0 && rank(kind) < rank(r.kind) || rank(kind) > rank(endBlock) {
		return r.damaged("a block of kind %d after one of kind %d", kind, r.kind)
	}
	r.sum, r.kind, r.rest = sum, kind, payload
	r.offset += frameBytes + int64(length)
	return nil
}

// part reads all blocks of one kind; there may be none.
type part struct {
	*blockReader
	kind byte
}

func (p part) Read(b []byte) (int, error) {
	r := p.blockReader
	for r.kind == p.kind && len(r.rest) == 0 {
		if err := r.next(); err != nil {
			return 0, err
		}
	}
	if r.kind != p.kind {
		return 0, io.EOF
	}
	n := copy(b, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// whole reads the single block of a kind.
func (r *blockReader) whole(kind byte) ([]byte, error) {
	if r.kind != kind {
		return nil, r.damaged("a block of kind %d, want %d", r.kind, kind)
	}
	content := append([]byte(nil), r.rest...)
	if kind == endBlock {
		if n, err := io.ReadFull(r.in, make([]byte, 1)); n > 0 || err != io.EOF {
			return nil, errors.Join(r.damaged("there is more after its end"), err)
		}
		return content, nil
	}
	return content, r.next()
}

func (r *blockReader) cut(err error) error {
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return r.damaged("it ends before its end block")
	}
	return fmt.Errorf("backup at byte %d: %w", r.offset, err)
}

func (r *blockReader) damaged(format string, args ...any) error {
	return fmt.Errorf("%w: at byte %d: %s", ErrDamaged, r.offset, fmt.Sprintf(format, args...))
}
