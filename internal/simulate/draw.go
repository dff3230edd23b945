package simulate

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/musterhq/muster/internal/domain/matcher"
	"github.com/musterhq/muster/internal/domain/ruleset"
)

// ArrivalsMost bounds the arrivals in memory.
const ArrivalsMost = 20_000_000

// Draw generates the arrivals of a period that begins at midnight. The same seed gives the same arrivals.
func (p *Population) Draw(length time.Duration, seed uint64) ([]Arrival, error) {
	if err := p.within(length, ArrivalsMost); err != nil {
		return nil, err
	}
	most := p.highestRate()
	d := drawer{rand.New(rand.NewPCG(seed, 0x6d7573746572)), newWeights(p.PartySizes), newHomes(p.Homes), newAttributes(p.Attributes)}
	var arrivals []Arrival
	if most == 0 {
		return nil, nil
	}
	// A Poisson process with the highest rate, from which arrivals are dropped in proportion to the lower rate of the hour (thinning).
	for at := d.ExpFloat64() / most; at < length.Seconds(); at += d.ExpFloat64() / most {
		when := time.Duration(at*1000) * time.Millisecond
		if d.Float64()*most < p.rate(when) {
			arrivals = append(arrivals, d.party(when, len(arrivals)+1))
		}
	}
	return arrivals, nil
}

// within refuses a period in which more parties than that may arrive.
func (p *Population) within(length time.Duration, arrivals int) error {
	if most := p.highestRate(); most*length.Seconds() > float64(arrivals) {
		return fmt.Errorf("%g parties a second for %s are more than %d parties", most, length, arrivals)
	}
	return nil
}

// Within refuses a period for which Draw would use too much memory: more arrivals, or more values of attributes and latencies in total.
func (p *Population) Within(length time.Duration, arrivals, values int) error {
	if err := p.within(length, arrivals); err != nil {
		return err
	}
	largest, each, regions := 1, 0, 0
	for size := range p.PartySizes {
		n, _ := strconv.Atoi(size) // ReadPopulation has checked it
		largest = max(largest, n)
	}
	for _, d := range p.Attributes {
		each += 1 + len(d.AnyOf) + len(d.EachOf)
	}
	for _, h := range p.Homes {
		regions = max(regions, len(h.LatencyMs))
	}
	if all := p.highestRate() * length.Seconds() * float64(largest*(each+regions)); all > float64(values) {
		return fmt.Errorf("the players of %s have about %.0f attributes and latencies in all, want at most %d: shorten the time, lower the rate, or leave out attributes", length, all, values)
	}
	return nil
}

type drawer struct {
	*rand.Rand
	sizes      weights
	homes      homes
	attributes []drawnAttribute
}

type drawnAttribute struct {
	name string
	distributed
}

// distributed is a distribution whose parts always have the same order.
type distributed struct {
	Distribution
	keys  []string
	words weights
	each  []distributed
}

func newAttributes(all map[string]Distribution) (out []drawnAttribute) {
	for _, name := range slices.Sorted(maps.Keys(all)) {
		out = append(out, drawnAttribute{name, newDistributed(all[name])})
	}
	return out
}

func newDistributed(d Distribution) distributed {
	x := distributed{Distribution: d, words: newWeights(d.OneOf)}
	switch {
	case d.AnyOf != nil:
		x.keys = slices.Sorted(maps.Keys(d.AnyOf))
	case d.EachOf != nil:
		x.keys = slices.Sorted(maps.Keys(d.EachOf))
		for _, key := range x.keys {
			x.each = append(x.each, newDistributed(d.EachOf[key]))
		}
	}
	return x
}

// weights chooses one of several names by their weights.
type weights struct {
	names []string
	upTo  []float64
}

func newWeights(m map[string]float64) (w weights) {
	sum := 0.0
	for _, name := range slices.Sorted(maps.Keys(m)) {
		sum += m[name]
		w.names, w.upTo = append(w.names, name), append(w.upTo, sum)
	}
	return w
}

func (w *weights) choose(x float64) int {
	x *= w.upTo[len(w.upTo)-1]
	for i, upTo := range w.upTo {
		if x < upTo {
			return i
		}
	}
	return len(w.upTo) - 1
}

type homes struct {
	weights
	homes   []Home
	regions [][]string
}

func newHomes(all map[string]Home) (h homes) {
	shares := map[string]float64{}
	for name, home := range all {
		shares[name] = home.Share
	}
	h.weights = newWeights(shares)
	for _, name := range h.names {
		h.homes = append(h.homes, all[name])
		h.regions = append(h.regions, slices.Sorted(maps.Keys(all[name].LatencyMs)))
	}
	return h
}

func (d *drawer) party(at time.Duration, number int) Arrival {
	size := 1
	if len(d.sizes.names) > 0 {
		size, _ = strconv.Atoi(d.sizes.names[d.sizes.choose(d.Float64())]) // ReadPopulation has checked it
	}
	a := Arrival{At: at, Ticket: "t" + strconv.Itoa(number), Players: make([]Player, size)}
	home := -1
	if len(d.homes.names) > 0 {
		home = d.homes.choose(d.Float64())
	}
	for i := range a.Players {
		p := &a.Players[i]
		p.ID = a.Ticket + "-" + strconv.Itoa(i+1)
		p.Attributes = make([]ruleset.NamedValue, len(d.attributes))
		for j := range d.attributes {
			p.Attributes[j].Name = d.attributes[j].name
		}
		if home >= 0 {
			p.Latencies = d.latencies(home)
		}
	}
	for j := range d.attributes {
		x := &d.attributes[j]
		shared := d.chance()
		for i := range a.Players {
			a.Players[i].Attributes[j].Value = d.value(&x.distributed, shared, x.Together)
		}
	}
	return a
}

// chance determines a value: a position on the bell curve for numbers, and a seed for words.
type chance struct {
	bell float64
	word uint64
}

func (d *drawer) chance() chance { return chance{d.NormFloat64(), d.Uint64()} }

// value draws a value for one player. The share `together` of the spread is common to all players of a party.
func (d *drawer) value(x *distributed, party chance, together float64) ruleset.Value {
	own := d.chance()
	own.bell = math.Sqrt(together)*party.bell + math.Sqrt(1-together)*own.bell
	if d.Float64() < together {
		own.word = party.word
	}
	return x.value(own)
}

func (x *distributed) value(c chance) ruleset.Value {
	switch {
	case x.Normal != nil:
		n := x.Normal
		v := n.Mean + n.Deviation*c.bell
		if n.Min != 0 || n.Max != 0 {
			v = min(max(v, n.Min), n.Max)
		}
		return number(v, n.Whole)
	case x.Uniform != nil:
		share := 0.5 * math.Erfc(-c.bell/math.Sqrt2) // the share of the bell curve below this position
		return number(x.Uniform.Min+(x.Uniform.Max-x.Uniform.Min)*share, x.Uniform.Whole)
	case x.OneOf != nil:
		r := rand.New(rand.NewPCG(c.word, 1))
		return ruleset.Value{Kind: ruleset.String, Text: x.words.names[x.words.choose(r.Float64())]}
	case x.AnyOf != nil:
		r := rand.New(rand.NewPCG(c.word, 2))
		v := ruleset.Value{Kind: ruleset.List, List: []string{}}
		for _, word := range x.keys {
			if r.Float64() < x.AnyOf[word] {
				v.List = append(v.List, word)
			}
		}
		return v
	default:
		r := rand.New(rand.NewPCG(c.word, 3))
		v := ruleset.Value{Kind: ruleset.Map}
		for i, key := range x.keys {
			v.Map = append(v.Map, ruleset.Entry{Key: key, Number: x.each[i].value(chance{r.NormFloat64(), r.Uint64()}).Number})
		}
		return v
	}
}

func number(v float64, whole bool) ruleset.Value {
	if whole {
		v = math.Round(v)
	}
	return ruleset.Value{Kind: ruleset.Number, Number: v}
}

func (d *drawer) latencies(home int) []matcher.Latency {
	h, regions := &d.homes.homes[home], d.homes.regions[home]
	out := make([]matcher.Latency, len(regions))
	for i, region := range regions {
		ms := h.LatencyMs[region] * math.Exp(h.Jitter*d.NormFloat64())
		out[i] = matcher.Latency{Region: region, Milliseconds: int32(min(max(math.Round(ms), 1), 60_000))}
	}
	return out
}
