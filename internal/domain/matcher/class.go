package matcher

import "github.com/musterhq/muster/internal/domain/ruleset"

// class hashes all that rules can see of a ticket. Tickets of one class are as good as each other, so that a search which
// failed with one need not try the next: this is what keeps ten thousand identical tickets cheap. Two tickets that only
// look equal by chance cost one of them a try.
func (m *Matcher) class(t *ticket, r *record) uint64 {
	h := mix(hashSeed, uint64(t.players))
	if t.backfill {
		return mix(h, r.key) // its roster's teams and free slots are its own
	}
	for p := range r.players {
		if m.plan.ids {
			h = mixText(h, r.players[p].ID)
		}
		for v := range r.players[p].Values {
			h = mixValue(h, &r.players[p].Values[v])
		}
		if m.plan.latency || m.rules.Large {
			for _, l := range r.players[p].Latencies {
				h = mix(mixText(h, l.Region), uint64(l.Milliseconds))
			}
		}
	}
	return h
}

func mixValue(h uint64, v *ruleset.Value) uint64 {
	h = mix(h, uint64(v.Kind))
	switch v.Kind {
	case ruleset.Number:
		return mix(h, floatBits(v.Number))
	case ruleset.String:
		return mixText(h, v.Text)
	case ruleset.List:
		for _, s := range v.List {
			h = mixText(h, s)
		}
	case ruleset.Map:
		for i := range v.Map {
			h = mix(mixText(h, v.Map[i].Key), floatBits(v.Map[i].Number))
		}
	}
	return h
}

const hashSeed = 0x9E3779B97F4A7C15

func mix(h, x uint64) uint64 {
	h = (h ^ x) * 0xBF58476D1CE4E5B9
	return h ^ h>>29
}

func mixText(h uint64, s string) uint64 {
	h = mix(h, uint64(len(s)))
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * 0x100000001B3
	}
	return mix(h, 0)
}
