package access

import (
	"github.com/musterhq/muster/internal/domain/chunk"
	"github.com/musterhq/muster/internal/domain/kernel"
)

// Room is the room's number.
const Room kernel.RoomNo = 5

// Expiry is the wall deadline of an access key that expires.
const Expiry = kernel.FirstWall + kernel.Wait(Room)*kernel.WaitsOfRoom

// State is the room's records and limits.
type State struct {
	*kernel.Kernel
	Config  *Config
	Records *Records

	backup       *Backup       // the latest one; nil: none is known; never changed in place
	losses       []Loss        // accepted losses, oldest first; never changed in place
	joinTokens   []JoinToken   // oldest first; never changed in place
	consoleLinks []ConsoleLink // oldest first; never changed in place
	revocations  []Revocation  // oldest first; never changed in place
	policies     []Policy      // in the order of their last changes; never changed in place
	attachments  []PolicyAttachment
	secrets      []SecretGeneration // oldest first; none before the first rotation; never changed in place
}

// Tx is the room: its state and its part of the current transaction.
type Tx struct {
	*kernel.Tx
	*State
	kernel.Plain
}

// New returns an empty room.
func New(k *kernel.Kernel, config *Config) *Tx {
	return &Tx{Tx: k.Tx(), State: &State{Kernel: k, Config: config, Records: NewRecords()}}
}

// Events returns the constructors of the room's events.
func (*Tx) Events() []func() kernel.Event { return events }

// View reads the room's state.
type View struct {
	kernel.Reader
	c *State
}

// View returns a View. It is valid until the next command is executed.
func (c *State) View() View { return View{c.Reader(), c} }

// Freeze returns the room's part of a snapshot.
func (c *State) Freeze(*kernel.Head) []kernel.Frozen {
	takenOver, losses, joinTokens, links, revocations := c.Records.TakenOver, c.losses, c.joinTokens, c.consoleLinks, c.revocations // never changed in place
	policies, attachments, secrets, backup := c.policies, c.attachments, c.secrets, c.backup
	return []kernel.Frozen{kernel.Freeze(partAccessKey, c.Records.Keys), func(w *kernel.PartWriter) {
		if takenOver != nil {
			copied := *takenOver
			w.Part(partTakenOver, &copied)
		}
		if backup != nil {
			copied := *backup
			w.Part(partBackup, &copied)
		}
		for _, l := range losses {
			w.Part(partLoss, &l)
		}
		for _, x := range joinTokens {
			w.Part(partJoinToken, &x)
		}
		for _, x := range links {
			w.Part(partConsoleLink, &x)
		}
		for _, x := range revocations {
			w.Part(partRevocation, &x)
		}
		for _, x := range policies {
			w.Part(partPolicy, &x)
		}
		for _, x := range attachments {
			w.Part(partAttachment, &x)
		}
		for _, x := range secrets {
			w.Part(partSecret, &x)
		}
	}}
}

// Field numbers of message SnapshotPart in proto/journal.proto.
const (
	partAccessKey   = 50
	partTakenOver   = 51
	partJoinToken   = 52
	partConsoleLink = 53
	partRevocation  = 54
	partPolicy      = 55
	partAttachment  = 56
	partBackup      = 57
	partLoss        = 60
	partSecret      = 72
)

func (c *State) Load(l *kernel.Loader, kind uint64, body []byte) (known bool, err error) {
	switch kind {
	case partAccessKey:
		return true, kernel.LoadInto(l, body, c.Records.Keys)
	case partTakenOver:
		return true, kernel.LoadWith(l, body, func(x TakenOver) { c.Records.TakenOver = &x })
	case partJoinToken:
		return true, kernel.LoadWith(l, body, func(x JoinToken) { c.joinTokens = append(c.joinTokens, x) })
	case partConsoleLink:
		return true, kernel.LoadWith(l, body, func(x ConsoleLink) { c.consoleLinks = append(c.consoleLinks, x) })
	case partRevocation:
		return true, kernel.LoadWith(l, body, func(x Revocation) { c.revocations = append(c.revocations, x) })
	case partPolicy:
		return true, kernel.LoadWith(l, body, func(x Policy) { c.policies = append(c.policies, x) })
	case partAttachment:
		return true, kernel.LoadWith(l, body, func(x PolicyAttachment) { c.attachments = append(c.attachments, x) })
	case partSecret:
		return true, kernel.LoadWith(l, body, func(x SecretGeneration) { c.secrets = append(c.secrets, x) })
	case partBackup:
		return true, kernel.LoadWith(l, body, func(x Backup) { c.backup = &x })
	case partLoss:
		return true, kernel.LoadWith(l, body, func(x Loss) { c.losses = append(c.losses, x) })
	}
	return false, nil
}

// Restore rebuilds the data that snapshots omit.
func (c *State) Restore(*kernel.Head) error {
	c.Records.Restore()
	for r, k := range c.Records.Keys.All() {
		c.setExpiry(r.Any(), k)
	}
	return nil
}

func (c *State) setExpiry(r chunk.AnyRef, k *Key) {
	at := k.Expires
	if !k.Works() {
		at = 0
	}
	c.Waiting.SetWall(Expiry, r, at)
}

// Due ends an expired access key.
func (t *Tx) Due(d kernel.Deadline) (heavy bool) {
	t.Emit(&AccessKeyExpired{t.Records.Keys.Get(chunk.Ref[Key](d.Ref)).ID})
	return false
}
