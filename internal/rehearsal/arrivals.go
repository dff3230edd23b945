package rehearsal

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/ruleset"
	"github.com/musterhq/muster/internal/simulate"
)

// TimeMax is the longest simulated time for an invented population.
const TimeMax = 24 * time.Hour

// Form is the format of a text with arrivals.
type Form string

const (
	Population Form = "population" // invented, from this description
	Lines      Form = "lines"      // recorded, JSON
	Table      Form = "table"      // recorded, CSV
)

// FormOf recognizes the form of a text.
func FormOf(text string) Form {
	text = strings.TrimSpace(text)
	first, _, _ := strings.Cut(text, "\n")
	var members map[string]json.RawMessage
	switch {
	case !strings.HasPrefix(text, "{"):
		return Table
	case json.Unmarshal([]byte(first), &members) == nil && members["players"] != nil:
		return Lines
	}
	return Population
}

// Arrivals reads arrivals from a text in any form. For a population, it generates arrivals for the given time from midnight on. It refuses with Invalid.
func Arrivals(text string, length time.Duration, sets []Set) ([]simulate.Arrival, error) {
	arrivals, err := read(text, length, sets)
	if err != nil {
		return nil, domain.Refuse(domain.Invalid, "the %s: %s", FormOf(text), err)
	}
	return arrivals, nil
}

func read(text string, length time.Duration, sets []Set) ([]simulate.Arrival, error) {
	switch FormOf(text) {
	case Table:
		kinds := map[string]ruleset.Kind{}
		for _, s := range sets {
			for _, a := range s.Rules.Attributes {
				kinds[a.Name] = a.Kind
			}
		}
		return simulate.ReadTable(strings.NewReader(text), kinds)
	case Lines:
		return simulate.ReadLines(strings.NewReader(text))
	}
	population, err := simulate.ReadPopulation(strings.NewReader(text))
	if err != nil {
		return nil, err
	}
	if length <= 0 || length > TimeMax {
		return nil, fmt.Errorf("%s of it, want more than 0s and at most %s", length, TimeMax)
	}
	if err := population.Within(length, TicketsMax, valuesMax); err != nil {
		return nil, err
	}
	return population.Draw(length, seed)
}

// Suggest returns a population with each attribute of a rule set, as a starting point.
func Suggest(rules *ruleset.RuleSet) string {
	p := simulate.Population{
		ArrivalsPerSecond: []simulate.RateAt{{Hour: 0, Rate: 1}},
		PartySizes:        map[string]float64{"1": 1},
		Homes:             map[string]simulate.Home{"here": {Share: 1, LatencyMs: map[string]float64{"eu-central-1": 30, "us-east-1": 110}, Jitter: 0.3}},
		Attributes:        map[string]simulate.Distribution{},
	}
	skill := simulate.Distribution{Normal: &simulate.Normal{Mean: 1500, Deviation: 300, Min: 0, Max: 3000, Whole: true}}
	for _, a := range rules.Attributes {
		switch a.Kind {
		case ruleset.Number:
			p.Attributes[a.Name] = skill
		case ruleset.String:
			p.Attributes[a.Name] = simulate.Distribution{OneOf: map[string]float64{cmp.Or(a.Default.Text, "any"): 1}}
		case ruleset.List:
			words := map[string]float64{}
			for _, w := range a.Default.List {
				words[w] = 1
			}
			if len(words) == 0 {
				words["any"] = 1
			}
			p.Attributes[a.Name] = simulate.Distribution{AnyOf: words}
		case ruleset.Map:
			each := map[string]simulate.Distribution{}
			for _, e := range a.Default.Map {
				each[e.Key] = skill
			}
			if len(each) == 0 {
				each["any"] = skill
			}
			p.Attributes[a.Name] = simulate.Distribution{EachOf: each}
		}
	}
	text, err := json.MarshalIndent(&p, "", "  ")
	if err != nil {
		panic(err) // numbers and texts can always be encoded
	}
	return string(text)
}
