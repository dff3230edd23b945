// Package secretkey encrypts the secrets of a data directory with a key that is kept outside of it. Without the key, a copy of the directory
// is worthless. docs/formats/secret-key.md describes both files.
package secretkey

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
)

// A sealed file: magic, id of the key, nonce, and the content with its authentication tag, by AES-256-GCM.
const (
	magic     = "MUSTSEA1"
	keySize   = 32
	idSize    = 8
	nonceSize = 12
	tagSize   = 16
	overhead  = len(magic) + idSize + nonceSize + tagSize
)

// Key encrypts small files. The nil Key leaves them unencrypted: without a key file, only the permissions of a directory protect its secrets.
type Key struct {
	id   [idSize]byte
	path string // its file or other origin, for errors
	aead cipher.AEAD
}

func newKey(path string, secret [keySize]byte) *Key {
	derive := func(purpose string) []byte {
		mac := hmac.New(sha256.New, secret[:])
		mac.Write([]byte(purpose))
		return mac.Sum(nil)
	}
	block, err := aes.NewCipher(derive("muster secret key: encryption"))
	if err != nil {
		panic(err) // 32 bytes are a key of AES-256
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		panic(err) // AES has blocks of 16 bytes
	}
	return &Key{[idSize]byte(derive("muster secret key: id")), path, aead}
}

// ID distinguishes keys and reveals nothing about them. The nil Key's is empty.
func (k *Key) ID() string {
	if k == nil {
		return ""
	}
	return hex.EncodeToString(k.id[:])
}

// Same reports whether two keys are the same.
func (k *Key) Same(other *Key) bool { return k.ID() == other.ID() }

// Format keeps the key out of the output of fmt.
func (k *Key) Format(f fmt.State, _ rune) { fmt.Fprintf(f, "[secret key %s]", k.ID()) }

// LogValue keeps the key out of the log.
func (k *Key) LogValue() slog.Value { return slog.StringValue(k.ID()) }

// Seal encrypts a content. Only Open with the same key and the same name decrypts it, so that one secret cannot replace another.
func (k *Key) Seal(name string, content []byte) []byte {
	if k == nil {
		return content
	}
	out := make([]byte, 0, overhead+len(content))
	out = append(append(out, magic...), k.id[:]...)
	nonce := make([]byte, nonceSize)
	rand.Read(nonce) // never fails: since Go 1.24 it ends the program instead
	out = append(out, nonce...)
	return k.aead.Seal(out, nonce, content, additional(out, name))
}

// additional returns the data that are authenticated together with the content.
func additional(head []byte, name string) []byte {
	return append(bytes.Clone(head[:len(magic)+idSize]), name...)
}

// Sealed reports whether a content was written by Seal, with any key but nil.
func Sealed(content []byte) bool { return bytes.HasPrefix(content, []byte(magic)) }

// ErrDamaged means that a content cannot be decrypted with its own key.
var ErrDamaged = errors.New("is damaged: it cannot be decrypted, although its key is the right one")

// Wrong means that a content is encrypted with another key than the given one, or that no key was given.
type Wrong struct {
	Name   string // of the content
	Sealed string // id of the key that it needs
	Given  string // id of the key that was given; empty: none
	File   string // file or other origin of the given key
}

func (e *Wrong) Error() string {
	if e.Given == "" {
		return fmt.Sprintf("%s is encrypted with the secret key %s, and no key was given: set --secret-key-file to the file with that key", e.Name, e.Sealed)
	}
	return fmt.Sprintf("%s is encrypted with the secret key %s, and %s has the key %s: set --secret-key-file to the file with the key %[2]s", e.Name, e.Sealed, e.File, e.Given)
}

// Check returns a *Wrong if Open would need another key. An unencrypted content needs none.
func (k *Key) Check(shown string, content []byte) error {
	if !Sealed(content) || len(content) < overhead {
		return nil
	}
	id := content[len(magic):][:idSize]
	switch {
	case k == nil:
		return &Wrong{Name: shown, Sealed: hex.EncodeToString(id)}
	case !bytes.Equal(id, k.id[:]):
		return &Wrong{Name: shown, Sealed: hex.EncodeToString(id), Given: k.ID(), File: k.path}
	}
	return nil
}

// Open decrypts a content that Seal encrypted under a name, and returns an unencrypted one unchanged. shown names it in errors, which are a *Wrong or wrap
// ErrDamaged.
func (k *Key) Open(shown, name string, content []byte) ([]byte, error) {
	if !Sealed(content) {
		return content, nil
	}
	if len(content) < overhead {
		return nil, fmt.Errorf("%s %w", shown, ErrDamaged)
	}
	if err := k.Check(shown, content); err != nil {
		return nil, err
	}
	head := content[:len(magic)+idSize+nonceSize]
	clear, err := k.aead.Open(nil, head[len(head)-nonceSize:], content[len(head):], additional(head, name))
	if err != nil {
		return nil, fmt.Errorf("%s %w", shown, ErrDamaged)
	}
	return clear, nil
}
