package ruleset

// Hopeless reports whether a rule rejects the candidate and everything that adding tickets could make of it, as long as this level
// judges. It never rejects a candidate that can still become a match: averages, sums, counts, minimum distances, minimum counts of
// contains, maximum counts of intersection, not and xor are only known at the end, and an undefined value decides nothing. rule is the
// first that rejects.
//
// A failed rule stays failed if tickets only add to what it compares and it requires all of it. This applies to
//
//   - pairs of single players' values and a reference that keeps its values, because a failed pair stays (comparison, maximum distance);
//   - the spread, and values that must be equal or different, because more players repair no pair;
//   - the strings in all lists, and the regions that all accept, because more players only remove some (minimum of intersection, latency);
//   - the number of lists that contain a text, because more players only add (maximum of contains).
//
// A compound rule is hopeless if its parts are, combined with and or or. A larger team can correct an average, a sum, a minimum or the
// failure of a negated part, so these are judged only on complete candidates.
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

// HopelessAt reports whether the candidate is hopeless at each of the levels from first to last. With expansionAgeSelection newest a
// candidate can still be judged by every level up to its present one, since a newer ticket makes it younger; with oldest it is judged by
// its present level or a later one.
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
