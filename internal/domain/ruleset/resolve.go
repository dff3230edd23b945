package ruleset

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// operations are the functions of the language.
var operations = map[string]Op{
	"min": OpMin, "max": OpMax, "avg": OpAvg, "median": OpMedian, "sum": OpSum, "stddev": OpStddev, "count": OpCount,
	"flatten": OpFlatten, "set_intersection": OpSetIntersection,
}

// callsMax is the deepest nesting of calls.
const callsMax = 16

var elementNames = [...]string{
	ElementUnknown: "unknown", ElementNumber: "number", ElementString: "string", ElementMap: "string_number_map",
	ElementPlayer: "Player", ElementTeam: "Team",
}

func (t Type) String() string {
	return strings.Repeat("List<", t.Depth) + elementNames[t.Element] + strings.Repeat(">", t.Depth)
}

// names has the names that expressions can use.
type names struct {
	attributes []Attribute
	column     map[string]int
	teams      map[string][]int // definitions and generated teams
	all        []int
	incomplete bool // the teams have problems, so an unknown name is not one
	hints      int
}

// hintsMax is the most unknown names of a rule set for which similar ones are searched: a body may have a thousand unknown names and as many
// declared ones, and only its first problems are shown.
const hintsMax = 100

// similar returns the end of a message about an unknown name. It ignores names that are too long for a message.
func similar[T any](n *names, unknown string, known map[string]T) string {
	if n.hints++; n.hints > hintsMax || len(unknown) > shownMax {
		return ""
	}
	return didYouMean(unknown, slices.Sorted(maps.Keys(known)))
}

// resolve looks up the names of an expression and finds its type.
func (n *names) resolve(s syntax) (*Expr, error) {
	if len(s.calls) > callsMax {
		return nil, fmt.Errorf("calls nest %d deep, want at most %d", len(s.calls), callsMax)
	}
	e := &Expr{Column: -1}
	if err := n.selectTeams(e, s); err != nil {
		return nil, err
	}
	if err := n.read(e, s); err != nil {
		return nil, err
	}
	for i := len(s.calls) - 1; i >= 0; i-- {
		outer, err := call(s.calls[i], e)
		if err != nil {
			return nil, err
		}
		e = outer
	}
	return e, nil
}

func (n *names) selectTeams(e *Expr, s syntax) error {
	if s.all {
		e.Teams, e.Several = n.all, true
		return nil
	}
	selected := make(map[int]bool)
	for _, name := range s.names {
		teams, ok := n.teams[name]
		switch {
		case !ok && n.incomplete:
		case !ok:
			return fmt.Errorf("the team %s is unknown%s", quoted(name), similar(n, name, n.teams))
		case len(s.names) == 1: // shares the definition's list, because a rule set may contain it thousands of times
			e.Teams, e.Several = teams, len(teams) > 1
			return nil
		}
		for _, team := range teams {
			selected[team] = true
		}
	}
	e.Several = len(s.names) > 1
	for _, team := range n.all { // the order of the rule set, not of the expression
		if selected[team] {
			e.Teams = append(e.Teams, team)
		}
	}
	return nil
}

func (n *names) read(e *Expr, s syntax) error {
	switch s.part {
	case partTeams:
		e.Op, e.Type = OpTeams, Type{ElementTeam, 0}
	case partPlayers:
		e.Op, e.Type = OpPlayers, Type{ElementPlayer, 1}
	case partIDs:
		e.Op, e.Type = OpPlayerIDs, Type{ElementString, 1}
	case partAttribute:
		column, ok := n.column[s.attribute]
		if !ok {
			return fmt.Errorf("the attribute %s is not declared%s", quoted(s.attribute), similar(n, s.attribute, n.column))
		}
		e.Op, e.Column = OpAttribute, column
		switch n.attributes[column].Kind {
		case Number:
			e.Type = Type{ElementNumber, 1}
		case String:
			e.Type = Type{ElementString, 1}
		case List:
			e.Type = Type{ElementString, 2}
		case Map:
			e.Type = Type{ElementMap, 1}
		}
	}
	if e.Several {
		e.Type.Depth++
	}
	return nil
}

// call wraps an expression in a function. All except flatten take the innermost list that fits them; flatten removes the outermost.
func call(function string, of *Expr) (*Expr, error) {
	e := &Expr{Op: operations[function], Of: of, Column: -1, Type: of.Type, Computed: of.Computed}
	if of.Type.Element == ElementUnknown {
		return e, nil
	}
	depth, want := 1, "a list"
	switch e.Op {
	case OpCount:
		e.Type.Element, e.Computed = ElementNumber, false
	case OpFlatten:
		depth, want = 2, "a list of lists"
	case OpSetIntersection:
		depth, want = 2, "lists of strings"
		if of.Type.Element != ElementString {
			depth = of.Type.Depth + 1
		}
	default:
		want = "a list of numbers"
		if of.Type.Element != ElementNumber {
			depth = of.Type.Depth + 1
		}
		e.Computed = of.Computed || e.Op != OpMin && e.Op != OpMax
	}
	if of.Type.Depth < depth {
		return nil, fmt.Errorf("%s takes %s, got %s", function, want, of.Type)
	}
	e.Type.Depth--
	return e, nil
}
