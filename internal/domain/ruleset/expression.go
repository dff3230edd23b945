package ruleset

// Op is the operation of an expression's node.
type Op uint8

// The first four read the candidate, the others are functions of Of.
const (
	OpTeams Op = iota + 1
	OpPlayers
	OpPlayerIDs
	OpAttribute
	OpMin
	OpMax
	OpAvg
	OpMedian
	OpSum
	OpStddev
	OpCount
	OpFlatten
	OpSetIntersection
)

// Element is the type of the innermost elements of a list, or of a scalar.
type Element uint8

// The elements.
const (
	ElementUnknown Element = iota // of an attribute with an invalid declaration; never in a RuleSet
	ElementNumber
	ElementString
	ElementMap
	ElementPlayer
	ElementTeam
)

// Type is an expression's type: Depth lists around an Element. A string_list is a list of strings, so it adds to the depth.
type Type struct {
	Element Element
	Depth   int
}

// Expr is a property expression: a read of the candidate inside any number of functions.
type Expr struct {
	Op       Op
	Of       *Expr // the argument of a function; nil in reads
	Teams    []int // of reads: the selected teams, indexes in RuleSet.Teams, ascending
	Several  bool  // of reads: the selection gives a list with an element for each team, even for one team
	Column   int   // of OpAttribute: the index in RuleSet.Attributes
	Type     Type
	Computed bool // numbers are results of avg, median, sum or stddev, and so have rounding errors
}

// Read returns the innermost node.
func (e *Expr) Read() *Expr {
	for e.Of != nil {
		e = e.Of
	}
	return e
}
