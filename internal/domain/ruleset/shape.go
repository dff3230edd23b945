package ruleset

import "slices"

// Pattern is a form that many rules have, and for which a matcher can use indexes and running counts.
type Pattern uint8

// "A" is the shape's Column, "B" its Other; players are those of the shape's Teams. Patterns of the first group can reject an incomplete
// candidate, which no later ticket can repair.
const (
	General Pattern = iota // must be evaluated

	PlayerLiteral // comparison: A of each player is in the relation to the literal; numbers or strings
	PlayersEqual  // comparison without reference: all players have the same A
	PlayersDiffer // comparison without reference: no two players have the same A
	Spread        // distance: the highest A of the players minus the lowest is at most Bounds.Max, the only bound
	CommonValues  // collection: at least Bounds.Min strings, the only bound, are in, or equal, each player's A
	AllAccept     // collection: each player's A has at least Bounds.Min, the only bound, of the strings in all players' B
	NoneBlocks    // collection: each player's A has at most Bounds.Max, the only bound, of the ids of all players

	ContainsCount // collection: the number of players whose A contains or equals the literal is within Bounds; only Max rejects early
	TeamMeans     // distance: each team's average A is at most Bounds.Max, the only bound, from that of all players
	TeamSizes     // comparison: the size of the team Column is in the relation to that of the team Other
)

// Shape is the pattern of a measurement, with its columns and teams. Literals, bounds and operations are in the rule's form.
type Shape struct {
	Pattern Pattern
	Column  int
	Other   int
	Teams   []int // ascending indexes in RuleSet.Teams
	All     bool  // Teams are all teams
}

// recognise finds the shapes of a compiled rule and its cost.
func (r *Rule) recognise(teams int) {
	r.Cost = 1
	switch f := r.Form.(type) {
	case *Comparison:
		r.measure(f.Measurements, &f.Reference, teams, f.shape)
	case *Distance:
		r.measure(f.Measurements, &f.Reference, teams, f.shape)
	case *Collection:
		r.measure(f.Measurements, &f.Reference, teams, f.shape)
	}
}

func (r *Rule) measure(measurements []*Expr, reference *Reference, teams int, shape func(*Expr) Shape) {
	cost := 0
	for _, m := range measurements {
		s := shape(m)
		s.All = s.Pattern != General && len(s.Teams) == teams
		r.Shapes = append(r.Shapes, s)
		cost += m.nodes() + reference.Expr.nodes()
	}
	r.Cost = max(1, cost)
}

func (e *Expr) nodes() (n int) {
	for ; e != nil; e = e.Of {
		n++
	}
	return n
}

// players returns the read of an expression that gives each player's own value, flattened or not: every ticket only adds values.
func (e *Expr) players() (read *Expr, ok bool) {
	for e.Op == OpFlatten {
		e = e.Of
	}
	return e, e.Op == OpAttribute || e.Op == OpPlayerIDs
}

// flat is players for one list over all players of the teams, of single values or of collections.
func (e *Expr) flat(element Element, depth int) (read *Expr, ok bool) {
	read, ok = e.players()
	if !ok || read.Op != OpAttribute || e.Type != (Type{element, depth}) {
		return nil, false
	}
	return read, depth == 1+sign(read.ownLists())
}

func sign(b bool) int {
	if b {
		return 1
	}
	return 0
}

func (f *Comparison) shape(m *Expr) Shape {
	if team, ok := m.sizeOfTeam(); ok && f.Reference.Expr != nil {
		if other, ok := f.Reference.Expr.sizeOfTeam(); ok {
			return Shape{Pattern: TeamSizes, Column: team, Other: other}
		}
	}
	read, ok := m.players()
	if !ok || read.Op != OpAttribute {
		return Shape{}
	}
	s := Shape{Column: read.Column, Teams: read.Teams}
	_, flat := m.flat(m.Type.Element, 1)
	single := read.Type.Depth-sign(read.Several) == 1 // not a list of the player's own
	switch {
	case f.Reference.Literal.Kind != None && single:
		s.Pattern = PlayerLiteral
	case f.Reference.Given() || !flat:
		return Shape{}
	case f.Operation == Equal:
		s.Pattern = PlayersEqual
	default:
		s.Pattern = PlayersDiffer
	}
	return s
}

// sizeOfTeam recognises count(teams[a].players).
func (e *Expr) sizeOfTeam() (team int, ok bool) {
	if e.Op != OpCount || e.Of.Op != OpPlayers || e.Of.Several || len(e.Of.Teams) != 1 {
		return 0, false
	}
	return e.Of.Teams[0], true
}

func (f *Distance) shape(m *Expr) Shape {
	ref := f.Reference.Expr
	if ref == nil || !f.Bounds.HasMax || f.Bounds.HasMin {
		return Shape{}
	}
	if read, ok := f.spread(m); ok {
		return Shape{Pattern: Spread, Column: read.Column, Teams: read.Teams}
	}
	if m.Op != OpAvg || ref.Op != OpAvg || m.Of.Op != OpAttribute || !m.Of.Several || m.Of.Type.Depth != 2 {
		return Shape{}
	}
	if read, ok := ref.Of.flat(ElementNumber, 1); ok && read.reads(m.Of) {
		return Shape{Pattern: TeamMeans, Column: read.Column, Teams: read.Teams}
	}
	return Shape{}
}

// spread recognises the distance of the highest from the lowest value, in either order.
func (f *Distance) spread(m *Expr) (read *Expr, ok bool) {
	ref := f.Reference.Expr
	if ref == nil || !(m.Op == OpMax && ref.Op == OpMin || m.Op == OpMin && ref.Op == OpMax) {
		return nil, false
	}
	read, ok1 := m.Of.flat(ElementNumber, 1)
	other, ok2 := ref.Of.flat(ElementNumber, 1)
	return read, ok1 && ok2 && read.reads(other)
}

// reads reports whether two reads return the same values.
func (e *Expr) reads(other *Expr) bool {
	return e.Op == other.Op && e.Column == other.Column && slices.Equal(e.Teams, other.Teams)
}

// ownLists reports whether a read gives each player's own list, which no later ticket changes. Otherwise innermost lists are
// a team's strings, and grow.
func (e *Expr) ownLists() bool { return e.Op == OpAttribute && e.Type.Depth-sign(e.Several) == 2 }

func (f *Collection) shape(m *Expr) Shape {
	read, collections := m.flat(ElementString, 2)
	if !collections {
		var ok bool
		if read, ok = m.flat(ElementString, 1); !ok {
			return Shape{}
		}
	}
	s := Shape{Column: read.Column, Teams: read.Teams}
	onlyMin, onlyMax := f.Bounds.HasMin && !f.Bounds.HasMax, f.Bounds.HasMax && !f.Bounds.HasMin
	switch {
	case f.Operation == Intersection && onlyMin:
		s.Pattern = CommonValues
	case f.Operation == Contains && f.Reference.Expr == nil:
		s.Pattern = ContainsCount
	case f.Operation == ReferenceIntersectionCount && collections && f.Reference.Expr != nil:
		return f.shapeOfReference(s, onlyMin, onlyMax)
	default:
		return Shape{}
	}
	return s
}

func (f *Collection) shapeOfReference(s Shape, onlyMin, onlyMax bool) Shape {
	ref := f.Reference.Expr
	if ref.Op == OpSetIntersection && onlyMin {
		if read, ok := ref.Of.flat(ElementString, 2); ok && read.sameTeams(s.Teams) {
			s.Pattern, s.Other = AllAccept, read.Column
			return s
		}
	}
	if read, ok := ref.players(); ok && read.Op == OpPlayerIDs && onlyMax && read.sameTeams(s.Teams) {
		s.Pattern = NoneBlocks
		return s
	}
	return Shape{}
}

func (e *Expr) sameTeams(teams []int) bool {
	return e.reads(&Expr{Op: e.Op, Column: e.Column, Teams: teams})
}

// collects reports whether the innermost lists of an expression are collections: a player's own list, or an intersection. Otherwise they
// have strings of several players, and each string is a collection of one. B097.
func (e *Expr) collects() bool {
	switch e.Op {
	case OpSetIntersection:
		return true
	case OpFlatten:
		return e.Of.collects() && e.Of.Type.Depth > 2 // with fewer lists no list is left around a collection's strings
	default:
		return e.ownLists()
	}
}
