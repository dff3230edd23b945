package gamelift

import (
	"crypto/sha256"
	"encoding/base64"
	"reflect"
	"sync"
)

// A page token is the place where the next page begins, preceded by a digest of that place, the operation and the other
// parameters. So a broken token, or one from another listing, is detected. It protects against mistakes, not against
// forgery: a forger could request that page anyway.

const tokenDigestBytes = 8

var tokenEncoding = base64.RawURLEncoding

// pageToken returns the token of a listing: operation and input identify it, and cursor is where it continues.
func pageToken(operation string, input any, cursor string) *string {
	digest := tokenDigest(operation, input, cursor)
	return new(tokenEncoding.EncodeToString(append(digest[:tokenDigestBytes:tokenDigestBytes], cursor...)))
}

// pageCursor returns the cursor in a token. Without a token it is the beginning: an empty cursor.
func pageCursor(operation string, input any, token *string) (cursor string, err error) {
	if token == nil {
		return "", nil
	}
	raw, err := tokenEncoding.DecodeString(*token)
	if err == nil && len(raw) >= tokenDigestBytes {
		cursor = string(raw[tokenDigestBytes:])
		digest := tokenDigest(operation, input, cursor)
		if string(raw[:tokenDigestBytes]) == string(digest[:tokenDigestBytes]) {
			return cursor, nil
		}
	}
	return "", invalid("NextToken was not returned by %s for the same parameters", operation)
}

func tokenDigest(operation string, input any, cursor string) [sha256.Size]byte {
	// The page size may change between pages, and the token is not part of the digest.
	listing := reflect.New(reflect.TypeOf(input).Elem()).Elem()
	listing.Set(reflect.ValueOf(input).Elem())
	for _, name := range [...]string{"Limit", "NextToken"} {
		if member := listing.FieldByName(name); member.IsValid() {
			member.SetZero()
		}
	}
	text := append([]byte(operation), 0)
	text = appendJSON(text, listings.plan(listing.Type()), listing)
	text = append(append(text, 0), cursor...)
	return sha256.Sum256(text)
}

// listings caches the wire forms of inputs, compiled with their first page.
var listings = lockedPlans{plans: wirePlans{}}

type lockedPlans struct {
	mu    sync.Mutex
	plans wirePlans
}

func (l *lockedPlans) plan(t reflect.Type) *wireType {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.plans.plan(t)
}
