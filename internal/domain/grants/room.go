// Package grants is the room of pending results for sign-in clients such as the AWS CLI: the requests of devices that wait for a person, and the
// authorization codes that were used. All of them expire within minutes. Clients, their codes and their tokens are self-contained and leave nothing
// here.
package grants

import (
	"slices"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/wire"
)

// Room is the room's number.
const Room kernel.RoomNo = 9

// level is the level from which the room's events may be written.
const level = 2

// Limits of the room.
const (
	// DeviceLife is how long a person has to confirm a device's request, the same as at AWS.
	DeviceLife = 10 * time.Minute
	// DevicesMax is the most requests of devices. Unauthenticated peers create them.
	DevicesMax = 2_000
	// DevicesOfAddress is the most unanswered requests of one address.
	DevicesOfAddress = 20
	// CodeLifeMax is the longest validity of an authorization code.
	CodeLifeMax = 2 * time.Minute
	// CodesMax is the most used codes that are stored, each until it would have expired. Only people who have signed in get codes.
	CodesMax = 4_000
	// OnceLifeMax is the longest time for which a proof or a logout token could be replayed: its validity plus the clock difference.
	OnceLifeMax = 11 * time.Minute
	// ProofsMax is the most used proofs that are stored, and ProofsOfSession the most of one sign-in session: its client makes one every quarter of
	// an hour.
	ProofsMax       = 8_000
	ProofsOfSession = 60
	// LogoutsMax is the most used logout tokens that are stored. Only identity providers create them.
	LogoutsMax = 4_000

	idMax   = 128
	nameMax = 256
)

// Standing is the status of a device's request.
type Standing uint8

// The numbers are in the journal and never change.
const (
	Waiting  Standing = iota // for a person's answer
	Approved                 // the device has not collected its tokens
	Denied
	Collected
)

// Device is the request of a device to act for a person.
type Device struct {
	UserCode string // compared by the person, without the dash
	Code     string // SHA-256 of the device's own code, in hexadecimal
	Client   string // id of the client's registration, shortened
	Name     string // chosen by the client
	Address  string // of the device
	Expires  domain.Time
	Standing Standing
	SignIn   string // id of the sign-in session of the person who answered
	Renews   bool   // the client may get refresh tokens
}

// Level returns the level of the snapshot part.
func (*Device) Level() uint { return level }

// Fields of a Device.
func (x *Device) Fields(c *wire.Codec) {
	c.String(1, &x.UserCode)
	c.String(2, &x.Code)
	c.String(3, &x.Client)
	c.String(4, &x.Name)
	c.String(5, &x.Address)
	wire.Int(c, 6, &x.Expires)
	wire.Int(c, 7, &x.Standing)
	c.String(8, &x.SignIn)
	c.Bool(9, &x.Renews)
}

// Once is a kind of thing that must not be used twice.
type Once uint8

// The kinds. A Used has the kind in its id.
const (
	Code   Once = iota // an authorization code
	Proof              // the proof of a key (DPoP) sent with a refresh token
	Logout             // the token with which an identity provider ends sessions
)

// onceLimits are the bounds of each kind.
var onceLimits = [...]struct {
	prefix, text string
	life         time.Duration
	most, ofOne  int // 0: as many as in total
}{
	Code:   {"", "code", CodeLifeMax, CodesMax, 0},
	Proof:  {"proof:", "proof", OnceLifeMax, ProofsMax, ProofsOfSession},
	Logout: {"logout:", "token", OnceLifeMax, LogoutsMax, 0},
}

// kindOf returns the kind of a Used.
func kindOf(id string) Once {
	for kind := Proof; int(kind) < len(onceLimits); kind++ {
		if strings.HasPrefix(id, onceLimits[kind].prefix) {
			return kind
		}
	}
	return Code
}

// Used records the use of an authorization code or something else that must not be used again.
type Used struct {
	ID      string // the random id of a code; otherwise the prefix of the kind and a unique id
	SignIn  string // id of the sign-in session whose tokens were issued for it; for a logout, the provider
	Expires domain.Time
}

// Level returns the level of the snapshot part.
func (*Used) Level() uint { return level }

// Fields of a Used.
func (x *Used) Fields(c *wire.Codec) {
	c.String(1, &x.ID)
	c.String(2, &x.SignIn)
	wire.Int(c, 3, &x.Expires)
}

// State is the room's records. They are few, so each change copies the list; only a used code, of which there may be thousands, is just appended.
type State struct {
	*kernel.Kernel
	devices []Device // oldest first; never changed in place
	used    []Used   // oldest first; never changed in place
}

// Tx is the room: its state, and its part of the present transaction.
type Tx struct {
	*kernel.Tx
	*State
	kernel.Plain
}

// New returns an empty room.
func New(k *kernel.Kernel) *Tx { return &Tx{Tx: k.Tx(), State: &State{Kernel: k}} }

// Events returns the constructors of the room's events.
func (*Tx) Events() []func() kernel.Event { return events }

// Apply applies an event.
func (c *State) Apply(_ domain.Time, event kernel.Event) {
	c.Touch()
	switch e := event.(type) {
	case *DeviceAsked:
		c.devices = append(slices.Clone(c.devices), e.Device)
	case *DeviceAnswered:
		c.change(e.UserCode, func(x *Device) { x.Standing, x.SignIn = e.Standing, e.SignIn })
	case *DeviceCollected:
		c.change(e.UserCode, func(x *Device) { x.Standing = Collected })
	case *DevicesForgotten:
		c.devices = slices.DeleteFunc(slices.Clone(c.devices), func(x Device) bool { return slices.Contains(e.UserCodes, x.UserCode) })
	case *CodeUsed:
		c.used = append(c.used, e.Used)
	case *CodesForgotten:
		gone := make(map[string]bool, len(e.IDs)) // there may be thousands
		for _, id := range e.IDs {
			gone[id] = true
		}
		c.used = slices.DeleteFunc(slices.Clone(c.used), func(x Used) bool { return gone[x.ID] })
	}
}

func (c *State) change(userCode string, f func(*Device)) {
	c.devices = slices.Clone(c.devices)
	f(&c.devices[c.find(userCode)])
}

// find returns the index of a request, or a negative number.
func (c *State) find(userCode string) int {
	return slices.IndexFunc(c.devices, func(x Device) bool { return x.UserCode == userCode })
}

// Field numbers of message SnapshotPart in proto/journal.proto.
const (
	partDevice = 65
	partUsed   = 66
)

// Freeze returns the room's part of a snapshot.
func (c *State) Freeze(*kernel.Head) []kernel.Frozen {
	devices, used := c.devices, c.used
	return []kernel.Frozen{func(w *kernel.PartWriter) {
		for _, x := range devices {
			w.Part(partDevice, &x)
		}
		for _, x := range used {
			w.Part(partUsed, &x)
		}
	}}
}

// Load reads a part of a snapshot.
func (c *State) Load(l *kernel.Loader, kind uint64, body []byte) (known bool, err error) {
	switch kind {
	case partDevice:
		return true, kernel.LoadWith(l, body, func(x Device) { c.devices = append(c.devices, x) })
	case partUsed:
		return true, kernel.LoadWith(l, body, func(x Used) { c.used = append(c.used, x) })
	}
	return false, nil
}

// Restore has nothing to rebuild.
func (*State) Restore(*kernel.Head) error { return nil }

// View reads the room's state.
type View struct {
	kernel.Reader
	c *State
}

// View returns a View. It is valid until the next command is executed.
func (c *State) View() View { return View{c.Reader(), c} }

// Device returns the request with a user code, including an answered or expired one that is still in the state.
func (v *View) Device(userCode string) (Device, bool) {
	v.SawAll()
	if i := v.c.find(userCode); i >= 0 {
		return v.c.devices[i], true
	}
	return Device{}, false
}

// DeviceOf returns the request with a device's own code, given the code's SHA-256.
func (v *View) DeviceOf(code string) (Device, bool) {
	v.SawAll()
	if i := slices.IndexFunc(v.c.devices, func(x Device) bool { return x.Code == code }); i >= 0 {
		return v.c.devices[i], true
	}
	return Device{}, false
}

// Devices returns the requests in the state, oldest first. They include expired ones until the next request arrives.
func (v *View) Devices() []Device {
	v.SawAll()
	return slices.Clone(v.c.devices)
}

// UsedCodes returns the used codes in the state, the oldest first.
func (v *View) UsedCodes() []Used {
	v.SawAll()
	return slices.Clone(v.c.used)
}
