package ruleset

import "slices"

// listsMax is the deepest nesting of lists in an expression: teams, their players, a player's own list.
const listsMax = 3

// nested is the value of an expression: lists around numbers, strings, players or teams. The lists are stored as lengths: lens[0] has the
// one length of the outermost list, lens[1] those of its elements, and so on; the innermost values are in one array. So flatten drops
// lens[0], and a function over innermost lists drops the last.
type nested struct {
	undefined bool // a part of it has no value; the other fields are then meaningless
	depth     int
	lens      [listsMax][]int
	numbers   []float64
	texts     []string
}

// last returns the lengths of the innermost lists.
func (n *nested) last() []int { return n.lens[n.depth-1] }

// evaluate computes an expression over a candidate.
func (e *Expr) evaluate(c *Candidate) nested {
	if e.Of == nil {
		return e.readCandidate(c)
	}
	n := e.Of.evaluate(c)
	if n.undefined {
		return n
	}
	switch e.Op {
	case OpFlatten:
		total := 0
		for _, length := range n.lens[1] {
			total += length
		}
		n.depth--
		n.lens = [listsMax][]int{{total}, n.lens[2]}
		return n
	case OpCount:
		counts := make([]float64, len(n.last()))
		for i, length := range n.last() {
			counts[i] = float64(length)
		}
		n.depth, n.numbers, n.texts = n.depth-1, counts, nil
		return n
	case OpSetIntersection:
		return n.intersections()
	default:
		return n.folded(e.Op)
	}
}

func (n *nested) folded(op Op) nested {
	results, rest := make([]float64, 0, len(n.last())), n.numbers
	for _, length := range n.last() {
		x, ok := fold(op, rest[:length])
		if !ok {
			return nested{undefined: true}
		}
		results, rest = append(results, x), rest[length:]
	}
	return nested{depth: n.depth - 1, lens: n.lens, numbers: results}
}

// intersections replaces each list of lists by their intersection.
func (n *nested) intersections() nested {
	result := nested{depth: n.depth - 1, lens: n.lens}
	outer, lists := n.lens[n.depth-2], n.innermost()
	lengths := make([]int, 0, len(outer))
	for _, length := range outer {
		if length == 0 {
			return nested{undefined: true}
		}
		common := intersection(lists[:length])
		lists = lists[length:]
		lengths, result.texts = append(lengths, len(common)), append(result.texts, common...)
	}
	result.lens[n.depth-2] = lengths
	return result
}

// intersection returns the distinct strings that are in all lists, in the order of the first.
func intersection(lists [][]string) []string {
	var common []string
	for _, s := range lists[0] {
		everywhere := !slices.Contains(common, s)
		for _, list := range lists[1:] {
			everywhere = everywhere && slices.Contains(list, s)
		}
		if everywhere {
			common = append(common, s)
		}
	}
	return common
}

// innermost returns the innermost lists of strings.
func (n *nested) innermost() [][]string {
	lists, rest := make([][]string, len(n.last())), n.texts
	for i, length := range n.last() {
		lists[i], rest = rest[:length:length], rest[length:]
	}
	return lists
}

func (n *nested) nest(lengths []int) {
	n.lens[n.depth] = lengths
	n.depth++
}

// readCandidate evaluates an expression without functions.
func (e *Expr) readCandidate(c *Candidate) nested {
	var n nested
	if e.Op == OpTeams {
		if e.Several {
			n.nest([]int{len(e.Teams)})
		}
		return n
	}
	sizes, players := make([]int, len(e.Teams)), 0
	for i, team := range e.Teams {
		sizes[i] = len(c.Teams[team])
		players += sizes[i]
	}
	if e.Several {
		n.nest([]int{len(sizes)})
	}
	n.nest(sizes)
	switch {
	case e.Op == OpPlayers:
		return n
	case e.Op == OpPlayerIDs || e.Type.Element == ElementString:
		n.texts = make([]string, 0, players)
	case e.Type.Element == ElementNumber:
		n.numbers = make([]float64, 0, players)
	}
	var lists []int
	if e.ownLists() {
		lists = make([]int, 0, players)
	}
	for _, team := range e.Teams {
		for i := range c.Teams[team] {
			if e.Op == OpPlayerIDs {
				n.texts = append(n.texts, c.Teams[team][i].ID)
			} else {
				lists = n.add(&c.Teams[team][i].Values[e.Column], lists)
			}
		}
	}
	if e.ownLists() {
		n.nest(lists)
	}
	return n
}

// add appends a player's value. A player without one makes the expression undefined.
func (n *nested) add(v *Value, lists []int) []int {
	switch v.Kind {
	case None:
		n.undefined = true
	case Number:
		n.numbers = append(n.numbers, v.Number)
	case String:
		n.texts = append(n.texts, v.Text)
	case List:
		n.texts = append(n.texts, v.List...)
		return append(lists, len(v.List))
	}
	return lists
}
