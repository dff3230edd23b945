package session

// Counts has the counts of a fleet in one location.
type Counts struct {
	GameSessions int32 // ACTIVATING, ACTIVE or TERMINATING
	Activating   int32
	Terminating  int32
	SeatsHeld    int32
	SeatsEmpty   int32 // of SeatsHeld: held for players who may return
	SeatsMax     int32
	SeatsFree    int32 // of the game sessions that are ACTIVE

	PlayersReserved, PlayersActive int32 // player sessions
}

// Active returns the number of game sessions that are ACTIVE.
func (c *Counts) Active() int32 { return c.GameSessions - c.Activating - c.Terminating }

// Add adds the counts of another place.
func (c *Counts) Add(x *Counts) { c.add(x, 1) }

// Sub subtracts the counts of another place.
func (c *Counts) Sub(x *Counts) { c.add(x, -1) }

func (c *Counts) add(x *Counts, by int32) {
	c.GameSessions += by * x.GameSessions
	c.Activating += by * x.Activating
	c.Terminating += by * x.Terminating
	c.SeatsHeld += by * x.SeatsHeld
	c.SeatsEmpty += by * x.SeatsEmpty
	c.SeatsMax += by * x.SeatsMax
	c.SeatsFree += by * x.SeatsFree
	c.PlayersReserved += by * x.PlayersReserved
	c.PlayersActive += by * x.PlayersActive
}

// seatsFree returns the number of seats that nothing holds. It is never negative, although the maximum can be lowered below the number held.
func (g *GameSession) seatsFree() int32 {
	if g.Status != Active {
		return 0
	}
	return max(0, g.PlayersMax-g.SeatsHeld)
}

// tally adds x, times by, to the counts of a game session's location.
func (s *State) tally(g *GameSession, x *Counts, by int32) {
	at := place{g.FleetID, g.Location}
	c := s.counts[at]
	if c == nil {
		c = &Counts{}
		s.counts[at] = c
	}
	c.add(x, by)
	s.all.add(x, by)
}

// count adds the game session to its location's counts, or removes it.
func (s *State) count(g *GameSession, by int32) {
	if !g.Live() {
		return
	}
	x := Counts{GameSessions: 1, SeatsHeld: g.SeatsHeld, SeatsEmpty: g.SeatsEmpty, SeatsMax: g.PlayersMax, SeatsFree: g.seatsFree()}
	switch g.Status {
	case Activating:
		x.Activating = 1
	case Terminating:
		x.Terminating = 1
	}
	s.tally(g, &x, by)
}

// hold changes the numbers of held and of empty seats of a game session.
func (s *State) hold(game GameRef, held, empty int32) {
	g := s.Games.Mut(game)
	free := g.seatsFree()
	g.SeatsHeld += held
	g.SeatsEmpty += empty
	s.search.SetPlayers(uint32(game), g.Seated(), g.SeatsEmpty)
	if g.Live() {
		s.tally(g, &Counts{SeatsHeld: held, SeatsEmpty: empty, SeatsFree: g.seatsFree() - free}, 1)
	}
}

// countPlayer adds a player session of a status to the counts of its location, or removes it.
func (s *State) countPlayer(game GameRef, status PlayerStatus, by int32) {
	switch {
	case status == Reserved:
		s.tally(s.Games.Get(game), &Counts{PlayersReserved: 1}, by)
	case status.Live():
		s.tally(s.Games.Get(game), &Counts{PlayersActive: 1}, by)
	}
}

// dropCounts forgets the counts of a game session's location if nothing is left to count there: fleets come and go.
func (s *State) dropCounts(g *GameSession) {
	at := place{g.FleetID, g.Location}
	if c := s.counts[at]; c != nil && *c == (Counts{}) {
		delete(s.counts, at)
	}
}

// Utilization returns the counts of a fleet's location.
func (s *State) Utilization(fleet, location string) Counts {
	if c := s.counts[place{fleet, location}]; c != nil {
		return *c
	}
	return Counts{}
}

// AllCounts returns the counts of all locations of all fleets.
func (s *State) AllCounts() Counts { return s.all }
