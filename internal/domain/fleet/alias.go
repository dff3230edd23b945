package fleet

import (
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/catalog"
	"github.com/musterhq/muster/internal/domain/quota"
	"github.com/musterhq/muster/internal/domain/wire"
)

// Alias is a name for a fleet, so that clients need not know which fleet is in service. A terminal alias has no fleet: callers get its
// message instead.
type Alias struct {
	ID              string // "alias-<uuid>"
	Region, Account string // of its ARN
	Name            string // not unique
	Description     string
	Fleet           string // its fleet's id; empty in a terminal alias
	Terminal        bool
	Message         string // of a terminal alias
	Created         domain.Time
	Updated         domain.Time
	Tags            []Tag
	Holder          quota.Holder

	Changed uint64
}

func (a *Alias) Fields(c *wire.Codec) {
	c.String(1, &a.ID)
	c.Shared(2, &a.Region)
	c.Shared(3, &a.Account)
	c.String(4, &a.Name)
	c.String(5, &a.Description)
	c.String(6, &a.Fleet)
	c.Bool(7, &a.Terminal)
	c.String(8, &a.Message)
	wire.Int(c, 9, &a.Created)
	wire.Int(c, 10, &a.Updated)
	wire.Many(c, 11, &a.Tags, (*Tag).Fields)
	c.Fixed64(12, (*uint64)(&a.Holder))
}

func aliasPlace(a *Alias) catalog.Place { return catalog.Place{Created: a.Created, ID: a.ID} }
