package ruleset

var (
	strategies   = []choice[bool]{{"exhaustiveSearch", false}, {"balanced", true}}
	preferences  = []choice[Batching]{{"random", Random}, {"sorted", Sorted}, {"largestPopulation", LargestPopulation}, {"fastestRegion", FastestRegion}}
	priorities   = []choice[Priority]{{"normal", Normal}, {"high", High}, {"low", Low}}
	ageSelection = []choice[bool]{{"newest", false}, {"oldest", true}}
)

func (r *reader) readAlgorithm(root object) {
	a := &r.set.Algorithm
	a.BalancedColumn, a.Batching = -1, Random
	o := object{r: r, n: &node{kind: jsonObject, at: root.n.at}, path: "algorithm"}
	if n, given := root.has("algorithm"); given {
		if n.kind != jsonObject {
			root.fail("algorithm", "got %s, want an object", n.shown())
			return
		}
		o.n = n
	}
	o.known("strategy", "batchingPreference", "sortByAttributes", "balancedAttribute", "backfillPriority", "expansionAgeSelection")
	var known bool
	a.Balanced, known = choose(o, "strategy", false, strategies)
	a.BackfillPriority, _ = choose(o, "backfillPriority", Normal, priorities)
	a.OldestAge, _ = choose(o, "expansionAgeSelection", false, ageSelection)
	if !known {
		return // the other properties depend on it
	}
	if r.large() && !a.Balanced {
		o.fail("strategy", "got exhaustiveSearch (which it is by default), want balanced: the teams take up to %d players, more than %d", r.sum, smallMax)
	}
	if _, given := o.has("backfillPriority"); given && r.large() {
		n, _ := o.has("backfillPriority")
		r.warn(n.at, o.join("backfillPriority"), "it has no effect on more than %d players", smallMax)
		a.BackfillPriority = Normal
	}
	r.readBatching(o, a)
	r.readBalanced(o, a)
}

func (r *reader) readBatching(o object, a *Algorithm) {
	otherwise := Random
	if a.Balanced {
		otherwise = LargestPopulation
	}
	preference, known := choose(o, "batchingPreference", otherwise, preferences)
	a.Batching = preference
	switch {
	case !known:
		return
	case a.Balanced && (preference == Random || preference == Sorted):
		n, _ := o.has("batchingPreference")
		o.fail("batchingPreference", "got %s, want largestPopulation or fastestRegion with the strategy balanced", n.shown())
	case !a.Balanced && (preference == LargestPopulation || preference == FastestRegion):
		n, _ := o.has("batchingPreference")
		o.fail("batchingPreference", "got %s, want random or sorted with the strategy exhaustiveSearch", n.shown())
	}
	n, given := o.has("batchingPreference")
	if given && preference == Sorted {
		r.warn(n.at, o.join("batchingPreference"), "it has no effect: Muster searches the whole pool, oldest tickets first; to prefer similar players, use a sort rule")
	}
	n, given = o.has("sortByAttributes")
	if preference != Sorted {
		if given {
			r.warn(n.at, o.join("sortByAttributes"), "it has no effect without the batchingPreference sorted")
		}
		return
	}
	if !given || n.kind != jsonArray || len(n.items) == 0 {
		o.fail("sortByAttributes", "want a list of at least one attribute with the batchingPreference sorted")
		return
	}
	for _, item := range n.items {
		if _, ok := r.names.column[item.text]; !ok || item.kind != jsonString {
			r.fail(item.at, o.join("sortByAttributes"), "got %s, want declared attributes", item.shown())
		}
	}
}

func (r *reader) readBalanced(o object, a *Algorithm) {
	n, given := o.has("balancedAttribute")
	if !a.Balanced {
		if given {
			r.warn(n.at, o.join("balancedAttribute"), "it has no effect without the strategy balanced")
		}
		return
	}
	name, ok := o.text("balancedAttribute")
	if !ok {
		return
	}
	column, declared := r.names.column[name]
	switch {
	case !declared:
		o.fail("balancedAttribute", "the attribute %s is not declared", quoted(name))
	case r.names.attributes[column].Kind != Number && r.names.attributes[column].Kind != None:
		o.fail("balancedAttribute", "the attribute %s is a %s, want a number", quoted(name), r.names.attributes[column].Kind)
	default:
		a.BalancedColumn = column
	}
}
