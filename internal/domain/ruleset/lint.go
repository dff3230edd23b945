package ruleset

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/musterhq/muster/internal/domain/spelling"
)

// Finding is an error in a rule set, or something that is allowed but probably a mistake.
type Finding struct {
	Line, Column int  // in the body, from 1; the column in characters
	Wrong        bool // an error: the service refuses the rule set
	Problem
}

// Lint lists the errors of a rule set, or the parts of a valid one that have no effect: unknown properties, steps that come after a
// request's timeout, rules that no match can satisfy, minimum sizes that no step lowers. timeout is the configuration's
// RequestTimeoutSeconds.
func Lint(body string, timeout int32) []Finding {
	r := read(body)
	findings := r.findings(r.problems, true)
	if len(r.problems) == 0 {
		r.lintSteps(timeout)
		r.lintSizes()
		r.lintRules()
	}
	findings = append(findings, r.findings(r.warnings, false)...)
	slices.SortStableFunc(findings, func(a, b Finding) int { return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column)) })
	return slices.Compact(findings)
}

func (r *reader) findings(all []located, wrong bool) (findings []Finding) {
	for _, l := range all {
		before := r.text[:min(l.at, len(r.text))]
		findings = append(findings, Finding{
			Line: strings.Count(before, "\n") + 1, Column: utf8.RuneCountInString(before[strings.LastIndexByte(before, '\n')+1:]) + 1,
			Wrong: wrong, Problem: l.Problem,
		})
	}
	return findings
}

// didYouMean returns the end of a message about an unknown name; empty if no known one is similar.
func didYouMean(unknown string, known []string) string {
	if name, ok := spelling.Nearest(unknown, known); ok {
		return fmt.Sprintf("; did you mean %s?", quoted(name))
	}
	return ""
}

// lintSteps warns of steps after the request's timeout.
func (r *reader) lintSteps(timeout int32) {
	r.root.list("expansions", func(_ int, expansion object) {
		expansion.list("steps", func(_ int, step object) {
			if wait, ok := step.whole("waitTimeSeconds", 0); ok && wait >= timeout {
				n, _ := step.has("waitTimeSeconds")
				r.warn(n.at, step.join("waitTimeSeconds"), "it waits %d s, and requests time out after %d s, so the step never takes effect; "+
					"shorten the wait, or raise RequestTimeoutSeconds above it", wait, timeout)
			}
		})
	})
}

// lintSizes warns of teams whose minimum is small from the start.
func (r *reader) lintSizes() {
	for i := range r.definitions {
		d := &r.definitions[i]
		stepped := slices.ContainsFunc(r.set.levels, func(l *Level) bool { return l.sizes[i].Min != d.min })
		if d.min < d.max && !stepped {
			n := d.object.n.members["minPlayers"]
			r.warn(n.at, d.object.join("minPlayers"), "a match with %d of %d players is made as soon as no fuller one is possible, and no step lowers a higher minimum; "+
				"to wait for company set minPlayers to %d, and lower it with an expansion of teams[%s].minPlayers", d.min, d.max, d.max, d.name)
		}
	}
}

// lintRules warns of rules that no match can satisfy at any level.
func (r *reader) lintRules() {
	for i, head := range r.ruleNodes {
		why := ""
		for _, level := range r.set.levels {
			if why = level.never(level.Rules[i]); why == "" {
				break
			}
		}
		if why != "" && !r.set.Rules[i].Replaced {
			r.warn(head.n.at, head.path, "no match can ever satisfy the rule: %s", why)
		}
	}
}

// never explains why no match of a level can satisfy a rule, as far as bounds and team sizes show; "" if one may.
func (l *Level) never(rule *Rule) string {
	switch f := rule.Form.(type) {
	case *Distance:
		return f.Bounds.empty("minDistance", "maxDistance")
	case *Collection:
		if why := f.Bounds.empty("minCount", "maxCount"); why != "" || f.Operation != Contains || !f.Bounds.HasMin {
			return why
		}
		for _, m := range f.Measurements {
			if read, ok := m.players(); ok {
				if most := l.mostIn(read.Teams); f.Bounds.Min > float64(most) {
					return fmt.Sprintf("minCount is %s, and the teams that it counts in take %d players", plain(f.Bounds.Min), most)
				}
			}
		}
	case *Comparison:
		return l.neverCounted(f)
	}
	return ""
}

func (b Bounds) empty(least, most string) string {
	if b.HasMin && b.HasMax && b.Min > b.Max {
		return fmt.Sprintf("%s is %s, more than %s, which is %s", least, plain(b.Min), most, plain(b.Max))
	}
	return ""
}

func (l *Level) mostIn(teams []int) (players int32) {
	for _, team := range teams {
		players += l.Teams[team].Max
	}
	return players
}

// neverCounted checks comparisons of a number of players with a constant.
func (l *Level) neverCounted(f *Comparison) string {
	if f.Reference.Literal.Kind != Number {
		return ""
	}
	want := f.Reference.Literal.Number
	for _, m := range f.Measurements {
		if m.Op != OpCount {
			continue
		}
		read, ok := m.Of, m.Of.Op == OpPlayers && !m.Of.Several
		if !ok && m.Of.Op == OpFlatten && m.Of.Of.Op == OpPlayers {
			read, ok = m.Of.Of, true
		}
		if !ok {
			continue
		}
		least, most := int32(0), l.mostIn(read.Teams)
		for _, team := range read.Teams {
			least += l.Teams[team].Min
		}
		possible := false
		for n := least; n <= most && !possible; n++ {
			possible = f.Operation.Holds(float64(n), want, false)
		}
		if !possible {
			return fmt.Sprintf("it requires a number of players %s %s, and there are %d to %d", f.Operation, plain(want), least, most)
		}
	}
	return ""
}
