package matchmaking

import (
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/excerpt"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/quota"
	"github.com/musterhq/muster/internal/domain/session"
)

// Bounds of a ticket. Source: docs/spec/flexmatch.md#limits.
const (
	PlayersInTicketMax   = 10
	playersInBackfillMax = 199
)

// StartMatchmaking starts the search of players who stay together.
type StartMatchmaking struct {
	Configuration string
	ID            string
	Chosen        bool // the caller chose the id
	Players       []Player
	By            domain.Maker
	quota.Taking

	kernel.ArchivedID `cbor:"-"`

	// Result
	Ticket TicketView
}

// Claimed returns the id if the caller chose it.
func (cmd *StartMatchmaking) Claimed() (kernel.ClaimKind, string) {
	if !cmd.Chosen {
		return kernel.Nothing, ""
	}
	return kernel.ATicket, cmd.ID
}

func (cmd *StartMatchmaking) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	c, ok := t.Records.Configuration(cmd.Configuration)
	if !ok {
		return domain.Refuse(domain.NotFound, "matchmaking configuration %s not found", cmd.Configuration)
	}
	if n := len(cmd.Players); n < 1 || n > PlayersInTicketMax {
		return domain.Refuse(domain.Invalid, "Players: %d players; want 1 to %d", n, PlayersInTicketMax)
	}
	if err := t.CheckPlayers(c, cmd.Players); err != nil {
		return err
	}
	for i, p := range cmd.Players {
		if err := t.hooks.MayBeForeign("Players", i, p.ID); err != nil {
			return err
		}
	}
	for i := range cmd.Players {
		cmd.Players[i].Team = "" // only the matchmaker assigns teams; see B108
	}
	x := Ticket{
		ID: cmd.ID, Owner: ClientOwned, Configuration: c.Name, Players: int32(len(cmd.Players)), Roster: EncodeRoster(cmd.Players),
		Maker: cmd.By, Holder: quota.Stored(t.HolderFor(cmd.Holder, cmd.By), cmd.By),
	}
	if old, err := t.sameTicket(&x, cmd.Chosen, cmd.Archived, cmd.ArchivedAt); old != 0 || err != nil {
		cmd.Ticket = t.TicketView(old, t.Now)
		return err
	}
	if err := t.CheckRoom(&x); err != nil {
		return err
	}
	if err := t.checkRivals(cmd.Players, cmd.By); err != nil {
		return err
	}
	r := t.StartTicket(c, x)
	cmd.Ticket = t.TicketView(r, t.Now)
	return nil
}

// CheckPlayers checks the players of a request: no duplicates, and attributes of the types that the rule set declares.
func (t *Tx) CheckPlayers(c *Configuration, players []Player) error {
	rules := t.Records.Compiled(c.RuleSet)
	if rules == nil {
		return domain.Refuse(domain.Invalid, "ConfigurationName: rule set %s cannot be used by this release", c.RuleSet)
	}
	seen := make(map[string]bool, len(players))
	for i, p := range players {
		if seen[p.ID] {
			return domain.Refuse(domain.Invalid, "Players[%d].PlayerId: %s is named twice", i, excerpt.Short(p.ID))
		}
		seen[p.ID] = true
		if _, err := rules.Player(p.Attributes); err != nil {
			return domain.Refuse(domain.Invalid, "Players[%d].PlayerAttributes: %v", i, err)
		}
	}
	return nil
}

// sameTicket finds the active ticket of an earlier identical request, because clients repeat a request whose answer they did not receive.
// It refuses an id that is taken by another ticket.
func (t *Tx) sameTicket(x *Ticket, chosen, archived bool, archivedAt uint64) (TicketRef, error) {
	if r, ok := t.Records.Ticket(x.ID); ok {
		old := t.Ticket(r)
		if old.Status.Active() && old.Owner == x.Owner && old.Backfill == x.Backfill && old.Configuration == x.Configuration && old.Game == x.Game && old.Roster == x.Roster && old.Maker == x.Maker {
			return r, nil
		}
		return 0, domain.Refuse(domain.TokenMismatch, "TicketId: %s was used before", x.ID)
	}
	switch {
	case archived:
		return 0, domain.Refuse(domain.TokenMismatch, "TicketId: %s was used before", x.ID)
	case chosen && archivedAt != t.Forgotten():
		return 0, domain.Refuse(domain.Stale, "the archive has grown since it was asked for ticket %s", x.ID)
	}
	return 0, nil
}

// TicketBytesMax bounds the size of one ticket's players, so that a batch of commands fits into a journal entry and a ticket into an
// archive record. B118.
const TicketBytesMax = 768 << 10

// CheckRoom bounds the space that tickets with maximal data take in the journal and in memory.
func (t *Tx) CheckRoom(x *Ticket) error {
	if bytes := len(x.Roster); bytes > TicketBytesMax {
		return domain.Refuse(domain.Invalid, "Players: %d bytes in all; want at most %d", bytes, TicketBytesMax)
	}
	holder := t.HolderFor(x.Holder, x.Maker)
	if err := t.Records.Held().Room(quota.Tickets, holder, x.Maker, x.Bytes(), t.Config.TicketBytesMax); err != nil {
		return err
	}
	return t.Quotas.Check(quota.Tickets, t.Records.Held(), holder, 1, 0)
}

// checkRivals prevents a client key from ending another key's tickets by starting new ones for the same players.
func (t *Tx) checkRivals(players []Player, by domain.Maker) error {
	for i := range players {
		r, ok := t.Records.TicketOf(players[i].ID)
		if !ok {
			continue
		}
		if x := t.Ticket(r); x.Status != Placing && !by.MayTouch(x.Maker) {
			return domain.Refuse(domain.Invalid, "Players[%d].PlayerId: the player has a ticket that another access key made", i)
		}
	}
	return nil
}

// StartTicket queues a ticket. Other tickets of its players end, because a player has at most one.
func (t *Tx) StartTicket(c *Configuration, x Ticket) TicketRef {
	t.cancelRivals(&x)
	x.No, x.Status, x.Generation = t.ticketNo+1, Queued, 1
	if x.Start == 0 {
		x.Start = t.Now
	}
	x.Configuration, x.Region, x.Account = c.Name, c.Region, c.Account
	x.automatic = x.Owner == ServiceOwned
	if x.TimeoutAt == 0 {
		x.TimeoutAt = t.Now.Add(c.RequestTimeout)
	}
	t.Emit(&TicketStarted{x})
	r, _ := t.Records.TicketNo(x.No)
	if x.Backfill {
		t.hooks.BackfillBegun(&x)
	}
	return r
}

// cancelRivals ends the other active tickets of a ticket's players, except those in placement, whose players have a match. Source:
// docs/spec/flexmatch.md#duplicate-player; B109.
func (t *Tx) cancelRivals(x *Ticket) {
	for id := range x.EachPlayer {
		r, ok := t.Records.TicketOf(id)
		if !ok || t.Ticket(r).Status == Placing {
			continue
		}
		t.CancelTicket(r, DuplicatePlayer)
	}
}

// CancelTicket ends a ticket that waits or whose match awaits acceptance. The other tickets of the match continue to search.
func (t *Tx) CancelTicket(r TicketRef, why Reason) {
	x := t.Ticket(r)
	if x.Status != RequiresAcceptance {
		t.EndTicket(r, Cancelled, why)
		return
	}
	match, _ := t.Records.Match(x.Outcome.Match)
	t.dropMatch(match, drop{acceptance: "Rejected", others: ProposedMatchRejected, blamed: map[uint64]end{x.No: {Cancelled, why}}})
}

// StopMatchmaking cancels a ticket that has no game session yet. After it has succeeded, the ticket cannot be matched any more.
type StopMatchmaking struct {
	ID     string
	By     domain.Maker
	Server *fleet.Key // the server process that stops the backfill of its game session; nil: another caller
}

// TicketNotFound is the cloud service's message, word for word.
const TicketNotFound = "Matchmaking ticket was not found."

func (cmd *StopMatchmaking) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	r, ok := t.Records.Ticket(cmd.ID)
	if !ok {
		return domain.Refuse(domain.NotFound, TicketNotFound)
	}
	x := t.Ticket(r)
	if !cmd.By.MayTouch(x.Maker) {
		return domain.Refuse(domain.NotFound, TicketNotFound)
	}
	if cmd.Server != nil {
		if !x.Backfill {
			return domain.Refuse(domain.NotFound, TicketNotFound)
		}
		if !x.Status.Active() {
			return nil // it has ended already, as the server wants
		}
		if _, _, err := t.hosting.Hosted(*cmd.Server, session.ID(x.Game)); err != nil {
			return err
		}
	}
	if x.Status == Placing || !x.Status.Active() {
		return TicketCannotStop(x.Status)
	}
	t.CancelTicket(r, StoppedByRequest)
	return nil
}

// TicketCannotStop returns the refusal to stop a ticket in its status, in the cloud service's words.
func TicketCannotStop(s Status) error {
	return domain.Refuse(domain.Invalid, "Matchmaking ticket is in %s status and cannot be canceled.", s)
}

// EndTicket ends a ticket that is in no match, or whose match is about to be dropped, and records the notices.
func (t *Tx) EndTicket(r TicketRef, status Status, why Reason) {
	x := *t.Ticket(r)
	t.Emit(&TicketEnded{TicketNo(x.No), status, why})
	t.tellTicketEnd(r, status, why)
	t.backfillEnded(&x, status, why)
	t.hooks.TicketEnded(&x, why)
}

// TicketKey names a ticket and the generation that a matchmaker read.
type TicketKey struct {
	No         uint64
	Generation uint32
}

// waitingTicket finds a waiting ticket that has not changed.
func (t *Tx) waitingTicket(key TicketKey) (TicketRef, *Ticket, bool) {
	r, ok := t.Records.TicketNo(key.No)
	if !ok {
		return 0, nil, false
	}
	x := t.Ticket(r)
	return r, x, x.Generation == key.Generation && x.Status.Waits()
}

// BeginSearch records that a matchmaker has added tickets to its pool. It ignores tickets that have changed since.
type BeginSearch struct{ Tickets []TicketKey }

func (cmd *BeginSearch) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	e := &TicketsSearching{}
	var begun []TicketRef
	for _, key := range cmd.Tickets {
		if r, x, ok := t.waitingTicket(key); ok && x.Status == Queued {
			e.Tickets = append(e.Tickets, TicketNo(key.No))
			begun = append(begun, r)
		}
	}
	if len(begun) == 0 {
		return nil
	}
	t.Emit(e)
	for _, r := range begun {
		t.tellSearching(r)
		t.hooks.SearchBegun(t.Ticket(r))
	}
	return nil
}

// FailTickets ends tickets that do not fit the current rule set of their configuration. The command checks that again.
type FailTickets struct{ Tickets []TicketKey }

func (cmd *FailTickets) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	for _, key := range cmd.Tickets {
		r, x, ok := t.waitingTicket(key)
		if !ok {
			continue
		}
		c, _ := t.Records.Configuration(x.Configuration)
		players := DecodeRoster(x.Roster)
		err := t.CheckPlayers(c, players)
		if err == nil && x.Backfill {
			err = t.checkTeams(c, players)
		}
		if err != nil {
			t.EndTicket(r, Failed, IncompatibleRuleSet)
		}
	}
	return nil
}
