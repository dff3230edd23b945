package ruleset

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

const undefinedReason = "a value that it needs does not exist: a team is empty, or a number too large"

// Reason explains why a rule does not hold for a candidate: the measured value, and the required one. It is empty if the rule holds.
// Like Evaluate it takes the candidate as complete.
func (l *Level) Reason(rule int, c *Candidate) string {
	switch f := l.Rules[rule].Form.(type) {
	case *Comparison:
		return reasonOf(f.Measurements, func(m *Expr) string { return f.reason(m, c) })
	case *Distance:
		return reasonOf(f.Measurements, func(m *Expr) string { return f.reason(m, c) })
	case *Collection:
		return reasonOf(f.Measurements, func(m *Expr) string { return f.reason(m, c) })
	case *Latency:
		return f.reason(c)
	case *BatchDistance:
		return f.reason(c)
	case *Compound:
		return l.reasonOfParts(f, rule, c)
	default:
		return ""
	}
}

// reasonOf returns the first measurement's reason.
func reasonOf(measurements []*Expr, reason func(*Expr) string) string {
	for _, m := range measurements {
		if text := reason(m); text != "" {
			return text
		}
	}
	return ""
}

func plain(x float64) string { return strconv.FormatFloat(x, 'g', 6, 64) }

func (f *Comparison) reason(m *Expr, c *Candidate) string {
	switch f.check(m, c) {
	case Holds:
		return ""
	case Undefined:
		return undefinedReason
	}
	if !f.Reference.Given() {
		if f.Operation == Equal {
			return "the values are not all equal"
		}
		return "a value occurs twice"
	}
	n := m.evaluate(c)
	reference, computed := f.Reference.values(c)
	for _, r := range reference.numbers {
		for _, v := range n.numbers {
			if !f.Operation.Holds(v, r, computed || m.Computed) {
				return fmt.Sprintf("%s %s %s is false", plain(v), f.Operation, plain(r))
			}
		}
	}
	for _, r := range reference.texts {
		for _, v := range n.texts {
			if !f.Operation.HoldsText(v, r) {
				return fmt.Sprintf("%s %s %s is false", quoted(v), f.Operation, quoted(r))
			}
		}
	}
	return ""
}

func (f *Distance) reason(m *Expr, c *Candidate) string {
	n := m.evaluate(c)
	reference, computed := f.Reference.values(c)
	if n.undefined || reference.undefined {
		return undefinedReason
	}
	for _, r := range reference.numbers {
		for _, v := range n.numbers {
			if d := Difference(v, r, computed || m.Computed); !f.Bounds.Hold(d) {
				return fmt.Sprintf("from %s to %s it is %s, want %s", plain(v), plain(r), plain(d), f.Bounds)
			}
		}
	}
	return ""
}

func (b Bounds) String() string {
	switch {
	case b.HasMin && b.HasMax:
		return plain(b.Min) + " to " + plain(b.Max)
	case b.HasMin:
		return "at least " + plain(b.Min)
	case b.HasMax:
		return "at most " + plain(b.Max)
	default:
		return "anything"
	}
}

func (f *Collection) reason(m *Expr, c *Candidate) string {
	switch f.check(m, f.Bounds, c) {
	case Holds:
		return ""
	case Undefined:
		return undefinedReason
	}
	switch f.Operation {
	case Contains:
		what := "a string of the reference"
		if f.Reference.Expr == nil {
			what = quoted(f.Reference.Literal.Text)
		}
		return fmt.Sprintf("want %s that contain %s", f.Bounds, what)
	case Intersection:
		return fmt.Sprintf("want %s strings that are in all lists", f.Bounds)
	default:
		return fmt.Sprintf("want %s strings of the reference in each list", f.Bounds)
	}
}

func (f *Latency) reason(c *Candidate) string {
	switch {
	case f.check(c) == Holds:
		return ""
	case f.anyRegion(c, func(string) bool { return true }) == Holds:
		return fmt.Sprintf("in every region that all players accept, a ticket is more than %s ms from the others", plain(f.MaxDistance))
	case f.HasLatency:
		return fmt.Sprintf("no region was reported by all players with at most %s ms", plain(f.MaxLatency))
	default:
		return "no region was reported by all players"
	}
}

func (f *BatchDistance) reason(c *Candidate) string {
	switch f.check(c) {
	case Holds:
		return ""
	case Undefined:
		return undefinedReason
	}
	if f.Kind == String {
		return "not all players have the same"
	}
	var values []float64
	for _, ticket := range c.tickets(func(p *Player) float64 { return p.Values[f.Column].Number }) {
		values = append(values, f.Party.Of(ticket))
	}
	return fmt.Sprintf("the tickets have %s to %s, want at most %s between them",
		plain(slices.Min(values)), plain(slices.Max(values)), plain(f.MaxDistance))
}

// reasonOfParts states the verdicts of the rules that a compound rule names.
func (l *Level) reasonOfParts(f *Compound, rule int, c *Candidate) string {
	verdicts := l.Evaluate(c)
	if verdicts[rule] == Holds {
		return ""
	}
	var parts []string
	seen := make(map[int]bool)
	var walk func(*Statement)
	walk = func(s *Statement) {
		if s.Logic == LogicRule && !seen[s.Rule] {
			seen[s.Rule] = true
			parts = append(parts, l.Rules[s.Rule].Name+" "+[...]string{Undefined: "is undefined", Fails: "fails", Holds: "holds"}[verdicts[s.Rule]])
		}
		for _, part := range s.Of {
			walk(part)
		}
	}
	walk(f.Statement)
	return strings.Join(parts, ", ")
}
