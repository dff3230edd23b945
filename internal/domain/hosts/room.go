// Package hosts is the room of machines whose agents have joined: their names and public keys, and the tokens with which other machines may join.
//
// A token names a fleet, a location or both, how many hosts may join with it, and its expiry. A host generates its own key pair, so that no host's
// secret is in the state or on the wire, and signs each connection with it.
//
// The door that holds a host's connection confirms it every minute (Keep). A host that was not confirmed for SilentAfter is silent: fleets of builds
// replace it. That clock stands still while the service is down.
package hosts

import (
	"slices"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/catalog"
	"github.com/musterhq/muster/internal/domain/chunk"
	"github.com/musterhq/muster/internal/domain/kernel"
)

// Room is the room's number.
const Room kernel.RoomNo = 10

// level is the level from which the room's events may be written.
const level = 2

// Limits of the room.
const (
	// SilentAfter is how long a host may be without a connection before it counts as lost.
	SilentAfter = 3 * time.Minute
	// HostsMax is the most hosts, including revoked ones whose records are kept. At the limit, those make room for others.
	HostsMax = 10_000
	// RevokedKept is how long the record of a revoked host is kept, unless another host needs the room.
	RevokedKept = 90 * 24 * time.Hour
	// TokensMax is the most valid join tokens.
	TokensMax = 256
	// TokensOfHolderMax is the most valid tokens of one holder, so that others find room.
	TokensOfHolderMax = TokensMax - TokensMax/4
	// UsesMax is how many hosts may join with one token.
	UsesMax = HostsMax
	// ValidMax is the longest validity of a token.
	ValidMax = 30 * 24 * time.Hour
	// NameMax bounds the name of a host, in bytes.
	NameMax = 128

	textMax = 256 // of addresses, versions and principals
	hashMax = 128
)

// Silence is the contact deadline of a host that is not silent yet.
const Silence = kernel.Wait(Room) * kernel.WaitsOfRoom

// Fleets is the part of other rooms that this room needs.
type Fleets interface {
	// CheckSite refuses a nonexistent fleet or location. Either may be empty, but not both.
	CheckSite(fleet, location string) error
	// CheckName refuses a name that another compute of the fleet already has.
	CheckName(fleet, name string) error
	// Admit makes a host a compute of the fleet to which it is bound, unless that is a fleet of a build, which gets its hosts by plan. It updates the
	// address of an existing compute.
	Admit(h *Host) error
	// Drain stops or resumes new game sessions on a host that is bound to a fleet and not subject to plans.
	Drain(h *Host)
	// Remove removes the compute that represents the host and ends everything left on it.
	Remove(h *Host)
}

// State is the room's records.
type State struct {
	*kernel.Kernel
	Records catalog.Catalog[Host]
	tokens  []Token // oldest first; never changed in place
	fleets  Fleets
}

// Tx is the room: its state, and its part of the present transaction.
type Tx struct {
	*kernel.Tx
	*State
	kernel.Plain
}

// New returns an empty room.
func New(k *kernel.Kernel) *Tx {
	return &Tx{Tx: k.Tx(), State: &State{Kernel: k, Records: catalog.NewHeld(place, countsFor)}}
}

// Connect sets the room's access to other rooms. It is called once, before the first command.
func (c *State) Connect(f Fleets) { c.fleets = f }

// Events returns the constructors of the room's events.
func (*Tx) Events() []func() kernel.Event { return events }

// Apply applies an event.
func (c *State) Apply(at domain.Time, event kernel.Event) {
	number := c.Touch()
	switch e := event.(type) {
	case *HostTokenIssued:
		c.tokens = append(slices.Clone(c.tokens), e.Token)
	case *HostTokensForgotten:
		c.tokens = slices.DeleteFunc(slices.Clone(c.tokens), func(x Token) bool { return slices.Contains(e.IDs, x.ID) })
	case *HostJoined:
		c.put(e.Host, number)
		c.tokens = slices.Clone(c.tokens)
		for i := range c.tokens {
			if c.tokens[i].ID == e.Host.Token {
				c.tokens[i].Uses--
			}
		}
	case *HostChanged:
		c.put(e.Host, number)
	case *HostsSeen:
		for _, id := range e.Hosts {
			r, _ := c.Records.Find(id)
			h := *c.Records.Get(r)
			h.Seen, h.SilentBy = at, e.SilentBy
			c.put(h, number)
		}
	case *HostsForgotten:
		for _, id := range e.IDs {
			r, _ := c.Records.Find(id)
			c.Waiting.Clear(Silence, r.Any())
			c.Records.Drop(r)
		}
	}
}

func (c *State) put(h Host, number uint64) {
	h.Changed = number
	c.Waiting.Set(Silence, c.Records.Put(h).Any(), h.SilentBy)
}

// Due marks a host as silent.
func (t *Tx) Due(d kernel.Deadline) (heavy bool) {
	h := *t.Records.Get(chunk.Ref[Host](d.Ref))
	h.SilentBy = 0
	t.Emit(&HostChanged{h})
	return false
}

// Field numbers of message SnapshotPart in proto/journal.proto.
const (
	partToken = 85
	partHost  = 86
)

// Freeze returns the room's part of a snapshot.
func (c *State) Freeze(*kernel.Head) []kernel.Frozen {
	tokens := c.tokens
	return []kernel.Frozen{kernel.Freeze(partHost, c.Records), func(w *kernel.PartWriter) {
		for _, x := range tokens {
			w.Part(partToken, &x)
		}
	}}
}

// Load reads a part of a snapshot.
func (c *State) Load(l *kernel.Loader, kind uint64, body []byte) (known bool, err error) {
	switch kind {
	case partToken:
		return true, kernel.LoadWith(l, body, func(x Token) { c.tokens = append(c.tokens, x) })
	case partHost:
		return true, kernel.LoadInto(l, body, c.Records)
	}
	return false, nil
}

// Restore rebuilds the data that snapshots omit.
func (c *State) Restore(*kernel.Head) error {
	c.Records.Restore()
	for r, h := range c.Records.All() {
		c.Waiting.Set(Silence, r.Any(), h.SilentBy)
	}
	return nil
}

// Each yields the hosts that may connect, in the order in which they joined.
func (c *State) Each(yield func(*Host) bool) {
	c.Records.Since(catalog.Place{}, func(h *Host) bool { return h.Revoked != 0 || yield(h) })
}
