package ruleset

import (
	"cmp"
	"slices"
	"strings"
)

// buildLevels builds the level of every wait time, and reports steps that make an invalid one. It builds only what a wait time changes;
// levels share the rest.
func (r *reader) buildLevels(changes []change) {
	slices.SortStableFunc(changes, func(a, b change) int { return cmp.Compare(a.wait, b.wait) })
	b := levelBuilder{r: r, rules: r.set.Rules, steps: make([]map[string]stepValue, len(r.ruleNodes)), last: map[change]*node{}}
	for i := range r.definitions {
		d := &r.definitions[i]
		b.sizes = append(b.sizes, Size{d.min, d.max})
	}
	for wait := int32(0); ; {
		n := 0
		for n < len(changes) && changes[n].wait == wait {
			n++
		}
		b.apply(changes[:n])
		r.set.levels = append(r.set.levels, b.level(wait))
		r.set.waits = append(r.set.waits, wait)
		if changes = changes[n:]; len(changes) == 0 {
			return
		}
		wait = changes[0].wait
	}
}

// levelBuilder has the rule set at one wait time after another.
type levelBuilder struct {
	r     *reader
	sizes []Size // by definition
	rules []*Rule
	steps []map[string]stepValue // by rule, once a step has changed it

	changes []Change         // of this wait
	last    map[change]*node // the value of each property that a step has changed
}

func (b *levelBuilder) apply(changes []change) {
	var teams, rules []change // the last change of each team and rule at this wait time
	b.changes = nil
	for _, c := range changes {
		b.note(c)
		if c.team >= 0 {
			b.resize(c)
			teams = append(teams, c)
			continue
		}
		if b.steps[c.rule] == nil {
			b.steps[c.rule] = map[string]stepValue{}
		}
		b.steps[c.rule][c.property] = c.value
		rules = append(rules, c)
	}
	for _, c := range teams {
		b.checkSize(c)
	}
	if len(rules) > 0 {
		b.rules = slices.Clone(b.rules)
	}
	done := make(map[int]bool)
	for _, c := range rules {
		if !done[c.rule] {
			done[c.rule] = true
			b.rebuild(c)
		}
	}
}

func (b *levelBuilder) resize(c change) {
	switch size, ok := b.r.changedSize(c, new([]located)); { // growTeams has reported it
	case !ok:
	case c.property == "minPlayers":
		b.sizes[c.team].Min = size
	default:
		b.sizes[c.team].Max = size
	}
}

func (b *levelBuilder) checkSize(c change) {
	d, size := &b.r.definitions[c.team], b.sizes[c.team]
	if d.ok && size.Min > size.Max {
		b.r.fail(c.value.n.at, c.value.path, "%s: after %d seconds the team has minPlayers %d and maxPlayers %d",
			d.join(c.property), c.wait, size.Min, size.Max)
	}
}

// rebuild compiles a rule with the values of the steps so far. It reports new problems as the step's, and not those that the rule had
// before.
func (b *levelBuilder) rebuild(c change) {
	head := b.r.ruleNodes[c.rule]
	o := head.object
	var found []located
	o.step, o.into = b.steps[c.rule], &found
	rule := b.r.buildRule(c.rule, o)
	for _, l := range found {
		switch {
		case b.ofStep(c.rule, l.at):
			b.r.problems = append(b.r.problems, l)
		case head.ok:
			b.r.fail(c.value.n.at, c.value.path, "%s", l.String())
		}
	}
	b.rules[c.rule] = rule
}

// ofStep reports whether a problem is about a value from a step.
func (b *levelBuilder) ofStep(rule, at int) bool {
	for _, v := range b.steps[rule] {
		if v.n.at <= at && at < v.n.end {
			return true
		}
	}
	return false
}

// note records a step's change in words.
func (b *levelBuilder) note(c change) {
	o := object{}
	if c.team >= 0 {
		o = b.r.definitions[c.team].object
	} else {
		o = b.r.ruleNodes[c.rule].object
	}
	n := Change{Property: o.join(c.property), To: b.r.raw(c.value.n)}
	if before, stepped := b.last[c.key()]; stepped {
		n.From = b.r.raw(before)
	} else if original, given := o.n.members[c.property]; given {
		n.From = b.r.raw(original)
	}
	b.last[c.key()] = c.value.n
	b.changes = append(b.changes, n)
}

// key identifies a change without its step.
func (c change) key() change { return change{team: c.team, rule: c.rule, property: c.property} }

// raw returns a value as the body has it.
func (r *reader) raw(n *node) string { return strings.Clone(cut(r.text[n.at:n.end])) } // cloned, or it would keep the body

func (b *levelBuilder) level(wait int32) *Level {
	l := &Level{Wait: wait, Rules: b.rules, Changes: b.changes, set: b.r.set}
	if last := len(b.r.set.levels); last > 0 && slices.Equal(b.r.set.levels[last-1].sizes, b.sizes) {
		before := b.r.set.levels[last-1]
		l.sizes, l.Teams, l.Minimum, l.Slots = before.sizes, before.Teams, before.Minimum, before.Slots
		return l
	}
	l.sizes = slices.Clone(b.sizes)
	for i := range b.r.definitions {
		for range b.r.definitions[i].teams {
			l.Teams = append(l.Teams, b.sizes[i])
			l.Minimum += b.sizes[i].Min
			l.Slots += b.sizes[i].Max
		}
	}
	return l
}
