package cell

import (
	"unicode/utf8"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/matchmaking"
	"github.com/musterhq/muster/internal/domain/session"
)

// Bounds of a ticket. Source: docs/spec/flexmatch.md#limits.
const (
	playersInTicketMax   = 10
	playersInBackfillMax = 199
)

// StartMatchmaking begins the search for a match for some players who stay together.
type StartMatchmaking struct {
	Configuration string
	ID            string
	Chosen        bool // the caller chose the id
	Players       []matchmaking.Player
	By            domain.Maker

	archivedID

	// Result
	Ticket Ticket
}

// Claimed returns the id if it was chosen.
func (cmd *StartMatchmaking) Claimed() (ClaimKind, string) {
	if !cmd.Chosen {
		return Nothing, ""
	}
	return ATicket, cmd.ID
}

func (cmd *StartMatchmaking) decide(t *tx) error {
	c, ok := t.c.matchmaking.Configuration(cmd.Configuration)
	if !ok {
		return domain.Refuse(domain.NotFound, "matchmaking configuration %s not found", cmd.Configuration)
	}
	if n := len(cmd.Players); n < 1 || n > playersInTicketMax {
		return domain.Refuse(domain.Invalid, "Players: %d players; want 1 to %d", n, playersInTicketMax)
	}
	if err := t.checkPlayers(c, cmd.Players); err != nil {
		return err
	}
	for i, p := range cmd.Players {
		if err := t.mayBeForeign("Players", i, p.ID); err != nil {
			return err
		}
	}
	for i := range cmd.Players {
		cmd.Players[i].Team = "" // the matchmaker's to give; see B108
	}
	x := matchmaking.Ticket{
		ID: cmd.ID, Configuration: c.Name, Players: int32(len(cmd.Players)), Roster: matchmaking.EncodeRoster(cmd.Players),
		Maker: cmd.By,
	}
	if old, err := t.sameTicket(&x, cmd.Chosen, cmd.Archived, cmd.ArchivedAt); old != 0 || err != nil {
		cmd.Ticket = t.c.ticket(old, t.now)
		return err
	}
	if err := t.checkRoom(&x); err != nil {
		return err
	}
	if err := t.checkRivals(cmd.Players, cmd.By); err != nil {
		return err
	}
	r := t.startTicket(c, x)
	cmd.Ticket = t.c.ticket(r, t.now)
	return nil
}

// checkPlayers checks the players of a request: each one once, with attributes of the kinds that the rule set declares.
func (t *tx) checkPlayers(c *matchmaking.Configuration, players []matchmaking.Player) error {
	rules := t.c.matchmaking.Compiled(c.RuleSet)
	if rules == nil {
		return domain.Refuse(domain.Invalid, "ConfigurationName: rule set %s cannot be used by this release", c.RuleSet)
	}
	seen := make(map[string]bool, len(players))
	for i, p := range players {
		if seen[p.ID] {
			return domain.Refuse(domain.Invalid, "Players[%d].PlayerId: the same player is named twice", i)
		}
		seen[p.ID] = true
		if _, err := rules.Player(p.Attributes); err != nil {
			return domain.Refuse(domain.Invalid, "Players[%d].PlayerAttributes: %v", i, err)
		}
	}
	return nil
}

// sameTicket finds the active ticket that the very same request made before, or refuses an id that is taken. Clients
// repeat a request whose answer they did not get.
func (t *tx) sameTicket(x *matchmaking.Ticket, chosen, archived bool, archivedAt uint64) (matchmaking.Ref, error) {
	if r, ok := t.c.matchmaking.Ticket(x.ID); ok {
		old := t.c.matchmaking.Tickets.Get(r)
		if old.Status.Active() && old.Backfill == x.Backfill && old.Configuration == x.Configuration && old.Game == x.Game && old.Roster == x.Roster && old.Maker == x.Maker {
			return r, nil
		}
		return 0, domain.Refuse(domain.Invalid, "TicketId: %s was used before", x.ID)
	}
	switch {
	case archived:
		return 0, domain.Refuse(domain.Invalid, "TicketId: %s was used before", x.ID)
	case chosen && archivedAt != t.c.forgotten:
		return 0, domain.Refuse(domain.Stale, "the archive has grown since it was asked for ticket %s", x.ID)
	}
	return 0, nil
}

// ticketBytesMax bounds the players of one ticket, so that a step of commands stays within what a journal entry takes, and
// a record within what the archive takes. B118.
const ticketBytesMax = 768 << 10

// checkRoom protects journal and memory from tickets that bring all the data they may.
func (t *tx) checkRoom(x *matchmaking.Ticket) error {
	if bytes := len(x.Roster); bytes > ticketBytesMax {
		return domain.Refuse(domain.Invalid, "Players: %d bytes in all; at most %d are taken", bytes, ticketBytesMax)
	}
	return t.c.matchmaking.Held().Room(x.Maker, x.Bytes(), t.c.config.TicketBytesMax, "tickets")
}

// checkRivals keeps a client key from ending tickets that it may not touch by starting others for their players.
func (t *tx) checkRivals(players []matchmaking.Player, by domain.Maker) error {
	for i := range players {
		r, ok := t.c.matchmaking.TicketOf(players[i].ID)
		if !ok {
			continue
		}
		if x := t.c.matchmaking.Tickets.Get(r); x.Status != matchmaking.Placing && !by.MayTouch(x.Maker) {
			return domain.Refuse(domain.Invalid, "Players[%d].PlayerId: the player has a ticket that another access key made", i)
		}
	}
	return nil
}

// startTicket queues a ticket. Other tickets of its players end: everybody has one at most.
func (t *tx) startTicket(c *matchmaking.Configuration, x matchmaking.Ticket) matchmaking.Ref {
	t.cancelRivals(&x)
	x.No, x.Status, x.Generation = t.c.ticketNo+1, matchmaking.Queued, 1
	if x.Start == 0 {
		x.Start = t.now
	}
	x.Configuration, x.Region, x.Account = c.Name, c.Region, c.Account
	if x.TimeoutAt == 0 {
		x.TimeoutAt = t.now.Add(c.RequestTimeout)
	}
	t.emit(&TicketStarted{x})
	r, _ := t.c.matchmaking.TicketNo(x.No)
	t.tellBackfill(&x, flow.OnGameInstanceEnteredMatchmaking, "")
	return r
}

// cancelRivals ends the active tickets of a ticket's players. One that is being placed is left alone: its players have a
// match. Source: docs/spec/flexmatch.md#duplicate-player; B109.
func (t *tx) cancelRivals(x *matchmaking.Ticket) {
	for id := range x.EachPlayer {
		r, ok := t.c.matchmaking.TicketOf(id)
		if !ok || t.c.matchmaking.Tickets.Get(r).Status == matchmaking.Placing {
			continue
		}
		t.cancelTicket(r, matchmaking.DuplicatePlayer)
	}
}

// cancelTicket ends a ticket that waits or whose match is being accepted; then the others of the match search on.
func (t *tx) cancelTicket(r matchmaking.Ref, why matchmaking.Reason) {
	x := t.c.matchmaking.Tickets.Get(r)
	if x.Status != matchmaking.RequiresAcceptance {
		t.endTicket(r, matchmaking.Cancelled, why)
		return
	}
	match, _ := t.c.matchmaking.Match(x.Outcome.Match)
	t.dropMatch(match, drop{acceptance: "Rejected", others: matchmaking.ProposedMatchRejected, blamed: map[uint64]end{x.No: {matchmaking.Cancelled, why}}})
}

// StartMatchBackfill begins the search for more players for a running game session.
type StartMatchBackfill struct {
	Configuration string
	ID            string
	Chosen        bool
	Players       []matchmaking.Player // who are there, with their teams
	Game          string               // id of the game session; with STANDALONE whatever the caller calls it, or nothing
	Slots         int32                // how many players are wanted; 0: as many as there is room for
	Server        *fleet.Key           // the server process that asks; nil: not one

	unmatched bool // the game session need not have come of a match

	archivedID

	// Result
	Ticket Ticket
}

// Claimed returns the id if it was chosen.
func (cmd *StartMatchBackfill) Claimed() (ClaimKind, string) {
	if !cmd.Chosen {
		return Nothing, ""
	}
	return ATicket, cmd.ID
}

func (cmd *StartMatchBackfill) decide(t *tx) error {
	begin, err := cmd.check(t)
	if err == nil {
		begin()
	}
	return err
}

// check looks whether the backfill may begin; what it returns begins it and cannot fail.
func (cmd *StartMatchBackfill) check(t *tx) (begin func(), err error) {
	c, ok := t.c.matchmaking.Configuration(cmd.Configuration)
	if !ok {
		return nil, domain.Refuse(domain.NotFound, "matchmaking configuration %s not found", cmd.Configuration)
	}
	if n := len(cmd.Players); n < 1 || n > playersInBackfillMax {
		return nil, domain.Refuse(domain.Invalid, "Players: %d players; want 1 to %d", n, playersInBackfillMax)
	}
	if err := t.checkPlayers(c, cmd.Players); err != nil {
		return nil, err
	}
	if err := t.checkTeams(c, cmd.Players); err != nil {
		return nil, err
	}
	for i, p := range cmd.Players {
		if err := t.mayBeBackfilled("Players", i, p.ID); err != nil {
			return nil, err
		}
	}
	x := matchmaking.Ticket{
		ID: cmd.ID, Configuration: c.Name, Backfill: true, Players: int32(len(cmd.Players)), Game: cmd.Game, Slots: cmd.Slots,
		Roster: matchmaking.EncodeRoster(cmd.Players),
	}
	if !c.Standalone {
		g, err := t.checkBackfilled(cmd)
		if err != nil {
			return nil, err
		}
		x.GameRegion = g.Region
	}
	old, err := t.sameTicket(&x, cmd.Chosen, cmd.Archived, cmd.ArchivedAt)
	switch {
	case err != nil:
		return nil, err
	case old != 0:
		return func() { cmd.Ticket = t.c.ticket(old, t.now) }, nil
	}
	if err := t.checkRoom(&x); err != nil {
		return nil, err
	}
	return func() {
		if r, ok := t.c.matchmaking.BackfillOf(x.Game); ok && x.Game != "" {
			why := matchmaking.Replaced
			if cmd.Server != nil {
				why = matchmaking.ReplacedByServer
			}
			t.cancelTicket(r, why)
		}
		cmd.Ticket = t.c.ticket(t.startTicket(c, x), t.now)
	}, nil
}

// checkTeams checks that every player is in a team of the rule set.
func (t *tx) checkTeams(c *matchmaking.Configuration, players []matchmaking.Player) error {
	rules := t.c.matchmaking.Compiled(c.RuleSet)
	for i, p := range players {
		known := false
		for _, team := range rules.Teams {
			known = known || team.Name == p.Team
		}
		switch {
		case p.Team == "":
			return domain.Refuse(domain.Invalid, "Players[%d].Team: required for a backfill", i)
		case !known:
			return domain.Refuse(domain.Invalid, "Players[%d].Team: rule set %s has no team %q", i, c.RuleSet, shortText(p.Team))
		}
	}
	return nil
}

// shortText keeps a message readable when the value is the problem.
func shortText(s string) string {
	const longest = 100
	if len(s) <= longest {
		return s
	}
	cut := longest
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "…"
}

// checkBackfilled finds the game session that a backfill is for.
func (t *tx) checkBackfilled(cmd *StartMatchBackfill) (*session.GameSession, error) {
	game, server := cmd.Game, cmd.Server
	if game == "" {
		return nil, domain.Refuse(domain.Invalid, "GameSessionArn: required, because FlexMatchMode is WITH_QUEUE")
	}
	if server != nil {
		if _, _, err := t.hosted(*server, session.ID(game)); err != nil {
			return nil, err
		}
	}
	r, ok := t.c.sessions.Game(session.ID(game))
	if !ok {
		return nil, domain.Refuse(domain.NotFound, "GameSessionArn: game session %s not found", game)
	}
	g := t.c.sessions.Games.Get(r)
	if _, ok := t.c.matchmaking.HostedBy(game); !ok && !cmd.unmatched {
		return nil, domain.Refuse(domain.Invalid, "GameSessionArn: game session %s did not come of a match, or its match is still being placed", game)
	}
	if !takesPlayers(g) {
		return nil, domain.Refuse(domain.Invalid, "GameSessionArn: game session %s is %s and accepts no new players", game, g.Status)
	}
	return g, nil
}

func takesPlayers(g *session.GameSession) bool { return g.Status == session.Active && !g.DenyPlayers }

// StopMatchmaking cancels a ticket that has no game session yet. Once it has succeeded no match follows.
type StopMatchmaking struct {
	ID     string
	By     domain.Maker
	Server *fleet.Key // the server process that stops the backfill of its game session; nil: not one
}

// TicketNotFound is what clients of the cloud service are told, word for word.
const TicketNotFound = "Matchmaking ticket was not found."

func (cmd *StopMatchmaking) decide(t *tx) error {
	r, ok := t.c.matchmaking.Ticket(cmd.ID)
	if !ok {
		return domain.Refuse(domain.NotFound, TicketNotFound)
	}
	x := t.c.matchmaking.Tickets.Get(r)
	if !cmd.By.MayTouch(x.Maker) {
		return domain.Refuse(domain.NotFound, TicketNotFound)
	}
	if cmd.Server != nil {
		if !x.Backfill {
			return domain.Refuse(domain.NotFound, TicketNotFound)
		}
		if !x.Status.Active() {
			return nil // it ended already: what the server wants is so
		}
		if _, _, err := t.hosted(*cmd.Server, session.ID(x.Game)); err != nil {
			return err
		}
	}
	if x.Status == matchmaking.Placing || !x.Status.Active() {
		return TicketCannotStop(x.Status)
	}
	t.cancelTicket(r, matchmaking.StoppedByRequest)
	return nil
}

// TicketCannotStop refuses to stop a ticket in its status, with the words of the cloud service.
func TicketCannotStop(s matchmaking.Status) error {
	return domain.Refuse(domain.Invalid, "Matchmaking ticket is in %s status and cannot be canceled.", s)
}

// endTicket ends a ticket that is in no match, or whose match is about to be dropped. Who has to be told is told.
func (t *tx) endTicket(r matchmaking.Ref, status matchmaking.Status, why matchmaking.Reason) {
	x := *t.c.matchmaking.Tickets.Get(r)
	t.emit(&TicketEnded{TicketNo(x.No), status, why})
	t.tellTicketEnd(r, status, why)
	t.backfillEnded(&x, status, why)
	t.ticketEnded(&x, why)
}

// TicketKey names a ticket as it was when somebody looked.
type TicketKey struct {
	No         uint64
	Generation uint32
}

// waitingTicket finds a ticket that waits and has not changed.
func (t *tx) waitingTicket(key TicketKey) (matchmaking.Ref, *matchmaking.Ticket, bool) {
	r, ok := t.c.matchmaking.TicketNo(key.No)
	if !ok {
		return 0, nil, false
	}
	x := t.c.matchmaking.Tickets.Get(r)
	return r, x, x.Generation == key.Generation && x.Status.Waits()
}

// BeginSearch says that a matchmaker has taken tickets into its pool. Those that have moved on do not matter.
type BeginSearch struct{ Tickets []TicketKey }

func (cmd *BeginSearch) decide(t *tx) error {
	e := &TicketsSearching{}
	var begun []matchmaking.Ref
	for _, key := range cmd.Tickets {
		if r, x, ok := t.waitingTicket(key); ok && x.Status == matchmaking.Queued {
			e.Tickets = append(e.Tickets, TicketNo(key.No))
			begun = append(begun, r)
		}
	}
	if len(begun) == 0 {
		return nil
	}
	t.emit(e)
	for _, r := range begun {
		t.tellSearching(r)
		t.searchBegun(t.c.matchmaking.Tickets.Get(r))
	}
	return nil
}

// FailTickets says that tickets do not fit the rule set that their configuration has now. It is checked again.
type FailTickets struct{ Tickets []TicketKey }

func (cmd *FailTickets) decide(t *tx) error {
	for _, key := range cmd.Tickets {
		r, x, ok := t.waitingTicket(key)
		if !ok {
			continue
		}
		c, _ := t.c.matchmaking.Configuration(x.Configuration)
		players := matchmaking.DecodeRoster(x.Roster)
		err := t.checkPlayers(c, players)
		if err == nil && x.Backfill {
			err = t.checkTeams(c, players)
		}
		if err != nil {
			t.endTicket(r, matchmaking.Failed, matchmaking.IncompatibleRuleSet)
		}
	}
	return nil
}
