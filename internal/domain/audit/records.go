// Package audit is the room of the audit log: who changed what, from where, through which door and why. An entry is part of the transaction that
// makes the change, so it is durable exactly if the change is, and every node of a cluster has it. Entries soon leave memory for the archive, which
// keeps each until a time given in the entry.
//
// Entries are numbered without gaps, and each contains the SHA-256 of the previous one's stored form. So a missing or altered entry is detected
// (Chain). The state has the hash of the last one.
package audit

import (
	"crypto/sha256"
	"strings"
	"unicode/utf8"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/wire"
)

// Bounds of the texts of an entry, in bytes, and of its lists.
const (
	ReasonMax   = 200 // characters
	textMax     = 256
	valueMax    = 256
	changesMax  = 32
	refusedMax  = 256
	cut         = "…"
	refusalsMax = 64  // of one NoteRefusals
	ReceiverMax = 256 // the name of a receiver
	ExportsMax  = 8   // receivers whose positions are stored
)

// Names of doors in entries.
const (
	DoorAPI      = "api"      // the service API
	DoorOperator = "operator" // the operators' API, which muster's own commands use
	DoorConsole  = "console"
	DoorLocal    = "local"   // commands on the machine that has the data directory
	DoorPlayers  = "players" // operators of player flow
	DoorOffline  = "offline" // the same commands while the service is down
	DoorBuilds   = "builds"  // uploads of builds
	DoorCluster  = "cluster" // nodes that join
	DoorSignIn   = "sign-in" // people who sign in, and programs that they authorize
)

// Origin describes the caller of a command: who, from where and why.
type Origin struct {
	Principal string // id of an access key, or another form of authorization
	Door      string // one of the constants above
	Address   string // of the client; empty without a network
	Agent     string // program, as reported by the client
	Operation string // the door's name for it
	Reason    string // from the caller, one line; empty: none
}

func (o *Origin) Fields(c *wire.Codec) {
	c.Shared(1, &o.Principal)
	c.Shared(2, &o.Door)
	c.Shared(3, &o.Address)
	c.Shared(4, &o.Agent)
	c.Shared(5, &o.Operation)
	c.String(6, &o.Reason)
}

// Cut returns the origin with its texts, which may come from outside, truncated to their bounds and without control characters.
func (o Origin) Cut() Origin {
	for _, text := range []*string{&o.Principal, &o.Door, &o.Address, &o.Agent, &o.Operation} {
		*text = short(*text, textMax)
	}
	o.Reason = short(o.Reason, 4*ReasonMax)
	return o
}

// CheckReason refuses a reason that is not one line of at most ReasonMax characters. An empty reason means none.
func CheckReason(reason string) error {
	if utf8.RuneCountInString(reason) > ReasonMax || clean(reason) != reason {
		return domain.Refuse(domain.Invalid, "reason %.200q: want one line of 1 to %d characters of UTF-8", reason, ReasonMax)
	}
	return nil
}

// Change is one field changed by an operation.
type Change struct {
	Field  string
	Before string // empty: the field was not set
	After  string // empty: the field is not set any more
}

func (x Change) cut() Change {
	return Change{short(x.Field, textMax), short(x.Before, valueMax), short(x.After, valueMax)}
}

func (x *Change) Fields(c *wire.Codec) {
	c.Shared(1, &x.Field)
	c.String(2, &x.Before)
	c.String(3, &x.After)
}

// Entry is one operation of one caller, or several attempts refused for the same reason.
type Entry struct {
	No            uint64 // from 1, without gaps
	At            domain.Time
	Previous      []byte      // SHA-256 of entry No-1; empty: this is the first
	Until         domain.Time // when it expires
	PreviousUntil domain.Time // when entry No-1 expires; 0: this is the first

	By       Origin
	Kind, ID string // of the changed record, such as alias and alias-5f0…; empty if the operation names none
	Changes  []Change

	Refused string      // why it was refused; empty: it was executed
	Count   uint64      // number of refused attempts; 0: one
	Last    domain.Time // when the last one of several was refused
}

func (e *Entry) Fields(c *wire.Codec) {
	wire.Int(c, 1, &e.No)
	wire.Int(c, 2, &e.At)
	c.Bytes(3, &e.Previous)
	wire.Int(c, 4, &e.Until)
	wire.Int(c, 5, &e.PreviousUntil)
	wire.Sub(c, 6, &e.By, e.By != Origin{}, (*Origin).Fields)
	c.Shared(7, &e.Kind)
	c.String(8, &e.ID)
	wire.Many(c, 9, &e.Changes, (*Change).Fields)
	c.String(10, &e.Refused)
	wire.Int(c, 11, &e.Count)
	wire.Int(c, 12, &e.Last)
}

// Stored returns the entry's stored form, which its hash covers.
func (e *Entry) Stored() []byte { return wire.Marshal(e) }

// Decode decodes the stored form.
func Decode(stored []byte) (e Entry, err error) {
	err = wire.Unmarshal(stored, &e)
	return e, err
}

// Hash returns the hash of a stored entry.
func Hash(stored []byte) []byte {
	sum := sha256.Sum256(stored)
	return sum[:]
}

// short truncates a text to `most` bytes and removes control characters.
func short(text string, most int) string {
	if text = clean(text); len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most-len(cut)], "") + cut
}

// clean removes invalid text, and everything that a terminal or a log would not show on one line.
func clean(text string) string {
	bad := func(r rune) bool {
		return r < ' ' || r >= 0x7f && r < 0xa0 || r == utf8.RuneError || r == 0x2028 || r == 0x2029 || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069
	}
	if utf8.ValidString(text) && !strings.ContainsFunc(text, bad) {
		return text
	}
	return strings.Map(func(r rune) rune {
		if bad(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, ""))
}
