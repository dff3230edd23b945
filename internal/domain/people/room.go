// Package people is the room of people who sign in: the sign-in sessions of people known to an identity provider, and the cell's own people with
// their passkeys and the links for registering them.
//
// A session contains what its provider reported about the person at the last check: the name and the groups, and the roles that the settings give to
// these groups. It ends when it expires, when its person or an operator ends it, and at CheckBy unless the provider has confirmed the person again.
// Ended sessions leave the state; the audit log records who ended them.
package people

import (
	"slices"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/catalog"
	"github.com/musterhq/muster/internal/domain/chunk"
	"github.com/musterhq/muster/internal/domain/kernel"
)

// Room is the room's number.
const Room kernel.RoomNo = 13

// level is the level from which the room's events may be written.
const level = 2

// Limits of the room.
const (
	// SessionsMax is the most sign-in sessions.
	SessionsMax = 10_000
	// SessionsOfPersonMax is the most sessions of one person. Beyond it, the oldest one ends.
	SessionsOfPersonMax = 20
	// PeopleMax is the most people of its own that a cell may have.
	PeopleMax = 1_000
	// PasskeysMax is the most passkeys of one person.
	PasskeysMax = 10
	// SessionLifeMax is the longest validity of a session.
	SessionLifeMax = 30 * 24 * time.Hour
	// EnrolmentLifeMax is the longest validity of a link for registering a passkey.
	EnrolmentLifeMax = 7 * 24 * time.Hour
	// UsesMax bounds one NoteUses.
	UsesMax = 256

	NameMax       = 128     // bytes
	ProviderMax   = 32      // bytes
	GroupsMax     = 250     // of a person
	GroupMax      = 256     // bytes
	RefreshMax    = 8 << 10 // bytes, encrypted
	groupBytesMax = 16 << 10
	textMax       = 256
	hashMax       = 128
	credentialMax = 1023 // bytes of a passkey's id, according to WebAuthn
	keyMax        = 2048 // bytes of its public key; RSA keys are the largest
)

// SessionEnd is the wall deadline of every session.
const SessionEnd = kernel.FirstWall + kernel.Wait(Room)*kernel.WaitsOfRoom

// State is the room's records.
type State struct {
	*kernel.Kernel
	SignIns catalog.Catalog[SignIn]
	People  catalog.Catalog[Person]
	of      map[string][]string // ids of a holder's sessions, oldest first
}

// Tx is the room: its state, and its part of the present transaction.
type Tx struct {
	*kernel.Tx
	*State
	kernel.Plain
}

// New returns an empty room.
func New(k *kernel.Kernel) *Tx {
	return &Tx{Tx: k.Tx(), State: &State{Kernel: k, SignIns: catalog.New(placeOfSignIn), People: catalog.New(placeOfPerson), of: map[string][]string{}}}
}

// Events returns the constructors of the room's events.
func (*Tx) Events() []func() kernel.Event { return events }

// Apply applies an event.
func (c *State) Apply(_ domain.Time, event kernel.Event) {
	number := c.Touch()
	switch e := event.(type) {
	case *SignedIn:
		c.put(e.SignIn, number)
		holder := e.SignIn.Holder()
		c.of[holder] = append(c.of[holder], e.SignIn.ID)
	case *SignInChanged:
		c.put(e.SignIn, number)
	case *SignInsUsed:
		for _, use := range e.Uses {
			r, _ := c.SignIns.Find(use.ID)
			x := *c.SignIns.Get(r)
			x.Used, x.Address = use.At, use.Address
			c.put(x, number)
		}
	case *SignInsEnded:
		for _, id := range e.IDs {
			c.drop(id)
		}
	case *PersonChanged:
		x := e.Person
		x.Changed = number
		c.People.Put(x)
	case *PersonRemoved:
		r, _ := c.People.Find(e.ID)
		c.People.Drop(r)
	}
}

func (c *State) put(x SignIn, number uint64) {
	x.Changed = number
	c.Waiting.SetWall(SessionEnd, c.SignIns.Put(x).Any(), x.ends())
}

func (c *State) drop(id string) {
	r, _ := c.SignIns.Find(id)
	holder := c.SignIns.Get(r).Holder()
	if left := slices.DeleteFunc(c.of[holder], func(x string) bool { return x == id }); len(left) > 0 {
		c.of[holder] = left
	} else {
		delete(c.of, holder)
	}
	c.Waiting.Clear(SessionEnd, r.Any())
	c.SignIns.Drop(r)
}

// Due ends a session.
func (t *Tx) Due(d kernel.Deadline) (heavy bool) {
	x := t.SignIns.Get(chunk.Ref[SignIn](d.Ref))
	cause := NotConfirmed
	if x.Expires <= x.CheckBy {
		cause = Expired
	}
	t.Emit(&SignInsEnded{IDs: []string{x.ID}, Cause: cause})
	return false
}

// Field numbers of message SnapshotPart in proto/journal.proto.
const (
	partSignIn = 61
	partPerson = 62
)

// Freeze returns the room's part of a snapshot.
func (c *State) Freeze(*kernel.Head) []kernel.Frozen {
	return []kernel.Frozen{kernel.Freeze(partSignIn, c.SignIns), kernel.Freeze(partPerson, c.People)}
}

// Load reads a part of a snapshot.
func (c *State) Load(l *kernel.Loader, kind uint64, body []byte) (known bool, err error) {
	switch kind {
	case partSignIn:
		return true, kernel.LoadInto(l, body, c.SignIns)
	case partPerson:
		return true, kernel.LoadInto(l, body, c.People)
	}
	return false, nil
}

// Restore rebuilds the data that snapshots omit.
func (c *State) Restore(*kernel.Head) error {
	c.SignIns.Restore()
	c.People.Restore()
	for r, x := range c.SignIns.All() {
		c.Waiting.SetWall(SessionEnd, r.Any(), x.ends())
	}
	c.SignIns.Since(catalog.Place{}, func(x *SignIn) bool {
		c.of[x.Holder()] = append(c.of[x.Holder()], x.ID)
		return true
	})
	return nil
}

// View reads the room's state.
type View struct {
	kernel.Reader
	c *State
}

// View returns a View. It is valid until the next command is executed.
func (c *State) View() View { return View{c.Reader(), c} }

// SignIn returns a sign-in session.
func (v *View) SignIn(id string) (SignIn, bool) {
	r, ok := v.c.SignIns.Find(id)
	if !ok {
		v.SawAll()
		return SignIn{}, false
	}
	x := v.c.SignIns.Get(r)
	v.Saw(x.Changed)
	return *x, true
}

// SignIns returns up to limit sign-in sessions in order of their start, beginning after a place.
func (v *View) SignIns(after catalog.Place, limit int) []SignIn {
	v.SawAll()
	return v.c.SignIns.Page(after, limit, nil)
}

// SignInsOf returns the sessions of a person, oldest first.
func (v *View) SignInsOf(holder string) (all []SignIn) {
	v.SawAll()
	for _, id := range v.c.of[holder] {
		r, _ := v.c.SignIns.Find(id)
		all = append(all, *v.c.SignIns.Get(r))
	}
	return all
}

// Person returns one of the cell's own people.
func (v *View) Person(id string) (Person, bool) {
	r, ok := v.c.People.Find(id)
	if !ok {
		v.SawAll()
		return Person{}, false
	}
	x := v.c.People.Get(r)
	v.Saw(x.Changed)
	return *x, true
}

// PersonNamed returns one of the cell's own people by id or by name.
func (v *View) PersonNamed(name string) (Person, bool) {
	v.SawAll()
	if x := v.c.named(name); x != nil {
		return *x, true
	}
	return Person{}, false
}

// People returns the cell's own people, in the order in which they were added.
func (v *View) People() []Person {
	v.SawAll()
	return v.c.People.Page(catalog.Place{}, PeopleMax, nil)
}

// PeopleCounts counts the records of the room.
func (v *View) PeopleCounts() []kernel.RecordCount {
	return []kernel.RecordCount{{Kind: "sign_ins", Count: v.c.SignIns.Len(), Most: SessionsMax}, {Kind: "people", Count: v.c.People.Len(), Most: PeopleMax}}
}
