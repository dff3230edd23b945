package attention

import (
	"fmt"
	"strings"
)

// settingsShown is how many settings of a node one item names.
const settingsShown = 8

// nodes are those that have other settings than the node that decides: with the next hand-over, theirs would be in force.
func (f *Finder) nodes() (all []Item) {
	if f.config.Differing == nil {
		return nil
	}
	for _, d := range f.config.Differing() {
		names := d.Settings
		more := ""
		if len(names) > settingsShown {
			names, more = names[:settingsShown], fmt.Sprintf(" and %d more", len(names)-settingsShown)
		}
		all = append(all, Item{
			What: fmt.Sprintf("Node %s differs from the leader, %s, in these settings: %s%s.", d.Node, d.Leader, strings.Join(names, ", "), more),
			Next: "Give all nodes the same values, and the same contents of the files that settings name; muster config shows a node's values. Then reload or restart each node that differed.",
		})
	}
	return all
}
