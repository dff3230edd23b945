package access

import (
	"cmp"
	"slices"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/catalog"
	"github.com/musterhq/muster/internal/domain/kernel"
)

// LimitAccessKey changes how long, and from which networks, a key is valid. A repeat changes nothing.
type LimitAccessKey struct {
	ID       string
	Expires  domain.Time // 0: unchanged
	Forever  bool        // remove the expiry
	Sources  []string    // empty: unchanged
	Anywhere bool        // allow all networks
	By       Actor
	Force    bool        // even if it is the last admin key without limits
	At       domain.Time // 0: now; see CreateAccessKey

	// Result
	Key Key
}

// Decide emits AccessKeyLimited.
func (cmd *LimitAccessKey) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	key, err := t.existing(cmd.ID)
	if err != nil {
		return err
	}
	cmd.Key = key
	next, now := key, cmp.Or(cmd.At, t.Now)
	switch {
	case cmd.Forever:
		next.Expires = 0
	case cmd.Expires != 0:
		next.Expires = cmd.Expires
	}
	switch {
	case cmd.Anywhere:
		next.Sources = nil
	case len(cmd.Sources) > 0:
		next.Sources = cmd.Sources
	}
	switch {
	case cmd.Forever && cmd.Expires != 0:
		return domain.Refuse(domain.Invalid, "access key %s is to expire at %s and never: want one of them", cmd.ID, cmd.Expires.Std().UTC().Format(time.RFC3339))
	case cmd.Anywhere && len(cmd.Sources) > 0:
		return domain.Refuse(domain.Invalid, "access key %s is to work from %d networks and from everywhere: want one of them", cmd.ID, len(cmd.Sources))
	case !cmd.Forever && cmd.Expires == 0 && !cmd.Anywhere && len(cmd.Sources) == 0:
		return domain.Refuse(domain.Invalid, "no limit is given for access key %s: want an end or networks", cmd.ID)
	case !cmd.Key.Works():
		return domain.Refuse(domain.Conflict, "access key %s was revoked, or has expired; create another one", cmd.ID)
	case next.Expires != 0 && next.Expires <= now:
		return domain.Refuse(domain.Invalid, "access key %s is to expire at %s: want a time in the future, or revoke it", cmd.ID, next.Expires.Std().UTC().Format(time.RFC3339))
	case t.Level() < levelOfLimits:
		return domain.Refuse(domain.Overloaded, "access keys that expire, or work only from some networks, are possible as soon as all nodes of the cluster run this release")
	}
	if err := checkSources(next.Sources); err != nil {
		return err
	}
	if next.Expires == cmd.Key.Expires && slices.Equal(next.Sources, cmd.Key.Sources) {
		return nil
	}
	if next.Role == Admin && next.limited() && !cmd.Force && t.loneAdmin(cmd.ID) {
		return domain.Refuse(domain.Conflict, "access key %s is the last one with the role admin that works at all times and from everywhere; create another one first, or force it", cmd.ID)
	}
	t.Emit(&AccessKeyLimited{ID: cmd.ID, Expires: next.Expires, Sources: slices.Clone(next.Sources), At: now})
	cmd.Key = t.key(cmd.ID)
	return nil
}

// loneAdmin reports whether a key is the only admin key without limits.
func (t *Tx) loneAdmin(id string) bool {
	lone := false
	t.Records.Keys.Since(catalog.Place{}, func(k *Key) bool {
		if k.Role != Admin || !k.Works() || k.limited() {
			return true
		}
		lone = k.ID == id
		return lone
	})
	return lone
}
