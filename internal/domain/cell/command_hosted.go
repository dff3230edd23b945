package cell

import (
	"slices"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/matchmaking"
	"github.com/musterhq/muster/internal/domain/placement"
	"github.com/musterhq/muster/internal/domain/ruleset"
	"github.com/musterhq/muster/internal/domain/session"
)

// What follows from a match that nobody has to accept any more: a placement, a game session, its backfills.

// advanceMatch begins what a match is for.
func (t *tx) advanceMatch(match matchmaking.Ref) {
	x := t.c.matchmaking.Matches.Get(match)
	_, backfill := x.Backfill()
	switch {
	case x.Of.Standalone:
		t.commitStandalone(match)
		t.completeMatch(match, "", nil)
	case backfill:
		t.completeBackfill(match)
	default:
		t.commitMatch(match)
		t.placeMatch(match)
	}
}

// completeMatch ends a match with success.
func (t *tx) completeMatch(match matchmaking.Ref, game session.ID, sessions []domain.UUID) {
	id := t.c.matchmaking.Matches.Get(match).ID
	t.tellSucceeded(match, game, sessions)
	t.emit(&MatchCompleted{id, game, sessions})
}

// matchedPlayers are all players of a match with their teams and the attributes that were used, and the latencies that
// they had. The rule set cannot have been deleted meanwhile.
func (t *tx) matchedPlayers(match matchmaking.Ref) (players []matchmaking.Player, latencies []placement.Latency) {
	m := t.c.matchmaking
	x := m.Matches.Get(match)
	rules := m.Compiled(x.Of.RuleSet)
	for _, s := range x.Seats {
		r, _ := m.TicketNo(s.Ticket)
		for _, p := range m.Tickets.Get(r).PlayersOf() {
			for _, l := range p.Latencies {
				latencies = append(latencies, placement.Latency{Player: p.ID, Location: l.Region, Milliseconds: float32(l.Milliseconds)})
			}
			players = append(players, matchmaking.Used(rules, p))
		}
	}
	return players, latencies
}

// makersOf gives, for the players of a match whose ticket a client key made, that key.
func (t *tx) makersOf(match matchmaking.Ref) (makers map[string]domain.Maker) {
	m := t.c.matchmaking
	for _, s := range m.Matches.Get(match).Seats {
		r, _ := m.TicketNo(s.Ticket)
		x := m.Tickets.Get(r)
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
func (t *tx) placeMatch(match matchmaking.Ref) {
	m := t.c.matchmaking
	x := *m.Matches.Get(match)
	queue := ""
	for _, arn := range x.Of.Queues {
		if name := queueName(arn); t.c.hasQueue(name) {
			queue = name
			break
		}
	}
	players, latencies := t.matchedPlayers(match)
	makers := t.makersOf(match)
	started := matchmaking.Hosted{Match: x.ID, Of: x.Of}
	data := started.Data(t.teams(x.Of), players, "")
	if queue == "" || len(data) > matchmaking.DataMax {
		t.failMatch(match, matchmaking.UnexpectedError)
		return
	}
	r, _ := t.c.placements.Queue(queue)
	q := t.c.placements.Queues.Get(r)
	p := placement.Placement{
		ID: x.ID, Queue: q.Name, Region: q.Region, Account: q.Account, Status: placement.Pending, Start: t.now, TimeoutAt: t.now.Add(q.Timeout),
		No: t.c.placementNo + 1, PlayersMax: max(x.PlayersMax, int32(len(players))), Name: x.ID, Data: x.Of.Data, MatchmakerData: data,
		Properties: t.matchProperties(&x), Latencies: latencies, Players: make([]placement.Player, len(players)),
	}
	for i := range players {
		p.Players[i] = placement.Player{Player: players[i].ID, Data: t.dataOf(players[i].ID), ID: t.newID(), Maker: makers[players[i].ID]}
	}
	if instance, ok := t.c.flow.InstanceOfPlacement(x.ID); ok {
		p.Regions = t.wantedRegions(instance)
	}
	t.emit(&PlacementStarted{p})
	made, _ := t.c.placements.Placement(x.ID)
	t.dirty = append(t.dirty, made)
}

// teams are those of the configuration's rule set.
func (t *tx) teams(c *matchmaking.Configuration) []ruleset.Team {
	if rules := t.c.matchmaking.Compiled(c.RuleSet); rules != nil {
		return rules.Teams
	}
	return nil
}

// matchPlaced goes on with the match whose placement has ended, if it is a match's.
func (t *tx) matchPlaced(id string, status placement.Status) {
	match, ok := t.c.matchmaking.Match(id)
	if !ok {
		return
	}
	of := t.c.matchmaking.Matches.Get(match).Of
	switch {
	case status == placement.Fulfilled:
		t.matchHosted(match)
	case t.ofFlow(id):
		t.failMatch(match, matchmaking.UnexpectedError)
	case status == placement.TimedOut && of.RequeueOnTimeout():
		t.dropMatch(match, drop{others: matchmaking.PlacementTimedOut})
	case status != placement.TimedOut && of.RequeueOnFailure():
		t.dropMatch(match, drop{others: matchmaking.PlacementFailed})
	default:
		t.failMatch(match, matchmaking.UnexpectedError)
	}
}

// matchHosted completes a match whose game session is active.
func (t *tx) matchHosted(match matchmaking.Ref) {
	x := *t.c.matchmaking.Matches.Get(match)
	r, _ := t.c.placements.Placement(x.ID)
	p := t.c.placements.Placements.Get(r)
	game, sessions := session.ID(p.Game), make([]domain.UUID, len(p.Players))
	for i := range p.Players {
		sessions[i] = p.Players[i].ID
	}
	players, _ := t.matchedPlayers(match)
	t.emit(&HostedChanged{matchmaking.Hosted{Game: string(game), Match: x.ID, Roster: matchmaking.EncodeRoster(players), Automatic: x.Of.AutoBackfill}})
	t.completeMatch(match, game, sessions)
	t.automaticBackfill(game)
}

// completeBackfill brings the newcomers of a match into its running game session. If that takes them no more, they search
// on: they did nothing wrong. The backfill does, too, if seats may come free again. B114.
func (t *tx) completeBackfill(match matchmaking.Ref) {
	m := t.c.matchmaking
	x := *m.Matches.Get(match)
	seat, _ := x.Backfill()
	r, _ := m.TicketNo(seat.Ticket)
	ticket := *m.Tickets.Get(r)
	game := session.ID(ticket.Game)
	players, _ := t.matchedPlayers(match)
	roster, newcomers := t.split(ticket.Roster, players)
	free, ok := t.freeSlots(ticket.Game)
	switch {
	case !ok || t.tooMuchData(game, players):
		t.dropMatch(match, drop{blamed: map[uint64]end{seat.Ticket: {matchmaking.Failed, matchmaking.GameSessionLost}}})
		return
	case free < int32(len(newcomers)):
		t.dropMatch(match, drop{})
		return
	}
	ofParties, makers := t.newcomersOfParties(match, game), t.makersOf(match)
	sessions := make([]domain.UUID, len(newcomers))
	for i, p := range newcomers {
		sessions[i] = t.newID()
		n, ok := ofParties[p.ID]
		if !ok {
			n.wait = t.c.config.Reservation
		}
		t.emit(&PlayerReserved{PlayerSession: sessions[i], GameSession: game, Player: p.ID, Data: n.data, ReserveBy: t.contact.Add(n.wait), Maker: makers[p.ID]})
	}
	t.tellBackfill(&ticket, flow.OnGameInstanceLeftMatchmaking, backfillMatched)
	t.commitBackfill(match, game)
	t.updateData(game, append(roster, newcomers...), "", matchmaking.DataUpdated, ticket.ID)
	t.completeMatch(match, game, sessions)
	t.automaticBackfill(game)
}

// tooMuchData reports whether the match data of a game session would become longer than it may be.
func (t *tx) tooMuchData(game session.ID, players []matchmaking.Player) bool {
	r, ok := t.c.matchmaking.HostedBy(string(game))
	if !ok {
		return false
	}
	h := t.c.matchmaking.Hosted.Get(r)
	const ticket = 64 // room for the id of an automatic backfill
	return len(h.Data(t.teams(h.Of), players, ""))+ticket > matchmaking.DataMax
}

// split tells the players of a backfill's roster from the newcomers; both stay in their order.
func (t *tx) split(roster string, players []matchmaking.Player) (there, newcomers []matchmaking.Player) {
	known := map[string]bool{}
	backfill := matchmaking.Ticket{Roster: roster}
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

// updateData gives a game session new match data, and its server process word of it.
func (t *tx) updateData(game session.ID, players []matchmaking.Player, autoTicket string, why matchmaking.Update, ticket string) {
	r, ok := t.c.matchmaking.HostedBy(string(game))
	if !ok {
		return
	}
	h := *t.c.matchmaking.Hosted.Get(r)
	t.emit(&GameSessionMatched{game, h.Data(t.teams(h.Of), players, autoTicket)})
	h.Roster = matchmaking.EncodeRoster(players)
	h.Updates, h.Why, h.Ticket = h.Updates+1, why, ticket
	t.changeHosted(h)
}

// changeHosted states what is known of a game session now.
func (t *tx) changeHosted(h matchmaking.Hosted) {
	h.Of = nil
	t.emit(&HostedChanged{h})
}

// backfillEnded does what follows from the end of a backfill ticket without success: its server process has to be told,
// and the service may go on by itself. Source: docs/spec/flexmatch.md#automatic-backfill; B115.
func (t *tx) backfillEnded(x *matchmaking.Ticket, status matchmaking.Status, why matchmaking.Reason) {
	t.tellBackfill(x, flow.OnGameInstanceLeftMatchmaking, backfillReason(why))
	if !x.Backfill {
		return
	}
	r, ok := t.c.matchmaking.HostedBy(x.Game)
	if !ok {
		return
	}
	game := session.ID(x.Game)
	if g, ok := t.c.sessions.Game(game); !ok || !t.c.sessions.Games.Get(g).Live() {
		return
	}
	h := *t.c.matchmaking.Hosted.Get(r)
	update := map[matchmaking.Status]matchmaking.Update{
		matchmaking.TimedOut: matchmaking.BackfillTimedOut, matchmaking.Failed: matchmaking.BackfillFailed, matchmaking.Cancelled: matchmaking.BackfillCancelled,
	}[status]
	replaced := why == matchmaking.Replaced || why == matchmaking.ReplacedByServer
	if x.Automatic && status != matchmaking.TimedOut && !replaced && h.Automatic {
		h.Automatic = false // turned off: it must not come back by itself
		t.changeHosted(h)
	}
	if x.Automatic {
		t.updateData(game, matchmaking.DecodeRoster(h.Roster), "", update, x.ID)
	} else if why != matchmaking.ReplacedByServer {
		h.Updates, h.Why, h.Ticket = h.Updates+1, update, x.ID
		t.changeHosted(h)
	}
	if x.Automatic && status == matchmaking.TimedOut {
		t.automaticBackfill(game)
	}
}

// automaticBackfill makes the next automatic backfill ticket of a game session, if it is to have one and takes players.
func (t *tx) automaticBackfill(game session.ID) {
	m := t.c.matchmaking
	at, ok := m.HostedBy(string(game))
	if !ok || !m.Hosted.Get(at).Automatic {
		return
	}
	h := *m.Hosted.Get(at)
	_, open := m.BackfillOf(string(game))
	c, ok := m.Configuration(h.Of.Name)
	if open || !ok || c.Standalone {
		return
	}
	players := t.rosterNow(&h)
	_, takes := t.freeSlots(string(game))
	rules := m.Compiled(c.RuleSet)
	switch {
	case !takes || rules == nil || int32(len(players)) >= rules.PlayersMax:
		return
	case len(players) == 0 || len(players) > playersInBackfillMax || len(h.Roster) > ticketBytesMax:
		return
	case t.checkPlayers(c, players) != nil || t.checkTeams(c, players) != nil:
		return // the rule set is another one, and the players of this game session do not fit it
	case slices.ContainsFunc(players, func(p matchmaking.Player) bool { _, searches := m.TicketOf(p.ID); return searches }):
		return // as if the player's ticket had cancelled it
	}
	g, _ := t.c.sessions.Game(game)
	x := matchmaking.Ticket{
		ID: "auto-backfill-" + t.newID().String(), Backfill: true, Automatic: true, Players: int32(len(players)), Game: string(game),
		GameRegion: t.c.sessions.Games.Get(g).Region, Roster: matchmaking.EncodeRoster(players),
	}
	t.startTicket(c, x)
	t.updateData(game, players, x.ID, matchmaking.DataUpdated, x.ID)
}

// rosterNow are the players of a game session as its automatic backfill tells the matchmaker of them: those of the match data,
// without those who have left if its configuration wants that. A seat that is kept for a player who is away is the player's.
func (t *tx) rosterNow(h *matchmaking.Hosted) []matchmaking.Player {
	players := matchmaking.DecodeRoster(h.Roster)
	if !h.Of.BackfillLeavers() {
		return players
	}
	r, ok := t.c.flow.InstanceOfGame(h.Game)
	return slices.DeleteFunc(players, func(p matchmaking.Player) bool {
		if ok {
			return !t.playsIn(r, p.ID)
		}
		return !t.sits(p.ID, session.ID(h.Game))
	})
}

// sits reports whether a player has a seat in a game session.
func (t *tx) sits(player string, game session.ID) (yes bool) {
	g, _ := t.c.sessions.Game(game)
	t.c.sessions.PlayersNamed(player, func(_ session.Ref, p *session.PlayerSession) bool {
		yes = yes || p.Game == g && p.Status.Live()
		return !yes
	})
	return yes
}

// playerLeft makes room for others: the open backfill of a game session stops naming a player who has left for good. That is
// for rosters that the core has made: automatic ones, if the configuration wants it, and those of Game.EnterMatchmaking.
func (t *tx) playerLeft(r session.Ref) {
	m := t.c.matchmaking
	game := t.c.sessions.Games.Get(r).ID
	at, ok := m.HostedBy(string(game))
	if !ok {
		return
	}
	open, searching := m.BackfillOf(string(game))
	if searching && isGameBackfill(m.Tickets.Get(open)) {
		t.renewGameBackfill(open)
		return
	}
	if !m.Hosted.Get(at).Automatic || !m.Hosted.Get(at).Of.BackfillLeavers() {
		return
	}
	if searching {
		if x := m.Tickets.Get(open); !x.Automatic || !x.Status.Waits() {
			return // what comes of it makes the next one
		} else if x.Roster == matchmaking.EncodeRoster(t.rosterNow(m.Hosted.Get(at))) {
			return // it names nobody who has left
		}
		t.endTicket(open, matchmaking.Cancelled, matchmaking.Replaced)
	}
	t.automaticBackfill(game)
}

// backfillLost ends the backfill of a game session that ends.
func (t *tx) backfillLost(game session.ID) {
	m := t.c.matchmaking
	if _, ok := m.HostedBy(string(game)); !ok {
		return
	}
	r, ok := m.BackfillOf(string(game))
	if !ok {
		return
	}
	x := m.Tickets.Get(r)
	if x.Status != matchmaking.RequiresAcceptance {
		t.endTicket(r, matchmaking.Failed, matchmaking.GameSessionLost)
		return
	}
	match, _ := m.Match(x.Outcome.Match)
	t.dropMatch(match, drop{
		acceptance: "Rejected", others: matchmaking.ProposedMatchRejected,
		blamed: map[uint64]end{x.No: {matchmaking.Failed, matchmaking.GameSessionLost}},
	})
}

// TellHosted says that a server process was told of an update of its backfill.
type TellHosted struct {
	Game   session.ID
	Update uint64
}

func (cmd *TellHosted) decide(t *tx) error {
	r, ok := t.c.matchmaking.HostedBy(string(cmd.Game))
	if ok && t.c.matchmaking.Hosted.Get(r).Told < cmd.Update {
		t.emit(&HostedTold{cmd.Game, cmd.Update})
	}
	return nil
}
