package kernel

import (
	"bufio"
	"encoding/binary"
	"io"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/chunk"
	"github.com/musterhq/muster/internal/domain/wire"
)

// Snapshot is a cell at one moment. It can be written while the cell continues, because tables copy a frozen block of records before changing it
// (package chunk).
type Snapshot struct {
	head  Head
	parts []Frozen
	level uint // parts of kinds above it are not written; 0: all are
}

// Frozen writes some records of a room as they were at one moment.
type Frozen func(*PartWriter)

// Freeze freezes the records of a table.
func Freeze[T any, M interface {
	*T
	wire.Message
}](kind uint8, t chunk.Table[T]) Frozen {
	records := t.Freeze()
	return func(w *PartWriter) {
		var copied T // one for all records: a million of them would be garbage
		for _, r := range records.All() {
			copied = *r
			w.Part(kind, M(&copied))
		}
	}
}

// Head holds the counters of a cell. Each room fills in its part in Freeze and reads it in Restore.
type Head struct {
	Last, Downtime domain.Time
	Forgotten      uint64
	EventNo        uint64 // number of the latest fleet event
	Games, Players int64  // game sessions and player sessions in the snapshot
	EndedNo        uint64
	NoticeNo       uint64 // number of the latest notice
	PlacementNo    uint64 // number of the latest placement
	TicketNo       uint64 // number of the latest ticket
	NodeNo         uint32 // number of the latest node
	Level          uint32 // in force; 0: 1
}

func (h *Head) Fields(c *wire.Codec) {
	wire.Int(c, 1, &h.Last)
	wire.Int(c, 2, &h.Downtime)
	wire.Int(c, 3, &h.Forgotten)
	wire.Int(c, 4, &h.EventNo)
	wire.Int(c, 5, &h.Games)
	wire.Int(c, 6, &h.Players)
	wire.Int(c, 7, &h.EndedNo)
	wire.Int(c, 8, &h.NoticeNo)
	wire.Int(c, 9, &h.PlacementNo)
	wire.Int(c, 10, &h.TicketNo)
	wire.Int(c, 11, &h.NodeNo)
	wire.Int(c, 12, &h.Level)
}

// Freeze takes a Snapshot. It takes microseconds, whatever the size of the cell: it copies only each table's list of blocks, 8 bytes per 64 records.
// Afterwards the first change to a block copies that block, so memory grows with the changes until the snapshot is written. The engine calls Freeze
// between two groups, when the state is exactly that after a journal entry.
func (k *Kernel) Freeze() *Snapshot {
	s := &Snapshot{head: Head{Last: k.last, Downtime: k.downtime, Forgotten: k.forgotten, EndedNo: k.Ended.no}}
	if k.level > 1 {
		s.head.Level = uint32(k.level)
	}
	if k.level < k.known {
		s.level = k.level
	}
	for _, room := range k.rooms {
		if room != nil {
			s.parts = append(s.parts, room.Freeze(&s.head)...)
		}
	}
	return s
}

// Field numbers of message SnapshotPart in proto/journal.proto. A snapshot is a sequence of length-prefixed parts. The other numbers belong to the
// rooms.
const (
	partHead = 1
	partEnd  = 10
)

// Write writes the snapshot.
func (s *Snapshot) Write(to io.Writer) error {
	w := &PartWriter{w: bufio.NewWriterSize(to, 1<<18), level: s.level}
	w.Part(partHead, &s.head)
	for _, write := range s.parts {
		write(w)
	}
	w.Part(partEnd, &Ticked{})
	if w.err != nil {
		return w.err
	}
	return w.w.Flush()
}

// PartWriter writes the parts of a snapshot.
type PartWriter struct {
	w     *bufio.Writer
	c     wire.Codec
	level uint // see Snapshot
	err   error
}

// Part writes one record, unless its kind is above the level in force. Callers pass a copy of a frozen record: Fields serves both encoding and
// decoding, and a frozen record must not be changed. Part keeps nothing of m.
func (w *PartWriter) Part(kind uint8, m wire.Message) {
	if w.err != nil || w.level != 0 && LevelOf(m) > w.level {
		return
	}
	w.c.Buf = append(w.c.Buf[:0], 0)
	w.c.Buf = binary.AppendUvarint(w.c.Buf, uint64(kind)<<3|lengthDelimited)
	w.c.Buf = append(w.c.Buf, 0)
	body := len(w.c.Buf) - 1
	m.Fields(&w.c)
	w.c.Buf = wire.PrefixLength(w.c.Buf, body)
	w.c.Buf = wire.PrefixLength(w.c.Buf, 0)
	_, w.err = w.w.Write(w.c.Buf)
}
