package ruleset

// Hopeless reports whether a rule rejects the candidate and whatever could be made of it by adding tickets, as long as it is
// judged by this level. It never condemns what can still become a match: what averages, sums, counts, minimum distances,
// minimum counts of contains, maximum counts of intersection, not and xor say is only known at the end, and an undefined
// value decides nothing. The rule is the first that rejects.
//
// A rule that has failed stays failed where tickets only add to what it compares and it asks for all of it. So it is with
//
//   - pairs of single players' values and a reference that keeps its values: a pair that fails stays (comparison, maximum distance);
//   - highest less lowest value, and values that are to be equal or different: more players spread, and repair no pair;
//   - what is in everybody's list, and the regions that all accept: more players only take away (minimum of intersection, latency);
//   - how many contain a text: more players only add (maximum of contains).
//
// A compound rule is lost when its parts are, by and or or. What makes a team larger can make an average, a sum, a minimum or the
// failure of a negated part come right, so these are left to the end.
func (l *Level) Hopeless(c *Candidate) (rule int, yes bool) {
	hopeless := make([]bool, len(l.Rules))
	for i, r := range l.Rules {
		if compound, ok := r.Form.(*Compound); ok {
			hopeless[i] = compound.Statement.hopeless(hopeless)
		} else {
			hopeless[i] = r.Hopeless(c)
		}
		if hopeless[i] && !r.Replaced {
			return i, true
		}
	}
	return 0, false
}

// HopelessAt reports whether at each of the levels from first to last some rule rejects the candidate for good. With
// expansionAgeSelection newest a candidate can still be judged by every level up to its present one, since a newer ticket
// makes it younger; with oldest it is judged by its present level or a later one.
func (rs *RuleSet) HopelessAt(c *Candidate, first, last int) bool {
	for i := first; i <= last; i++ {
		if _, yes := rs.levels[i].Hopeless(c); !yes {
			return false
		}
	}
	return true
}

func (s *Statement) hopeless(of []bool) bool {
	switch s.Logic {
	case LogicRule:
		return of[s.Rule]
	case LogicAnd:
		for _, part := range s.Of {
			if part.hopeless(of) {
				return true
			}
		}
		return false
	case LogicOr:
		for _, part := range s.Of {
			if !part.hopeless(of) {
				return false
			}
		}
		return true
	default:
		return false
	}
}

// Hopeless is Level.Hopeless for one rule that is not compound.
func (r *Rule) Hopeless(c *Candidate) bool {
	switch f := r.Form.(type) {
	case *Comparison:
		return r.anyEarly(f.Measurements, func(m *Expr) Verdict { return f.check(m, c) })
	case *Distance:
		most := Bounds{Max: f.Bounds.Max, HasMax: true}
		return r.anyEarly(f.Measurements, func(m *Expr) Verdict { return f.check(m, most, c) })
	case *Collection:
		return r.anyEarly(f.Measurements, func(m *Expr) Verdict { return f.check(m, f.earlyBounds(m), c) })
	case *Latency:
		return f.anyRegion(c, func(string) bool { return true }) == Fails
	case *BatchDistance:
		return f.check(c) == Fails
	default:
		return false
	}
}

func (r *Rule) anyEarly(measurements []*Expr, check func(*Expr) Verdict) bool {
	for i, m := range measurements {
		if r.early[i] && check(m) == Fails {
			return true
		}
	}
	return false
}
