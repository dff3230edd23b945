package fair

import (
	"fmt"
	"testing"

	"github.com/musterhq/muster/internal/identity"
)

// All players share the key of the role client: one address has an eighth of what the key may have, and all such keys
// together leave half to others.
func TestSharesOfClientKeys(t *testing.T) {
	s := NewShares(64, 32, 32, 8)
	taken := func(by *identity.Principal) (n int) {
		for s.Take(by, 1) {
			n++
		}
		return n
	}
	mallory := &identity.Principal{ID: "game", Role: identity.Client, Address: "192.0.2.1"}
	if got := taken(mallory); got != 8 {
		t.Errorf("one address took %d of 64", got)
	}
	all := 8
	for i := range 20 {
		all += taken(&identity.Principal{ID: fmt.Sprint("game ", i), Role: identity.Client, Address: fmt.Sprint("192.0.2.", 2+i)})
	}
	if all != 32 {
		t.Errorf("client keys took %d of 64", all)
	}
	if got := taken(&identity.Principal{ID: "backend", Role: identity.Backend, Address: "192.0.2.1"}); got != 32 {
		t.Errorf("a backend found %d places", got)
	}
	for range 8 {
		s.Give(mallory, 1)
	}
	if got := taken(mallory); got != 8 {
		t.Errorf("after giving back: %d", got)
	}
}
