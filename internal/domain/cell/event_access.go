package cell

import (
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/access"
	"github.com/musterhq/muster/internal/domain/wire"
)

// AccessKeysTakenOver says that the cell owns its access keys from now on, and which ones a file held until then.
type AccessKeysTakenOver struct {
	TakenOver access.TakenOver
	Keys      []access.Key
}

// AccessKeyCreated is a new access key.
type AccessKeyCreated struct{ Key access.Key }

// AccessKeyRevoked is the end of an access key. Its record stays.
type AccessKeyRevoked struct {
	ID string
	At domain.Time
	By access.Actor
}

// AccessKeysForgotten says that the records of keys which were revoked long ago are gone.
type AccessKeysForgotten struct{ IDs []string }

func (*AccessKeysTakenOver) kind() Kind { return KindAccessKeysTakenOver }
func (*AccessKeyCreated) kind() Kind    { return KindAccessKeyCreated }
func (*AccessKeyRevoked) kind() Kind    { return KindAccessKeyRevoked }
func (*AccessKeysForgotten) kind() Kind { return KindAccessKeysForgotten }

// Fields of the event.
func (e *AccessKeysTakenOver) Fields(c *wire.Codec) {
	wire.Sub(c, 1, &e.TakenOver, true, (*access.TakenOver).Fields)
	wire.Many(c, 2, &e.Keys, (*access.Key).Fields)
}

// Fields of the event.
func (e *AccessKeyCreated) Fields(c *wire.Codec) {
	wire.Sub(c, 1, &e.Key, true, (*access.Key).Fields)
}

// Fields of the event.
func (e *AccessKeyRevoked) Fields(c *wire.Codec) {
	c.String(1, &e.ID)
	wire.Int(c, 2, &e.At)
	wire.Sub(c, 3, &e.By, e.By != access.Actor{}, (*access.Actor).Fields)
}

// Fields of the event.
func (e *AccessKeysForgotten) Fields(c *wire.Codec) { c.Strings(1, &e.IDs) }

func newAccessEvent(k Kind) Event {
	switch k {
	case KindAccessKeysTakenOver:
		return &AccessKeysTakenOver{}
	case KindAccessKeyCreated:
		return &AccessKeyCreated{}
	case KindAccessKeyRevoked:
		return &AccessKeyRevoked{}
	case KindAccessKeysForgotten:
		return &AccessKeysForgotten{}
	}
	return nil
}

func (c *Cell) applyAccess(event Event) {
	number := c.touch()
	switch e := event.(type) {
	case *AccessKeysTakenOver:
		taken := e.TakenOver
		c.access.TakenOver = &taken
		for _, k := range e.Keys {
			k.Changed = number
			c.access.Put(k)
		}
	case *AccessKeyCreated:
		k := e.Key
		k.Changed = number
		c.access.Put(k)
	case *AccessKeyRevoked:
		r, _ := c.access.Keys.Find(e.ID)
		k := *c.access.Keys.Get(r)
		k.Revoked, k.RevokedBy, k.Changed = e.At, e.By, number
		c.access.Put(k)
	case *AccessKeysForgotten:
		for _, id := range e.IDs {
			c.access.Drop(id)
		}
	}
}
