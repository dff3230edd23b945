package bench

import (
	"crypto/sha256"
	"encoding/hex"
	"time"

	"github.com/musterhq/muster/internal/sigv4"
)

const region = "us-east-1"

// signer makes version 4 signatures for one connection. It derives the signing key once a day and reuses its buffers,
// so that a signature costs three hashes and no allocation.
type signer struct {
	keyID, secret string

	second     int64  // of date
	date       string // YYYYMMDDTHHMMSSZ
	credential sigv4.Credential
	key        *sigv4.Key
	digits     [64]byte
	hashed     [32]byte
	payload    [64]byte
}

// at updates date, scope and signing key to now.
func (s *signer) at(now time.Time) {
	if now.Unix() == s.second {
		return
	}
	s.second = now.Unix()
	now = now.UTC()
	s.date = now.Format(sigv4.TimeForm)
	if s.date[:8] != s.credential.Day {
		s.credential = sigv4.NewCredential(s.keyID, region, "gamelift", now)
		s.key = sigv4.NewKey(s.secret, &s.credential)
	}
}

// hashBody returns the body's hash in hexadecimal, valid until the next call.
func (s *signer) hashBody(body []byte) []byte {
	s.hashed = sha256.Sum256(body)
	hex.Encode(s.payload[:], s.hashed[:])
	return s.payload[:]
}

// sign returns the signature of a canonical request in hexadecimal, valid until the next call.
func (s *signer) sign(canonical []byte) []byte { return s.key.Append(s.digits[:0], s.date, canonical) }
