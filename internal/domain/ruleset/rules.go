package ruleset

import (
	"fmt"
	"slices"
)

// ruleType is a value of "type".
type ruleType uint8

const (
	comparisonType ruleType = iota + 1
	distanceType
	collectionType
	latencyType
	batchDistanceType
	absoluteSortType
	distanceSortType
	compoundType
)

var ruleTypes = []choice[ruleType]{
	{"comparison", comparisonType}, {"distance", distanceType}, {"collection", collectionType}, {"latency", latencyType},
	{"batchDistance", batchDistanceType}, {"absoluteSort", absoluteSortType}, {"distanceSort", distanceSortType},
	{"compound", compoundType},
}

func (t ruleType) String() string { return ruleTypes[t-1].word }

// ruleProperties has the properties of each type of rule, besides name, type and description.
var ruleProperties = map[ruleType][]string{
	comparisonType:    {"measurements", "referenceValue", "operation", "partyAggregation"},
	distanceType:      {"measurements", "referenceValue", "minDistance", "maxDistance", "partyAggregation"},
	collectionType:    {"measurements", "referenceValue", "operation", "minCount", "maxCount", "partyAggregation"},
	latencyType:       {"maxLatency", "maxDistance", "distanceReference", "partyAggregation"},
	batchDistanceType: {"batchAttribute", "maxDistance", "partyAggregation"},
	absoluteSortType:  {"sortDirection", "sortAttribute", "mapKey", "partyAggregation"},
	distanceSortType:  {"sortDirection", "sortAttribute", "mapKey", "partyAggregation"},
	compoundType:      {"statement"},
}

// ruleNode is an element of "rules".
type ruleNode struct {
	object
	name string
	kind ruleType // 0: unknown
	ok   bool     // valid as written, without steps
}

// readRuleHeads reads names and types, to which others refer.
func (r *reader) readRuleHeads(root object) {
	root.list("rules", func(_ int, o object) {
		rule := &ruleNode{object: o}
		name, named := o.text("name")
		if named {
			rule.name = name
			if _, taken := r.ruleByName[name]; taken {
				o.fail("name", "two rules are called %s", quoted(name))
			} else {
				r.ruleByName[name] = len(r.ruleNodes)
			}
		}
		if _, given := o.has("type"); !given {
			o.fail("type", "it is missing, want %s", words(ruleTypes))
		} else {
			rule.kind, _ = choose(o, "type", 0, ruleTypes)
		}
		rule.warnOfUseless()
		r.ruleNodes = append(r.ruleNodes, rule)
	})
	r.replaced = make([]bool, len(r.ruleNodes))
}

func (rule *ruleNode) warnOfUseless() {
	if rule.kind == 0 {
		return
	}
	for i, key := range rule.n.keys {
		if slices.Contains(ruleProperties[rule.kind], key) || key == "name" || key == "type" || key == "description" {
			continue
		}
		known := false
		for _, properties := range ruleProperties {
			known = known || slices.Contains(properties, key)
		}
		if known {
			rule.r.warn(rule.n.items[i].at, rule.join(key), "a rule of type %s has no use for it", rule.kind)
		} else {
			rule.r.warn(rule.n.items[i].at, rule.join(cut(key)), "the property is unknown here and ignored%s", didYouMean(key, ruleProperties[rule.kind]))
		}
	}
}

func (r *reader) readRules() {
	for i, rule := range r.ruleNodes {
		before := len(r.problems)
		if r.large() && rule.kind != 0 && rule.kind != latencyType && rule.kind != batchDistanceType {
			rule.fail("type", "rule type %s is not available for more than %d players, and the teams take up to %d", rule.kind, smallMax, r.sum)
		}
		compiled := r.buildRule(i, rule.object)
		rule.ok = len(r.problems) == before
		r.set.Rules = append(r.set.Rules, compiled)
	}
	for i, rule := range r.set.Rules {
		rule.Replaced = r.replaced[i]
	}
}

// buildRule compiles a rule from an object, which may have values of steps. It reports problems to the object; the rule is then unusable.
func (r *reader) buildRule(i int, o object) *Rule {
	head := r.ruleNodes[i]
	rule := &Rule{Name: head.name, Replaced: r.replaced[i]}
	switch head.kind {
	case comparisonType:
		rule.Form = r.comparison(o)
	case distanceType:
		rule.Form = r.distance(o)
	case collectionType:
		rule.Form = r.collection(o)
	case latencyType:
		rule.Form = r.latency(o)
	case batchDistanceType:
		rule.Form = r.batchDistance(o)
	case absoluteSortType, distanceSortType:
		rule.Form = r.sort(o, head.kind == distanceSortType)
	case compoundType:
		rule.Form = &Compound{Statement: r.statement(i, o)}
	default:
		rule.Form = &Compound{}
	}
	rule.recognise(len(r.names.all))
	return rule
}

// measured is a measurement, or its problem.
type measured struct {
	expr *Expr
	at   int
	path string // below the property: "[1]", or empty
	text string
	err  string
}

// resolved is the result for a text that may be an expression.
type resolved struct {
	expr   *Expr
	syntax *expressionSyntax // it is not an expression
	err    error             // it is an expression, but a name or type is wrong
}

func (r *reader) resolve(text string) resolved {
	if known, ok := r.expressions[text]; ok {
		return known
	}
	var result resolved
	var s syntax
	if s, result.syntax = parseExpression(text); result.syntax == nil {
		result.expr, result.err = r.names.resolve(s)
	}
	r.expressions[text] = result
	return result
}

// measure reads the measurements; fits returns the required type, or "" if the type fits.
func (r *reader) measure(o object, fits func(Type) string) (list []*Expr) {
	n, given := o.has("measurements")
	switch {
	case !given || n.kind == jsonArray && len(n.items) == 0:
		o.fail("measurements", "it is missing or empty, want an expression or a list of expressions")
		return nil
	case n.kind != jsonString && n.kind != jsonArray:
		o.fail("measurements", "got %s, want an expression or a list of expressions", n.shown())
		return nil
	}
	all, done := r.measurements[n]
	if !done {
		all = r.readMeasurements(n)
		r.measurements[n] = all
	}
	for _, m := range all {
		if m.err == "" && m.expr.Type.Element != ElementUnknown {
			if want := fits(m.expr.Type); want != "" {
				m.err = fmt.Sprintf("%s is a %s, want %s", quoted(m.text), m.expr.Type, want)
			}
		}
		if m.err != "" {
			o.failAt("measurements", m.path, m.at, m.err)
			continue
		}
		list = append(list, m.expr)
	}
	return list
}

func (r *reader) readMeasurements(n *node) (all []measured) {
	if n.kind == jsonString {
		return []measured{r.readMeasurement(n, "")}
	}
	for i, item := range n.items {
		all = append(all, r.readMeasurement(item, fmt.Sprintf("[%d]", i)))
	}
	return all
}

func (r *reader) readMeasurement(n *node, path string) measured {
	m := measured{at: n.at, path: path, text: n.text}
	if n.kind != jsonString {
		m.err = fmt.Sprintf("got %s, want an expression", n.shown())
		return m
	}
	result := r.resolve(n.text)
	switch {
	case result.syntax != nil:
		m.err = fmt.Sprintf("%s is not an expression: %s", quoted(n.text), result.syntax.text)
	case result.err != nil:
		m.err = fmt.Sprintf("%s: %s", quoted(n.text), result.err)
	}
	m.expr = result.expr
	return m
}

// reference reads a referenceValue. A text is an expression if it parses as one, else a literal. want is the required type of its values;
// ElementUnknown: numbers or strings.
func (r *reader) reference(o object, want Element) Reference {
	n, given := o.has("referenceValue")
	if !given {
		return Reference{}
	}
	wanted := map[Element]string{
		ElementUnknown: "a number, a string, or an expression of them",
		ElementNumber:  "a number or an expression of numbers", ElementString: "a string or an expression of strings",
	}[want]
	switch n.kind {
	case jsonNumber:
		x, ok := parseDecimal(n.text)
		if !ok || want == ElementString {
			o.fail("referenceValue", "got %s, want %s", n.shown(), wanted)
		}
		return Reference{Literal: Value{Kind: Number, Number: x}}
	case jsonString:
	default:
		o.fail("referenceValue", "got %s, want %s", n.shown(), wanted)
		return Reference{}
	}
	result := r.resolve(n.text)
	if result.syntax != nil {
		x, decimal := parseDecimal(n.text)
		switch {
		case want != ElementNumber:
			return Reference{Literal: Value{Kind: String, Text: n.text}}
		case !decimal:
			o.fail("referenceValue", "got %s, want %s; it is not an expression: %s", n.shown(), wanted, result.syntax.text)
		}
		return Reference{Literal: Value{Kind: Number, Number: x}}
	}
	if result.err != nil {
		o.fail("referenceValue", "%s: %s", quoted(n.text), result.err)
		return Reference{}
	}
	element := result.expr.Type.Element
	fits := element == ElementNumber || element == ElementString
	if element != ElementUnknown && (!fits || want != ElementUnknown && element != want) {
		o.fail("referenceValue", "%s is a %s, want %s", quoted(n.text), result.expr.Type, wanted)
	}
	return Reference{Expr: result.expr}
}
