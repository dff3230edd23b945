// Package keyvalue has the pairs of strings that are tags of resources and properties of game sessions.
package keyvalue

import "github.com/musterhq/muster/internal/domain/wire"

// Pair is a key with its value.
type Pair struct{ Key, Value string }

func (p *Pair) Fields(c *wire.Codec) {
	c.Shared(1, &p.Key)
	c.Shared(2, &p.Value)
}
