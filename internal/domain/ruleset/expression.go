package ruleset

// Op is what an expression's node does.
type Op uint8

// The ops. The first four read the candidate, the others work on what Of gives.
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

// Element is what a list holds at its innermost, or what a scalar is.
type Element uint8

// The elements.
const (
	ElementUnknown Element = iota // of an attribute whose declaration is broken; never in a RuleSet
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

// Expr is a property expression: a read of the candidate inside of any number of functions.
type Expr struct {
	Op       Op
	Of       *Expr // the argument of a function; nil in reads
	Teams    []int // of reads: the selected teams, places in RuleSet.Teams, ascending
	Several  bool  // of reads: the selection gives a list, one element a team, even if it is one team
	Column   int   // of OpAttribute: the place in RuleSet.Attributes
	Type     Type
	Computed bool // numbers come out of avg, median, sum or stddev, and so carry rounding errors
}

// Read returns the innermost node.
func (e *Expr) Read() *Expr {
	for e.Of != nil {
		e = e.Of
	}
	return e
}
