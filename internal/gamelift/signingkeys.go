package gamelift

import (
	"crypto/hmac"
	"crypto/sha256"
	"hash"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/musterhq/muster/internal/identity"
)

// signingKeysMax bounds the cache. A key needs one entry for each day and region it is used in.
const signingKeysMax = 4096

// signingKeys remembers the keys that signatures are made with: deriving one takes four HMACs, as much as everything
// else about a signature.
type signingKeys struct {
	mu    sync.RWMutex
	known map[signingKeyID]*signingKey
}

type signingKeyID struct{ keyID, scope string }

type signingKey struct {
	secret string // that it was derived from: an access key may be made anew under its old id
	macs   sync.Pool
	kept   atomic.Bool
}

// mac signs text into sum, which has room for it.
func (k *signingKey) mac(sum []byte, text []byte) []byte {
	h := k.macs.Get().(hash.Hash)
	h.Reset()
	h.Write(text)
	sum = h.Sum(sum)
	k.macs.Put(h)
	return sum
}

func (s *signingKeys) get(key identity.AccessKey, a *authorization) *signingKey {
	s.mu.RLock()
	k, ok := s.known[signingKeyID{key.ID, a.scope}]
	s.mu.RUnlock()
	if ok && k.secret == key.Secret {
		return k
	}
	return deriveSigningKey(key.Secret, a)
}

// keep remembers a key that a right signature was made with. Wrong ones could fill the cache with invented scopes.
func (s *signingKeys) keep(key identity.AccessKey, a *authorization, k *signingKey) {
	if k.kept.Swap(true) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known == nil || len(s.known) >= signingKeysMax { // yesterday's, most of them; those in use come back by themselves
		s.known = make(map[signingKeyID]*signingKey)
	}
	// Cloned, or one short string would keep the whole header of its request alive.
	s.known[signingKeyID{key.ID, strings.Clone(a.scope)}] = k
}

func deriveSigningKey(secret string, a *authorization) *signingKey {
	key := hmacSum([]byte("AWS4"+secret), a.date)
	for _, part := range [...]string{a.region, a.service, scopeTerminator} {
		key = hmacSum(key, part)
	}
	return &signingKey{secret: secret, macs: sync.Pool{New: func() any { return hmac.New(sha256.New, key) }}}
}

func hmacSum(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text))
	return h.Sum(nil)
}
