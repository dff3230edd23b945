package people

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
)

const enrolmentSecret = 20 // bytes

// NewEnrolment returns the secret of a new link, and its hash for the state.
func (d *Door) NewEnrolment() (secret, hash string) {
	b := make([]byte, enrolmentSecret)
	rand.Read(b) // never fails: since Go 1.24 it ends the program instead
	secret = base64.RawURLEncoding.EncodeToString(b)
	return secret, enrolmentHash(secret)
}

func enrolmentHash(secret string) string {
	sum := sha256.Sum256([]byte("enrolment\x00" + secret))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// EnrolmentLink returns the address at which a person registers a passkey. The secret is in the fragment, which browsers send to no server, so neither logs nor the
// Referer header contain it.
func (d *Door) EnrolmentLink(person, secret string) string {
	return d.config.URL + Path + "/enrol#" + person + "." + secret
}

// WhyNoPasskeys explains why the cell's own people cannot sign in; empty: they can.
func (d *Door) WhyNoPasskeys() string {
	if d.file.Get().NoOwn {
		return "The file of --people turns off sign-in for this service's own people."
	}
	return d.why
}
