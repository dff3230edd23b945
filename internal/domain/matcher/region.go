package matcher

import (
	"github.com/musterhq/muster/internal/domain/ruleset"
)

// manyRegions is the bit that all regions beyond the first 63 share; these are compared by name.
const manyRegions = uint64(1) << 63

// regionTable gives each region in use a bit and one copy of its name.
type regionTable struct {
	bits    map[string]int
	regions []countedRegion
	free    []int
}

type countedRegion struct {
	name  string
	users int
}

// take stores a player's latencies. Of a region that is named twice the first latency counts.
func (t *regionTable) take(sent []Latency) []ruleset.RegionLatency {
	if len(sent) == 0 {
		return nil
	}
	kept := make([]ruleset.RegionLatency, 0, len(sent))
next:
	for _, l := range sent {
		for i := range kept {
			if kept[i].Region == l.Region {
				continue next
			}
		}
		kept = append(kept, ruleset.RegionLatency{Region: t.use(l.Region), Milliseconds: l.Milliseconds})
	}
	return kept
}

func (t *regionTable) use(name string) string {
	if at, ok := t.bits[name]; ok {
		t.regions[at].users++
		return t.regions[at].name
	}
	if t.bits == nil {
		t.bits = map[string]int{}
	}
	at := len(t.regions)
	if n := len(t.free); n > 0 {
		at, t.free = t.free[n-1], t.free[:n-1]
	} else {
		t.regions = append(t.regions, countedRegion{})
	}
	t.regions[at] = countedRegion{name, 1}
	t.bits[name] = at
	return name
}

func (t *regionTable) giveBack(latencies []ruleset.RegionLatency) {
	for _, l := range latencies {
		at := t.bits[l.Region]
		if t.regions[at].users--; t.regions[at].users == 0 {
			delete(t.bits, l.Region)
			t.free = append(t.free, at)
		}
	}
}

// within returns the bits of the regions that every player reported with at most `most` milliseconds.
func (t *regionTable) within(most float64, players []ruleset.Player) uint64 {
	all := ^uint64(0)
	for p := range players {
		var own uint64
		for _, l := range players[p].Latencies {
			if float64(l.Milliseconds) <= most {
				own |= regionBit(t.bits[l.Region])
			}
		}
		all &= own
	}
	return all
}

func regionBit(at int) uint64 {
	if at >= 63 {
		return manyRegions
	}
	return 1 << at
}

// others returns the regions without a bit of their own that every player reported with at most `most` milliseconds.
func (t *regionTable) others(most float64, players []ruleset.Player) (names []string) {
	for _, l := range players[0].Latencies {
		all := regionBit(t.bits[l.Region]) == manyRegions
		for p := range players {
			ms, ok := latencyTo(players[p].Latencies, l.Region)
			all = all && ok && float64(ms) <= most
		}
		if all {
			names = append(names, l.Region)
		}
	}
	return names
}
