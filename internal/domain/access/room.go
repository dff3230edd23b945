package access

import (
	"slices"

	"github.com/musterhq/muster/internal/domain/chunk"
	"github.com/musterhq/muster/internal/domain/kernel"
)

// Room is the room's number.
const Room kernel.RoomNo = 5

// State is the room's records and limits.
type State struct {
	*kernel.Kernel
	Config  *Config
	Records *Records

	losses []Loss // accepted ones, the oldest first; replaced, never written to
}

// Tx is the room: its state, and its part of the transaction that is being decided.
type Tx struct {
	*kernel.Tx
	*State
	kernel.Plain
}

// New returns the room without records.
func New(k *kernel.Kernel, config *Config) *Tx {
	return &Tx{Tx: k.Tx(), State: &State{Kernel: k, Config: config, Records: NewRecords()}}
}

// Events has the constructors of the room's events.
func (*Tx) Events() []func() kernel.Event { return events }

// View reads the room's state.
type View struct {
	kernel.Reader
	c *State
}

// View returns a View. It is good as long as no command is executed.
func (c *State) View() View { return View{c.Reader(), c} }

type frozen struct {
	keys      chunk.Frozen[Key]
	takenOver *TakenOver // replaced, never changed
	losses    []Loss     // the same
}

// Freeze returns what a snapshot holds of the room.
func (c *State) Freeze(*kernel.Head) kernel.Frozen {
	return &frozen{c.Records.Keys.Freeze(), c.Records.TakenOver, c.losses}
}

// Field numbers of message SnapshotPart in proto/journal.proto.
const (
	partAccessKey = 50
	partTakenOver = 51
	partLoss      = 60
)

// Write writes the parts.
func (f *frozen) Write(w *kernel.PartWriter) {
	kernel.WriteAll(w, partAccessKey, f.keys)
	if f.takenOver != nil {
		copied := *f.takenOver
		w.Part(partTakenOver, &copied)
	}
	for _, l := range slices.Clone(f.losses) {
		w.Part(partLoss, &l)
	}
}

// Load reads a part of a snapshot.
func (c *State) Load(l *kernel.Loader, kind uint64, body []byte) (known bool, err error) {
	switch kind {
	case partAccessKey:
		return true, kernel.LoadInto(l, body, &c.Records.Keys.Table)
	case partTakenOver:
		return true, kernel.LoadWith(l, body, func(x TakenOver) { c.Records.TakenOver = &x })
	case partLoss:
		return true, kernel.LoadWith(l, body, func(x Loss) { c.losses = append(c.losses, x) })
	}
	return false, nil
}

// Restore rebuilds what a snapshot does not hold.
func (c *State) Restore(*kernel.Head) error {
	c.Records.Restore()
	return nil
}
