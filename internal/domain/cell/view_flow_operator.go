package cell

import (
	"github.com/musterhq/muster/internal/domain/flow"
)

// ChangesOf returns the changes of a player's keys that are not in the archive yet, oldest first.
func (v *View) ChangesOf(player string) (all []flow.Change) {
	v.sawAll()
	v.c.flow.ChangesOf(player, func(x *flow.Change) bool {
		all = append(all, *x)
		return true
	})
	return all
}
