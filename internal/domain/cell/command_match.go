package cell

import (
	"cmp"
	"slices"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/matchmaking"
	"github.com/musterhq/muster/internal/domain/session"
)

// ProposeMatches brings what a matchmaker has found. Each proposal is checked again and stands for itself: all of it
// happens, or nothing.
type ProposeMatches struct {
	Configuration string
	Version       uint64 // of the configuration whose rule set they were found with
	Proposals     []Proposal

	// Result: one for each of Proposals; nil: it is a match now.
	Refused []*domain.Refusal
}

// Proposal is a match as a matchmaker found it.
type Proposal struct {
	ID         domain.UUID // of the match to be
	Tickets    []ProposedTicket
	PlayersMax int32  // of the game session
	Region     string // that suits everybody; empty: none is known
	Counts     []matchmaking.RuleCount
}

// ProposedTicket is a ticket with the team that all its players get; empty for the backfill ticket, whose players have
// theirs.
type ProposedTicket struct {
	TicketKey
	Team string
}

func (cmd *ProposeMatches) decide(t *tx) error {
	c, ok := t.c.matchmaking.Configuration(cmd.Configuration)
	switch {
	case !ok:
		return domain.Refuse(domain.NotFound, "matchmaking configuration %s not found", cmd.Configuration)
	case c.Version != cmd.Version:
		return domain.Refuse(domain.Conflict, "matchmaking configuration %s has another rule set now", c.Name)
	}
	cmd.Refused = make([]*domain.Refusal, len(cmd.Proposals))
	for i := range cmd.Proposals {
		if len(t.env.Batch)-t.start > proposedBytesMax {
			cmd.Refused[i] = domain.Refuse(domain.Overloaded, "the matches before have %d bytes", len(t.env.Batch)-t.start)
			continue
		}
		cmd.Refused[i] = t.propose(c, &cmd.Proposals[i])
	}
	t.planEstimates(cmd.Configuration)
	return nil
}

// proposedBytesMax is after how many bytes no more matches are added to a transaction: match data may be long.
const proposedBytesMax = 512 << 10

// propose makes a match of a proposal, or refuses it.
func (t *tx) propose(c *matchmaking.Configuration, p *Proposal) *domain.Refusal {
	m := t.c.matchmaking
	id := p.ID.String()
	if _, ok := m.Match(id); ok || t.knownPlacement(id) {
		return domain.Refuse(domain.Conflict, "match %s exists already", id)
	}
	refs := make([]matchmaking.Ref, len(p.Tickets))
	backfill, newcomers := matchmaking.Ref(0), int32(0)
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
		if t.heldBack(ticket) {
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
	match := matchmaking.Match{ID: id, PlayersMax: min(p.PlayersMax, t.c.config.PlayersInGameMax), Region: p.Region, Counts: p.Counts}
	if c.AcceptanceRequired {
		match.AcceptBy = t.now.Add(t.acceptanceTimeout(c, refs))
	}
	match.Seats = seats(m, refs, p.Tickets)
	t.emit(&MatchProposed{c.Name, match})
	r, _ := m.Match(id)
	t.tellProposed(r)
	t.matchProposed(r)
	if !c.AcceptanceRequired {
		t.advanceMatch(r)
	}
	return nil
}

func (t *tx) knownPlacement(id string) bool {
	_, ok := t.c.placements.Placement(id)
	return ok
}

// seats puts the tickets of a match in the order of their age.
func seats(m *matchmaking.State, refs []matchmaking.Ref, tickets []ProposedTicket) []matchmaking.Seat {
	order := make([]int, len(refs))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		x, y := m.Tickets.Get(refs[a]), m.Tickets.Get(refs[b])
		return cmp.Or(cmp.Compare(x.Start, y.Start), cmp.Compare(x.No, y.No))
	})
	all := make([]matchmaking.Seat, len(refs))
	for i, at := range order {
		all[i] = matchmaking.Seat{Ticket: tickets[at].No, Team: tickets[at].Team}
	}
	return all
}

// checkSlots checks that the game session of a backfill takes so many players. If it takes nobody any more, the backfill is
// over; while its last seats are kept for players who may not come, the backfill waits for them. With STANDALONE only the
// asker knows what its game session takes, unless that is a game instance.
func (t *tx) checkSlots(c *matchmaking.Configuration, backfill matchmaking.Ref, newcomers int32) *domain.Refusal {
	x := t.c.matchmaking.Tickets.Get(backfill)
	id := x.Game
	free, ok := t.freeSlots(id)
	if c.Standalone {
		if _, known := t.c.flow.InstanceOfGame(id); !known || !ok {
			return nil
		}
	}
	if x.Slots > 0 {
		free = min(free, x.Slots)
	}
	switch {
	case !ok:
		t.endTicket(backfill, matchmaking.Failed, matchmaking.GameSessionLost)
		return domain.Refuse(domain.Full, "game session %s takes no players", id)
	case free < newcomers:
		return domain.Refuse(domain.Full, "game session %s has %d free slots, %d are wanted", id, free, newcomers)
	}
	return nil
}

// freeSlots is how many players a game session takes now; not ok: it takes nobody any more.
func (t *tx) freeSlots(game string) (free int32, ok bool) { return t.c.freeSlots(game) }

func (c *Cell) freeSlots(game string) (free int32, ok bool) {
	r, ok := c.sessions.Game(session.ID(game))
	if !ok {
		return 0, false
	}
	g := c.sessions.Games.Get(r)
	free = g.PlayersMax - g.SeatsHeld
	x, known := c.flow.InstanceOfGame(game)
	if known {
		free -= c.unseated(x, r)
	}
	if free > 0 {
		return free, takesPlayers(g)
	}
	return 0, takesPlayers(g) && known && c.keptSeats(x, r) > 0
}

// keptSeats is how many seats of a game instance belong to members who are not there and may never come: those kept for a
// return, reservations, and those of members who wait for Game.Ready.
func (c *Cell) keptSeats(r flow.Ref, game session.Ref) (n int32) {
	n = c.sessions.Games.Get(game).SeatsEmpty
	waiting := !c.flow.Instances.Get(r).Ready
	for _, ref := range c.flow.Instances.Get(r).Members() {
		if m := c.flow.Memberships.Get(ref); m.Status == flow.MemberReserved || waiting && m.Status == flow.MemberPending {
			n++
		}
	}
	return n
}

// AcceptMatch is what players of a ticket say to its proposed match.
type AcceptMatch struct {
	Ticket  string
	Players []string
	Accept  bool
	By      domain.Maker
}

func (cmd *AcceptMatch) decide(t *tx) error {
	m := t.c.matchmaking
	r, ok := m.Ticket(cmd.Ticket)
	if !ok || !cmd.By.MayTouch(m.Tickets.Get(r).Maker) {
		return domain.Refuse(domain.NotFound, TicketNotFound)
	}
	x := m.Tickets.Get(r)
	switch {
	case x.Status != matchmaking.RequiresAcceptance:
		return TicketCannotAnswer(x.Status)
	case x.Backfill:
		return domain.Refuse(domain.Invalid, "TicketId: %s is a backfill ticket; its players are not asked", x.ID)
	case len(cmd.Players) == 0:
		return domain.Refuse(domain.Invalid, "PlayerIds: empty, want at least one player of the ticket")
	}
	answers := make([]byte, x.Players)
	copy(answers, x.Outcome.Answers)
	said := matchmaking.Rejected
	if cmd.Accept {
		said = matchmaking.Accepted
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
			return domain.Refuse(domain.Invalid, "PlayerIds[%d]: %q is not a player of ticket %s", i, shortText(id), x.ID)
		}
		answers[at] = byte(said)
	}
	no, id := x.No, x.Outcome.Match
	match, _ := m.Match(id)
	t.emit(&PlayersAnswered{TicketNo(no), string(answers)})
	t.tellMatch(match, "AcceptMatch", nil)
	t.matchAnswered(match, !cmd.Accept)
	switch {
	case !cmd.Accept:
		t.dropMatch(match, drop{
			acceptance: "Rejected", others: matchmaking.ProposedMatchRejected,
			blamed: map[uint64]end{no: {matchmaking.Cancelled, matchmaking.AcceptanceRejected}},
		})
	case t.allAccepted(match):
		t.tellAccepted(match, "Accepted")
		t.emit(&MatchAccepted{id})
		t.advanceMatch(match)
	}
	return nil
}

// TicketCannotAnswer refuses an answer to a match that is not there to be answered.
func TicketCannotAnswer(s matchmaking.Status) error {
	return domain.Refuse(domain.Invalid, "Matchmaking ticket is in %s status; only a proposed match can be accepted or rejected.", s)
}

func (t *tx) allAccepted(match matchmaking.Ref) bool {
	for _, s := range t.c.matchmaking.Matches.Get(match).Seats {
		if s.Team != "" && !t.c.accepted(s.Ticket) {
			return false
		}
	}
	return true
}

// accepted reports whether all players of a ticket have accepted.
func (c *Cell) accepted(no uint64) bool {
	r, _ := c.matchmaking.TicketNo(no)
	x := c.matchmaking.Tickets.Get(r)
	for i := range int(x.Players) {
		if x.Outcome.Answer(i) != matchmaking.Accepted {
			return false
		}
	}
	return true
}

// acceptanceDue drops a match that not everybody has accepted in time. Whoever did not answer is out; see B111.
func (t *tx) acceptanceDue(match matchmaking.Ref) {
	d := drop{acceptance: "TimedOut", others: matchmaking.ProposedMatchTimedOut, blamed: map[uint64]end{}}
	for _, s := range t.c.matchmaking.Matches.Get(match).Seats {
		if s.Team != "" && !t.c.accepted(s.Ticket) {
			d.blamed[s.Ticket] = end{matchmaking.Cancelled, matchmaking.AcceptanceTimedOut}
		}
	}
	t.dropMatch(match, d)
}

// end is how a ticket ends.
type end struct {
	status matchmaking.Status
	reason matchmaking.Reason
}

// drop is how a match comes to nothing.
type drop struct {
	acceptance string             // of AcceptMatchCompleted; empty: its players had accepted, or were not asked
	others     matchmaking.Reason // of the tickets that search on
	blamed     map[uint64]end     // by number of the ticket: those that do not
}

// dropMatch ends a match without success. Tickets that are not to blame search on with their age, unless their time is
// up.
func (t *tx) dropMatch(match matchmaking.Ref, d drop) {
	m := t.c.matchmaking
	x := m.Matches.Get(match)
	id, seats := x.ID, x.Seats
	if d.acceptance != "" {
		t.tellAccepted(match, d.acceptance)
	}
	for _, s := range seats {
		if e, ok := d.blamed[s.Ticket]; ok {
			r, _ := m.TicketNo(s.Ticket)
			t.endTicket(r, e.status, e.reason)
		}
	}
	dropped := &MatchDropped{ID: id, Reason: d.others}
	for _, s := range seats {
		if _, ok := m.TicketNo(s.Ticket); ok {
			dropped.Returned = append(dropped.Returned, TicketNo(s.Ticket))
		}
	}
	t.emit(dropped)
	for _, no := range dropped.Returned {
		r, ok := m.TicketNo(uint64(no))
		if !ok || m.Tickets.Get(r).Status != matchmaking.Searching {
			continue // what befell one before befell this one, too
		}
		if _, rival := m.Rival(r); rival { // a player has begun another search while this one was placed
			t.endTicket(r, matchmaking.Cancelled, matchmaking.DuplicatePlayer)
		} else if m.Tickets.Get(r).TimeoutAt <= t.now {
			t.endTicket(r, matchmaking.TimedOut, matchmaking.RequestTimedOut)
		} else {
			t.tellSearching(r)
			t.ticketReturned(t.c.matchmaking.Tickets.Get(r))
		}
	}
}

// failMatch ends a match and all its tickets with it.
func (t *tx) failMatch(match matchmaking.Ref, why matchmaking.Reason) {
	m := t.c.matchmaking
	x := m.Matches.Get(match)
	id, seats := x.ID, x.Seats
	t.tellFailed(match, why)
	for _, s := range seats {
		if r, ok := m.TicketNo(s.Ticket); ok {
			ticket := *m.Tickets.Get(r)
			t.emit(&TicketEnded{TicketNo(s.Ticket), matchmaking.Failed, why})
			t.backfillEnded(&ticket, matchmaking.Failed, why)
			t.ticketEnded(&ticket, why)
		}
	}
	t.emit(&MatchDropped{ID: id, Reason: why})
	t.matchFailed(id)
}
