package ruleset

import (
	"fmt"
	"slices"
	"strings"
)

// changesMax bounds the changes of all steps of all expansions: each step, each target and each measurement of a rule counts as one.
// Every change is built and checked, and real rule sets have far fewer.
const changesMax = 10_000

// change is a value with which a step replaces a property of one team definition or rule.
type change struct {
	wait     int32
	team     int // index in the definitions; -1
	rule     int // index in the rules; -1
	property string
	value    stepValue
}

// target is the property that an expansion changes.
type target struct {
	teams, rules []int
	property     string
	weight       int // of the change by one step
}

// step is an element of "steps".
type step struct {
	wait  int32
	value stepValue
}

func (r *reader) readExpansions(root object) (changes []change) {
	taken := make(map[change]bool) // two expansions of one property would contradict each other
	weight := 0
	root.list("expansions", func(i int, o object) {
		o.path = fmt.Sprintf("expansions[%d]", i)
		defer r.nameTarget(o, len(r.problems))
		o.known("target", "steps")
		t, ok := r.target(o)
		steps := r.steps(o)
		if !ok {
			return
		}
		if weight += t.weight * len(steps); weight > changesMax {
			if weight-t.weight*len(steps) <= changesMax {
				o.fail("steps", "with it the expansions make %d changes, counted over all steps, targets and measurements, want at most %d", weight, changesMax)
			}
			return
		}
		for _, place := range t.places() {
			place.property = t.property
			if taken[place] {
				o.fail("target", "another expansion changes the %s of %s as well", t.property, r.nameOf(place))
				return
			}
			taken[place] = true
			for _, s := range steps {
				c := place
				c.wait, c.value = s.wait, s.value
				changes = append(changes, c)
			}
		}
	})
	r.growTeams(changes)
	return changes
}

// nameTarget adds the target of an expansion to its problems, which are those from an index on, because a number alone does not help to
// find the expansion.
func (r *reader) nameTarget(o object, from int) {
	n, given := o.has("target")
	if !given || n.kind != jsonString {
		return
	}
	for i := range r.problems[from:] {
		if p := &r.problems[from+i].Problem; !strings.Contains(p.Message, n.text) {
			p.Message += " (the expansion of " + cut(n.text) + ")"
		}
	}
}

func (t target) places() (places []change) {
	for _, team := range t.teams {
		places = append(places, change{team: team, rule: -1})
	}
	for _, rule := range t.rules {
		places = append(places, change{team: -1, rule: rule})
	}
	return places
}

func (r *reader) nameOf(place change) string {
	if place.team >= 0 {
		return "team " + quoted(r.definitions[place.team].name)
	}
	return "rule " + quoted(r.ruleNodes[place.rule].name)
}

// growTeams computes how large each team can become.
func (r *reader) growTeams(changes []change) {
	for _, c := range changes {
		if c.team < 0 {
			continue
		}
		d := &r.definitions[c.team]
		if size, ok := r.changedSize(c, &r.problems); ok && c.property == "maxPlayers" {
			d.largest = max(d.largest, size)
		}
	}
}

// changedSize reads the value of a step for a team's property. Errors go to problems.
func (r *reader) changedSize(c change, problems *[]located) (size int32, ok bool) {
	o := r.definitions[c.team].object
	o.step, o.into = map[string]stepValue{c.property: c.value}, problems
	least := int32(0)
	if c.property == "maxPlayers" {
		least = 1
	}
	return o.whole(c.property, least)
}

// target = ( "teams" | "rules" ) "[" name { "," name } "]" "." property
func (r *reader) target(o object) (t target, ok bool) {
	text, ok := o.text("target")
	if !ok {
		return t, false
	}
	open, end := strings.IndexByte(text, '['), strings.IndexByte(text, ']')
	component, names, property := "", "", ""
	if 0 < open && open < end {
		component, names = strings.TrimSpace(text[:open]), text[open+1:end]
		property, ok = strings.CutPrefix(strings.TrimSpace(text[end+1:]), ".")
		t.property = strings.TrimSpace(property)
	}
	if !ok || component != "teams" && component != "rules" || t.property == "" {
		o.fail("target", "got %s, want teams[name].property or rules[name].property", quoted(text))
		return t, false
	}
	if component == "teams" && t.property != "minPlayers" && t.property != "maxPlayers" {
		o.fail("target", "got the property %s of teams, want minPlayers or maxPlayers", quoted(t.property))
		return t, false
	}
	seen := make(map[int]bool)
	for name := range strings.SplitSeq(names, ",") {
		name = strings.TrimSpace(name)
		places := r.targetPlaces(component, name)
		if len(places) == 0 {
			o.fail("target", "there is no %s %s", component[:len(component)-1], quoted(name))
			return t, false
		}
		for _, place := range places {
			switch {
			case seen[place]:
				continue
			case component == "teams":
				t.teams = append(t.teams, place)
				t.weight++
			default:
				t.rules = append(t.rules, place)
				t.weight += r.ruleNodes[place].weight()
				if !r.expandable(o, place, t.property) {
					return t, false
				}
			}
			seen[place] = true
		}
	}
	return t, true
}

func (r *reader) targetPlaces(component, name string) (places []int) {
	if component == "teams" {
		for i := range r.definitions {
			if name == "*" || name != "" && r.definitions[i].name == name {
				places = append(places, i)
			}
		}
		return places
	}
	if name == "*" {
		for i := range r.ruleNodes {
			places = append(places, i)
		}
		return places
	}
	if place, ok := r.ruleByName[name]; ok {
		places = append(places, place)
	}
	return places
}

func (rule *ruleNode) weight() int {
	n, given := rule.has("measurements")
	if !given || n.kind != jsonArray {
		return 1
	}
	return max(1, len(n.items))
}

func (r *reader) expandable(o object, place int, property string) bool {
	rule := r.ruleNodes[place]
	switch {
	case rule.kind == 0:
		return false // reported there
	case rule.kind == compoundType:
		o.fail("target", "the rule %s is a compound rule, want the rules that it names", quoted(rule.name))
		return false
	case !slices.Contains(ruleProperties[rule.kind], property):
		o.fail("target", "the rule %s is of type %s, which has no property %s that can change", quoted(rule.name), rule.kind, quoted(property))
		return false
	}
	return true
}

func (r *reader) steps(o object) (steps []step) {
	n, given := o.has("steps")
	if !given || n.kind != jsonArray || len(n.items) == 0 {
		o.fail("steps", "want a list of at least one step")
		return nil
	}
	last := int32(-1)
	o.list("steps", func(i int, so object) {
		so.path = fmt.Sprintf("%s[%d]", o.join("steps"), i)
		so.known("waitTimeSeconds", "value")
		wait, ok := so.required("waitTimeSeconds", 0)
		if ok && wait <= last {
			so.fail("waitTimeSeconds", "got %d after %d, want waits that increase", wait, last)
			ok = false
		}
		value, given := so.has("value")
		if !given {
			so.fail("value", "it is missing, want what takes the place of the target")
		}
		if ok && given {
			last = wait
			steps = append(steps, step{wait, stepValue{value, so.join("value")}})
		}
	})
	return steps
}
