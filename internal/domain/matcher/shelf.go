package matcher

import (
	"math"
	"slices"
)

// groupKey has the words of the features by which the pool is split. Tickets of different groups never match.
type groupKey [maxEquals]uint64

type group struct {
	shelves []*shelf
	tickets int
}

// shelf has the tickets of a group that fit the same teams, so that a walk skips tickets whose teams are full. Backfills have shelves of
// their own. A shelf sorts tickets into cells by a number, if a rule requires near ones, and by age.
type shelf struct {
	group    *group
	key      groupKey
	teams    uint64
	backfill bool
	tickets  int
	widths   []map[int64]*ageList // one for each of plan.widths
	list     ageList              // if there are no cells
}

// fits returns the teams that a ticket fits by itself at some level.
func (m *Matcher) fits(slot int32) uint64 {
	t := &m.pool.tickets[slot]
	if m.rules.Large || t.backfill {
		return allTeams
	}
	var teams uint64
	for i := range m.plan.levels {
		teams |= m.fitsAt(&m.plan.levels[i], t)
	}
	return teams
}

// fitsAt returns the teams that a new ticket fits by itself at a level.
func (m *Matcher) fitsAt(l *levelPlan, t *ticket) (teams uint64) {
	for i, size := range l.level.Teams {
		if t.players <= size.Max {
			teams |= 1 << i
		}
	}
	for i := range l.byTeam {
		c := &l.byTeam[i]
		if c.kind == checkLiteral && !c.soft && t.literals>>c.word&1 == 0 {
			teams &^= c.teams
		}
	}
	return teams
}

func (m *Matcher) groupKey(row []uint64) (key groupKey) {
	for i, word := range m.plan.equals {
		key[i] = row[word]
	}
	return key
}

// shelve adds a ticket to its shelf.
func (m *Matcher) shelve(slot int32) {
	t := &m.pool.tickets[slot]
	key, teams := m.groupKey(m.row(slot)), m.fits(slot)
	g := m.pool.groups[key]
	if g == nil {
		g = &group{}
		m.pool.groups[key] = g
	}
	g.tickets++
	at := slices.IndexFunc(g.shelves, func(s *shelf) bool { return s.teams == teams && s.backfill == t.backfill })
	if at < 0 {
		at = len(g.shelves)
		g.shelves = append(g.shelves, &shelf{group: g, key: key, teams: teams, backfill: t.backfill})
	}
	s := g.shelves[at]
	t.shelf = s
	s.tickets++
	m.insert(&m.pool.ages, slot)
	if t.backfill {
		m.pool.backfills++
	}
	if m.plan.near < 0 {
		m.insert(&s.list, slot)
		return
	}
	if s.widths == nil {
		s.widths = make([]map[int64]*ageList, len(m.plan.widths))
		for i := range s.widths {
			s.widths[i] = map[int64]*ageList{}
		}
	}
	for i, width := range m.plan.widths {
		at := cell(math.Float64frombits(m.row(slot)[m.plan.place]), width)
		list := s.widths[i][at]
		if list == nil {
			list = &ageList{}
			s.widths[i][at] = list
		}
		m.insert(list, slot)
	}
}

func (m *Matcher) unshelve(slot int32) {
	t := &m.pool.tickets[slot]
	s := t.shelf
	m.take(&m.pool.ages, slot)
	if t.backfill {
		m.pool.backfills--
	}
	if m.plan.near < 0 {
		m.take(&s.list, slot)
	}
	for i := range s.widths {
		at := cell(math.Float64frombits(m.row(slot)[m.plan.place]), m.plan.widths[i])
		list := s.widths[i][at]
		if m.take(list, slot); list.tickets == 0 {
			delete(s.widths[i], at)
		}
	}
	t.shelf = nil
	s.tickets--
	g := s.group
	if s.tickets == 0 {
		g.shelves = slices.DeleteFunc(g.shelves, func(other *shelf) bool { return other == s })
	}
	if g.tickets--; g.tickets == 0 {
		delete(m.pool.groups, s.key)
	}
}

// cell returns the cell of a number. Numbers too large for a cell of their own share the last.
func cell(x, width float64) int64 {
	const edge = 1 << 53
	switch at := math.Floor(x / width); {
	case at >= edge:
		return edge
	case at <= -edge:
		return -edge
	default:
		return int64(at)
	}
}
