package matcher

// rearrange tries other team assignments for the tickets of a full candidate that was rejected. Rules about averages reject most first
// assignments, and nearly always another one of the same players satisfies them, which is better than younger tickets.
func (s *search) rearrange() bool {
	if s.roster != nil || s.level.teamless || len(s.sizes) < 2 {
		return false
	}
	if s.seats == nil {
		s.seats = &search{m: s.m}
	}
	o := s.seats
	o.level, o.now, o.take, o.anchor = s.level, s.now, s.take, s.anchor
	o.seq = o.seq[:0]
	o.begin()
	for _, j := range s.joined {
		o.seq = append(o.seq, j.slot)
	}
	o.best.players, o.back = s.best.players, true
	full := o.assign(0, s.m.config.Budget/rearrangeShare)
	if o.best.players > s.best.players {
		s.best.keep(&o.best)
	}
	return full
}

// One rearrangeShare-th of the search's budget may go into assignments of the first full candidate.
const rearrangeShare = 4

// assign puts the tickets from a place on into teams. It returns true if the match is full and legal.
func (s *search) assign(at, budget int) bool {
	if at == len(s.seq) {
		return s.judge()
	}
	slot := s.seq[at]
	if _, ok := s.admit(s.unit(slot, 0)); !ok {
		return false
	}
	t := &s.m.pool.tickets[slot]
	for teams := s.m.fitsAt(s.level, t); teams != 0; {
		team := s.emptiest(teams, t.players)
		if team < 0 || s.spent >= budget {
			return false
		}
		s.spent++
		s.m.stats.Steps++
		teams &^= 1 << team
		if s.sizes[team] == 0 {
			teams &^= s.alikeEmpty(team)
		}
		if !s.seat(slot, team) {
			continue
		}
		if s.assign(at+1, budget) {
			return true
		}
		s.unseat(slot, team)
	}
	return false
}
