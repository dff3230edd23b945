package keyring

import (
	"fmt"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/access"
	"github.com/musterhq/muster/internal/identity"
)

// Document is the JSON form of an access key. Only the answer to its creation contains Secret.
type Document struct {
	ID        string      `json:"id"`
	Role      access.Role `json:"role"`
	Account   string      `json:"account"`
	Name      string      `json:"name,omitempty"`
	Created   time.Time   `json:"created"`
	CreatedBy *Actor      `json:"createdBy,omitempty"`
	Revoked   time.Time   `json:"revoked,omitzero"`
	RevokedBy *Actor      `json:"revokedBy,omitempty"`
	Expires   time.Time   `json:"expires,omitzero"`    // absent: never
	Sources   []string    `json:"sources,omitempty"`   // the only networks from which it works; none: all
	Replaces  string      `json:"replaces,omitempty"`  // id of the key that it replaces
	Successor string      `json:"successor,omitempty"` // id of the key that replaces it
	LastUse   *Use        `json:"lastUse,omitempty"`

	Generation uint32 `json:"generation,omitempty"` // of the cell's secret that the key's secret is derived from; absent: the first

	Secret string `json:"secret,omitempty"`
}

// Use is the last use of a key or of its temporary credentials, to within about a minute.
type Use struct {
	At        time.Time `json:"at"`
	Address   string    `json:"address"`
	Operation string    `json:"operation"`
}

// Rotated is the answer to a rotation: the key, and its successor with the secret.
type Rotated struct {
	Key       Document `json:"key"`
	Successor Document `json:"successor"`
}

// Actor identifies the caller who changed a key.
type Actor struct {
	Principal string `json:"principal"`
	Address   string `json:"address,omitempty"`
	Door      string `json:"door"`
}

// ActorOf returns the JSON form of an actor; nil: none.
func ActorOf(a access.Actor) *Actor {
	if a == (access.Actor{}) {
		return nil
	}
	return &Actor{a.Principal, a.Address, a.Door}
}

// DocumentOf returns the JSON form of a key without its secret.
func DocumentOf(k *access.Key) Document {
	d := Document{ID: k.ID, Role: k.Role, Account: k.Account, Name: k.Name, Created: k.Created.Std(), CreatedBy: ActorOf(k.CreatedBy)}
	if !k.Works() {
		d.Revoked, d.RevokedBy = k.Revoked.Std(), ActorOf(k.RevokedBy)
	}
	if k.Expires != 0 {
		d.Expires = k.Expires.Std()
	}
	d.Sources, d.Replaces, d.Successor, d.Generation = k.Sources, k.Replaces, k.Successor, k.Generation
	if use := k.LastUse; use.At != 0 {
		d.LastUse = &Use{use.At.Std(), use.Address, use.Operation}
	}
	return d
}

// Documents returns the JSON form of keys without their secrets.
func Documents(keys []access.Key) []Document {
	all := make([]Document, 0, len(keys))
	for i := range keys {
		all = append(all, DocumentOf(&keys[i]))
	}
	return all
}

// SecretOf derives the secret of the key from the cell's secret in a data directory.
func (d *Document) SecretOf(secret identity.CellSecret) (string, error) {
	from, ok := secret.At(max(d.Generation, 1))
	if !ok {
		return "", fmt.Errorf("the data directory does not have generation %d of the secret, from which the secret of access key %s is derived: try again", d.Generation, d.ID)
	}
	return from.AccessKeySecret(d.ID), nil
}

// Works reports whether the key is valid.
func (d *Document) Works() bool { return d.Revoked.IsZero() }

// Expired reports whether the key ended by expiry.
func (d *Document) Expired() bool {
	return !d.Works() && !d.Expires.IsZero() && !d.Revoked.Before(d.Expires)
}

// UnusedSince reports whether the key works, is older than a time, and was not used since.
func (d *Document) UnusedSince(t time.Time) bool {
	return d.Works() && d.Created.Before(t) && (d.LastUse == nil || d.LastUse.At.Before(t))
}

// NewDocument returns the JSON form of a new key with its secret.
func NewDocument(k identity.AccessKey, by access.Actor) Document {
	return Document{ID: k.ID, Role: k.Role, Account: k.Account, Name: k.Name, Created: k.Created, CreatedBy: ActorOf(by), Expires: k.Expires, Sources: k.Sources(), Secret: k.Secret, Generation: k.Generation()}
}

// Credentials selects temporary credentials: those of one session, all that were issued to a holder until a time, or all of a certificate.
type Credentials struct {
	Session     string    `json:"session,omitempty"`
	Holder      string    `json:"holder,omitempty"`
	IssuedUntil time.Time `json:"issuedUntil,omitzero"`  // zero: now
	Certificate string    `json:"certificate,omitempty"` // sha256:FINGERPRINT or AUTHORITY/SERIAL of the certificate that they were issued for; it stays revoked
	Until       time.Time `json:"until,omitzero"`        // when the certificate expires; zero: unknown
}

// Revocation returns the command that revokes them.
func (x *Credentials) Revocation(by access.Actor) *access.RevokeCredentials {
	cmd := &access.RevokeCredentials{Session: x.Session, Holder: x.Holder, Certificate: x.Certificate, Until: timeOf(x.Until), By: by}
	if !x.IssuedUntil.IsZero() {
		cmd.IssuedUntil = domain.TimeOf(x.IssuedUntil)
	}
	return cmd
}

// String returns the principal, the address and the door.
func (a *Actor) String() string {
	if a == nil {
		return "-"
	}
	text := a.Principal + ", " + a.Door
	if a.Address != "" {
		text += " from " + a.Address
	}
	return text
}
