package playerflow

import (
	"maps"
	"slices"
	"strings"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/excerpt"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/matchmaking"
	"github.com/musterhq/muster/internal/domain/session"
)

// putIntoTeams puts players into the teams that the caller names. A player without a team goes into the rule set's team if it has only
// one.
func (t *backfills) putIntoTeams(players []matchmaking.Player, c *matchmaking.Configuration, told map[string]string) error {
	rules := t.matchmaking.Compiled(c.RuleSet)
	if rules == nil {
		return nil // refused later together with all other mistakes
	}
	names := make([]string, len(rules.Teams))
	for i, team := range rules.Teams {
		names[i] = team.Name
	}
	for i := range players {
		p := &players[i]
		if team, ok := told[p.ID]; ok {
			p.Team = team
		} else if p.Team == "" && len(names) == 1 {
			p.Team = names[0]
		}
		if !slices.Contains(names, p.Team) {
			return flow.Refuse(flow.Refusal{Code: flow.InvalidArgument, Players: []string{p.ID}},
				"teams[%q]: %q, want one of rule set %s: %s", p.ID, excerpt.Short(p.Team), c.RuleSet, strings.Join(names, ", "))
		}
	}
	for _, player := range slices.Sorted(maps.Keys(told)) {
		if !slices.ContainsFunc(players, func(p matchmaking.Player) bool { return p.ID == player }) {
			return flow.Refuse(flow.Refusal{Code: flow.InvalidArgument, Players: []string{player}}, "teams[%q]: the player is not in the game", excerpt.Short(player))
		}
	}
	return nil
}

// mayBegin checks that a game instance has room for so many newcomers, now or once held seats become free.
func (t *backfills) mayBegin(r flow.InstanceRef, slots int32) error {
	if slots < 0 {
		return flow.Refuse(flow.Refusal{Code: flow.InvalidArgument}, "slots: %d, want 0 or more", slots)
	}
	x := t.Flow.Instances.Get(r)
	kept := int32(0)
	if g, ok := t.hosting.FindGame(session.ID(x.Game)); ok {
		kept = t.keptSeats(r, g)
	}
	return t.Games.hasRoom(r, max(slots, 1)-kept)
}

// renew replaces a backfill ticket made by Game.EnterMatchmaking with one without the players who have left. The new ticket has the
// same age and the same end. If no player is left, there is no backfill.
func (t *backfills) renew(open matchmaking.TicketRef) {
	old := *t.matchmaking.Ticket(open)
	r, ok := t.Flow.InstanceOfGame(old.Game)
	c, known := t.matchmaking.Configuration(old.Configuration)
	if !ok || !known || !old.Status.Waits() {
		return
	}
	all := matchmaking.DecodeRoster(old.Roster)
	players := slices.DeleteFunc(slices.Clone(all), func(p matchmaking.Player) bool { return !t.playsIn(r, p.ID) })
	if len(players) == len(all) || len(players) == 0 {
		return
	}
	t.matchmaking.EndTicket(open, matchmaking.Cancelled, matchmaking.ReplacedByServer)
	t.matchmaking.StartTicket(c, matchmaking.Ticket{
		ID: domain.BackfillID(t.NewID()).String(), Owner: matchmaking.InstanceOwned, Backfill: true, Players: int32(len(players)), Game: old.Game, GameRegion: old.GameRegion,
		Slots: old.Slots, Start: old.Start, TimeoutAt: old.TimeoutAt, Roster: matchmaking.EncodeRoster(players),
	})
}

// roster returns the players of a game instance for the matchmaker: first those of the match data who are still in the game, with the
// values used then, and after them those who came without matchmaking.
func (t *backfills) roster(r flow.InstanceRef, c *matchmaking.Configuration) (players []matchmaking.Player) {
	x := t.Flow.Instances.Get(r)
	if h, ok := t.matchmaking.HostedMatch(x.Game); ok {
		for _, p := range matchmaking.DecodeRoster(h.Roster) {
			if t.playsIn(r, p.ID) {
				players = append(players, p)
			}
		}
	}
	rules := t.matchmaking.Compiled(c.RuleSet)
	for _, ref := range x.Members() {
		m := t.Flow.Memberships.Get(ref)
		if slices.ContainsFunc(players, func(p matchmaking.Player) bool { return p.ID == m.Player }) {
			continue
		}
		p := matchmaking.Player{ID: m.Player, Team: m.Team}
		if profile := profileOf(t.Flow.Players.Get(m.PlayerRef())); rules != nil {
			p.Attributes = chooseAttributes(rules, readAttributes(profile.Trusted), readAttributes(profile.Attributes))
		}
		players = append(players, p)
	}
	return players
}

// playsIn reports whether a player is in the game of a game instance. A player who has left is not, even if the game server has not
// ended the player session yet: the player may be searching again, and the backfill would end that search.
func (t *backfills) playsIn(r flow.InstanceRef, player string) bool {
	if _, member := t.memberIn(r, player); member {
		return true
	}
	x := t.Flow.Instances.Get(r)
	if at, known := t.Flow.Player(player); known {
		p := t.Flow.Players.Get(at)
		if left := p.LastGame != nil && p.LastGame.Instance == x.ID; left || p.Keys != (flow.Keys{}) {
			return false
		}
	}
	return t.matchmaking.Sits(player, session.ID(x.Game))
}

// stop ends the backfill of a game that is over and prevents further ones, because its game session may continue.
func (t *backfills) stop(game string) {
	m := t.matchmaking
	if open, ok := m.BackfillOf(game); ok && game != "" && m.Ticket(open).Status != matchmaking.Placing {
		m.CancelTicket(open, matchmaking.StoppedByRequest)
	}
	if h, ok := m.HostedMatch(game); ok && h.Automatic {
		h.Automatic = false
		m.ChangeHosted(h)
	}
}

// keptSeats returns how many seats of a game instance belong to absent members who may never come: held seats, reservations, and seats
// of members who wait for Game.Ready.
func (c *State) keptSeats(r flow.InstanceRef, game session.GameRef) (n int32) {
	n = c.hosting.Game(game).SeatsEmpty
	waiting := !c.Flow.Instances.Get(r).Ready
	for _, ref := range c.Flow.Instances.Get(r).Members() {
		if m := c.Flow.Memberships.Get(ref); m.Status == flow.MemberReserved || waiting && m.Status == flow.MemberPending {
			n++
		}
	}
	return n
}
