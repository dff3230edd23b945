package cell

import (
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/wire"
)

// AliasChanged is an alias as it is now: new, or with another fleet.
type AliasChanged struct{ Alias fleet.Alias }

// AliasRemoved is the end of an alias.
type AliasRemoved struct{ ID string }

func (*AliasChanged) kind() Kind { return KindAliasChanged }
func (*AliasRemoved) kind() Kind { return KindAliasRemoved }

// Fields of the event.
func (e *AliasChanged) Fields(c *wire.Codec) { wire.Sub(c, 1, &e.Alias, true, (*fleet.Alias).Fields) }

// Fields of the event.
func (e *AliasRemoved) Fields(c *wire.Codec) { c.String(1, &e.ID) }

// applyCatalog folds in what changes one record that nothing else counts.
func (c *Cell) applyCatalog(event Event) {
	number := c.touch()
	switch e := event.(type) {
	case *AliasChanged:
		e.Alias.Changed = number
		c.fleets.Aliases.Put(e.Alias)
	case *AliasRemoved:
		r, _ := c.fleets.Aliases.Find(e.ID)
		c.fleets.Aliases.Drop(r)
	}
}
