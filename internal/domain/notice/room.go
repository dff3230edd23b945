package notice

import (
	"slices"

	"github.com/musterhq/muster/internal/domain/kernel"
)

// Room is the room's number.
const Room kernel.RoomNo = 2

// NoticeAge is the wall deadline of a notice that no receiver has taken.
const NoticeAge = kernel.FirstWall + kernel.Wait(Room)*kernel.WaitsOfRoom

// State is the room's records.
type State struct {
	*kernel.Kernel
	Records *Records
	notify  *Notify // nil: no receivers

	noticeNo uint64 // number of the latest notice
}

// Tx is the room: its state, and its part of the present transaction.
type Tx struct {
	*kernel.Tx
	*State
	kernel.Plain
}

// New returns an empty room.
func New(k *kernel.Kernel, notify *Notify) *Tx {
	return &Tx{Tx: k.Tx(), State: &State{Kernel: k, Records: NewRecords(), notify: notify}}
}

// Configure changes the receivers of further notices. Notices for a removed receiver are dropped when they expire.
func (c *State) Configure(notify *Notify) { c.notify = notify }

// Events returns the constructors of the room's events.
func (*Tx) Events() []func() kernel.Event { return events }

// View reads the room's state.
type View struct {
	kernel.Reader
	c *State
}

// View returns a View. It is valid until the next command is executed.
func (c *State) View() View { return View{c.Reader(), c} }

// Listens reports whether the notices of a topic have a receiver.
func (c *State) Listens(topic string) bool {
	return c.notify != nil && (c.notify.Bus || topic != Bus && slices.Contains(c.notify.Topics, topic))
}

// Due drops a notice that its receiver did not take in time.
func (t *Tx) Due(d kernel.Deadline) (heavy bool) {
	t.noticeDue(Ref(d.Ref))
	return false
}

// Freeze returns the room's part of a snapshot.
func (c *State) Freeze(h *kernel.Head) []kernel.Frozen {
	h.NoticeNo = c.noticeNo
	return []kernel.Frozen{kernel.Freeze(partNotice, c.Records.Notices), kernel.Freeze(partSubscription, c.Records.Subscriptions)}
}

// Field numbers of message SnapshotPart in proto/journal.proto.
const (
	partNotice       = 18
	partSubscription = 19
)

func (c *State) Load(l *kernel.Loader, kind uint64, body []byte) (known bool, err error) {
	switch kind {
	case partNotice:
		return true, kernel.LoadWith(l, body, func(n Notice) { c.Records.Add(n) })
	case partSubscription:
		return true, kernel.LoadWith(l, body, c.Records.Subscribe)
	}
	return false, nil
}

// Restore rebuilds the data that snapshots omit.
func (c *State) Restore(h *kernel.Head) error {
	c.noticeNo = h.NoticeNo
	for r, n := range c.Records.Notices.All() {
		c.Waiting.SetWall(NoticeAge, r.Any(), n.Until)
	}
	return nil
}

// NoticeCounts counts the records of the room; the fullest receiver is the one with most notices.
func (v *View) NoticeCounts() []kernel.RecordCount {
	all := []kernel.RecordCount{{Kind: "notices", Count: v.c.Records.Notices.Len()}}
	if v.c.notify == nil {
		return all
	}
	most := 0
	for topic := range v.c.Records.Topics() {
		most = max(most, v.c.Records.Count(topic))
	}
	return append(all, kernel.RecordCount{Kind: "fullest_receiver_notices", Count: most, Most: v.c.notify.Max})
}
