package access

import (
	"slices"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/wire"
)

const (
	// CredentialsLifeMax is the longest validity of temporary credentials, the same as for GetSessionToken in the cloud.
	CredentialsLifeMax = 36 * time.Hour
	// RevocationsMax is the most revocations in force. A revocation of temporary credentials is removed CredentialsLifeMax later.
	RevocationsMax = 1024
	// CertificatesRevokedMax is how many of them may revoke certificates; these are kept until the certificate has expired.
	CertificatesRevokedMax = 512
	// CertificateLifeMax is how long the revocation of a certificate stays in force if the command does not give the certificate's expiry. It exceeds
	// the validity of machine certificates signed by authorities.
	CertificateLifeMax = 10 * 366 * 24 * time.Hour
	// HolderMax bounds the name of a holder, in bytes.
	HolderMax = 256

	revocationLevel = 2
)

// Revocation ends temporary credentials before they expire. The credentials themselves are not stored anywhere.
type Revocation struct {
	Session     string      // access key id of the credentials; empty: all credentials of a holder
	Holder      string      // id of an access key, or provider and subject of a web identity
	IssuedUntil domain.Time // credentials issued to the holder later remain valid
	At          domain.Time
	Until       domain.Time // when the last of the credentials expires
	By          Actor
	Certificate string // sha256:FINGERPRINT, or AUTHORITY/SERIAL, in lower-case hexadecimal: the certificate gives no further credentials, and all that it gave are void
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
	c.String(7, &x.Certificate)
}

// RevokeCredentials revokes the temporary credentials of one session, all those issued to a holder until a time, or all those that a certificate has
// given or will give.
type RevokeCredentials struct {
	Session     string
	Holder      string
	IssuedUntil domain.Time // with Holder; 0: now
	Certificate string      // as in a Revocation
	Until       domain.Time // when the certificate expires; 0: unknown
	By          Actor

	// Result
	Number uint64 // of the journal entry that contains the revocation
}

// Decide emits CredentialsRevoked. The credentials are not looked up: the state does not know which ones were issued.
func (cmd *RevokeCredentials) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	switch {
	case cmd.given() != 1:
		return domain.Refuse(domain.Invalid, "session %.100q, holder %.100q and certificate %.100q: want exactly one of them", cmd.Session, cmd.Holder, cmd.Certificate)
	case len(cmd.Session) > idMax:
		return domain.Refuse(domain.Invalid, "session %.200q: want the access key id of temporary credentials, of at most %d bytes", cmd.Session, idMax)
	case len(cmd.Holder) > HolderMax:
		return domain.Refuse(domain.Invalid, "holder %.200q: want the id of an access key, or PROVIDER/SUBJECT of a web identity, of at most %d bytes", cmd.Holder, HolderMax)
	case cmd.Holder == "" && cmd.IssuedUntil != 0:
		return domain.Refuse(domain.Invalid, "a time is given with %.100q: want it only with a holder", cmd.Session+cmd.Certificate)
	case cmd.Certificate == "" && cmd.Until != 0:
		return domain.Refuse(domain.Invalid, "an end is given with %.100q: want it only with a certificate", cmd.Session+cmd.Holder)
	case cmd.Certificate != "" && !certificateForm(cmd.Certificate):
		return domain.Refuse(domain.Invalid, "certificate %.200q: want sha256: and the fingerprint in 64 hexadecimal digits, or AUTHORITY/SERIAL with the serial number in hexadecimal digits, in lower case", cmd.Certificate)
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
	if cmd.Certificate != "" {
		x.Certificate, x.Until = cmd.Certificate, t.Now.Add(CertificateLifeMax)
		if cmd.Until != 0 { // its last credentials expire later
			x.Until = min(x.Until, max(cmd.Until, t.Now).Add(CredentialsLifeMax))
		}
	}
	for i := range t.revocations {
		if old := &t.revocations[i]; old.same(&x) { // an existing revocation is never shortened
			x.IssuedUntil, x.Until = max(x.IssuedUntil, old.IssuedUntil), max(x.Until, old.Until)
		}
	}
	after := x.After(t.revocations)
	certificates := 0
	for i := range after {
		if after[i].Certificate != "" {
			certificates++
		}
	}
	if x.Certificate != "" && certificates > CertificatesRevokedMax {
		return domain.Refuse(domain.LimitExceeded, "%d certificates are revoked, which is the limit; each counts until it has expired; end the use of their authority instead", CertificatesRevokedMax)
	}
	if len(after) > RevocationsMax {
		return domain.Refuse(domain.LimitExceeded, "%d revocations of temporary credentials are in force, which is the limit; each ends %v after its credentials were issued; revoke the access key itself, or all credentials of a holder at once",
			RevocationsMax, CredentialsLifeMax)
	}
	t.Emit(&CredentialsRevoked{x})
	cmd.Number = t.Number()
	return nil
}

// given counts how many of the three are set.
func (cmd *RevokeCredentials) given() (n int) {
	for _, text := range []string{cmd.Session, cmd.Holder, cmd.Certificate} {
		if text != "" {
			n++
		}
	}
	return n
}

// certificateForm reports whether a text names a certificate in the form that sessions use.
func certificateForm(text string) bool {
	digits, fingerprint := strings.CutPrefix(text, "sha256:")
	if !fingerprint {
		var authority string
		authority, digits, _ = strings.Cut(text, "/")
		if authority == "" || len(authority) > HolderMax {
			return false
		}
	}
	return (!fingerprint || len(digits) == 64) && digits != "" && len(digits) <= 64 && strings.Trim(digits, "0123456789abcdef") == ""
}

func (x *Revocation) same(other *Revocation) bool {
	return x.Session == other.Session && x.Holder == other.Holder && x.Certificate == other.Certificate
}

// After returns the revocations with x added, without those that have expired or that x replaces.
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

// Revocations returns the revocations, oldest first. They may include expired ones.
func (v *View) Revocations() []Revocation {
	v.SawAll()
	return slices.Clone(v.c.revocations)
}
