package playerflow

import (
	"slices"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/matchmaking"
	"github.com/musterhq/muster/internal/domain/quota"
)

// EnterMatchmaking starts the search of the caller's party: all members get the ticket in one transaction. Made is the
// ticket. A player without a party gets one, unless that is disabled.
type EnterMatchmaking struct {
	Caller
	Ticket domain.TicketID // of the new ticket
	Party  flow.PartyID    // of the new party, if the player has none
	Queue  string          // a matchmaking configuration; empty: the party's preference
	Advice flow.Advice     // the studio's advice and the client's attributes for this search
	About  []string        // the players that the studio was asked about; the call is refused if the members have changed since. Nil: any

	// Result
	Search flow.Search // with Look: only the queue
}

func (cmd *EnterMatchmaking) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	r, done, err := t.caller(&cmd.Caller, "EnterMatchmaking")
	if err != nil {
		return err
	}
	p := t.Flow.Players.Get(r)
	party, inParty := t.Flow.Party(p.Keys.Party)
	if done {
		if inParty && t.Flow.Parties.Get(party).Search != nil {
			cmd.Search = *t.Flow.Parties.Get(party).Search
		}
		return nil
	}
	x := flow.Party{Members: []flow.Member{{Player: p.ID, Leader: true}}}
	if inParty {
		x = *t.Flow.Parties.Get(party)
	}
	queue := cmd.Queue
	if queue == "" {
		queue = x.Queue
	}
	if again, err := t.searches.mayEnter(p, &x, inParty, queue, cmd.Queue); again || err != nil {
		if again {
			cmd.Search, cmd.Made = *x.Search, domain.UUID(x.Search.Ticket)
		}
		return err
	}
	advice := cmd.Advice
	advice.Ticket = cmd.Ticket
	config, players, err := t.searches.enterable(&x, queue, &advice)
	if err == nil {
		err = t.searches.checkLocks(&x)
	}
	ticket := matchmaking.Ticket{ID: cmd.Ticket.String(), Owner: matchmaking.PartyOwned, Configuration: queue, Players: int32(len(players)), Roster: matchmaking.EncodeRoster(players), Holder: t.HolderFor(quota.Players, 0)}
	if err == nil {
		err = t.matchmaking.CheckRoom(&ticket)
	}
	if err == nil && !cmd.Look && cmd.About != nil && !slices.Equal(cmd.About, x.Players()) {
		err = flow.Refuse(flow.Refusal{Code: flow.RevConflict}, "the members of party %s have changed since the studio was asked about them", x.ID)
	}
	if err != nil {
		return err
	}
	if cmd.looks() {
		cmd.Search.Queue = queue
		return nil
	}
	if !inParty {
		party = t.parties.create(r, flow.Party{ID: cmd.Party})
	}
	t.advices.keep(advice)
	cmd.Search, cmd.Made = t.searches.begin(party, config, ticket), domain.UUID(cmd.Ticket)
	return nil
}

// LeaveMatchmaking ends the search of the caller's party. Once it has succeeded, the ticket cannot be matched any more.
type LeaveMatchmaking struct{ Caller }

func (cmd *LeaveMatchmaking) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	r, done, err := t.caller(&cmd.Caller, "LeaveMatchmaking")
	if err != nil || done {
		return err
	}
	p := t.Flow.Players.Get(r)
	if p.Membership() != 0 {
		if m := t.Flow.Memberships.Get(p.Membership()); !m.WasActive {
			return flow.Refuse(flow.Refusal{Code: flow.AlreadyMatched, Instance: m.Instance}, "player %s has a match: %s", p.ID, m.Instance)
		}
	}
	if p.Keys.Ticket.IsZero() {
		return flow.Refuse(flow.Refusal{Code: flow.NotInMatchmaking}, "player %s is not in matchmaking", p.ID)
	}
	return t.searches.leave(r, flow.Requested)
}

// AnswerMatch is the caller's answer to the proposed match.
type AnswerMatch struct {
	Caller
	Ticket domain.TicketID
	Accept bool

	// Result
	Search *flow.Search // of the party after the answer; nil: it is not in matchmaking any more
}

func (cmd *AnswerMatch) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	r, done, err := t.caller(&cmd.Caller, "AcceptMatch")
	if err != nil {
		return err
	}
	p := t.Flow.Players.Get(r)
	if done {
		if party, ok := t.Flow.Party(p.Keys.Party); ok && p.Keys.Ticket == cmd.Ticket {
			cmd.Search = t.Flow.Parties.Get(party).Search
		}
		return nil
	}
	closed := flow.Refuse(flow.Refusal{Code: flow.AcceptanceNotOpen}, "no match waits for the answer of player %s", p.ID)
	if p.Membership() != 0 {
		if m := t.Flow.Memberships.Get(p.Membership()); cmd.Accept && !m.Ticket.IsZero() && m.Ticket == cmd.Ticket {
			return nil // this membership resulted from that match
		}
		return closed
	}
	party, ok := t.Flow.Party(p.Keys.Party)
	if !ok {
		return closed
	}
	search := t.Flow.Parties.Get(party).Search
	if search == nil || search.Status != flow.RequiresAcceptance || search.Ticket != cmd.Ticket {
		return closed
	}
	answer := &matchmaking.AcceptMatch{Ticket: cmd.Ticket.String(), Players: []string{p.ID}, Accept: cmd.Accept}
	if err := answer.Decide(t.Tx); err != nil {
		return closed
	}
	if party, ok := t.Flow.Party(t.Flow.Players.Get(r).Keys.Party); ok {
		cmd.Search = t.Flow.Parties.Get(party).Search
	}
	return nil
}
