package node

import (
	"maps"
	"slices"
)

// Differing is a node whose settings differ from the leader's.
type Differing struct {
	Node, Leader string
	Settings     []string // names of the differing settings
}

// Differing returns the nodes whose settings differ from those of the node of the status; none if that node does not lead.
func (s *Status) Differing() (all []Differing) {
	for i := range s.Members {
		if m := &s.Members[i]; len(m.Differs) > 0 && !m.Missing {
			all = append(all, Differing{m.ID, s.By, m.Differs})
		}
	}
	return all
}

func (n *Node) marks() map[string]uint64 {
	if n.options.Marks == nil {
		return nil
	}
	return n.options.Marks()
}

// differing returns the sorted keys whose values differ.
func differing(a, b map[string]uint64) []string {
	either := maps.Clone(a)
	if either == nil {
		either = map[string]uint64{}
	}
	maps.Copy(either, b)
	maps.DeleteFunc(either, func(name string, mark uint64) bool {
		was, ok := a[name]
		is, also := b[name]
		return ok && also && was == is
	})
	return slices.Sorted(maps.Keys(either))
}
