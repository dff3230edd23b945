package bench

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"time"
)

const region = "us-east-1"

// signer makes signatures of version 4 for one connection. The signing key is derived once a day and everything is
// written into buffers that stay, so that a signature costs three hashes and no memory.
type signer struct {
	keyID, secret string

	second  int64    // of the texts below
	date    [16]byte // YYYYMMDDTHHMMSSZ
	scope   string   // YYYYMMDD/region/gamelift/aws4_request
	day     [8]byte
	mac     hash.Hash
	text    []byte
	digits  [64]byte
	hashed  [32]byte
	summed  [32]byte
	payload [64]byte
}

// at brings date, scope and signing key up to now.
func (s *signer) at(now time.Time) {
	if now.Unix() == s.second {
		return
	}
	s.second = now.Unix()
	now.UTC().AppendFormat(s.date[:0], "20060102T150405Z")
	if [8]byte(s.date[:8]) == s.day {
		return
	}
	copy(s.day[:], s.date[:8])
	s.scope = string(s.day[:]) + "/" + region + "/gamelift/aws4_request"
	key := []byte("AWS4" + s.secret)
	for _, part := range []string{string(s.day[:]), region, "gamelift", "aws4_request"} {
		m := hmac.New(sha256.New, key)
		m.Write([]byte(part))
		key = m.Sum(nil)
	}
	s.mac = hmac.New(sha256.New, key)
}

// hashBody gives the body's hash in hex, good until the next call.
func (s *signer) hashBody(body []byte) []byte {
	s.hashed = sha256.Sum256(body)
	hex.Encode(s.payload[:], s.hashed[:])
	return s.payload[:]
}

// sign gives the signature of a canonical request in hex, good until the next call.
func (s *signer) sign(canonical []byte) []byte {
	s.hashed = sha256.Sum256(canonical)
	s.text = append(s.text[:0], "AWS4-HMAC-SHA256\n"...)
	s.text = append(append(s.text, s.date[:]...), '\n')
	s.text = append(append(s.text, s.scope...), '\n')
	s.text = hex.AppendEncode(s.text, s.hashed[:])
	s.mac.Reset()
	s.mac.Write(s.text)
	hex.Encode(s.digits[:], s.mac.Sum(s.summed[:0]))
	return s.digits[:]
}
