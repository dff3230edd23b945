package buildfiles

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
)

// Digest is the SHA-256 of some content, by which that content is stored and fetched.
type Digest [sha256.Size]byte

// DigestOf computes the digest of some content.
func DigestOf(content []byte) Digest { return sha256.Sum256(content) }

// ParseDigest reads what String writes, and nothing else: a digest becomes the name of a file.
func ParseDigest(text string) (d Digest, err error) {
	if len(text) == hex.EncodedLen(len(d)) {
		if _, err = hex.Decode(d[:], []byte(text)); err == nil && d.String() == text {
			return d, nil
		}
	}
	return Digest{}, fmt.Errorf("digest %.80q: want 64 lower-case hexadecimal digits", text)
}

// String writes the digest as 64 lower-case hexadecimal digits.
func (d Digest) String() string { return hex.EncodeToString(d[:]) }

// MarshalText implements encoding.TextMarshaler.
func (d Digest) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *Digest) UnmarshalText(text []byte) (err error) {
	*d, err = ParseDigest(string(text))
	return err
}
