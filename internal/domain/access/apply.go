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
	case *JoinTokenIssued, *JoinTokenUsed, *JoinTokensForgotten:
		c.applyJoinToken(event)
		return
	case *CredentialsRevoked:
		c.applyRevocation(e)
		return
	case *ConsoleLinkIssued, *ConsoleLinksForgotten:
		c.applyConsoleLink(event)
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
			c.Records.Put(k)
		}
	case *AccessKeyCreated:
		k := e.Key
		k.Changed = number
		c.Records.Put(k)
	case *AccessKeyRevoked:
		r, _ := c.Records.Keys.Find(e.ID)
		k := *c.Records.Keys.Get(r)
		k.Revoked, k.RevokedBy, k.Changed = e.At, e.By, number
		c.Records.Put(k)
		c.detachKey(e.ID)
	case *AccessKeysForgotten:
		for _, id := range e.IDs {
			c.Records.Drop(id)
		}
	}
}
