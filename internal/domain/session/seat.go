package session

// Keep holds the seat of a live player session beyond the end of the player session.
func (s *State) Keep(player PlayerRef) (seat SeatRef) {
	seat = s.Players.Get(player).Seat
	s.Seats.Mut(seat).Kept = true
	return seat
}

// KeepEmpty takes a new seat without a player session and holds it.
func (s *State) KeepEmpty(game GameRef) (seat SeatRef) {
	seat, rec := s.Seats.Add()
	*rec = Seat{Game: game, Kept: true}
	s.hold(game, 1, 1)
	return seat
}

// Release stops holding a seat, which becomes free at once or when its player sessions have ended.
func (s *State) Release(seat SeatRef) {
	x := s.Seats.Mut(seat)
	x.Kept = false
	if x.Holders > 0 {
		return
	}
	game := x.Game
	s.Seats.Remove(seat)
	s.hold(game, -1, -1)
}

// ReserveOn stores a new player session on a taken seat: one that is held for its player, or that has an older player session of the same
// player.
func (s *State) ReserveOn(seat SeatRef, p PlayerSession) PlayerRef {
	x := s.Seats.Mut(seat)
	if x.Holders == 0 {
		s.hold(x.Game, 0, -1)
	}
	x.Holders++
	p.Seat = seat
	return s.addPlayer(p)
}

// Share moves a live player session to the seat of another one, and frees its own.
func (s *State) Share(player, with PlayerRef) {
	p := s.Players.Mut(player)
	old, seat, game := p.Seat, s.Players.Get(with).Seat, p.Game
	if old == seat {
		return
	}
	s.Players.Mut(player).Seat = seat
	s.Seats.Mut(seat).Holders++
	if x := s.Seats.Mut(old); x.Holders == 1 && !x.Kept {
		s.Seats.Remove(old)
		s.hold(game, -1, 0)
	} else {
		x.Holders--
	}
}
