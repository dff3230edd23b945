package cell

import (
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/wire"
)

// AliasChanged is an alias as it is now: new, or with another fleet.
type AliasChanged struct{ Alias fleet.Alias }

// AliasRemoved is the end of an alias.
type AliasRemoved struct{ ID string }

// BuildChanged is a build as it is now: new, or with another name.
type BuildChanged struct{ Build fleet.Build }

// BuildRemoved is the end of a build.
type BuildRemoved struct{ ID string }

func (*BuildChanged) kind() Kind { return KindBuildChanged }
func (*BuildRemoved) kind() Kind { return KindBuildRemoved }

// Fields of the event.
func (e *BuildChanged) Fields(c *wire.Codec) { wire.Sub(c, 1, &e.Build, true, (*fleet.Build).Fields) }

// Fields of the event.
func (e *BuildRemoved) Fields(c *wire.Codec) { c.String(1, &e.ID) }

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
		a := e.Alias
		a.Changed = number
		c.fleets.Aliases.Put(a)
	case *AliasRemoved:
		r, _ := c.fleets.Aliases.Find(e.ID)
		c.fleets.Aliases.Drop(r)
	case *BuildChanged:
		b := e.Build
		b.Changed = number
		c.fleets.Builds.Put(b)
	case *BuildRemoved:
		r, _ := c.fleets.Builds.Find(e.ID)
		c.fleets.Builds.Drop(r)
	}
}
