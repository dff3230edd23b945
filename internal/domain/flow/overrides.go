package flow

import (
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/wire"
)

// Overrides are what operators have set while the service ran, in place of what it was started with.
type Overrides struct {
	Document string         // all that is set; empty for nothing
	Changes  []ConfigChange // the latest of them, oldest first
	Changed  uint64
}

// ConfigChange is one change by an operator, as it was wished.
type ConfigChange struct {
	At       domain.Time
	By       string // the operator's access key
	Reason   string
	Document string
}

// changesKept bounds how far back operators can look; all of them are in the log.
const changesKept = 50

// Change notes a change and what is set after it.
func (x *Overrides) Change(document string, change ConfigChange) {
	from := max(0, len(x.Changes)+1-changesKept)
	// Copied: a snapshot may be writing the old ones.
	x.Document, x.Changes = document, append(append(make([]ConfigChange, 0, changesKept), x.Changes[from:]...), change)
}

// Fields of Overrides.
func (x *Overrides) Fields(c *wire.Codec) {
	c.String(1, &x.Document)
	wire.Many(c, 2, &x.Changes, (*ConfigChange).Fields)
}

func (x *ConfigChange) Fields(c *wire.Codec) {
	wire.Int(c, 1, &x.At)
	c.String(2, &x.By)
	c.String(3, &x.Reason)
	c.String(4, &x.Document)
}
