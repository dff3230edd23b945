package access

import (
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/kernel"
)

func (c *State) Apply(_ domain.Time, event kernel.Event) {
	switch e := event.(type) {
	case *LossAccepted:
		c.applyLoss(e)
		return
	case *BackupMade:
		c.Touch()
		c.backup = &e.Backup
		return
	case *JoinTokenIssued, *JoinTokenUsed, *JoinTokensForgotten:
		c.applyJoinToken(event)
		return
	case *CredentialsRevoked:
		c.applyRevocation(e)
		return
	case *ConsoleLinkIssued, *ConsoleLinksForgotten:
		c.applyConsoleLink(event)
		return
	case *SecretPrepared, *SecretHeld, *SecretActivated, *SecretEnded, *SecretsUsed, *SecretForgotten:
		c.applySecret(event)
		return
	case *PolicyPut, *PolicyDeleted, *PolicyAttached, *PolicyDetached:
		c.applyPolicy(event)
		return
	}
	number := c.Touch()
	switch e := event.(type) {
	case *AccessKeysTakenOver:
		c.Records.TakenOver = new(e.TakenOver)
		for _, k := range e.Keys {
			k.Changed = number
			c.put(k)
		}
	case *AccessKeyCreated:
		k := e.Key
		k.Changed = number
		c.put(k)
	case *AccessKeyRevoked:
		k := c.key(e.ID)
		k.Revoked, k.RevokedBy, k.Changed = e.At, e.By, number
		c.put(k)
		c.detachKey(e.ID)
	case *AccessKeyExpired:
		k := c.key(e.ID)
		k.Revoked, k.Changed = k.Expires, number
		c.put(k)
		c.detachKey(e.ID)
	case *AccessKeyRotated:
		k := c.key(e.ID)
		k.Successor, k.Expires, k.Changed = e.Successor, e.Expires, number
		c.put(k)
	case *AccessKeyLimited:
		k := c.key(e.ID)
		if k.Expires != e.Expires {
			k.Limited = e.At
		}
		k.Expires, k.Sources, k.Changed = e.Expires, e.Sources, number
		c.put(k)
	case *AccessKeysUsed:
		for _, use := range e.Uses {
			k := c.key(use.Key)
			k.LastUse = use
			k.LastUse.Key = ""
			c.put(k)
		}
	case *AccessKeysForgotten:
		for _, id := range e.IDs {
			if r, ok := c.Records.Keys.Find(id); ok {
				c.Waiting.Clear(Expiry, r.Any())
			}
			c.Records.Drop(id)
		}
	}
}

// existing returns a key, or the refusal of an id that no key has.
func (c *State) existing(id string) (Key, error) {
	r, ok := c.Records.Keys.Find(id)
	if !ok {
		return Key{}, domain.Refuse(domain.NotFound, "there is no access key %.200q", id)
	}
	return *c.Records.Keys.Get(r), nil
}

func (c *State) key(id string) Key {
	r, _ := c.Records.Keys.Find(id)
	return *c.Records.Keys.Get(r)
}

// put stores a key, and sets the deadline of a valid one.
func (c *State) put(k Key) {
	c.Records.Put(k)
	r, _ := c.Records.Keys.Find(k.ID)
	c.setExpiry(r.Any(), &k)
}
