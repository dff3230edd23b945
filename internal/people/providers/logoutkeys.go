package providers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/musterhq/muster/internal/tokenkeys"
)

// logoutKeysEvery is the minimum interval between two requests for a provider's keys that logout tokens cause.
const logoutKeysEvery = 10 * time.Second

// ErrTooSoon means that a logout token may have a key that is newer than the last request for the provider's keys, and that it is too soon for another request.
var ErrTooSoon = errors.New("its key is unknown, and the provider was asked for its keys a moment ago")

var errNoKey = errors.New("none of the provider's keys made the signature")

// logoutKeys are the keys that verify a provider's logout tokens, kept for as long as its metadata. Anyone can send such a token. So forged ones cause few requests
// to the provider, and a token that a known key signed waits for none of them.
type logoutKeys struct {
	p       *Provider
	address string

	mu       sync.Mutex
	all      []jose.JSONWebKey // replaced as a whole
	asked    time.Time
	failed   error         // of the last fetch
	fetching chan struct{} // closed when the current fetch ends; nil: none is running
}

// verifies returns the payload of a token that one of the known keys signed.
func (k *logoutKeys) verifies(token *jose.JSONWebSignature) (payload []byte, ok bool) {
	k.mu.Lock()
	all := k.all
	k.mu.Unlock()
	id := token.Signatures[0].Protected.KeyID
	for i := range all {
		if id != "" && all[i].KeyID != id {
			continue
		}
		if payload, err := token.Verify(&all[i]); err == nil {
			return payload, true
		}
	}
	return nil, false
}

// lists reports whether one of the known keys has an id.
func (k *logoutKeys) lists(id string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.ContainsFunc(k.all, func(key jose.JSONWebKey) bool { return key.KeyID == id })
}

// renew fetches the keys, unless a fetch is running, for which it waits, or the last one was less than logoutKeysEvery ago. It returns the error of that fetch.
// If fetched is false, the provider may have keys that it had not when it was asked.
func (k *logoutKeys) renew(ctx context.Context) (fetched bool, err error) {
	now := k.p.now()
	k.mu.Lock()
	fetching := k.fetching
	switch {
	case fetching != nil:
		k.mu.Unlock()
		select {
		case <-fetching:
			k.mu.Lock()
			defer k.mu.Unlock()
			return false, k.failed
		case <-ctx.Done():
			return false, fmt.Errorf("%w: its keys: %w", ErrUnreachable, ctx.Err())
		}
	case !k.asked.IsZero() && now.Sub(k.asked) < logoutKeysEvery:
		defer k.mu.Unlock()
		return false, k.failed
	}
	k.asked, k.fetching = now, make(chan struct{})
	k.mu.Unlock()
	keys, _, err := tokenkeys.Fetch(context.WithoutCancel(ctx), k.p.client, k.address) // others may wait for this fetch, too; the client has a time limit
	k.mu.Lock()
	defer k.mu.Unlock()
	if err != nil {
		err = fmt.Errorf("%w: its keys: %w", ErrUnreachable, err)
	} else {
		k.all = keys.Keys
	}
	close(k.fetching)
	k.fetching, k.failed = nil, err
	return true, err
}

// logoutCheck checks one logout token. It implements oidc.KeySet.
type logoutCheck struct {
	keys *logoutKeys
	err  error // why the token is refused: the verifier keeps only the text of an error
}

// VerifySignature implements oidc.KeySet.
func (c *logoutCheck) VerifySignature(ctx context.Context, raw string) (payload []byte, err error) {
	payload, c.err = c.verify(ctx, raw)
	return payload, c.err
}

func (c *logoutCheck) verify(ctx context.Context, raw string) ([]byte, error) {
	token, err := jose.ParseSignedCompact(raw, signatures)
	if err != nil {
		return nil, err
	}
	if payload, ok := c.keys.verifies(token); ok {
		return payload, nil
	}
	leave, err := enter(c.keys.p.logouts)
	if err != nil {
		return nil, err
	}
	defer leave()
	fetched, err := c.keys.renew(ctx)
	if err != nil {
		return nil, err
	}
	if payload, ok := c.keys.verifies(token); ok {
		return payload, nil
	}
	if id := token.Signatures[0].Protected.KeyID; !fetched && (id == "" || !c.keys.lists(id)) { // also for a new key that follows forged tokens
		return nil, ErrTooSoon
	}
	return nil, errNoKey
}
