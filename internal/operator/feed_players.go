package operator

import (
	"context"
	"fmt"
	"slices"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/playerflow"
	"github.com/musterhq/muster/internal/domain/session"
	"github.com/musterhq/muster/internal/engine"
)

// Bounds of what a round reads of one player.
const (
	feedChanges  = 100 // of the player's keys
	feedSeats    = 24  // player sessions, with their game sessions
	feedOverlap  = 8   // read in two rounds on each side, because a player session may end after a later one, and its causes are older than it
	feedSearches = 20  // tickets
	feedMembers  = 16  // of a party or a game instance
)

// player adds a player's history: login, party, ticket, placement, game session, server process, and each return to it.
func (s *feedScope) player(ctx context.Context, id string) error {
	now := domain.TimeOf(s.d.engine.Now())
	err := s.d.engine.Read(ctx, func(v *cell.View) error {
		if !v.FlowEnabled() {
			return nil
		}
		x, ok := v.FlowOf(id, now)
		s.known = s.known || ok
		s.login(&x)
		return nil
	})
	if err != nil {
		return err
	}
	s.changes("player", id, ever)
	if err := s.keysOf(ctx, id, func(*flow.Keys) bool { return true }); err != nil {
		return err
	}
	seats, since, err := s.d.engine.LatestPlayerSessions(ctx, id, s.until, feedSeats)
	if err != nil {
		return err
	}
	if len(seats) > feedSeats {
		seats, since = seats[:feedSeats], max(since, seats[feedSeats].Created+1)
	}
	if since > 0 && len(seats) > feedOverlap {
		s.lacks(seats[len(seats)-1-feedOverlap].Created)
	} else if since > 0 {
		s.lacks(since - 1)
	}
	// The causes of a player session, such as a placement that waited, are older than the session.
	later, _, err := s.d.engine.PlayersNamed(ctx, id, engine.PlayerPlace{Created: s.until + 1}, feedOverlap)
	if err != nil {
		return err
	}
	slices.Reverse(seats)
	seats = append(seats, later...)
	for i := range seats {
		s.known = true
		if err := s.game(ctx, seats[i].GameID, false); err != nil {
			return err
		}
	}
	s.seats(seats, func(p *hosting.PlayerSession) (kind, id string) { return "game-session", string(p.GameID) })
	return nil
}

// login adds what is known of the login session. Earlier login sessions leave no records.
func (s *feedScope) login(x *playerflow.FlowSnapshot) {
	l := &x.Login
	if l.ID.IsZero() {
		return
	}
	detail := "login session " + l.ID.String()
	if l.Device != "" {
		detail += " on " + l.Device
	}
	s.moments("player", x.Player, func(e *Explanation) { e.moment(l.Created, "LOGGED_IN", detail) })
}

// keysOf adds the changes of a player's keys that wanted selects, and the change after each, with the tickets that they name.
func (s *feedScope) keysOf(ctx context.Context, player string, wanted func(*flow.Keys) bool) error {
	changes, err := s.d.engine.ChangesUntil(ctx, player, s.until, feedChanges)
	if err != nil {
		return err
	}
	if len(changes) == feedChanges {
		s.lacks(changes[len(changes)-1].At)
	}
	tickets, games, was := 0, 0, false
	for i := range slices.Backward(changes) {
		c := &changes[i]
		is := wanted(&c.Keys)
		if !is && !was {
			continue
		}
		was = is
		s.known = true
		kind, id := objectOf(c)
		s.moments(kind, id, func(x *Explanation) { x.moment(c.At, c.Cause, "player "+c.Player+": "+changeInWords(c)) })
		if !c.Keys.Ticket.IsZero() && tickets < feedSearches {
			tickets++
			t, err := s.ticketOf(ctx, c.Keys.Ticket.String())
			if err != nil {
				return err
			}
			if t != nil && t.Outcome != nil && t.Outcome.Game != "" {
				if err := s.game(ctx, session.ID(t.Outcome.Game), false); err != nil {
					return err
				}
			}
		}
		if !c.Keys.Game.IsZero() && games < feedSearches && s.once("game-instance", c.Keys.Game.String()) {
			games++
			s.changes("game instance", c.Keys.Game.String(), ever)
			if err := s.instance(ctx, c.Keys.Game); err != nil {
				return err
			}
		}
	}
	return nil
}

// objectOf returns what a change put the player into: a game, a search or a party.
func objectOf(c *flow.Change) (kind, id string) {
	switch {
	case !c.Keys.Game.IsZero():
		return "game-instance", c.Keys.Game.String()
	case !c.Keys.Ticket.IsZero():
		return "ticket", c.Keys.Ticket.String()
	case !c.Keys.Party.IsZero():
		return "party", c.Keys.Party.String()
	}
	return "player", c.Player
}

// instance adds the placement and the game session of a game instance in memory.
func (s *feedScope) instance(ctx context.Context, id flow.InstanceID) error {
	var g flow.Instance
	ok := false
	err := s.d.engine.Read(ctx, func(v *cell.View) error { g, _, ok = v.GameInstance(id); return nil })
	if err != nil || !ok {
		return err
	}
	s.known = true
	s.moments("game-instance", id.String(), func(x *Explanation) {
		x.moment(g.Created, "CREATED", "")
		x.moment(g.Ended, "ENDED", g.EndReason.String())
	})
	if g.Placement != "" {
		if err := s.placed(ctx, g.Placement); err != nil {
			return err
		}
	}
	return s.game(ctx, session.ID(g.Game), false)
}

func (s *feedScope) gameInstance(ctx context.Context, text string) error {
	id, err := flowID[flow.InstanceID]("game instance", text)
	if err != nil {
		return err
	}
	s.changes("game instance", id.String(), ever)
	var players []string
	game := session.ID("")
	err = s.d.engine.Read(ctx, func(v *cell.View) error {
		g, members, _ := v.GameInstance(id)
		game = session.ID(g.Game)
		for _, m := range members {
			players = append(players, m.Player)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := s.game(ctx, game, true); err != nil {
		return err
	}
	if err := s.instance(ctx, id); err != nil {
		return err
	}
	return s.together(ctx, players, func(keys *flow.Keys) bool { return keys.Game == id })
}

// party adds the current and former members of a party.
func (s *feedScope) party(ctx context.Context, text string) error {
	id, err := flowID[flow.PartyID]("party", text)
	if err != nil {
		return err
	}
	s.changes("party", id.String(), ever)
	var players []string
	began := domain.Time(0)
	err = s.d.engine.Read(ctx, func(v *cell.View) error {
		p, ok := v.Party(id)
		if !ok {
			return nil
		}
		s.known, players, began = true, partyMembers(&p), p.Created
		s.moments("party", id.String(), func(x *Explanation) {
			x.moment(p.Created, "CREATED", "")
			for _, m := range p.Members {
				x.moment(m.Joined, "JOINED", "player "+m.Player)
			}
		})
		return nil
	})
	if err != nil {
		return err
	}
	// Former members, or all members of an ended party.
	past, err := engine.PartyChangesUntil(ctx, s.d.engine, id, began, s.until, feedChanges)
	if err != nil {
		if err = s.readLater(err); err != nil {
			return err
		}
	}
	if past.Since > 0 {
		s.lacks(past.Since - 1)
	}
	if past.Skipped {
		s.leftOut = append(s.leftOut, "members who changed in minutes with too many records for one page")
	}
	for i := range past.All {
		if who := past.All[i].Player; !slices.Contains(players, who) {
			players = append(players, who)
		}
	}
	return s.together(ctx, players, func(keys *flow.Keys) bool { return keys.Party == id })
}

// together adds the changes of players while wanted selects their keys.
func (s *feedScope) together(ctx context.Context, players []string, wanted func(*flow.Keys) bool) error {
	if len(players) > feedMembers {
		s.leftOut = append(s.leftOut, fmt.Sprintf("what happened to players after the first %d; each player has a feed", feedMembers))
		players = players[:feedMembers]
	}
	for _, player := range players {
		s.changes("player", player, ever)
		if err := s.keysOf(ctx, player, wanted); err != nil {
			return err
		}
	}
	return nil
}
