package gameclient

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"
)

// MatchEvents are what a Tracker tells. Every field may be nil. They are called from a goroutine for each ticket, one
// at a time.
type MatchEvents struct {
	// OnAcceptance: a match was found that the players have to accept. It comes once for each match that is seen.
	OnAcceptance func(Ticket)

	// OnComplete: the game session is there, and the client has joined it; or has not, and err says why: a *JoinError,
	// whose seat Connect may try again, ErrNotMatched, ErrAlreadyJoined or ErrNoConnector.
	OnComplete func(t Ticket, s Seat, err error)

	// OnFailure: the ticket has ended as TIMED_OUT, FAILED or CANCELLED.
	OnFailure func(Ticket)

	// OnError: the ticket could not be looked at. The tracker goes on, unless TrackerOptions.MaxErrors has been reached.
	OnError func(ticketID string, err error)
}

// TrackerOptions are how a Tracker looks.
type TrackerOptions struct {
	Interval         time.Duration // between two looks; default 10 s
	RepeatAcceptance bool          // tell OnAcceptance at every look, as long as an answer is wanted
	MaxErrors        int           // errors in a row after which a ticket is given up; 0: none
}

// Tracker looks after matchmaking tickets from the client, and joins the game session of a match. It asks the service
// again and again, which suits a game in development; with many players a backend listens to events instead, and hands
// the seats to Client.Connect.
type Tracker struct {
	client  *Client
	events  MatchEvents
	options TrackerOptions

	mu      sync.Mutex
	tickets map[string]*tracked
}

type tracked struct {
	stop    context.CancelFunc
	asked   bool // for acceptance of the match that is on the table
	mistake int  // errors in a row
}

// NewTracker makes a Tracker that tracks nothing yet.
func (c *Client) NewTracker(events MatchEvents, o TrackerOptions) *Tracker {
	o.Interval = cmp.Or(max(o.Interval, 0), 10*time.Second) // a ticker panics at less
	return &Tracker{client: c, events: events, options: o, tickets: map[string]*tracked{}}
}

// StartPolling looks at a ticket at once and then at every interval until it ends, and joins as playerID. Several
// tickets may be tracked at a time, each once: otherwise ErrTracked.
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

// StopPolling forgets a ticket: no event of it begins after the one that may be under way. The ticket itself stays open;
// StopMatchmaking ends it. It may be called from an event.
func (t *Tracker) StopPolling(ticketID string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if x := t.tickets[ticketID]; x != nil {
		x.stop()
		delete(t.tickets, ticketID)
	}
}

// Close forgets all tickets.
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
	looks := time.NewTicker(t.options.Interval)
	defer looks.Stop()
	for {
		if !t.look(ctx, x, ticketID, playerID) {
			return
		}
		select {
		case <-looks.C:
		case <-ctx.Done():
			return
		}
	}
}

// look asks once, tells what there is to tell, and says whether to go on.
func (t *Tracker) look(ctx context.Context, x *tracked, ticketID, playerID string) (goOn bool) {
	ticket, err := t.client.Ticket(ctx, ticketID)
	if ctx.Err() != nil {
		return false
	}
	if err != nil {
		x.mistake++
		if t.events.OnError != nil {
			t.events.OnError(ticketID, err)
		}
		return t.options.MaxErrors == 0 || x.mistake < t.options.MaxErrors
	}
	x.mistake = 0
	switch ticket.Status {
	case TicketCompleted:
		seat, err := t.join(ctx, ticket, playerID)
		if t.events.OnComplete != nil && (err == nil || ctx.Err() == nil) { // who has joined is told so, also when stopped meanwhile
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
