// Package access is the room of a cell's access keys: their roles, and which principals created and revoked them. It contains no
// secrets; those are derived outside the core from the cell's secret.
package access

import (
	"strings"
	"unicode/utf8"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/catalog"
	"github.com/musterhq/muster/internal/domain/wire"
)

// Bounds of texts from callers, in bytes.
const (
	NameMax  = 128
	idMax    = 128
	actorMax = 256
)

// Key is an access key. A revoked key is kept, so that lists still show it.
type Key struct {
	ID        string
	Role      Role
	Account   string // 12 digits, for ARNs
	Name      string // chosen by the operator
	Created   domain.Time
	CreatedBy Actor
	Revoked   domain.Time // zero while the key is valid
	RevokedBy Actor       // empty if the key has expired

	Expires   domain.Time // when the key expires; 0: never
	Limited   domain.Time // when Expires was last changed by a limit; 0: never
	Sources   []string    // the only networks from which the key may be used, in CIDR notation; empty: any. Never changed in place
	Replaces  string      // id of the key that this one replaces; empty: none
	Successor string      // id of the key that replaces this one; empty: none
	LastUse   Use         // zero: no known use

	Generation uint32 // generation of the cell's secret from which the key's secret is derived; 0: the first

	Changed uint64 // journal number of the last change, 0 when older than this run
}

// Works reports whether the key is valid.
func (k *Key) Works() bool { return k.Revoked == 0 }

// Expired reports whether the key's validity ended by expiry.
func (k *Key) Expired() bool { return k.Revoked != 0 && k.Expires != 0 && k.Revoked >= k.Expires }

// limited reports whether releases without levelOfLimits would accept the key where it is not valid.
func (k *Key) limited() bool { return k.Expires != 0 || len(k.Sources) > 0 }

func (k *Key) Fields(c *wire.Codec) {
	c.String(1, &k.ID)
	wire.Int(c, 2, &k.Role)
	c.Shared(3, &k.Account)
	c.String(4, &k.Name)
	wire.Int(c, 5, &k.Created)
	wire.Sub(c, 6, &k.CreatedBy, k.CreatedBy != Actor{}, (*Actor).Fields)
	wire.Int(c, 7, &k.Revoked)
	wire.Sub(c, 8, &k.RevokedBy, k.RevokedBy != Actor{}, (*Actor).Fields)
	wire.Int(c, 9, &k.Expires)
	c.Strings(10, &k.Sources)
	c.String(11, &k.Replaces)
	c.String(12, &k.Successor)
	wire.Sub(c, 13, &k.LastUse, k.LastUse != Use{}, (*Use).Fields)
	wire.Int(c, 14, &k.Generation)
	wire.Int(c, 15, &k.Limited)
}

func place(k *Key) catalog.Place { return catalog.Place{Created: k.Created, ID: k.ID} }

// Actor is the principal that changed a key, and how its request reached the service.
type Actor struct {
	Principal string // id of an access key, or another form of authorization
	Address   string // source address of the request; empty without a network
	Door      string // operator, console, local, offline, file or process
}

func (a *Actor) Fields(c *wire.Codec) {
	c.Shared(1, &a.Principal)
	c.Shared(2, &a.Address)
	c.Shared(3, &a.Door)
}

// Cut truncates the texts, which may come from outside, to their bounds.
func (a Actor) Cut() Actor {
	for _, text := range []*string{&a.Principal, &a.Address, &a.Door} {
		if len(*text) > actorMax {
			*text = strings.ToValidUTF8((*text)[:actorMax], "")
		}
	}
	return a
}

// TakenOver records that the cell owns its access keys. Until release 0.1 they were in a file, which is imported once.
type TakenOver struct {
	At     domain.Time
	Digest string // SHA-256 of the imported file, in hexadecimal; empty without a file
	Secret string // identifies the cell secret from which the keys' secrets are derived
}

func (t *TakenOver) Fields(c *wire.Codec) {
	wire.Int(c, 1, &t.At)
	c.String(2, &t.Digest)
	c.String(3, &t.Secret)
}

// CheckName refuses names with line breaks or other control characters.
func CheckName(name string) error {
	if len(name) > NameMax || !utf8.ValidString(name) || strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return domain.Refuse(domain.Invalid, "name %.200q: want at most %d bytes of UTF-8 without control characters", name, NameMax)
	}
	return nil
}

// Check refuses an invalid key, and truncates texts that are only informative.
func (k *Key) Check() error {
	switch {
	case k.ID == "" || len(k.ID) > idMax:
		return domain.Refuse(domain.Invalid, "access key id %.200q: want 1 to %d bytes", k.ID, idMax)
	case !k.Role.Known():
		return domain.Refuse(domain.Invalid, "access key %s has the role %s: want admin, backend, client or readonly", k.ID, k.Role)
	}
	k.CreatedBy, k.RevokedBy = k.CreatedBy.Cut(), k.RevokedBy.Cut()
	if err := checkSources(k.Sources); err != nil {
		return err
	}
	return CheckName(k.Name)
}
