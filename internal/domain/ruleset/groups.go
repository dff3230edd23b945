package ruleset

import "slices"

// check counts within each list of collections. A string outside a list is a collection of one. B097.
func (f *Collection) check(m *Expr, bounds Bounds, c *Candidate) Verdict {
	n := m.evaluate(c)
	if n.undefined {
		return Undefined
	}
	var reference nested
	if f.Operation != Intersection {
		if reference, _ = f.Reference.values(c); reference.undefined {
			return Undefined
		}
	}
	lists, groups := n.collections(m.collects())
	if f.Operation == ReferenceIntersectionCount {
		return verdictOf(!slices.ContainsFunc(lists, func(list []string) bool {
			return !bounds.holdCount(distinctIn(list, reference.texts))
		}))
	}
	verdict := Holds
	for _, length := range groups {
		switch f.checkGroup(lists[:length], reference.texts, bounds) {
		case Undefined:
			return Undefined
		case Fails:
			verdict = Fails
		}
		lists = lists[length:]
	}
	return verdict
}

// collections returns all collections, and the sizes of the groups that are counted together. innermost: the innermost lists are the
// collections; otherwise each string is one.
func (n *nested) collections(innermost bool) (lists [][]string, groups []int) {
	switch {
	case !innermost:
		return singles(n.texts), n.last()
	case n.depth == 1:
		return n.innermost(), []int{1}
	default:
		return n.innermost(), n.lens[n.depth-2]
	}
}

// checkGroup counts among collections that are counted together.
func (f *Collection) checkGroup(lists [][]string, reference []string, bounds Bounds) Verdict {
	if f.Operation == Intersection {
		if len(lists) == 0 {
			return Undefined // like set_intersection of no lists
		}
		return verdictOf(bounds.holdCount(len(intersection(lists))))
	}
	for _, wanted := range reference {
		count := 0
		for _, list := range lists {
			if slices.Contains(list, wanted) {
				count++
			}
		}
		if !bounds.holdCount(count) {
			return Fails
		}
	}
	return Holds
}

func singles(texts []string) [][]string {
	lists := make([][]string, len(texts))
	for i := range texts {
		lists[i] = texts[i : i+1 : i+1]
	}
	return lists
}

// distinctIn counts the distinct strings of a list that are in another.
func distinctIn(list, other []string) (n int) {
	for i, s := range list {
		if slices.Contains(other, s) && !slices.Contains(list[:i], s) {
			n++
		}
	}
	return n
}

// check searches for a region that all players reported and that suits all of them.
func (f *Latency) check(c *Candidate) Verdict {
	return f.anyRegion(c, func(region string) bool { return f.near(c, region) })
}

// anyRegion searches for a region that all players reported, none with a latency above the maximum, and for which good is true.
func (f *Latency) anyRegion(c *Candidate, good func(region string) bool) Verdict {
	var first *Player
	for _, players := range c.Teams {
		if len(players) > 0 {
			first = &players[0]
			break
		}
	}
	if first == nil {
		return Undefined
	}
	for _, l := range first.Latencies {
		if f.everybody(c, l.Region) && good(l.Region) {
			return Holds
		}
	}
	return Fails
}

func (f *Latency) everybody(c *Candidate, region string) bool {
	for _, players := range c.Teams {
		for i := range players {
			ms, ok := players[i].latency(region)
			if !ok || f.HasLatency && float64(ms) > f.MaxLatency {
				return false
			}
		}
	}
	return true
}

func (p *Player) latency(region string) (ms int32, ok bool) {
	for _, l := range p.Latencies {
		if l.Region == region {
			return l.Milliseconds, true
		}
	}
	return 0, false
}

// near reports whether every ticket's latency is near the reference over all players.
func (f *Latency) near(c *Candidate, region string) bool {
	if !f.HasDistance {
		return true
	}
	var all []float64
	for _, players := range c.Teams {
		for i := range players {
			ms, _ := players[i].latency(region)
			all = append(all, float64(ms))
		}
	}
	reference := f.Reference.Of(all)
	for _, ticket := range c.tickets(func(p *Player) float64 { ms, _ := p.latency(region); return float64(ms) }) {
		if !AtMost(Difference(f.Party.Of(ticket), reference, true), f.MaxDistance) {
			return false
		}
	}
	return true
}

// tickets returns a number for each player, grouped by ticket.
func (c *Candidate) tickets(number func(*Player) float64) (groups [][]float64) {
	place := make(map[int]int)
	for _, players := range c.Teams {
		for i := range players {
			p, known := place[players[i].Ticket]
			if !known {
				p = len(groups)
				place[players[i].Ticket] = p
				groups = append(groups, nil)
			}
			groups[p] = append(groups[p], number(&players[i]))
		}
	}
	return groups
}

func (f *BatchDistance) check(c *Candidate) Verdict {
	var first *Value
	for _, players := range c.Teams {
		for i := range players {
			switch v := &players[i].Values[f.Column]; {
			case v.Kind == None:
				return Undefined
			case first == nil:
				first = v
			case f.Kind == String && v.Text != first.Text:
				return Fails
			}
		}
	}
	if first == nil || f.Kind == String {
		return Holds
	}
	var values []float64
	for _, ticket := range c.tickets(func(p *Player) float64 { return p.Values[f.Column].Number }) {
		x := f.Party.Of(ticket)
		if !finite(x) {
			return Undefined
		}
		values = append(values, x)
	}
	return verdictOf(AtMost(Difference(slices.Max(values), slices.Min(values), f.Party == Avg), f.MaxDistance))
}
