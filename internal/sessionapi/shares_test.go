package sessionapi

import (
	"fmt"
	"testing"

	"github.com/musterhq/muster/internal/identity"
)

// All players share the key of the role client: one address has an eighth of what the key may have, and all such keys
// together leave half to others.
func TestSharesOfClientKeys(t *testing.T) {
	s := newShares(64)
	taken := func(who caller) (n int) {
		for s.take(who) {
			n++
		}
		return n
	}
	mallory := caller{keyID: "game", role: identity.Client, address: "192.0.2.1"}
	if got := taken(mallory); got != 8 {
		t.Errorf("one address took %d of 64", got)
	}
	all := 8
	for i := range 20 {
		all += taken(caller{keyID: fmt.Sprint("game ", i), role: identity.Client, address: fmt.Sprint("192.0.2.", 2+i)})
	}
	if all != 32 {
		t.Errorf("client keys took %d of 64", all)
	}
	if got := taken(caller{keyID: "backend", role: identity.Backend, address: "192.0.2.1"}); got != 32 {
		t.Errorf("a backend found %d places", got)
	}
	for range 8 {
		s.give(mallory)
	}
	if got := taken(mallory); got != 8 {
		t.Errorf("after giving back: %d", got)
	}
}
