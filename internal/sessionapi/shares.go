package sessionapi

import (
	"github.com/musterhq/muster/internal/fair"
	"github.com/musterhq/muster/internal/identity"
)

// shares are a number of places, such as of calls under way, or of bytes. One access key may have half of them. All keys of the
// role client together, which any player may have, may have half as well, and one address an eighth with them.
type shares struct{ keys, clients *fair.Pool }

func newShares(most int) shares {
	share := func(part int64) int64 { return max(1, int64(most)/part) }
	return shares{keys: fair.NewPool(int64(most), share(2)), clients: fair.NewPool(share(2), share(8))}
}

// take takes a place, and reports whether there was one for the caller.
func (s *shares) take(who caller) bool { return s.takeN(who, 1) }

func (s *shares) give(who caller) { s.giveN(who, 1) }

func (s *shares) takeN(who caller, n int64) bool {
	if !s.keys.Take(who.keyID, n) {
		return false
	}
	if who.role == identity.Client && !s.clients.Take(who.address, n) {
		s.keys.Give(who.keyID, n)
		return false
	}
	return true
}

func (s *shares) giveN(who caller, n int64) {
	s.keys.Give(who.keyID, n)
	if who.role == identity.Client {
		s.clients.Give(who.address, n)
	}
}
