package ruleset

// Rule is a rule at a level. Levels share the rules in which they do not differ.
type Rule struct {
	Name     string
	Form     Form
	Replaced bool    // named by a compound rule, and so not required by itself
	Shapes   []Shape // for comparison, distance and collection: one for each measurement
	Cost     int     // nodes of expressions that a check evaluates, at least 1; budgets count it
}

// Form has the properties of a rule of one type: *Comparison, *Distance, *Collection, *Latency, *BatchDistance, *Sort or *Compound.
type Form interface{ form() }

// Reference is the value that measurements are compared with. Exactly one field is set, or none in a Comparison of values with each
// other.
type Reference struct {
	Expr    *Expr
	Literal Value // Number or String
}

// Given reports whether there is a reference.
func (r *Reference) Given() bool { return r.Expr != nil || r.Literal.Kind != None }

// Bounds is an inclusive interval; a bound that was not given is infinite.
type Bounds struct {
	Min, Max       float64
	HasMin, HasMax bool
}

// Comparison holds if every value of every measurement is in the relation to every value of the reference; without a reference, if the
// values of each innermost list are all equal, or all different.
type Comparison struct {
	Measurements []*Expr
	Reference    Reference
	Operation    Operation
	Party        Aggregation // has no effect on the verdict
}

// Distance holds if the distance of every value from every value of the reference is within the bounds.
type Distance struct {
	Measurements []*Expr
	Reference    Reference
	Bounds       Bounds
	Party        Aggregation // has no effect on the verdict
}

// CollectionOperation determines what a Collection counts.
type CollectionOperation uint8

// The operations.
const (
	Contains                   CollectionOperation = iota + 1 // the collections that contain the reference
	Intersection                                              // the strings that are in all collections
	ReferenceIntersectionCount                                // for each collection, its strings that are in the reference
)

// Collection holds if its counts are within the bounds.
type Collection struct {
	Measurements []*Expr
	Reference    Reference
	Operation    CollectionOperation
	Bounds       Bounds
	Party        Aggregation // has no effect on the verdict
}

// Latency holds if there is a region that all players reported and that suits all of them.
type Latency struct {
	MaxLatency  float64
	HasLatency  bool
	MaxDistance float64     // of a ticket's value to the reference over all players
	HasDistance bool        // never in large rule sets
	Reference   Aggregation // Avg or Min
	Party       Aggregation
}

// BatchDistance compares tickets. For a number, the difference between the highest and the lowest of the tickets' values is at most
// MaxDistance. For a string, all players have the same.
type BatchDistance struct {
	Column      int
	Kind        Kind // Number or String
	MaxDistance float64
	Party       Aggregation
}

// Sort is not a condition: it orders the tickets that are tried after the anchor.
type Sort struct {
	Distance   bool // by the distance to the anchor's value, not by the value
	Descending bool
	Column     int
	Kind       Kind // Number, String or Map
	MapKey     MapKey
	Party      Aggregation
}

// MapKey determines which key of the anchor's map is read from all maps.
type MapKey uint8

// The choices.
const (
	MinValue MapKey = iota + 1 // the one with the lowest value
	MaxValue
)

// Compound is a logical expression over earlier rules, which it replaces.
type Compound struct {
	Statement *Statement
}

// Statement is a node of a compound rule.
type Statement struct {
	Logic Logic
	Rule  int // of LogicRule: the index in the rules
	Of    []*Statement
}

// Logic is the operation of a Statement.
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

// Aggregation reduces the values of a party to one.
type Aggregation uint8

// The last two are for collections.
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
