package ruleset

import "slices"

// Evaluate returns the verdict of each of Rules on a complete candidate. Sort rules always hold.
func (l *Level) Evaluate(c *Candidate) []Verdict {
	verdicts := make([]Verdict, 0, len(l.Rules))
	for i := range l.Rules {
		verdicts = append(verdicts, l.verdict(i, c, verdicts))
	}
	return verdicts
}

// verdict returns the verdict of one rule; before has those of earlier rules, among them a compound rule's parts.
func (l *Level) verdict(rule int, c *Candidate, before []Verdict) Verdict {
	if compound, ok := l.Rules[rule].Form.(*Compound); ok {
		return compound.Statement.verdict(before)
	}
	return l.Rules[rule].Check(c)
}

// Accepts reports whether the candidate is legal at this level by its rules and team sizes: no player lacks a value, every team's size is
// within its bounds, and every rule that is not replaced holds.
func (l *Level) Accepts(c *Candidate) bool {
	for team, players := range c.Teams {
		if n := int32(len(players)); n < l.Teams[team].Min || n > l.Teams[team].Max {
			return false
		}
		for i := range players {
			if _, missing := l.set.Missing(players[i].Values); missing {
				return false
			}
		}
	}
	verdicts := make([]Verdict, 0, len(l.Rules))
	for i, rule := range l.Rules {
		verdicts = append(verdicts, l.verdict(i, c, verdicts))
		if verdicts[i] != Holds && !rule.Replaced {
			return false
		}
	}
	return true
}

// verdict evaluates three-valued logic: the negation of undefined is undefined, and an undefined part matters only if the rest does not
// decide without it.
func (s *Statement) verdict(of []Verdict) Verdict {
	if s.Logic == LogicRule {
		return of[s.Rule]
	}
	var count [3]int // evaluate each part once, because with two evaluations the time would be exponential in the depth
	for _, part := range s.Of {
		count[part.verdict(of)]++
	}
	switch s.Logic {
	case LogicNot:
		return firstOf(count[Holds] > 0, Fails, count[Fails] > 0, Holds, Undefined)
	case LogicAnd:
		return firstOf(count[Fails] > 0, Fails, count[Undefined] > 0, Undefined, Holds)
	case LogicOr:
		return firstOf(count[Holds] > 0, Holds, count[Undefined] > 0, Undefined, Fails)
	default:
		if count[Holds] > 1 {
			return Fails
		}
		return firstOf(count[Undefined] > 0, Undefined, count[Holds] == 1, Holds, Fails)
	}
}

func firstOf(a bool, ifA Verdict, b bool, ifB, otherwise Verdict) Verdict {
	switch {
	case a:
		return ifA
	case b:
		return ifB
	default:
		return otherwise
	}
}

// Check returns the verdict of a rule that is not compound on a complete candidate; Evaluate judges compound rules.
func (r *Rule) Check(c *Candidate) Verdict {
	switch f := r.Form.(type) {
	case *Comparison:
		return conjunction(f.Measurements, func(_ int, m *Expr) Verdict { return f.check(m, c) })
	case *Distance:
		return conjunction(f.Measurements, func(_ int, m *Expr) Verdict { return f.check(m, f.Bounds, c) })
	case *Collection:
		return conjunction(f.Measurements, func(_ int, m *Expr) Verdict { return f.check(m, f.Bounds, c) })
	case *Latency:
		return f.check(c)
	case *BatchDistance:
		return f.check(c)
	case *Sort:
		return Holds
	default:
		return Undefined
	}
}

// conjunction combines the verdicts of a rule's measurements: undefined if one is, because a value that the rule needs does not exist.
func conjunction(measurements []*Expr, check func(int, *Expr) Verdict) Verdict {
	verdict := Holds
	for i, m := range measurements {
		switch check(i, m) {
		case Undefined:
			return Undefined
		case Fails:
			verdict = Fails
		}
	}
	return verdict
}

func verdictOf(holds bool) Verdict {
	if holds {
		return Holds
	}
	return Fails
}

// values evaluates a reference; computed reports whether its numbers are computed.
func (r *Reference) values(c *Candidate) (n nested, computed bool) {
	switch {
	case r.Expr != nil:
		return r.Expr.evaluate(c), r.Expr.Computed
	case r.Literal.Kind == Number:
		return nested{numbers: []float64{r.Literal.Number}}, false
	default:
		return nested{texts: []string{r.Literal.Text}}, false
	}
}

func (f *Comparison) check(m *Expr, c *Candidate) Verdict {
	n := m.evaluate(c)
	if n.undefined {
		return Undefined
	}
	if !f.Reference.Given() {
		return verdictOf(f.amongThemselves(&n, m.Computed))
	}
	reference, computed := f.Reference.values(c)
	if reference.undefined {
		return Undefined
	}
	for _, r := range reference.numbers {
		for _, v := range n.numbers {
			if !f.Operation.Holds(v, r, computed || m.Computed) {
				return Fails
			}
		}
	}
	for _, r := range reference.texts {
		for _, v := range n.texts {
			if !f.Operation.HoldsText(v, r) {
				return Fails
			}
		}
	}
	return Holds
}

// amongThemselves reports whether the values of each innermost list are all equal, or all different.
func (f *Comparison) amongThemselves(n *nested, computed bool) bool {
	if n.depth == 0 {
		return true
	}
	numbers, texts := n.numbers, n.texts
	for _, length := range n.last() {
		if len(n.numbers) > 0 {
			if !f.numbersAmongThemselves(numbers[:length], computed) {
				return false
			}
			numbers = numbers[length:]
			continue
		}
		if len(n.texts) > 0 {
			if !f.textsAmongThemselves(texts[:length]) {
				return false
			}
			texts = texts[length:]
		}
	}
	return true
}

func (f *Comparison) numbersAmongThemselves(numbers []float64, computed bool) bool {
	if f.Operation == Equal {
		return len(numbers) == 0 || Equal.Holds(slices.Min(numbers), slices.Max(numbers), computed)
	}
	sorted := slices.Sorted(slices.Values(numbers))
	for i := 1; i < len(sorted); i++ {
		if !NotEqual.Holds(sorted[i-1], sorted[i], computed) {
			return false
		}
	}
	return true
}

func (f *Comparison) textsAmongThemselves(texts []string) bool {
	if f.Operation == Equal {
		return len(texts) == 0 || !slices.ContainsFunc(texts, func(s string) bool { return s != texts[0] })
	}
	sorted := slices.Sorted(slices.Values(texts))
	return len(slices.Compact(sorted)) == len(texts)
}

func (f *Distance) check(m *Expr, bounds Bounds, c *Candidate) Verdict {
	n := m.evaluate(c)
	reference, computed := f.Reference.values(c)
	if n.undefined || reference.undefined {
		return Undefined
	}
	for _, r := range reference.numbers {
		for _, v := range n.numbers {
			if !bounds.Hold(Difference(v, r, computed || m.Computed)) {
				return Fails
			}
		}
	}
	return Holds
}

// Difference returns the distance of two numbers: 0 if they are computed and equal within the tolerance.
func Difference(a, b float64, computed bool) float64 {
	switch {
	case computed && near(a, b):
		return 0
	case a > b:
		return a - b
	default:
		return b - a
	}
}
