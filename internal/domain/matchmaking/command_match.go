package matchmaking

import (
	"cmp"
	"slices"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/excerpt"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/session"
)

// ProposeMatches submits the matches that a matchmaker has found. Each proposal is checked again, and is accepted or refused as a whole,
// independently of the others.
type ProposeMatches struct {
	Configuration string
	Version       uint64 // of the configuration with whose rule set they were found
	Proposals     []Proposal

	// Result: one for each of Proposals; nil: it has become a match.
	Refused []*domain.Refusal
}

// Proposal is a match as a matchmaker found it.
type Proposal struct {
	ID         domain.UUID // of the future match
	Tickets    []ProposedTicket
	PlayersMax int32  // of the game session
	Region     string // a region suitable for all players; empty: unknown
	Counts     []RuleCount
}

// ProposedTicket is a ticket with the team of all its players. The team is empty for the backfill ticket, whose players have teams of
// their own.
type ProposedTicket struct {
	TicketKey
	Team string
}

func (cmd *ProposeMatches) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	c, ok := t.Records.Configuration(cmd.Configuration)
	switch {
	case !ok:
		return domain.Refuse(domain.NotFound, "matchmaking configuration %s not found", cmd.Configuration)
	case c.Version != cmd.Version:
		return domain.Refuse(domain.Conflict, "matchmaking configuration %s has another rule set now", c.Name)
	}
	cmd.Refused = make([]*domain.Refusal, len(cmd.Proposals))
	for i := range cmd.Proposals {
		if t.Bytes() > proposedBytesMax {
			cmd.Refused[i] = domain.Refuse(domain.Overloaded, "the matches before have %d bytes", t.Bytes())
			continue
		}
		cmd.Refused[i] = t.propose(c, &cmd.Proposals[i])
	}
	t.hooks.MatchesMade(cmd.Configuration)
	return nil
}

// proposedBytesMax is the transaction size after which no more matches are added, because match data may be long.
const proposedBytesMax = 512 << 10

// propose turns a proposal into a match, or refuses it.
func (t *Tx) propose(c *Configuration, p *Proposal) *domain.Refusal {
	m := t.Records
	id := p.ID.String()
	if _, ok := m.Match(id); ok || t.knownPlacement(id) {
		return domain.Refuse(domain.Conflict, "match %s exists already", id)
	}
	refs := make([]TicketRef, len(p.Tickets))
	backfill, newcomers := TicketRef(0), int32(0)
	for i, x := range p.Tickets {
		r, ticket, ok := t.waitingTicket(x.TicketKey)
		switch {
		case !ok || ticket.Configuration != c.Name:
			return domain.Refuse(domain.Conflict, "ticket number %d is not in the pool as it was", x.No)
		case slices.Contains(refs[:i], r):
			return domain.Refuse(domain.Invalid, "ticket number %d is named twice", x.No)
		case ticket.Backfill != (x.Team == ""):
			return domain.Refuse(domain.Invalid, "ticket number %d has team %q", x.No, x.Team)
		case ticket.Backfill && backfill != 0:
			return domain.Refuse(domain.Invalid, "there are two backfill tickets")
		case ticket.Backfill:
			backfill = r
		default:
			newcomers += ticket.Players
		}
		if t.hooks.HeldBack(ticket) {
			return domain.Refuse(domain.Conflict, "ticket number %d is held: a player is offline", x.No)
		}
		if _, rival := m.Rival(r); rival {
			return domain.Refuse(domain.Conflict, "a player of ticket number %d has a newer ticket", x.No)
		}
		refs[i] = r
	}
	if newcomers == 0 {
		return domain.Refuse(domain.Invalid, "there are no new players")
	}
	if backfill != 0 {
		if refused := t.checkSlots(c, backfill, newcomers); refused != nil {
			return refused
		}
	}
	match := Match{ID: id, PlayersMax: min(p.PlayersMax, t.hosting.PlayersMax()), Region: p.Region, Counts: p.Counts}
	if c.AcceptanceRequired {
		match.AcceptBy = t.Now.Add(t.hooks.AcceptanceTimeout(c, refs))
	}
	match.Seats = seats(m, refs, p.Tickets)
	t.Emit(&MatchProposed{c.Name, match})
	r, _ := m.Match(id)
	t.tellProposed(r)
	t.hooks.MatchProposed(r)
	if !c.AcceptanceRequired {
		t.advanceMatch(r)
	}
	return nil
}

func (t *Tx) knownPlacement(id string) bool {
	_, ok := t.hosting.FindPlacement(id)
	return ok
}

// seats sorts the tickets of a match by age.
func seats(m *Records, refs []TicketRef, tickets []ProposedTicket) []Seat {
	order := make([]int, len(refs))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		x, y := m.Tickets.Get(refs[a]), m.Tickets.Get(refs[b])
		return cmp.Or(cmp.Compare(x.Start, y.Start), cmp.Compare(x.No, y.No))
	})
	all := make([]Seat, len(refs))
	for i, at := range order {
		all[i] = Seat{Ticket: tickets[at].No, Team: tickets[at].Team}
	}
	return all
}

// checkSlots checks that the game session of a backfill has room for the newcomers. If it accepts no more players, the backfill ends.
// While its last seats are held for players who may never come, the backfill waits. With STANDALONE, only the caller knows the room in
// its game session, unless that is a game instance.
func (t *Tx) checkSlots(c *Configuration, backfill TicketRef, newcomers int32) *domain.Refusal {
	x := t.Ticket(backfill)
	id := x.Game
	free, ok := t.FreeSlots(id)
	if c.Standalone && (!ok || !t.hostsInstance(id)) {
		return nil
	}
	if x.Slots > 0 {
		free = min(free, x.Slots)
	}
	switch {
	case !ok:
		t.EndTicket(backfill, Failed, GameSessionLost)
		return domain.Refuse(domain.Full, "game session %s takes no players", id)
	case free < newcomers:
		return domain.Refuse(domain.Full, "game session %s has %d free slots, %d are wanted", id, free, newcomers)
	}
	return nil
}

// hostsInstance reports whether a game session that is in memory hosts a game instance.
func (c *State) hostsInstance(game string) bool {
	r, ok := c.hosting.FindGame(session.ID(game))
	if ok {
		_, ok = c.hooks.PromisedSeats(r)
	}
	return ok
}

// FreeSlots returns for how many players a game session has room now. ok is false if it will never accept more.
func (c *State) FreeSlots(game string) (free int32, ok bool) {
	r, ok := c.hosting.FindGame(session.ID(game))
	if !ok {
		return 0, false
	}
	g := c.hosting.Game(r)
	free = g.PlayersMax - g.SeatsHeld
	promised, known := c.hooks.PromisedSeats(r)
	free -= promised
	if free > 0 {
		return free, TakesPlayers(g)
	}
	return 0, TakesPlayers(g) && known && c.hooks.KeptSeats(r) > 0
}

// AcceptMatch contains the answers of a ticket's players to its proposed match.
type AcceptMatch struct {
	Ticket  string
	Players []string
	Accept  bool
	By      domain.Maker
}

func (cmd *AcceptMatch) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	r, ok := t.Records.Ticket(cmd.Ticket)
	if !ok || !cmd.By.MayTouch(t.Ticket(r).Maker) {
		return domain.Refuse(domain.NotFound, TicketNotFound)
	}
	x := t.Ticket(r)
	switch {
	case x.Status != RequiresAcceptance:
		return TicketCannotAnswer(x.Status)
	case x.Backfill:
		return domain.Refuse(domain.Invalid, "TicketId: %s is a backfill ticket; its players are not asked", x.ID)
	case len(cmd.Players) == 0:
		return domain.Refuse(domain.Invalid, "PlayerIds: empty, want at least one player of the ticket")
	}
	answers := make([]byte, x.Players)
	copy(answers, x.Outcome.Answers)
	said := Rejected
	if cmd.Accept {
		said = Accepted
	}
	for i, id := range cmd.Players {
		at, n := -1, 0
		for player := range x.EachPlayer {
			if player == id {
				at = n
			}
			n++
		}
		if at < 0 {
			return domain.Refuse(domain.Invalid, "PlayerIds[%d]: %q is not a player of ticket %s", i, excerpt.Short(id), x.ID)
		}
		answers[at] = byte(said)
	}
	no, id := x.No, x.Outcome.Match
	match, _ := t.Records.Match(id)
	t.Emit(&PlayersAnswered{TicketNo(no), string(answers)})
	t.tellMatch(match, "AcceptMatch", nil)
	t.hooks.MatchAnswered(match, !cmd.Accept)
	switch {
	case !cmd.Accept:
		t.dropMatch(match, drop{
			acceptance: "Rejected", others: ProposedMatchRejected,
			blamed: map[uint64]end{no: {Cancelled, AcceptanceRejected}},
		})
	case t.allAccepted(match):
		t.tellAccepted(match, "Accepted")
		t.Emit(&MatchAccepted{id})
		t.advanceMatch(match)
	}
	return nil
}

// TicketCannotAnswer refuses an answer for a ticket that has no proposed match.
func TicketCannotAnswer(s Status) error {
	return domain.Refuse(domain.Invalid, "Matchmaking ticket is in %s status; only a proposed match can be accepted or rejected.", s)
}

func (t *Tx) allAccepted(match MatchRef) bool {
	for _, s := range t.Match(match).Seats {
		if s.Team != "" && !t.accepted(s.Ticket) {
			return false
		}
	}
	return true
}

// accepted reports whether all players of a ticket have accepted.
func (c *State) accepted(no uint64) bool {
	r, _ := c.Records.TicketNo(no)
	x := c.Ticket(r)
	for i := range int(x.Players) {
		if x.Outcome.Answer(i) != Accepted {
			return false
		}
	}
	return true
}

// acceptanceDue drops a match that not all players have accepted in time. Tickets that contain a player who did not answer end; see B111.
func (t *Tx) acceptanceDue(match MatchRef) {
	d := drop{acceptance: "TimedOut", others: ProposedMatchTimedOut, blamed: map[uint64]end{}}
	for _, s := range t.Match(match).Seats {
		if s.Team != "" && !t.accepted(s.Ticket) {
			d.blamed[s.Ticket] = end{Cancelled, AcceptanceTimedOut}
		}
	}
	t.dropMatch(match, d)
}

type end struct {
	status Status
	reason Reason
}

// drop describes how a match failed.
type drop struct {
	acceptance string         // outcome in AcceptMatchCompleted; empty: its players had accepted, or were not asked
	others     Reason         // reason for the tickets that continue to search
	blamed     map[uint64]end // by ticket number: the tickets that end
}

// dropMatch ends a match without success. Tickets that are not to blame continue to search at their age, unless their time is up.
func (t *Tx) dropMatch(match MatchRef, d drop) {
	m := t.Records
	x := t.Match(match)
	id, seats := x.ID, x.Seats
	if d.acceptance != "" {
		t.tellAccepted(match, d.acceptance)
	}
	for _, s := range seats {
		if e, ok := d.blamed[s.Ticket]; ok {
			r, _ := m.TicketNo(s.Ticket)
			t.EndTicket(r, e.status, e.reason)
		}
	}
	dropped := &MatchDropped{ID: id, Reason: d.others}
	for _, s := range seats {
		if _, ok := m.TicketNo(s.Ticket); ok {
			dropped.Returned = append(dropped.Returned, TicketNo(s.Ticket))
		}
	}
	t.Emit(dropped)
	for _, no := range dropped.Returned {
		r, ok := m.TicketNo(uint64(no))
		if !ok || t.Ticket(r).Status != Searching {
			continue // the end of an earlier ticket has ended this one, too
		}
		if _, rival := m.Rival(r); rival { // a player started another search while this ticket was in placement
			t.EndTicket(r, Cancelled, DuplicatePlayer)
		} else if t.Ticket(r).TimeoutAt <= t.Now {
			t.EndTicket(r, TimedOut, RequestTimedOut)
		} else {
			t.tellSearching(r)
			t.hooks.TicketReturned(t.Ticket(r))
		}
	}
}

// failMatch ends a match and all its tickets.
func (t *Tx) failMatch(match MatchRef, why Reason) {
	x := t.Match(match)
	id, seats := x.ID, x.Seats
	t.tellFailed(match, why)
	for _, s := range seats {
		if r, ok := t.Records.TicketNo(s.Ticket); ok {
			ticket := *t.Ticket(r)
			t.Emit(&TicketEnded{TicketNo(s.Ticket), Failed, why})
			t.backfillEnded(&ticket, Failed, why)
			t.hooks.TicketEnded(&ticket, why)
		}
	}
	t.Emit(&MatchDropped{ID: id, Reason: why})
}
