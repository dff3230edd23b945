package ruleset

import "slices"

// nested is what an expression gives: Depth lists around numbers, strings, players or teams. The lists are kept as
// lengths: lens[0] has the one length of the outermost list, lens[1] those of its elements, and so on; leaves stand side by
// side. So flatten drops lens[0], and a function over innermost lists drops the last.
type nested struct {
	undefined bool // a part of it has no value; nothing else counts then
	lens      [][]int
	numbers   []float64
	texts     []string
	leaves    int // all leaves, also those that are neither numbers nor strings
}

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
		n.lens = n.lens[1:]
		total := 0
		for _, length := range n.lens[0] {
			total += length
		}
		n.lens = slices.Concat([][]int{{total}}, n.lens[1:])
		return n
	case OpCount:
		innermost := n.lens[len(n.lens)-1]
		counts := make([]float64, len(innermost))
		for i, length := range innermost {
			counts[i] = float64(length)
		}
		return nested{lens: n.lens[:len(n.lens)-1], numbers: counts, leaves: len(counts)}
	case OpSetIntersection:
		return n.intersections()
	default:
		return n.folded(e.Op)
	}
}

func (n *nested) folded(op Op) nested {
	innermost := n.lens[len(n.lens)-1]
	results, rest := make([]float64, 0, len(innermost)), n.numbers
	for _, length := range innermost {
		x, ok := fold(op, rest[:length])
		if !ok {
			return nested{undefined: true}
		}
		results, rest = append(results, x), rest[length:]
	}
	return nested{lens: n.lens[:len(n.lens)-1], numbers: results, leaves: len(results)}
}

// intersections makes one list of each list of lists.
func (n *nested) intersections() nested {
	outer := n.lens[len(n.lens)-2]
	lengths, texts := make([]int, 0, len(outer)), []string(nil)
	lists := n.innermost()
	for _, length := range outer {
		if length == 0 {
			return nested{undefined: true}
		}
		common := intersection(lists[:length])
		lists = lists[length:]
		lengths, texts = append(lengths, len(common)), append(texts, common...)
	}
	return nested{lens: slices.Concat(n.lens[:len(n.lens)-2], [][]int{lengths}), texts: texts, leaves: len(texts)}
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
	lengths := n.lens[len(n.lens)-1]
	lists, rest := make([][]string, len(lengths)), n.texts
	for i, length := range lengths {
		lists[i], rest = rest[:length:length], rest[length:]
	}
	return lists
}

// readCandidate is an expression without functions.
func (e *Expr) readCandidate(c *Candidate) nested {
	var n nested
	if e.Op == OpTeams {
		n.leaves = len(e.Teams)
		if e.Several {
			n.lens = [][]int{{n.leaves}}
		}
		return n
	}
	var sizes, lists []int
	for _, team := range e.Teams {
		players := c.Teams[team]
		sizes = append(sizes, len(players))
		for i := range players {
			n.leaves++
			switch e.Op {
			case OpPlayerIDs:
				n.texts = append(n.texts, players[i].ID)
			case OpAttribute:
				lists = n.add(&players[i].Values[e.Column], lists)
			}
		}
	}
	if e.Several {
		n.lens = append(n.lens, []int{len(sizes)})
	}
	n.lens = append(n.lens, sizes)
	if e.Op == OpAttribute && e.Type.Depth > len(n.lens) {
		n.lens = append(n.lens, lists)
		n.leaves = len(n.texts)
	}
	return n
}

// add appends a player's value. A player who misses it leaves the expression without one.
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
