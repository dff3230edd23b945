package simulate

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/configfile"
)

// Population describes an invented population: when parties arrive, how large they are, where they play, and which attributes they have.
type Population struct {
	// ArrivalsPerSecond is how many parties arrive per second, by the hour of the day. Between these hours, also across midnight, the rate
	// changes linearly. With one entry it is the same all day.
	ArrivalsPerSecond []RateAt `json:"arrivalsPerSecond"`

	// PartySizes has the weights of the sizes "1" to "10". If it is empty, every player is alone.
	PartySizes map[string]float64 `json:"partySizes,omitempty"`

	// Homes are the places where parties play. If it is empty, no player reports latencies.
	Homes map[string]Home `json:"homes,omitempty"`

	// Attributes has a distribution for each attribute, by its name in the rule set.
	Attributes map[string]Distribution `json:"attributes,omitempty"`
}

// RateAt is the rate at an hour of the day, from 0 to below 24.
type RateAt struct {
	Hour float64 `json:"hour"`
	Rate float64 `json:"rate"`
}

// Home is a place where a share of the parties play, with its latency to each region.
type Home struct {
	Share     float64            `json:"share"`     // a weight
	LatencyMs map[string]float64 `json:"latencyMs"` // median, for each region
	Jitter    float64            `json:"jitter"`    // how much players differ: standard deviation of the logarithm, such as 0.3
}

// Distribution is the distribution of an attribute, in one of these forms: normal, uniform, words with weights, words with a probability
// each (a list), or numbers by key (a map).
type Distribution struct {
	Normal   *Normal                 `json:"normal,omitempty"`
	Uniform  *Uniform                `json:"uniform,omitempty"`
	OneOf    map[string]float64      `json:"oneOf,omitempty"`
	AnyOf    map[string]float64      `json:"anyOf,omitempty"`
	EachOf   map[string]Distribution `json:"eachOf,omitempty"`
	Together float64                 `json:"together,omitempty"` // 0 to 1: how similar the players of a party are
}

// Normal is a bell curve, cut off at Min and Max unless both are 0.
type Normal struct {
	Mean      float64 `json:"mean"`
	Deviation float64 `json:"deviation"`
	Min       float64 `json:"min"`
	Max       float64 `json:"max"`
	Whole     bool    `json:"whole,omitempty"` // whole numbers only
}

// Uniform is any number from Min to Max.
type Uniform struct {
	Min   float64 `json:"min"`
	Max   float64 `json:"max"`
	Whole bool    `json:"whole,omitempty"`
}

// rateMost is more parties than any game has, and few enough that a simulation ends in a reasonable time.
const rateMost = 100_000

// ReadPopulation reads a population in JSON and reports all mistakes in it.
func ReadPopulation(r io.Reader) (*Population, error) {
	content, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	var p Population
	if err := configfile.Decode(content, &p); err != nil {
		return nil, err
	}
	return &p, p.check()
}

func (p *Population) check() error {
	var wrong []error
	bad := func(format string, args ...any) { wrong = append(wrong, fmt.Errorf(format, args...)) }
	if len(p.ArrivalsPerSecond) == 0 {
		bad("arrivalsPerSecond: empty, want at least one hour and rate")
	}
	before := -1.0
	for i, x := range p.ArrivalsPerSecond {
		if !(x.Hour >= 0 && x.Hour < 24) {
			bad("arrivalsPerSecond[%d].hour: %g, want 0 up to 24", i, x.Hour)
		}
		if x.Hour <= before {
			bad("arrivalsPerSecond[%d].hour: %g, want more than the hour before", i, x.Hour)
		}
		before = x.Hour
		if !(x.Rate >= 0 && x.Rate <= rateMost) {
			bad("arrivalsPerSecond[%d].rate: %g, want 0 to %d", i, x.Rate, rateMost)
		}
	}
	for _, size := range slices.Sorted(maps.Keys(p.PartySizes)) {
		if n, err := strconv.Atoi(size); err != nil || n < 1 || n > partyMax {
			bad("partySizes: %q, want 1 to %d", size, partyMax)
		}
	}
	checkWeights(bad, "partySizes", p.PartySizes)
	shares := map[string]float64{}
	for _, name := range slices.Sorted(maps.Keys(p.Homes)) {
		h := p.Homes[name]
		shares[name] = h.Share
		for _, region := range slices.Sorted(maps.Keys(h.LatencyMs)) {
			if ms := h.LatencyMs[region]; !(ms >= 1 && ms <= 60_000) {
				bad("homes.%s.latencyMs.%s: %g, want 1 to 60000", name, region, ms)
			}
		}
		if !(h.Jitter >= 0 && h.Jitter <= 2) {
			bad("homes.%s.jitter: %g, want 0 to 2", name, h.Jitter)
		}
	}
	checkWeights(bad, "homes: share", shares)
	for _, name := range slices.Sorted(maps.Keys(p.Attributes)) {
		d := p.Attributes[name]
		d.check(bad, "attributes."+name, true)
	}
	return errors.Join(wrong...)
}

func (d *Distribution) check(bad func(string, ...any), path string, outer bool) {
	var forms []string
	if n := d.Normal; n != nil {
		forms = append(forms, "normal")
		if n.Deviation < 0 || n.Max < n.Min {
			bad("%s.normal: deviation %g, min %g, max %g: want a deviation of at least 0 and min up to max", path, n.Deviation, n.Min, n.Max)
		}
	}
	if u := d.Uniform; u != nil {
		forms = append(forms, "uniform")
		if u.Max < u.Min {
			bad("%s.uniform: min %g is more than max %g", path, u.Min, u.Max)
		}
	}
	if d.OneOf != nil {
		forms = append(forms, "oneOf")
		checkWeights(bad, path+".oneOf", d.OneOf)
	}
	if d.AnyOf != nil {
		forms = append(forms, "anyOf")
		for _, word := range slices.Sorted(maps.Keys(d.AnyOf)) {
			if share := d.AnyOf[word]; !(share >= 0 && share <= 1) {
				bad("%s.anyOf.%s: %g, want a probability, 0 to 1", path, word, share)
			}
		}
	}
	if d.EachOf != nil {
		forms = append(forms, "eachOf")
		for _, key := range slices.Sorted(maps.Keys(d.EachOf)) {
			inner := d.EachOf[key]
			if inner.Normal == nil && inner.Uniform == nil {
				bad("%s.eachOf.%s: want normal or uniform", path, key)
			}
			inner.check(bad, path+".eachOf."+key, false)
		}
	}
	if len(forms) != 1 {
		bad("%s: forms [%s], want one of normal, uniform, oneOf, anyOf, eachOf", path, strings.Join(forms, " "))
	}
	if !(d.Together >= 0 && d.Together <= 1) || !outer && d.Together != 0 {
		bad("%s.together: %g, want 0 to 1, beside the outermost form", path, d.Together)
	}
}

func checkWeights(bad func(string, ...any), path string, weights map[string]float64) {
	sum := 0.0
	for _, name := range slices.Sorted(maps.Keys(weights)) {
		w := weights[name]
		if !(w >= 0) || math.IsInf(w, 0) {
			bad("%s.%s: %g, want a weight of at least 0", path, name, w)
		}
		sum += w
	}
	if len(weights) > 0 && !(sum > 0) {
		bad("%s: all weights are 0", path)
	}
}

// rate returns how many parties arrive per second at a time since midnight.
func (p *Population) rate(at time.Duration) float64 {
	rates := p.ArrivalsPerSecond
	hour := math.Mod(at.Hours(), 24)
	next := slices.IndexFunc(rates, func(x RateAt) bool { return x.Hour > hour })
	a, b := rates[len(rates)-1], rates[0]
	switch {
	case len(rates) == 1:
		return a.Rate
	case next == 0:
		a.Hour -= 24
	case next < 0:
		b.Hour += 24
	default:
		a, b = rates[next-1], rates[next]
	}
	return a.Rate + (b.Rate-a.Rate)*(hour-a.Hour)/(b.Hour-a.Hour)
}

func (p *Population) highestRate() float64 {
	most := 0.0
	for _, x := range p.ArrivalsPerSecond {
		most = max(most, x.Rate)
	}
	return most
}
