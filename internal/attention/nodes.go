package attention

import (
	"fmt"
	"slices"
	"strings"

	"github.com/musterhq/muster/internal/cluster/node"
	"github.com/musterhq/muster/internal/plural"
)

// settingsShown is how many settings of a node one item names.
const settingsShown = 8

// nodes returns items about nodes that differ from the leader.
func (f *Finder) nodes() []Item {
	if f.config.Cluster == nil {
		return nil
	}
	s := f.config.Cluster()
	return slices.Concat(rooms(&s), clocks(&s), settings(&s))
}

// rooms returns items about nodes that lack the room to store the others' changes.
func rooms(s *node.Status) (all []Item) {
	for _, id := range s.Short() {
		all = append(all, Item{
			What: fmt.Sprintf("Node %s has too little disk space, or too few file descriptors, for changes: it falls behind, and clients should not use it.", id),
			Next: "Make room on the disk of its data directory; the node goes on by itself. Its log and its own overview say what is short.",
		})
	}
	return all
}

// clocks returns items about nodes whose clocks differ from the leader's: theirs are wrong, or the leader's is.
func clocks(s *node.Status) (all []Item) {
	for _, a := range s.Apart() {
		direction := "ahead of"
		if a.Ahead < 0 {
			direction = "behind"
		}
		all = append(all, Item{
			What: fmt.Sprintf("The clock of node %s is %s %s that of %s, which decides.", a.Node, plural.Duration(a.Ahead.Abs()), direction, a.Leader),
			Next: "Have a time service, such as chrony or systemd-timesyncd, keep the clocks of both machines right. A node whose clock is five minutes off refuses the signatures of clients.",
		})
	}
	return all
}

// settings are the nodes that have other settings: with the next hand-over, theirs would be in force.
func settings(s *node.Status) (all []Item) {
	for _, d := range s.Differing() {
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
