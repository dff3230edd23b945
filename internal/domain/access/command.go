package access

import (
	"cmp"
	"slices"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/catalog"
	"github.com/musterhq/muster/internal/domain/kernel"
)

// TakeOverAccessKeys makes the cell the owner of its access keys and imports the keys of a file. It succeeds once, because a later
// file could restore keys that were revoked since.
type TakeOverAccessKeys struct {
	Digest, Secret string // see access.TakenOver
	Keys           []Key
	At             domain.Time // 0: now
}

func (cmd *TakeOverAccessKeys) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	if was := t.Records.TakenOver; was != nil {
		return domain.Refuse(domain.Conflict, "the access keys of a file were imported at %s already", was.At.Std().Format("2006-01-02 15:04:05Z"))
	}
	keys := slices.Clone(cmd.Keys)
	known := map[string]bool{}
	for i := range keys {
		if err := keys[i].Check(); err != nil {
			return err
		}
		if known[keys[i].ID] {
			return domain.Refuse(domain.Invalid, "access key %s appears twice", keys[i].ID)
		}
		known[keys[i].ID] = true
	}
	t.Emit(&AccessKeysTakenOver{TakenOver{At: cmp.Or(cmd.At, t.Now), Digest: cmd.Digest, Secret: cmd.Secret}, keys})
	return nil
}

// CreateAccessKey creates an access key. A repeat of the command finds the existing key.
type CreateAccessKey struct {
	Key Key         // ID, Role, Account, Name, CreatedBy, Expires, Sources
	At  domain.Time // 0: now; for a change while the service is down, it is later than the last transaction

	// Result: Key, as stored.
}

func (cmd *CreateAccessKey) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	key := &cmd.Key
	if err := key.Check(); err != nil {
		return err
	}
	if r, ok := t.Records.Keys.Find(key.ID); ok {
		old := t.Records.Keys.Get(r)
		if old.Role != key.Role || old.Name != key.Name || !old.Works() {
			return domain.Refuse(domain.Conflict, "access key %s exists already", key.ID)
		}
		*key = *old
		return nil
	}
	key.Created, key.Replaces = cmp.Or(cmd.At, t.Now), ""
	old, err := t.roomFor(key)
	if err != nil {
		return err
	}
	t.create(key, old)
	return nil
}

// roomFor checks whether there is room for a new key, and returns the records to remove for it.
func (t *Tx) roomFor(key *Key) (old []string, err error) {
	switch {
	case key.Expires != 0 && key.Expires <= key.Created:
		return nil, domain.Refuse(domain.Invalid, "access key %s expires at %s: want a time in the future", key.ID, key.Expires.Std().UTC().Format(time.RFC3339))
	case key.limited() && t.Level() < levelOfLimits:
		return nil, domain.Refuse(domain.Overloaded, "access keys that expire, or work only from some networks, are possible as soon as all nodes of the cluster run this release")
	}
	key.Revoked, key.RevokedBy, key.Successor, key.LastUse = 0, Actor{}, "", Use{}
	old = t.Records.RevokedBefore(key.Created.Add(-t.Config.RevokedKeyKept))
	if n, most := t.Records.Keys.Len()-len(old), t.Config.AccessKeysMax; n >= most {
		return nil, domain.Refuse(domain.LimitExceeded, "%d access keys exist, of which %d work; the limit is %d, and a revoked key counts until %s after its end",
			n, t.Records.Working(), most, t.Config.RevokedKeyKept)
	}
	return old, nil
}

func (t *Tx) create(key *Key, old []string) {
	if len(old) > 0 {
		t.Emit(&AccessKeysForgotten{old})
	}
	key.Generation = t.signing()
	t.Emit(&AccessKeyCreated{*key})
	key.Changed = t.Number()
}

// RevokeAccessKey revokes a key permanently. A repeat changes nothing.
type RevokeAccessKey struct {
	ID    string
	By    Actor
	Force bool        // even if it is the last admin key
	At    domain.Time // 0: now; see CreateAccessKey

	// Result
	Key Key
}

func (cmd *RevokeAccessKey) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	key, err := t.existing(cmd.ID)
	if err != nil {
		return err
	}
	cmd.Key = key
	switch {
	case !cmd.Key.Works():
		return nil
	case cmd.Key.Role == Admin && t.Records.Admins() == 1 && !cmd.Force:
		return domain.Refuse(domain.Conflict, "access key %s is the last one with the role admin; create another one first, or force it", cmd.ID)
	}
	t.Emit(&AccessKeyRevoked{cmd.ID, cmp.Or(cmd.At, t.Now), cmd.By.Cut()})
	cmd.Key = t.key(cmd.ID)
	return nil
}

// AccessKeys returns all access keys in creation order, including revoked ones.
func (v *View) AccessKeys() []Key {
	v.SawAll()
	all := make([]Key, 0, v.c.Records.Keys.Len())
	v.c.Records.Keys.Since(catalog.Place{}, func(k *Key) bool {
		all = append(all, *k)
		return true
	})
	return all
}

// AccessKeysTakenOver reports whether the cell owns its access keys.
func (v *View) AccessKeysTakenOver() (TakenOver, bool) {
	v.SawAll()
	if v.c.Records.TakenOver == nil {
		return TakenOver{}, false
	}
	return *v.c.Records.TakenOver, true
}
