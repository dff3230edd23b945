package ruleset

// Rule is one rule as it stands at a level. Levels share the rules in which they do not differ.
type Rule struct {
	Name     string
	Form     Form
	Replaced bool    // named by a compound rule, and so not required by itself
	Shapes   []Shape // for comparison, distance and collection: one for each measurement
	Cost     int     // nodes of expressions that a check evaluates, at least 1: what a budget should count

	early []bool // by measurement: it can reject a candidate under construction
}

// Form is what a rule of one type consists of: *Comparison, *Distance, *Collection, *Latency, *BatchDistance, *Sort or
// *Compound.
type Form interface{ form() }

// Reference is what measurements are held against. Exactly one is set, or none in a Comparison of values with each other.
type Reference struct {
	Expr    *Expr
	Literal Value // Number or String
}

// Given reports whether there is a reference.
func (r *Reference) Given() bool { return r.Expr != nil || r.Literal.Kind != None }

// Bounds are an inclusive interval; a bound that was not given does not bind.
type Bounds struct {
	Min, Max       float64
	HasMin, HasMax bool
}

// Comparison holds when every value of every measurement stands in the relation to every value of the reference; without
// one, when the values of each innermost list are all equal, or all different.
type Comparison struct {
	Measurements []*Expr
	Reference    Reference
	Operation    Operation
	Party        Aggregation // has no effect on the verdict
}

// Distance holds when every value is as far from every value of the reference as the bounds say.
type Distance struct {
	Measurements []*Expr
	Reference    Reference
	Bounds       Bounds
	Party        Aggregation // has no effect on the verdict
}

// CollectionOperation is what a Collection counts.
type CollectionOperation uint8

// The operations.
const (
	Contains                   CollectionOperation = iota + 1 // the collections that contain the reference
	Intersection                                              // the strings that are in all collections
	ReferenceIntersectionCount                                // for each collection, its strings that are in the reference
)

// Collection holds when its counts lie within the bounds.
type Collection struct {
	Measurements []*Expr
	Reference    Reference
	Operation    CollectionOperation
	Bounds       Bounds
	Party        Aggregation // has no effect on the verdict
}

// Latency holds when there is a region that everybody reported and that suits everybody.
type Latency struct {
	MaxLatency  float64
	HasLatency  bool
	MaxDistance float64     // of a ticket's value to the reference over all players
	HasDistance bool        // never in large rule sets
	Reference   Aggregation // Avg or Min
	Party       Aggregation
}

// BatchDistance compares tickets. Of a number: the highest less the lowest of the tickets' values is at most MaxDistance.
// Of a string: all players have the same.
type BatchDistance struct {
	Column      int
	Kind        Kind // Number or String
	MaxDistance float64
	Party       Aggregation
}

// Sort is no condition: it orders the tickets that are tried after the anchor.
type Sort struct {
	Distance   bool // by the distance to the anchor's value, not by the value
	Descending bool
	Column     int
	Kind       Kind // Number, String or Map
	MapKey     MapKey
	Party      Aggregation
}

// MapKey says which key of the anchor's map is looked up in the maps of all.
type MapKey uint8

// The choices.
const (
	MinValue MapKey = iota + 1 // the one with the lowest value
	MaxValue
)

// Compound is logic over earlier rules, which it replaces.
type Compound struct {
	Statement *Statement
}

// Statement is a node of a compound rule.
type Statement struct {
	Logic Logic
	Rule  int // of LogicRule: the place in the rules
	Of    []*Statement
}

// Logic is what a Statement does.
type Logic uint8

// The logic.
const (
	LogicRule Logic = iota + 1
	LogicAnd
	LogicOr
	LogicXor // exactly one
	LogicNot
)

func (*Comparison) form()    {}
func (*Distance) form()      {}
func (*Collection) form()    {}
func (*Latency) form()       {}
func (*BatchDistance) form() {}
func (*Sort) form()          {}
func (*Compound) form()      {}

// Aggregation makes one value of a party's.
type Aggregation uint8

// The aggregations; the last two are of collections.
const (
	Avg Aggregation = iota + 1
	Min
	Max
	Union
	PartyIntersection
)

// Operation is how a Comparison compares.
type Operation uint8

// The operations.
const (
	Less Operation = iota + 1
	LessOrEqual
	Equal
	NotEqual
	Greater
	GreaterOrEqual
)

func (op Operation) String() string { return comparisons[op-1].word }
