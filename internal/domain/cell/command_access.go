package cell

import (
	"slices"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/access"
	"github.com/musterhq/muster/internal/domain/catalog"
)

// TakeOverAccessKeys makes the cell the owner of its access keys, and imports those of a file. It happens once: whatever
// a file says later is refused, because it could bring back keys that were revoked since.
type TakeOverAccessKeys struct {
	Digest, Secret string // see access.TakenOver
	Keys           []access.Key
	At             domain.Time // 0: now
}

func (cmd *TakeOverAccessKeys) decide(t *tx) error {
	if was := t.c.access.TakenOver; was != nil {
		return domain.Refuse(domain.Conflict, "the access keys of a file were taken over at %s already", was.At.Std().Format("2006-01-02 15:04:05Z"))
	}
	keys := slices.Clone(cmd.Keys)
	known := map[string]bool{}
	for i := range keys {
		if err := keys[i].Check(); err != nil {
			return err
		}
		if known[keys[i].ID] {
			return domain.Refuse(domain.Invalid, "access key %s is there twice", keys[i].ID)
		}
		known[keys[i].ID] = true
	}
	at := cmd.At
	if at == 0 {
		at = t.now
	}
	t.emit(&AccessKeysTakenOver{access.TakenOver{At: at, Digest: cmd.Digest, Secret: cmd.Secret}, keys})
	return nil
}

// CreateAccessKey makes an access key. The same command again finds the key that is there.
type CreateAccessKey struct {
	Key access.Key  // ID, Role, Account, Name, CreatedBy
	At  domain.Time // 0: now; a change that is made while no service runs happens later than the last transaction

	// Result: Key as it was stored.
}

func (cmd *CreateAccessKey) decide(t *tx) error {
	k := &cmd.Key
	if err := k.Check(); err != nil {
		return err
	}
	if r, ok := t.c.access.Keys.Find(k.ID); ok {
		old := t.c.access.Keys.Get(r)
		if old.Role != k.Role || old.Name != k.Name || !old.Works() {
			return domain.Refuse(domain.Conflict, "access key %s exists already", k.ID)
		}
		*k = *old
		return nil
	}
	if k.Created = cmd.At; k.Created == 0 {
		k.Created = t.now
	}
	k.Revoked, k.RevokedBy = 0, access.Actor{}
	old := t.c.access.RevokedBefore(k.Created.Add(-t.c.config.RevokedKeyKept))
	if n, most := t.c.access.Keys.Len()-len(old), t.c.config.AccessKeysMax; n >= most {
		return domain.Refuse(domain.LimitExceeded, "%d access keys exist, of which %d work; the limit is %d, and a revoked key counts until %s after its end",
			n, t.c.access.Working(), most, t.c.config.RevokedKeyKept)
	}
	if len(old) > 0 {
		t.emit(&AccessKeysForgotten{old})
	}
	t.emit(&AccessKeyCreated{*k})
	k.Changed = t.c.number
	return nil
}

// RevokeAccessKey ends a key for good. Revoking it again changes nothing.
type RevokeAccessKey struct {
	ID    string
	By    access.Actor
	Force bool        // the last admin key, too
	At    domain.Time // 0: now; see CreateAccessKey

	// Result: the key as it is now.
	Key access.Key
}

func (cmd *RevokeAccessKey) decide(t *tx) error {
	r, ok := t.c.access.Keys.Find(cmd.ID)
	if !ok {
		return domain.Refuse(domain.NotFound, "there is no access key %.200q", cmd.ID)
	}
	cmd.Key = *t.c.access.Keys.Get(r)
	switch {
	case !cmd.Key.Works():
		return nil
	case cmd.Key.Role == access.Admin && t.c.access.Admins() == 1 && !cmd.Force:
		return domain.Refuse(domain.Conflict, "access key %s is the last one with the role admin; create another one first, or force it", cmd.ID)
	}
	at := cmd.At
	if at == 0 {
		at = t.now
	}
	t.emit(&AccessKeyRevoked{cmd.ID, at, cmd.By.Cut()})
	cmd.Key = *t.c.access.Keys.Get(r)
	return nil
}

// AccessKeys returns all access keys in creation order, revoked ones too.
func (v *View) AccessKeys() []access.Key {
	v.sawAll()
	all := make([]access.Key, 0, v.c.access.Keys.Len())
	v.c.access.Keys.From(catalog.Place{}, func(k *access.Key) bool {
		all = append(all, *k)
		return true
	})
	return all
}

// AccessKeyCounts returns how many access keys there are, and how many of them work.
func (v *View) AccessKeyCounts() (all, working int) {
	v.sawAll()
	return v.c.access.Keys.Len(), v.c.access.Working()
}

// AccessKeysTakenOver tells whether the cell owns its access keys.
func (v *View) AccessKeysTakenOver() (access.TakenOver, bool) {
	v.sawAll()
	if v.c.access.TakenOver == nil {
		return access.TakenOver{}, false
	}
	return *v.c.access.TakenOver, true
}
