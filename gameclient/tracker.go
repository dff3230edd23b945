package gameclient

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"
)

// MatchEvents are the callbacks of a Tracker. Every field may be nil. Each ticket has a goroutine that calls them, one at a time.
type MatchEvents struct {
	// OnAcceptance: a match was found that the players have to accept with AcceptMatch. The Tracker calls it once for each match.
	OnAcceptance func(Ticket)

	// OnComplete: the match has a game session. If err is nil, the client has joined it. Otherwise err is a *JoinError,
	// whose seat Connect may try again, or ErrNotMatched, ErrAlreadyJoined or ErrNoConnector.
	OnComplete func(t Ticket, s Seat, err error)

	// OnFailure: the ticket has ended as TIMED_OUT, FAILED or CANCELLED.
	OnFailure func(Ticket)

	// OnError: a poll has failed, as Client.Ticket does. The Tracker continues until there were TrackerOptions.MaxErrors in a row.
	OnError func(ticketID string, err error)
}

// TrackerOptions configure a Tracker.
type TrackerOptions struct {
	Interval         time.Duration // between two polls; default 10 s, also for values of 0 and less
	RepeatAcceptance bool          // call OnAcceptance at every poll until the players have answered
	MaxErrors        int           // consecutive errors after which the Tracker drops a ticket; 0: it never does
}

// Tracker polls matchmaking tickets for a client, and joins the game session of a match. Polling suits a game in development. With many
// players, a backend should receive matchmaking events instead, and send the seats to the clients, which call Client.Connect.
type Tracker struct {
	client  *Client
	events  MatchEvents
	options TrackerOptions

	mu      sync.Mutex
	tickets map[string]*tracked
}

type tracked struct {
	stop   context.CancelFunc
	asked  bool // OnAcceptance was called for the present match
	errors int  // in a row
}

// NewTracker makes a Tracker without tickets. Close it to stop its goroutines.
func (c *Client) NewTracker(events MatchEvents, o TrackerOptions) *Tracker {
	o.Interval = cmp.Or(max(o.Interval, 0), 10*time.Second) // a ticker panics at less
	return &Tracker{client: c, events: events, options: o, tickets: map[string]*tracked{}}
}

// StartPolling polls a ticket at once and then at every interval until it ends, and joins the game session of its match as playerID.
// A Tracker may track several tickets, each only once: a repeat fails with ErrTracked.
func (t *Tracker) StartPolling(ticketID, playerID string) error {
	check := check{call: "StartPolling"}
	check.need("TicketID", ticketID)
	check.need("PlayerID", playerID)
	if check.err != nil {
		return check.err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.tickets[ticketID] != nil {
		return &Error{Call: "StartPolling", Kind: ErrTracked}
	}
	ctx, stop := context.WithCancel(context.Background())
	x := &tracked{stop: stop}
	t.tickets[ticketID] = x
	go t.follow(ctx, x, ticketID, playerID)
	return nil
}

// StopPolling drops a ticket: no callback for it begins afterwards, but one may still be running. The ticket itself stays open;
// StopMatchmaking cancels it. A callback may call StopPolling.
func (t *Tracker) StopPolling(ticketID string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if x := t.tickets[ticketID]; x != nil {
		x.stop()
		delete(t.tickets, ticketID)
	}
}

// Close drops all tickets, as StopPolling does.
func (t *Tracker) Close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, x := range t.tickets {
		x.stop()
	}
	clear(t.tickets)
}

func (t *Tracker) follow(ctx context.Context, x *tracked, ticketID, playerID string) {
	defer func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.tickets[ticketID] == x {
			delete(t.tickets, ticketID)
		}
		x.stop()
	}()
	polls := time.NewTicker(t.options.Interval)
	defer polls.Stop()
	for {
		if !t.poll(ctx, x, ticketID, playerID) {
			return
		}
		select {
		case <-polls.C:
		case <-ctx.Done():
			return
		}
	}
}

// poll polls once, calls the callbacks, and reports whether to continue.
func (t *Tracker) poll(ctx context.Context, x *tracked, ticketID, playerID string) (goOn bool) {
	ticket, err := t.client.Ticket(ctx, ticketID)
	if ctx.Err() != nil {
		return false
	}
	if err != nil {
		x.errors++
		if t.events.OnError != nil {
			t.events.OnError(ticketID, err)
		}
		return t.options.MaxErrors == 0 || x.errors < t.options.MaxErrors
	}
	x.errors = 0
	switch ticket.Status {
	case TicketCompleted:
		seat, err := t.join(ctx, ticket, playerID)
		if t.events.OnComplete != nil && (err == nil || ctx.Err() == nil) { // a client that has joined must know it, even after StopPolling
			t.events.OnComplete(ticket, seat, err)
		}
	case TicketTimedOut, TicketFailed, TicketCancelled:
		if t.events.OnFailure != nil {
			t.events.OnFailure(ticket)
		}
	case TicketRequiresAcceptance:
		if t.events.OnAcceptance != nil && (!x.asked || t.options.RepeatAcceptance) {
			t.events.OnAcceptance(ticket)
		}
	}
	x.asked = ticket.Status == TicketRequiresAcceptance
	return !ticket.Status.Final()
}

func (t *Tracker) join(ctx context.Context, ticket Ticket, playerID string) (Seat, error) {
	seat, ok := ticket.Seat(playerID)
	if !ok {
		return Seat{}, &Error{"StartPolling", ErrNotMatched, fmt.Errorf("ticket %s has no seat for player %s", ticket.ID, playerID)}
	}
	return seat, t.client.Connect(ctx, seat)
}
