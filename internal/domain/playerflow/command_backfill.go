package playerflow

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/matchmaking"
	"github.com/musterhq/muster/internal/domain/session"
)

// EnterBackfill lets a game instance search for more players (Game.EnterMatchmaking): the same as a StartMatchBackfill of its
// server, with the players that the core knows. A second one takes the place of the first.
type EnterBackfill struct {
	Instance domain.UUID
	Ticket   domain.UUID // of the ticket to be; a repeat with the same one changes nothing
	Queue    string      // a matchmaking configuration; empty: the one that the game instance came of
	Slots    int32       // how many players are wanted; 0: as many as there is room for
	// Teams are those of players whom no match has put into one, or who are in another one by now.
	Teams map[string]string

	// Result
	Made matchmaking.TicketView
}

func (cmd *EnterBackfill) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	r, err := t.servedInstance(cmd.Instance, "Game.EnterMatchmaking")
	if err != nil {
		return err
	}
	x := t.Flow.Instances.Get(r)
	id := gameBackfillPrefix + cmd.Ticket.String()
	if old, ok := t.matchmaking.FindTicket(id); ok {
		cmd.Made = t.matchmaking.TicketView(old, t.Now)
		return nil
	}
	queue := cmd.Queue
	if queue == "" {
		queue = x.Queue
	}
	if queue == "" {
		return flow.Refuse(flow.Refusal{Code: flow.InvalidArgument}, "queue: empty, and game instance gi-%s came of no match; want a matchmaking configuration", x.ID)
	}
	c, ok := t.matchmaking.Configuration(queue)
	if !ok || c.Standalone {
		return flow.Refuse(flow.Refusal{Code: flow.QueueNotFound}, "queue %q not found", queue)
	}
	if err := t.mayBackfill(r, cmd.Slots); err != nil {
		return err
	}
	players := t.backfillRoster(r, c)
	if err := t.putIntoTeams(players, c, cmd.Teams); err != nil {
		return err
	}
	start := &matchmaking.StartMatchBackfill{Configuration: c.Name, ID: id, Players: players, Game: x.Game, Slots: cmd.Slots, Unmatched: true}
	begin, err := t.matchmaking.CheckBackfill(start)
	if err != nil {
		if refused, ok := errors.AsType[*domain.Refusal](err); ok && refused.Reason == domain.Overloaded {
			return err // it is not the caller's fault, and another try may do
		}
		return flow.Refuse(flow.Refusal{Code: flow.InvalidArgument}, "game instance gi-%s cannot be backfilled: %v", cmd.Instance, err)
	}
	if _, known := t.matchmaking.HostedMatch(x.Game); !known { // from now on it is a game session with match data, as others are
		of := *c
		t.matchmaking.SetHosted(matchmaking.Hosted{Game: x.Game, Match: "gi-" + x.ID.String(), Of: &of})
	}
	begin()
	cmd.Made = start.Ticket
	return nil
}

// putIntoTeams gives players the teams that the caller says; who is in none is in the only one that the rule set has.
func (t *Tx) putIntoTeams(players []matchmaking.Player, c *matchmaking.Configuration, told map[string]string) error {
	rules := t.matchmaking.Compiled(c.RuleSet)
	if rules == nil {
		return nil // that is refused with all else
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
				"teams[%q]: %q, want one of rule set %s: %s", p.ID, matchmaking.ShortText(p.Team), c.RuleSet, strings.Join(names, ", "))
		}
	}
	for _, player := range slices.Sorted(maps.Keys(told)) {
		if !slices.ContainsFunc(players, func(p matchmaking.Player) bool { return p.ID == player }) {
			return flow.Refuse(flow.Refusal{Code: flow.InvalidArgument, Players: []string{player}}, "teams[%q]: the player is not in the game", matchmaking.ShortText(player))
		}
	}
	return nil
}

// mayBackfill checks that a game instance takes so many newcomers, now or once seats that are kept come free.
func (t *Tx) mayBackfill(r flow.InstanceRef, slots int32) error {
	if slots < 0 {
		return flow.Refuse(flow.Refusal{Code: flow.InvalidArgument}, "slots: %d, want 0 or more", slots)
	}
	x := t.Flow.Instances.Get(r)
	kept := int32(0)
	if g, ok := t.hosting.FindGame(session.ID(x.Game)); ok {
		kept = t.keptSeats(r, g)
	}
	return t.hasRoom(r, max(slots, 1)-kept)
}

// gameBackfillPrefix begins the ids of tickets that Game.EnterMatchmaking has made.
const gameBackfillPrefix = "bf-"

func isGameBackfill(x *matchmaking.Ticket) bool {
	return x.Backfill && !x.Automatic && strings.HasPrefix(x.ID, gameBackfillPrefix)
}

// renewGameBackfill puts a ticket without those who have left the game in the place of one that Game.EnterMatchmaking has made:
// as old, and with the same end. Without anybody there is no backfill.
func (t *Tx) renewGameBackfill(open matchmaking.TicketRef) {
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
		ID: gameBackfillPrefix + t.NewID().String(), Backfill: true, Players: int32(len(players)), Game: old.Game, GameRegion: old.GameRegion,
		Slots: old.Slots, Start: old.Start, TimeoutAt: old.TimeoutAt, Roster: matchmaking.EncodeRoster(players),
	})
}

// backfillRoster are the players of a game instance as the matchmaker is told of them: those of the match data who are still
// there, with the values that were used; then those who came without matchmaking.
func (t *Tx) backfillRoster(r flow.InstanceRef, c *matchmaking.Configuration) (players []matchmaking.Player) {
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

// playsIn reports whether a player is in the game of a game instance. Who has left it is not, although the game server may
// not have ended the player session yet: such a player may search again already, and the backfill would end that.
func (t *Tx) playsIn(r flow.InstanceRef, player string) bool {
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

// stopBackfill ends the search of a game that is over for more players, and lets none follow: its game session may live on.
func (t *Tx) stopBackfill(game string) {
	m := t.matchmaking
	if open, ok := m.BackfillOf(game); ok && game != "" && m.Ticket(open).Status != matchmaking.Placing {
		m.CancelTicket(open, matchmaking.StoppedByRequest)
	}
	if h, ok := m.HostedMatch(game); ok && h.Automatic {
		h.Automatic = false
		m.ChangeHosted(h)
	}
}

// LeaveBackfill ends the search of a game instance for more players (Game.LeaveMatchmaking). Where there is none, nothing
// happens.
type LeaveBackfill struct {
	Instance domain.UUID

	// Result: the search that was ended; empty when there was none.
	Ticket string
}

func (cmd *LeaveBackfill) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	r, err := t.servedInstance(cmd.Instance, "Game.LeaveMatchmaking")
	if err != nil {
		return err
	}
	open, ok := t.matchmaking.BackfillOf(t.Flow.Instances.Get(r).Game)
	if !ok {
		return nil
	}
	x := t.matchmaking.Ticket(open)
	if x.Status == matchmaking.Placing {
		return flow.Refuse(flow.Refusal{Code: flow.AlreadyMatched, Instance: cmd.Instance}, "ticket %s has found players", x.ID)
	}
	cmd.Ticket = x.ID
	t.matchmaking.CancelTicket(open, matchmaking.StoppedByRequest)
	return nil
}

// keptSeats is how many seats of a game instance belong to members who are not there and may never come: those kept for a
// return, reservations, and those of members who wait for Game.Ready.
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
