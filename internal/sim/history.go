package sim

import (
	"bytes"
	"encoding/binary"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/journal"
	"github.com/musterhq/muster/internal/sim/canon"
)

// history has every durable entry, and a cell that only replays them.
type history struct {
	entries [][]byte
	cell    *cell.Cell
	last    domain.Time // of the last transaction
	down    domain.Time // total downtime, by which contact deadlines were moved
	cluster bool        // the latest run was that of a cluster's node
}

func (h *history) append(w *World, number uint64, batch []byte) {
	if number != uint64(len(h.entries))+1 {
		w.violated("entry %d is durable behind entry %d", number, len(h.entries))
	}
	h.entries = append(h.entries, bytes.Clone(batch))
	if err := h.cell.Replay(number, batch); err != nil {
		w.violated("replay entry %d: %v", number, err)
	}
	w.chronicle.read(w, batch)
	w.flowDurable(batch)
	if err := h.cell.EachEvent(batch, func(_ domain.Time, e kernel.Event) {
		if e, ok := e.(*hosting.Resumed); ok {
			h.cluster = e.Held
		}
	}); err != nil {
		w.violated("%v", err)
	}
	last, down := readBatch(w, batch)
	h.last, h.down = max(h.last, last), h.down+down
}

// catchUp reads entries that turned out to be durable although they were not acknowledged.
func (h *history) catchUp(w *World, j journal.Journal) {
	from := uint64(len(h.entries)) + 1
	found := 0
	for entry, err := range j.Read(background, from) {
		if err != nil {
			w.unreadable("read", err)
		}
		h.append(w, entry.Number, entry.Batch)
		found++
	}
	if found > 1 {
		w.violated("%d entries are durable that were not acknowledged", found)
	}
	last, err := j.Last(background)
	if err != nil {
		w.unreadable("last", err)
	}
	if last != uint64(len(h.entries)) {
		w.violated("the journal ends at entry %d, %d were acknowledged", last, len(h.entries))
	}
}

// readBatch returns the time of a batch's last transaction, and the downtime in the batch. It does not use the code under test.
func readBatch(w *World, batch []byte) (last, down domain.Time) {
	for _, transaction := range fields(w, batch) {
		for i, f := range fields(w, transaction.body) {
			switch {
			case i == 0:
				last = domain.Time(f.value)
			case len(f.body) > 0 && f.body[0] == 2<<3|2: // event 2 is Resumed, its field 1 the downtime
				if resumed := fields(w, fields(w, f.body)[0].body); len(resumed) > 0 && resumed[0].number == 1 {
					down += domain.Time(resumed[0].value)
				}
			}
		}
	}
	return last, down
}

type field struct {
	number, value uint64
	body          []byte
}

// fields splits a message that has only numbers and messages.
func fields(w *World, b []byte) (all []field) {
	for len(b) > 0 {
		tag, n := binary.Uvarint(b)
		value, m := binary.Uvarint(b[max(n, 0):])
		if n <= 0 || m <= 0 || tag&7 != 0 && (tag&7 != 2 || value > uint64(len(b)-n-m)) {
			w.violated("a journal entry is no protobuf message")
		}
		f := field{number: tag >> 3, value: value}
		b = b[n+m:]
		if tag&7 == 2 {
			f.body, b = b[:value], b[value:]
		}
		all = append(all, f)
	}
	return all
}

// replayAll replays the whole history from nothing.
func (h *history) replayAll(w *World) {
	c := w.newCell()
	for i, batch := range h.entries {
		if err := c.Replay(uint64(i)+1, batch); err != nil {
			w.violated("replay entry %d: %v", i+1, err)
		}
	}
	if err := canon.Differ("the replayed cell", c.Freeze(), h.cell.Freeze()); err != nil {
		w.violated("%v", err)
	}
}
