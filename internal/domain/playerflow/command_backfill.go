package playerflow

import (
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/matchmaking"
)

// EnterBackfill makes a game instance search for more players (Game.EnterMatchmaking). It is equivalent to a
// StartMatchBackfill by its server, with the players that the core knows. A second call replaces the first.
type EnterBackfill struct {
	Instance flow.InstanceID
	Ticket   domain.BackfillID // of the new ticket; a repeat with the same one changes nothing
	Queue    string            // a matchmaking configuration; empty: the one that made the game instance
	Slots    int32             // number of players wanted; 0: as many as there is room for
	// Teams has the teams of players whom no match assigned to a team, or who have changed teams since.
	Teams map[string]string

	// Result
	Made matchmaking.TicketView
}

func (cmd *EnterBackfill) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	r, err := t.Games.served(cmd.Instance, "Game.EnterMatchmaking")
	if err != nil {
		return err
	}
	x := t.Flow.Instances.Get(r)
	id := cmd.Ticket.String()
	if old, ok := t.matchmaking.FindTicket(id); ok {
		cmd.Made = t.matchmaking.TicketView(old, t.Now)
		return nil
	}
	queue := cmd.Queue
	if queue == "" {
		queue = x.Queue
	}
	if queue == "" {
		return flow.Refuse(flow.Refusal{Code: flow.InvalidArgument}, "queue: empty, and game instance %s does not come from a match; want a matchmaking configuration", x.ID)
	}
	c, ok := t.matchmaking.Configuration(queue)
	if !ok || c.Standalone {
		return flow.Refuse(flow.Refusal{Code: flow.QueueNotFound}, "queue %q not found", queue)
	}
	if err := t.backfills.mayBegin(r, cmd.Slots); err != nil {
		return err
	}
	players := t.backfills.roster(r, c)
	if err := t.backfills.putIntoTeams(players, c, cmd.Teams); err != nil {
		return err
	}
	start := &matchmaking.StartMatchBackfill{Configuration: c.Name, ID: id, Players: players, Game: x.Game, Slots: cmd.Slots, Owner: matchmaking.InstanceOwned, Unmatched: true}
	begin, err := t.matchmaking.CheckBackfill(start)
	if err != nil {
		if domain.IsRefused(err, domain.Overloaded) {
			return err // not the caller's fault; a retry may succeed
		}
		return flow.Refuse(flow.Refusal{Code: flow.InvalidArgument}, "game instance %s cannot be backfilled: %v", cmd.Instance, err)
	}
	if _, known := t.matchmaking.HostedMatch(x.Game); !known { // from now on the game session has match data, like any matched one
		of := *c
		t.matchmaking.SetHosted(matchmaking.Hosted{Game: x.Game, Match: x.ID.String(), Of: &of})
	}
	begin()
	cmd.Made = start.Ticket
	return nil
}

// LeaveBackfill ends a game instance's search for more players (Game.LeaveMatchmaking). Without a search it does nothing.
type LeaveBackfill struct {
	Instance flow.InstanceID

	// Result: the search that was ended; empty when there was none.
	Ticket string
}

func (cmd *LeaveBackfill) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	r, err := t.Games.served(cmd.Instance, "Game.LeaveMatchmaking")
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
