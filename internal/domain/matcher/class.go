package matcher

import "github.com/musterhq/muster/internal/domain/ruleset"

// class hashes everything that rules can read of a ticket. Tickets of one class are interchangeable, so a search that failed with one
// skips the others, which keeps ten thousand identical tickets cheap. A hash collision costs the second ticket one try.
func (m *Matcher) class(t *ticket, r *record) uint64 {
	h := mix(hashSeed, uint64(t.players))
	if t.backfill {
		return mix(h, r.key) // a backfill's teams and free seats are unique
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
