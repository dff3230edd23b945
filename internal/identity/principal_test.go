package identity

import (
	"context"
	"errors"
	"testing"

	"github.com/musterhq/muster/internal/domain/access"
)

func TestWithin(t *testing.T) {
	key := access.Key{ID: "MUST1", Role: Backend}
	keys := newTestKeys(t, key)
	found, _ := keys.Find("MUST1")
	principal, keyless := found.Principal("192.0.2.1"), Principal{}
	free, cancelFree := keyless.Within(t.Context())
	defer cancelFree()
	held, cancelHeld := principal.Within(t.Context())
	defer cancelHeld()
	over, cancelOver := principal.Within(t.Context())
	cancelOver()
	key.Revoked = 1
	keys.Publish([]access.Key{key})
	<-held.Done()
	if cause := context.Cause(held); !errors.Is(cause, ErrRevoked) {
		t.Errorf("the request of the revoked key ended with %v", cause)
	}
	if free.Err() != nil || errors.Is(context.Cause(over), ErrRevoked) {
		t.Errorf("a request without a key ended with %v, one that was over with %v", free.Err(), context.Cause(over))
	}
}
