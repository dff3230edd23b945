package matcher

import (
	"fmt"
	"math"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/ruleset"
)

// ticket has what a search reads of each ticket while it walks the pool, in one cache line. The ticket's row has the features, its record
// the rest.
type ticket struct {
	start    domain.Time
	no       uint64
	literals uint64 // bits of plan.literals that hold for all its players
	class    uint64 // see Matcher.class; of tickets with equal classes a search tries only one
	shelf    *shelf // nil: it is unmatchable and in no index
	players  int32
	searched int32 // levels at which no match was found around it, 0 to searched-1
	backfill bool
	queued   queued
	effort   Effort
}

// record has the rest of a ticket.
type record struct {
	key     uint64
	players []ruleset.Player
	roster  *roster // of a backfill
	fault   string  // why it is unmatchable
}

// roster has what only a backfill has: its players are on teams already.
type roster struct {
	free  int32 // newcomers
	sizes []int32
	parts []part
}

// part has the players of a roster on one team.
type part struct {
	team    int
	who     []int32 // indexes into record.players
	players []ruleset.Player
	row     []uint64
	bits    uint64 // literals
}

// pool has all tickets, in slots that are reused.
type pool struct {
	tickets []ticket
	records []record
	rows    []uint64 // plan.words for each slot
	counts  []uint32 // for each slot and rule: passed, failed
	free    []int32
	slots   map[uint64]int32
	ages    ageList // of all matchable tickets
	groups  map[groupKey]*group
	regions regionTable
	texts   textTable
	players int
	faulty  int // tickets

	backfills int // matchable ones
}

// Add puts a ticket into the pool. It fails, and changes nothing, for an attribute of a type other than declared, a roster player on a
// team that does not exist, and a key that is in the pool already.
func (m *Matcher) Add(t Ticket) error {
	if _, ok := m.pool.slots[t.Key]; ok {
		return fmt.Errorf("ticket %d: is in the pool already, want a key that is not", t.Key)
	}
	if len(t.Players) == 0 {
		return fmt.Errorf("ticket %d: has no players, want at least one", t.Key)
	}
	r, err := m.read(t)
	if err != nil {
		return fmt.Errorf("ticket %d: %w", t.Key, err)
	}
	slot := m.slot()
	m.pool.slots[t.Key] = slot
	m.pool.players += len(t.Players)
	m.pool.records[slot] = r
	m.pool.tickets[slot] = ticket{start: t.Start, no: t.No, players: int32(len(t.Players)), backfill: t.Backfill}
	m.index(slot)
	return nil
}

// read checks a ticket's players and puts their values into columns.
func (m *Matcher) read(t Ticket) (record, error) {
	r := record{key: t.Key, players: make([]ruleset.Player, len(t.Players))}
	for i := range t.Players {
		p := &t.Players[i]
		values, err := m.rules.Player(p.Attributes)
		if err != nil {
			return record{}, fmt.Errorf("player %.100q: %w", p.ID, err)
		}
		if name, missing := m.rules.Missing(values); missing && r.fault == "" {
			r.fault = fmt.Sprintf("player %.100q has no value for attribute %q, which has no default", p.ID, name)
		}
		r.players[i] = ruleset.Player{ID: p.ID, Values: values}
	}
	if t.Backfill {
		var err error
		if r.roster, err = m.readRoster(t); err != nil {
			return record{}, err
		}
	} else if int32(len(t.Players)) > m.rules.PartyMax && r.fault == "" {
		r.fault = fmt.Sprintf("it has %d players, and the largest team takes %d", len(t.Players), m.rules.PartyMax)
	}
	if r.roster != nil && r.fault == "" {
		r.fault = m.rosterFault(r.roster, int32(len(t.Players)))
	}
	for i := range t.Players {
		r.players[i].Latencies = m.pool.regions.take(t.Players[i].Latencies)
	}
	return r, nil
}

func (m *Matcher) readRoster(t Ticket) (*roster, error) {
	r := &roster{free: t.FreeSlots, sizes: make([]int32, len(m.rules.Teams))}
	byTeam := make([][]int32, len(m.rules.Teams))
	for i := range t.Players {
		team := m.teamNamed(t.Players[i].Team)
		if team < 0 {
			return nil, fmt.Errorf("player %.100q: team %.100q: want the name of a team of the rule set", t.Players[i].ID, t.Players[i].Team)
		}
		byTeam[team] = append(byTeam[team], int32(i))
		r.sizes[team]++
	}
	for team, who := range byTeam {
		if len(who) > 0 {
			r.parts = append(r.parts, part{team: team, who: who})
		}
	}
	return r, nil
}

// rosterFault explains why no newcomer can ever join a roster, at the last of the rule set's levels. It returns "" if one can join at some level.
func (m *Matcher) rosterFault(r *roster, players int32) (fault string) {
	for i := range m.rules.Waits() {
		if fault = m.rosterFaultAt(m.rules.Level(i), r, players); fault == "" {
			return ""
		}
	}
	return fault
}

func (m *Matcher) rosterFaultAt(level *ruleset.Level, r *roster, players int32) string {
	missing := int32(0)
	for i, size := range level.Teams {
		if r.sizes[i] > size.Max {
			return fmt.Sprintf("its roster has %d players on team %.100q, which takes %d", r.sizes[i], m.rules.Teams[i].Name, size.Max)
		}
		missing += max(0, size.Min-r.sizes[i])
	}
	switch {
	case players >= level.Slots:
		return fmt.Sprintf("its roster has %d players, and the teams take no more", players)
	case r.free > 0 && missing > r.free: // no free seats at all is a temporary state
		return fmt.Sprintf("its teams lack %d players to their minimum, and its game session takes %d", missing, r.free)
	}
	return ""
}

func (m *Matcher) teamNamed(name string) int {
	for i := range m.rules.Teams {
		if m.rules.Teams[i].Name == name {
			return i
		}
	}
	return -1
}

// slot returns an unused slot.
func (m *Matcher) slot() int32 {
	p := &m.pool
	if n := len(p.free); n > 0 {
		slot := p.free[n-1]
		p.free = p.free[:n-1]
		clear(p.counts[int(slot)*2*m.ruleCount() : int(slot+1)*2*m.ruleCount()])
		return slot
	}
	p.tickets = append(p.tickets, ticket{})
	p.records = append(p.records, record{})
	p.rows = append(p.rows, make([]uint64, m.plan.words)...)
	p.counts = append(p.counts, make([]uint32, 2*m.ruleCount())...)
	return int32(len(p.tickets) - 1)
}

func (m *Matcher) ruleCount() int { return len(m.rules.Rules) }

// row returns a ticket's features.
func (m *Matcher) row(slot int32) []uint64 {
	w := m.plan.words
	return m.pool.rows[int(slot)*w : int(slot)*w+w : int(slot)*w+w]
}

// index computes what searches read of a ticket, and adds it to the indexes.
func (m *Matcher) index(slot int32) {
	t, r := &m.pool.tickets[slot], &m.pool.records[slot]
	if r.fault != "" {
		m.pool.faulty++
		return
	}
	row := m.row(slot)
	m.fillRow(row, r.players)
	t.literals = m.literalBits(r.players)
	if r.roster != nil {
		for i := range r.roster.parts {
			part := &r.roster.parts[i]
			for _, at := range part.who {
				part.players = append(part.players, r.players[at])
			}
			part.row = make([]uint64, m.plan.words)
			m.fillRow(part.row, part.players)
			part.bits = m.literalBits(part.players)
		}
	}
	t.class = m.class(t, r)
	m.shelve(slot)
	m.enqueue(slot)
}

// Remove removes a ticket from the pool; it ignores a key that is not there.
func (m *Matcher) Remove(key uint64) {
	if slot, ok := m.pool.slots[key]; ok {
		m.remove(slot)
	}
}

func (m *Matcher) remove(slot int32) {
	t, r := &m.pool.tickets[slot], &m.pool.records[slot]
	if t.shelf != nil {
		m.unshelve(slot)
		m.giveBackRows(slot)
	} else {
		m.pool.faulty--
	}
	for i := range r.players {
		m.pool.regions.giveBack(r.players[i].Latencies)
	}
	m.pool.players -= len(r.players)
	m.countGone(slot)
	delete(m.pool.slots, r.key)
	*t, *r = ticket{}, record{}
	m.pool.free = append(m.pool.free, slot)
}

// older orders tickets by start, then by the caller's number.
func (m *Matcher) older(a, b int32) bool {
	s, t := &m.pool.tickets[a], &m.pool.tickets[b]
	if s.start != t.start {
		return s.start < t.start
	}
	if s.no != t.no {
		return s.no < t.no
	}
	return m.pool.records[a].key < m.pool.records[b].key
}

// age returns how long a ticket has waited, in whole seconds.
func age(start, now domain.Time) int64 {
	if now <= start {
		return 0
	}
	return int64(now-start) / 1000
}

// level returns the rule set's level for a ticket's age.
func (m *Matcher) level(slot int32, now domain.Time) int {
	return m.rules.LevelAt(age(m.pool.tickets[slot].start, now))
}

func floatBits(x float64) uint64 {
	if x == 0 {
		x = 0 // a negative zero is the same value
	}
	return math.Float64bits(x)
}
