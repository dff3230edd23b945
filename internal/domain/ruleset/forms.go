package ruleset

var (
	aggregations = []choice[Aggregation]{{"avg", Avg}, {"min", Min}, {"max", Max}}
	unions       = []choice[Aggregation]{{"union", Union}, {"intersection", PartyIntersection}}
	references   = []choice[Aggregation]{{"avg", Avg}, {"min", Min}}
	comparisons  = []choice[Operation]{
		{"<", Less}, {"<=", LessOrEqual}, {"=", Equal}, {"!=", NotEqual}, {">", Greater}, {">=", GreaterOrEqual},
	}
	collections = []choice[CollectionOperation]{
		{"contains", Contains}, {"intersection", Intersection}, {"reference_intersection_count", ReferenceIntersectionCount},
	}
	directions = []choice[bool]{{"ascending", false}, {"descending", true}}
	mapKeys    = []choice[MapKey]{{"minValue", MinValue}, {"maxValue", MaxValue}}
)

// chooseRequired is choose for a required property.
func chooseRequired[T any](o object, name string, choices []choice[T]) (means T, ok bool) {
	if _, given := o.has(name); !given {
		o.fail(name, "it is missing, want %s", words(choices))
		return means, false
	}
	return choose(o, name, means, choices)
}

func (r *reader) comparison(o object) *Comparison {
	f := &Comparison{}
	f.Measurements = r.measure(o, func(t Type) string {
		if t.Element != ElementNumber && t.Element != ElementString {
			return "numbers or strings"
		}
		return ""
	})
	var ok bool
	f.Operation, ok = chooseRequired(o, "operation", comparisons)
	f.Party, _ = choose(o, "partyAggregation", Avg, aggregations)
	want := ElementUnknown
	if len(f.Measurements) > 0 {
		want = f.Measurements[0].Type.Element
	}
	f.Reference = r.reference(o, want)
	if _, given := o.has("referenceValue"); !given {
		if ok && f.Operation != Equal && f.Operation != NotEqual {
			o.fail("referenceValue", "it is missing, and the operation %s needs it: only = and != compare values with each other", f.Operation)
		}
		return f
	}
	for _, m := range f.Measurements[min(1, len(f.Measurements)):] {
		if element := m.Type.Element; element != want && element != ElementUnknown && want != ElementUnknown {
			o.fail("measurements", "one is a %s, another a %s, and no referenceValue compares with both", f.Measurements[0].Type, m.Type)
			break
		}
	}
	return f
}

func (r *reader) distance(o object) *Distance {
	f := &Distance{}
	f.Measurements = r.measure(o, func(t Type) string {
		if t.Element != ElementNumber {
			return "numbers"
		}
		return ""
	})
	f.Reference = r.reference(o, ElementNumber)
	if _, given := o.has("referenceValue"); !given {
		o.fail("referenceValue", "it is missing, want a number or an expression of numbers")
	}
	f.Bounds.Min, f.Bounds.HasMin = o.atLeastZero("minDistance")
	f.Bounds.Max, f.Bounds.HasMax = o.atLeastZero("maxDistance")
	o.oneOf("minDistance", "maxDistance")
	f.Party, _ = choose(o, "partyAggregation", Avg, aggregations)
	return f
}

// oneOf requires at least one of two properties.
func (o object) oneOf(a, b string) {
	_, first := o.has(a)
	_, second := o.has(b)
	if !first && !second {
		o.fail(b, "it is missing, want %s or %s or both", a, b)
	}
}

func (r *reader) collection(o object) *Collection {
	f := &Collection{}
	f.Measurements = r.measure(o, func(t Type) string {
		if t.Element != ElementString || t.Depth == 0 {
			return "lists of strings"
		}
		return ""
	})
	var ok bool
	f.Operation, ok = chooseRequired(o, "operation", collections)
	_, given := o.has("referenceValue")
	switch {
	case ok && f.Operation == Intersection:
		if n, _ := o.has("referenceValue"); given && len(o.step) == 0 {
			r.warn(n.at, o.join("referenceValue"), "the operation intersection has no use for it")
		}
	case given:
		f.Reference = r.reference(o, ElementString)
	case ok:
		o.fail("referenceValue", "it is missing, want a string or an expression of strings")
	}
	least, hasLeast := o.whole("minCount", 0)
	most, hasMost := o.whole("maxCount", 0)
	f.Bounds = Bounds{Min: float64(least), Max: float64(most), HasMin: hasLeast, HasMax: hasMost}
	if !hasLeast && !hasMost {
		f.Bounds = Bounds{Min: 1, HasMin: true}
	}
	f.Party, _ = choose(o, "partyAggregation", Union, unions)
	return f
}

func (r *reader) latency(o object) *Latency {
	f := &Latency{Reference: Avg}
	f.MaxLatency, f.HasLatency = o.atLeastZero("maxLatency")
	f.Party, _ = choose(o, "partyAggregation", Avg, aggregations)
	if r.large() {
		if _, given := o.has("maxLatency"); !given {
			o.fail("maxLatency", "it is missing, want a number of milliseconds: for more than %d players it is required", smallMax)
		}
		for _, name := range [...]string{"maxDistance", "distanceReference"} {
			if n, given := o.n.members[name]; given && len(o.step) == 0 {
				r.warn(n.at, o.join(name), "it has no effect on more than %d players", smallMax)
			}
		}
		return f
	}
	f.MaxDistance, f.HasDistance = o.atLeastZero("maxDistance")
	o.oneOf("maxLatency", "maxDistance")
	if n, given := o.has("distanceReference"); given && n.kind == jsonNumber {
		if len(o.step) == 0 {
			r.warn(n.at, o.join("distanceReference"), "got %s, want avg or min; numbers are ignored", n.shown())
		}
	} else {
		f.Reference, _ = choose(o, "distanceReference", Avg, references)
	}
	return f
}

// attribute reads the name of a declared attribute. Column -1: there is none, which it has reported.
func (r *reader) attribute(o object, name string) (column int, kind Kind) {
	text, ok := o.text(name)
	if !ok {
		return -1, None
	}
	column, declared := r.names.column[text]
	if !declared {
		o.fail(name, "the attribute %s is not declared", quoted(text))
		return -1, None
	}
	return column, r.names.attributes[column].Kind
}

func (r *reader) batchDistance(o object) *BatchDistance {
	f := &BatchDistance{}
	f.Column, f.Kind = r.attribute(o, "batchAttribute")
	if f.Kind == List || f.Kind == Map {
		o.fail("batchAttribute", "the attribute %s is a %s, want a number or a string", quoted(r.names.attributes[f.Column].Name), f.Kind)
	}
	var given bool
	f.MaxDistance, given = o.atLeastZero("maxDistance")
	if _, written := o.has("maxDistance"); f.Kind == Number && !written {
		o.fail("maxDistance", "it is missing, want a number of at least 0")
	}
	if f.Kind == String && given && len(o.step) == 0 {
		n, _ := o.has("maxDistance")
		r.warn(n.at, o.join("maxDistance"), "it has no effect on a string: all players have the same")
	}
	f.Party, _ = choose(o, "partyAggregation", Avg, aggregations)
	return f
}

func (r *reader) sort(o object, distance bool) *Sort {
	f := &Sort{Distance: distance}
	f.Descending, _ = chooseRequired(o, "sortDirection", directions)
	f.Column, f.Kind = r.attribute(o, "sortAttribute")
	switch {
	case f.Kind == List:
		o.fail("sortAttribute", "the attribute %s is a string_list, want a number, a string_number_map or a string", quoted(r.names.attributes[f.Column].Name))
	case f.Kind == String && distance:
		o.fail("sortAttribute", "the attribute %s is a string, want a number or a string_number_map", quoted(r.names.attributes[f.Column].Name))
	}
	if _, given := o.has("mapKey"); given || f.Kind == Map {
		f.MapKey, _ = chooseRequired(o, "mapKey", mapKeys)
	}
	f.Party, _ = choose(o, "partyAggregation", Avg, aggregations)
	return f
}
