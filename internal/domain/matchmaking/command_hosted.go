package matchmaking

import (
	"slices"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/placement"
	"github.com/musterhq/muster/internal/domain/ruleset"
	"github.com/musterhq/muster/internal/domain/session"
)

// This file handles matches that need no more acceptances: their placement, their game session, and backfills.

// advanceMatch starts the placement or the backfill of an accepted match.
func (t *Tx) advanceMatch(match MatchRef) {
	x := t.Match(match)
	_, backfill := x.Backfill()
	switch {
	case x.Of.Standalone:
		t.hooks.StandaloneCommitted(match)
		t.completeMatch(match, "", nil)
	case backfill:
		t.completeBackfill(match)
	default:
		t.hooks.MatchCommitted(match)
		t.placeMatch(match)
	}
}

// completeMatch ends a match successfully.
func (t *Tx) completeMatch(match MatchRef, game session.ID, sessions []domain.PlayerSessionID) {
	id := t.Match(match).ID
	t.tellSucceeded(match, game, sessions)
	t.Emit(&MatchCompleted{id, game, sessions})
}

// MatchedPlayers returns all players of a match with their teams, the attributes that the matcher used, and their latencies. The rule set
// still exists, because a pending match prevents its deletion.
func (t *Tx) MatchedPlayers(match MatchRef) (players []Player, latencies []placement.Latency) {
	x := t.Match(match)
	rules := t.Records.Compiled(x.Of.RuleSet)
	for _, s := range x.Seats {
		r, _ := t.Records.TicketNo(s.Ticket)
		for _, p := range t.Ticket(r).PlayersOf() {
			for _, l := range p.Latencies {
				latencies = append(latencies, placement.Latency{Player: p.ID, Location: l.Region, Milliseconds: float32(l.Milliseconds)})
			}
			players = append(players, Used(rules, p))
		}
	}
	return players, latencies
}

// makersOf maps those players of a match whose tickets were made with a client key to that key.
func (t *Tx) makersOf(match MatchRef) (makers map[string]domain.Maker) {
	for _, s := range t.Match(match).Seats {
		r, _ := t.Records.TicketNo(s.Ticket)
		x := t.Ticket(r)
		if x.Maker == 0 {
			continue
		}
		if makers == nil {
			makers = map[string]domain.Maker{}
		}
		for id := range x.EachPlayer {
			makers[id] = x.Maker
		}
	}
	return makers
}

// placeMatch starts the placement of a match's game session, in the same transaction.
func (t *Tx) placeMatch(match MatchRef) {
	x := *t.Match(match)
	queue := ""
	for _, arn := range x.Of.Queues {
		if name := queueName(arn); t.HasQueue(name) {
			queue = name
			break
		}
	}
	players, latencies := t.MatchedPlayers(match)
	makers := t.makersOf(match)
	started := Hosted{Match: x.ID, Of: x.Of}
	data := started.Data(t.teams(x.Of), players, "")
	if queue == "" || len(data) > DataMax {
		t.failMatch(match, UnexpectedError)
		t.hooks.MatchNotPlaced(x.ID)
		return
	}
	r, _ := t.hosting.FindQueue(queue)
	q := t.hosting.Queue(r)
	p := placement.Placement{
		ID: x.ID, Queue: q.Name, Region: q.Region, Account: q.Account, Status: placement.Pending, Start: t.Now, TimeoutAt: t.Now.Add(q.Timeout),
		PlayersMax: max(x.PlayersMax, int32(len(players))), Name: x.ID, Data: x.Of.Data, MatchmakerData: data,
		Properties: t.hooks.MatchProperties(&x), Latencies: latencies, Players: make([]placement.Player, len(players)),
	}
	for i := range players {
		p.Players[i] = placement.Player{Player: players[i].ID, Data: t.hooks.PlayerData(players[i].ID), ID: domain.PlayerSessionID(t.NewID()), Maker: makers[players[i].ID]}
	}
	p.Regions = t.hooks.Regions(x.ID)
	t.hosting.BeginPlacement(&p)
}

func (t *Tx) teams(c *Configuration) []ruleset.Team {
	if rules := t.Records.Compiled(c.RuleSet); rules != nil {
		return rules.Teams
	}
	return nil
}

// MatchPlaced continues the match to which an ended placement belongs, if any.
func (t *Tx) MatchPlaced(id string, status placement.Status) {
	match, ok := t.Records.Match(id)
	if !ok {
		return
	}
	of := t.Match(match).Of
	switch {
	case status == placement.Fulfilled:
		t.matchHosted(match)
	case t.hasParties(match): // player flow ends the game instance by its own rules, and starts new tickets (B149)
		t.failMatch(match, UnexpectedError)
	case status == placement.TimedOut && of.RequeueOnTimeout():
		t.dropMatch(match, drop{others: PlacementTimedOut})
	case status != placement.TimedOut && of.RequeueOnFailure():
		t.dropMatch(match, drop{others: PlacementFailed})
	default:
		t.failMatch(match, UnexpectedError)
	}
}

// hasParties reports whether a match has tickets of parties of player flow.
func (t *Tx) hasParties(match MatchRef) bool {
	return slices.ContainsFunc(t.Match(match).Seats, func(s Seat) bool {
		r, ok := t.Records.TicketNo(s.Ticket)
		return ok && t.Ticket(r).Owner == PartyOwned
	})
}

// matchHosted completes a match whose game session is active.
func (t *Tx) matchHosted(match MatchRef) {
	x := *t.Match(match)
	r, _ := t.hosting.FindPlacement(x.ID)
	p := t.hosting.Placement(r)
	game, sessions := session.ID(p.Game), make([]domain.PlayerSessionID, len(p.Players))
	for i := range p.Players {
		sessions[i] = p.Players[i].ID
	}
	players, _ := t.MatchedPlayers(match)
	t.Emit(&HostedChanged{Hosted{Game: string(game), Match: x.ID, Roster: EncodeRoster(players), Automatic: x.Of.AutoBackfill}})
	t.completeMatch(match, game, sessions)
	t.automaticBackfill(game)
}

// completeBackfill reserves seats for the newcomers of a match in its running game session. If there is no room any more, they continue
// to search, because they are not at fault; so does the backfill, if seats may become free again. B114.
func (t *Tx) completeBackfill(match MatchRef) {
	x := *t.Match(match)
	seat, _ := x.Backfill()
	r, _ := t.Records.TicketNo(seat.Ticket)
	ticket := *t.Ticket(r)
	game := session.ID(ticket.Game)
	players, _ := t.MatchedPlayers(match)
	roster, newcomers := t.split(ticket.Roster, players)
	free, ok := t.FreeSlots(ticket.Game)
	switch {
	case !ok || t.tooMuchData(game, players):
		t.dropMatch(match, drop{blamed: map[uint64]end{seat.Ticket: {Failed, GameSessionLost}}})
		return
	case free < int32(len(newcomers)):
		t.dropMatch(match, drop{})
		return
	}
	ofParties, makers := t.hooks.Newcomers(match, game), t.makersOf(match)
	sessions := make([]domain.PlayerSessionID, len(newcomers))
	for i, p := range newcomers {
		sessions[i] = domain.PlayerSessionID(t.NewID())
		n, ok := ofParties[p.ID]
		if !ok {
			n.Wait = t.hosting.ReservationTime()
		}
		t.hosting.Reserve(session.Reservation{PlayerSession: sessions[i], Game: game, Player: p.ID, Data: n.Data, By: t.Contact.Add(n.Wait), Maker: makers[p.ID]})
	}
	t.hooks.BackfillEnded(&ticket, true, NoReason)
	t.hooks.BackfillCommitted(match, game)
	t.updateData(game, append(roster, newcomers...), "", DataUpdated, ticket.ID)
	t.completeMatch(match, game, sessions)
	t.automaticBackfill(game)
}

// tooMuchData reports whether the new match data of a game session would be longer than DataMax.
func (t *Tx) tooMuchData(game session.ID, players []Player) bool {
	r, ok := t.Records.HostedBy(string(game))
	if !ok {
		return false
	}
	h := t.hosted(r)
	const ticket = 64 // bytes for the id of an automatic backfill
	return len(h.Data(t.teams(h.Of), players, ""))+ticket > DataMax
}

// split separates the players in a backfill's roster from the newcomers; both keep their order.
func (t *Tx) split(roster string, players []Player) (there, newcomers []Player) {
	known := map[string]bool{}
	backfill := Ticket{Roster: roster}
	for id := range backfill.EachPlayer {
		known[id] = true
	}
	for _, p := range players {
		if known[p.ID] {
			there = append(there, p)
		} else {
			newcomers = append(newcomers, p)
		}
	}
	return there, newcomers
}

// updateData sets the match data of a game session and notifies its server process.
func (t *Tx) updateData(game session.ID, players []Player, autoTicket string, why Update, ticket string) {
	r, ok := t.Records.HostedBy(string(game))
	if !ok {
		return
	}
	h := *t.hosted(r)
	t.hosting.SetMatchmakerData(game, h.Data(t.teams(h.Of), players, autoTicket))
	h.Roster = EncodeRoster(players)
	h.Updates, h.Why, h.Ticket = h.Updates+1, why, ticket
	t.ChangeHosted(h)
}

// ChangeHosted replaces the record of a matched game session.
func (t *Tx) ChangeHosted(h Hosted) {
	h.Of = nil
	t.Emit(&HostedChanged{h})
}

// backfillEnded handles a backfill ticket that ended without success: its server process is notified, and the service may start the next
// backfill on its own. Source: docs/spec/flexmatch.md#automatic-backfill; B115.
func (t *Tx) backfillEnded(x *Ticket, status Status, why Reason) {
	if !x.Backfill {
		return
	}
	t.hooks.BackfillEnded(x, false, why)
	r, ok := t.Records.HostedBy(x.Game)
	if !ok {
		return
	}
	game := session.ID(x.Game)
	if g, ok := t.hosting.FindGame(game); !ok || !t.hosting.Game(g).Live() {
		return
	}
	h := *t.hosted(r)
	update := map[Status]Update{
		TimedOut: BackfillTimedOut, Failed: BackfillFailed, Cancelled: BackfillCancelled,
	}[status]
	replaced := why == Replaced || why == ReplacedByServer
	if x.Owner == ServiceOwned && status != TimedOut && !replaced && h.Automatic {
		h.Automatic = false // the server has turned it off: the service must not start it again
		t.ChangeHosted(h)
	}
	if x.Owner == ServiceOwned {
		t.updateData(game, DecodeRoster(h.Roster), "", update, x.ID)
	} else if why != ReplacedByServer {
		h.Updates, h.Why, h.Ticket = h.Updates+1, update, x.ID
		t.ChangeHosted(h)
	}
	if x.Owner == ServiceOwned && status == TimedOut {
		t.automaticBackfill(game)
	}
}

// automaticBackfill creates the next automatic backfill ticket of a game session that wants one and has room.
func (t *Tx) automaticBackfill(game session.ID) {
	m := t.Records
	at, ok := m.HostedBy(string(game))
	if !ok || !t.hosted(at).Automatic {
		return
	}
	h := *t.hosted(at)
	_, open := m.BackfillOf(string(game))
	c, ok := m.Configuration(h.Of.Name)
	if open || !ok || c.Standalone {
		return
	}
	players := t.rosterNow(&h)
	_, takes := t.FreeSlots(string(game))
	rules := m.Compiled(c.RuleSet)
	switch {
	case !takes || rules == nil || int32(len(players)) >= rules.PlayersMax:
		return
	case len(players) == 0 || len(players) > playersInBackfillMax || len(h.Roster) > TicketBytesMax:
		return
	case t.CheckPlayers(c, players) != nil || t.checkTeams(c, players) != nil:
		return // the rule set was changed and no longer fits the players of this game session
	case slices.ContainsFunc(players, func(p Player) bool { _, searches := m.TicketOf(p.ID); return searches }):
		return // as if the player's ticket had cancelled it
	}
	g, _ := t.hosting.FindGame(game)
	x := Ticket{
		ID: "auto-backfill-" + t.NewID().String(), Owner: ServiceOwned, Backfill: true, Players: int32(len(players)), Game: string(game),
		GameRegion: t.hosting.Game(g).Region, Roster: EncodeRoster(players),
	}
	t.StartTicket(c, x)
	t.updateData(game, players, x.ID, DataUpdated, x.ID)
}

// rosterNow returns the players that the automatic backfill of a game session names: those of the match data, without those who have left
// if the configuration says so. A disconnected player whose seat is held has not left.
func (t *Tx) rosterNow(h *Hosted) []Player {
	players := DecodeRoster(h.Roster)
	if !h.Of.BackfillLeavers() {
		return players
	}
	return slices.DeleteFunc(players, func(p Player) bool {
		if plays, known := t.hooks.PlaysIn(h.Game, p.ID); known {
			return !plays
		}
		return !t.Sits(p.ID, session.ID(h.Game))
	})
}

// Sits reports whether a player has a seat in a game session.
func (t *Tx) Sits(player string, game session.ID) (yes bool) {
	g, _ := t.hosting.FindGame(game)
	t.hosting.PlayersNamed(player, func(_ session.PlayerRef, p *session.PlayerSession) bool {
		yes = yes || p.Game == g && p.Status.Live()
		return !yes
	})
	return yes
}

// PlayerLeft renews the open backfill of a game session without a player who has left for good. It does so only for rosters made by the
// core: those of automatic backfills, if the configuration says so, and those of Game.EnterMatchmaking.
func (t *Tx) PlayerLeft(r session.GameRef) {
	game := t.hosting.Game(r).ID
	at, ok := t.Records.HostedBy(string(game))
	if !ok {
		return
	}
	open, searching := t.Records.BackfillOf(string(game))
	if searching && t.hooks.RenewBackfill(open) {
		return
	}
	if !t.hosted(at).Automatic || !t.hosted(at).Of.BackfillLeavers() {
		return
	}
	if searching {
		if x := t.Ticket(open); x.Owner != ServiceOwned || !x.Status.Waits() {
			return // the match's outcome starts the next one
		} else if x.Roster == EncodeRoster(t.rosterNow(t.hosted(at))) {
			return // it names no player who has left
		}
		t.EndTicket(open, Cancelled, Replaced)
	}
	t.automaticBackfill(game)
}

// BackfillLost ends the backfill of a game session that ends.
func (t *Tx) BackfillLost(game session.ID) {
	m := t.Records
	if _, ok := m.HostedBy(string(game)); !ok {
		return
	}
	r, ok := m.BackfillOf(string(game))
	if !ok {
		return
	}
	x := t.Ticket(r)
	if x.Status != RequiresAcceptance {
		t.EndTicket(r, Failed, GameSessionLost)
		return
	}
	match, _ := m.Match(x.Outcome.Match)
	t.dropMatch(match, drop{
		acceptance: "Rejected", others: ProposedMatchRejected,
		blamed: map[uint64]end{x.No: {Failed, GameSessionLost}},
	})
}

// TellHosted records that a server process has received an update of its backfill.
type TellHosted struct {
	Game   session.ID
	Update uint64
	Link   uint64 // the connection on which it was written: refused if the process has another one, which then gets it; 0: a single node, which checks that itself
}

func (cmd *TellHosted) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	r, ok := t.Records.HostedBy(string(cmd.Game))
	if !ok || t.hosted(r).Told >= cmd.Update {
		return nil
	}
	if cmd.Link != 0 && !t.hosting.HasLink(cmd.Game, cmd.Link) {
		return domain.Refuse(domain.Conflict, "the server process of game session %s has another connection", cmd.Game)
	}
	t.Emit(&HostedTold{cmd.Game, cmd.Update})
	return nil
}
