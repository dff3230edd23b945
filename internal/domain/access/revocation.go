package access

import (
	"slices"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/wire"
)

const (
	// CredentialsLifeMax is how long temporary credentials may be valid: as long as those of GetSessionToken in the cloud.
	CredentialsLifeMax = 36 * time.Hour
	// RevocationsMax is how many revocations of temporary credentials are in force at most. Each is forgotten CredentialsLifeMax later.
	RevocationsMax = 1024
	// HolderMax bounds the name of a holder, in bytes.
	HolderMax = 256

	revocationLevel = 2
)

// Revocation ends temporary credentials before they expire. The credentials themselves are stored nowhere.
type Revocation struct {
	Session     string      // access key id of the credentials; empty: those of a holder
	Holder      string      // id of an access key, or provider and subject of a web identity
	IssuedUntil domain.Time // credentials of the holder that were issued later keep working
	At          domain.Time
	Until       domain.Time // when the last of the credentials has expired
	By          Actor
}

// Level returns the level of the snapshot part.
func (*Revocation) Level() uint { return revocationLevel }

// Fields of a Revocation.
func (x *Revocation) Fields(c *wire.Codec) {
	c.String(1, &x.Session)
	c.Shared(2, &x.Holder)
	wire.Int(c, 3, &x.IssuedUntil)
	wire.Int(c, 4, &x.At)
	wire.Int(c, 5, &x.Until)
	wire.Sub(c, 6, &x.By, x.By != Actor{}, (*Actor).Fields)
}

// RevokeCredentials ends the temporary credentials of one session, or all that were issued to a holder until a time.
type RevokeCredentials struct {
	Session     string
	Holder      string
	IssuedUntil domain.Time // 0: now; with a Holder
	By          Actor

	// Result
	Number uint64 // of the journal entry that has the revocation
}

// Decide emits CredentialsRevoked. The credentials are not looked up: the state does not know which ones were issued.
func (cmd *RevokeCredentials) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	switch {
	case (cmd.Session == "") == (cmd.Holder == ""):
		return domain.Refuse(domain.Invalid, "session %.100q and holder %.100q: want exactly one of them", cmd.Session, cmd.Holder)
	case len(cmd.Session) > idMax:
		return domain.Refuse(domain.Invalid, "session %.200q: want the access key id of temporary credentials, of at most %d bytes", cmd.Session, idMax)
	case len(cmd.Holder) > HolderMax:
		return domain.Refuse(domain.Invalid, "holder %.200q: want the id of an access key, or PROVIDER/SUBJECT of a web identity, of at most %d bytes", cmd.Holder, HolderMax)
	case cmd.Session != "" && cmd.IssuedUntil != 0:
		return domain.Refuse(domain.Invalid, "a time is given with session %.100q: want it with a holder alone", cmd.Session)
	case cmd.IssuedUntil > t.Now:
		return domain.Refuse(domain.Invalid, "issued until %s: want a time that has passed", cmd.IssuedUntil.Std().UTC().Format(time.RFC3339))
	}
	x := Revocation{Session: cmd.Session, Holder: cmd.Holder, At: t.Now, Until: t.Now.Add(CredentialsLifeMax), By: cmd.By.Cut()}
	if x.Holder != "" {
		x.IssuedUntil = cmd.IssuedUntil
		if x.IssuedUntil == 0 {
			x.IssuedUntil = t.Now
		}
		x.Until = x.IssuedUntil.Add(CredentialsLifeMax)
	}
	for i := range t.revocations {
		if old := &t.revocations[i]; old.same(&x) { // one in force is never taken back
			x.IssuedUntil, x.Until = max(x.IssuedUntil, old.IssuedUntil), max(x.Until, old.Until)
		}
	}
	if n := len(x.After(t.revocations)); n > RevocationsMax {
		return domain.Refuse(domain.LimitExceeded, "%d revocations of temporary credentials are in force, which is the limit; each ends %v after its credentials were issued; revoke the access key itself, or all credentials of a holder at once",
			RevocationsMax, CredentialsLifeMax)
	}
	t.Emit(&CredentialsRevoked{x})
	cmd.Number = t.Number()
	return nil
}

func (x *Revocation) same(other *Revocation) bool {
	return x.Session == other.Session && x.Holder == other.Holder
}

// After returns the revocations with a new one, without those that are over or that it replaces.
func (x *Revocation) After(all []Revocation) []Revocation {
	left := make([]Revocation, 0, len(all)+1)
	for i := range all {
		if old := &all[i]; old.Until > x.At && !old.same(x) {
			left = append(left, *old)
		}
	}
	return append(left, *x)
}

func (c *State) applyRevocation(e *CredentialsRevoked) {
	c.Touch()
	c.revocations = e.Revocation.After(c.revocations) // a new slice: a snapshot may share the old one
}

// Revocations returns those of temporary credentials, the oldest first, with some that are over.
func (v *View) Revocations() []Revocation {
	v.SawAll()
	return slices.Clone(v.c.revocations)
}
