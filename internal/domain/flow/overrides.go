package flow

import (
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/wire"
)

// Overrides holds the settings that operators have changed while the service ran. They override the startup
// configuration.
type Overrides struct {
	Document string         // all overrides; empty for none
	Changes  []ConfigChange // the latest changes, oldest first
	Changed  uint64
}

// ConfigChange is one change by an operator, as requested.
type ConfigChange struct {
	At       domain.Time
	By       string // the operator's access key
	Reason   string
	Document string
}

// changesKept is how many changes operators can look back on; the log has all of them.
const changesKept = 50

// Change records a change and the document of all overrides after it.
func (x *Overrides) Change(document string, change ConfigChange) {
	from := max(0, len(x.Changes)+1-changesKept)
	// Copied, because a snapshot may be writing the old slice.
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
