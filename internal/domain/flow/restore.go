package flow

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/musterhq/muster/internal/domain"
)

// Once all records are in their tables, the data that snapshots omit is rebuilt in three steps. The tasks of a step are independent: each one
// builds an index of its own or sets fields that no other task uses. An error means that records contradict each other.

// Found returns the tasks that build the indexes which the next step needs, and those that need nothing else.
func (s *State) Found() []func() error {
	return []func() error{s.findChanges, s.findPlayers, s.findParties}
}

// Connected returns the tasks that link records to each other.
func (s *State) Connected() []func() error {
	return []func() error{s.connectLogins, s.connectMembers, s.connectMemberships, s.connectChanges, s.sort}
}

// Indexed returns the tasks that build the other indexes.
func (s *State) Indexed() []func() error { return []func() error{s.findLogins, s.findTokens} }

func (s *State) findPlayers() error {
	s.players.Rebuild(func(p *Player) string { return p.ID })
	return once("players", s.players.Len(), s.Players.Len())
}

func (s *State) findParties() error {
	s.parties.Rebuild(func(p *Party) PartyID { return p.ID })
	coded := 0
	for _, p := range s.Parties.All() {
		if p.Code != "" {
			coded++
		}
	}
	s.codes.Expect(coded)
	for r, p := range s.Parties.All() {
		s.indexParty(r, p)
	}
	return once("parties", s.parties.Len(), s.Parties.Len())
}

func (s *State) findLogins() error {
	s.logins.Rebuild(func(l *Login) LoginSessionID { return l.ID })
	return once("login sessions", s.logins.Len(), s.Logins.Len())
}

func (s *State) findTokens() error {
	s.tokens.Rebuild(func(l *Login) domain.UUID { return l.Token })
	for r, l := range s.Logins.All() {
		if !l.Previous.IsZero() {
			s.tokens.Put(l.Previous, r)
		}
	}
	return nil
}

// findChanges links the changes of each player, from the oldest to the latest.
func (s *State) findChanges() error {
	type numbered struct {
		no uint64
		r  ChangeRef
	}
	all := make([]numbered, 0, s.Changes.Len())
	for r, x := range s.Changes.All() {
		all = append(all, numbered{x.EndedNo, r})
	}
	slices.SortFunc(all, func(a, b numbered) int { return cmp.Compare(a.no, b.no) })
	for _, of := range all {
		s.linkChange(of.r, s.Changes.Mut(of.r))
	}
	return nil
}

// once returns an error if an index has fewer entries than there are records.
func once(what string, ids, records int) error {
	if ids != records {
		return fmt.Errorf("%d %s have %d ids", records, what, ids)
	}
	return nil
}

// same returns a player's id as stored in the player's record, because a decoded copy has memory of its own.
func (s *State) same(player string) string {
	if r, ok := s.players.Find(player); ok {
		return s.Players.Get(r).ID
	}
	return player
}

func (s *State) connectLogins() error {
	for r := range s.Logins.All() {
		l := s.Logins.Mut(r)
		player, known := s.players.Find(l.Player)
		if !known {
			if l.State == LoginLive {
				return fmt.Errorf("login session %s of an unknown player", l.ID)
			}
			continue // the player was removed; the record only tells that the login session was replaced
		}
		p := s.Players.Mut(player)
		l.Player = p.ID
		if l.State == LoginLive {
			s.setLogin(p, r)
		}
	}
	return nil
}

func (s *State) connectMembers() error {
	for r := range s.Parties.All() {
		p := s.Parties.Mut(r)
		for i := range p.Members {
			p.Members[i].Player = s.same(p.Members[i].Player)
		}
	}
	return nil
}

func (s *State) connectChanges() error {
	for r := range s.Changes.All() {
		x := s.Changes.Mut(r)
		x.Player = s.same(x.Player)
	}
	return nil
}

func (s *State) connectMemberships() error {
	for r := range s.Memberships.All() {
		m := s.Memberships.Mut(r)
		player, member := s.players.Find(m.Player)
		instance, ok := s.instances[m.Instance]
		if !ok || !member {
			return fmt.Errorf("membership of player %q in %s without one of them", m.Player, m.Instance)
		}
		p, x := s.Players.Mut(player), s.Instances.Mut(instance)
		if p.membership != 0 {
			return fmt.Errorf("player %q has two memberships", m.Player)
		}
		m.player, m.instance, m.Player = player, instance, p.ID
		p.membership = r
		x.members = append(x.members, r)
	}
	return nil
}

// sort restores the order of lists that Load filled in the order of table places.
func (s *State) sort() error {
	slices.SortStableFunc(s.requestTime, func(a, b RequestRef) int { return int(s.Requests.Get(a).At - s.Requests.Get(b).At) })
	older := func(a, b InviteRef) int {
		x, y := s.Invites.Get(a), s.Invites.Get(b)
		if x.Created != y.Created {
			return int(x.Created - y.Created)
		}
		return slices.Compare(x.ID[:], y.ID[:])
	}
	for _, refs := range s.invitesTo {
		slices.SortFunc(refs, older)
	}
	for _, refs := range s.invitesOf {
		slices.SortFunc(refs, older)
	}
	return nil
}
