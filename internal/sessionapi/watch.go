package sessionapi

import (
	"context"
	"net/http"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/excerpt"
	"github.com/musterhq/muster/internal/domain/matchmaking"
	"github.com/musterhq/muster/internal/identity"
)

// The events of a ticket that is watched, by the names of docs/spec/session-interface.md#watching.
const (
	matchAcceptanceEvent = "OnMatchAcceptance"
	matchCompleteEvent   = "OnMatchComplete"
	matchFailureEvent    = "OnMatchFailure"
	matchErrorEvent      = "OnMatchError"
)

type startPollingRequest struct {
	TicketID string `json:"ticketId"`
	PlayerID string `json:"playerId"`
}

func (in *startPollingRequest) check(c *checks) {
	c.ticket(in.TicketID)
	c.required("playerId", in.PlayerID, playerMax)
}

type stopPollingRequest = stopMatchmakingRequest

// watchKey names a ticket that a client watches.
type watchKey struct {
	client streamKey
	ticket string
}

// startPolling sends the changes of a ticket to the caller's event stream, each once, without polling. A client may watch any number of
// tickets.
func (d *Door) startPolling(ctx context.Context, r *request, in *startPollingRequest) (*nothing, error) {
	if r.client == "" {
		return nil, missing("X-Client-Id", "the name of the event stream that gets the events of the ticket")
	}
	if _, err := d.ticket(ctx, r, in.TicketID); err != nil {
		return nil, err
	}
	watching, stop := r.principal.Within(d.ctx)
	w := &watch{door: d, key: watchKey{streamKey{r.principal.ID, r.client}, in.TicketID}, stop: stop, player: in.PlayerID, by: r.principal}
	if problem := d.calls.watch(w); problem != nil {
		stop()
		return nil, problem
	}
	d.running.Go(func() {
		defer stop()
		defer d.calls.endWatch(w)
		defer d.config.Panics.Confine(panicDoor, func() {
			d.calls.publish(w, matchErrorEvent, matchNews{TicketID: in.TicketID, Error: internalProblem()}, true)
		})
		if err := w.follow(watching); err != nil && watching.Err() == nil {
			d.calls.publish(w, matchErrorEvent, matchNews{TicketID: in.TicketID, Error: problemOf(err)}, true)
		}
	})
	return &nothing{}, nil
}

// stopPolling does not cancel the ticket: StopMatchmaking does. It has no effect for a ticket that is not watched.
func (d *Door) stopPolling(_ context.Context, r *request, in *stopPollingRequest) (*nothing, error) {
	if r.client == "" {
		return nil, missing("X-Client-Id", "the name of the event stream that gets the events of the ticket")
	}
	d.calls.stopWatch(watchKey{streamKey{r.principal.ID, r.client}, in.TicketID})
	return &nothing{}, nil
}

// matchNews is an event about a ticket.
type matchNews struct {
	TicketID string       `json:"ticketId"`
	Ticket   *ticketState `json:"ticket,omitempty"`

	// For OnMatchComplete: the player session that the watching player presents to the game server; empty if there is no seat.
	PlayerID        string `json:"playerId,omitempty"`
	PlayerSessionID string `json:"playerSessionId,omitempty"`

	Error *Problem `json:"error,omitempty"`
}

// watch follows one ticket.
type watch struct {
	door   *Door
	key    watchKey
	stop   context.CancelFunc
	player string
	by     *identity.Principal
	to     *stream // set by calls.watch
	asked  string  // the match whose acceptance was sent last
}

func (w *watch) follow(ctx context.Context) error {
	woken := make(chan struct{}, 1)
	news := &w.door.news
	var keys []any
	listen := func(key any) {
		keys = append(keys, key)
		news.add(key, woken)
	}
	defer func() {
		for _, key := range keys {
			news.remove(key, woken)
		}
	}()
	no, match := uint64(0), ""
	for {
		t, err := w.door.engine.Ticket(ctx, w.key.ticket)
		if err != nil {
			return err
		}
		again := false // changes from before it followed events
		if no == 0 && t.Status.Active() {
			no, again = t.No, true
			listen(matchmaking.TicketNo(no))
		}
		if t.Outcome != nil && t.Outcome.Match != match && t.Status.Active() {
			if match != "" {
				news.remove(match, woken)
			}
			match, again = t.Outcome.Match, true
			listen(match)
		}
		if again {
			continue
		}
		if w.tell(&t) {
			return nil
		}
		select {
		case <-woken:
		case <-w.door.engine.Stopped():
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// tell sends the pending events, and reports whether the watch is complete.
func (w *watch) tell(t *matchmaking.TicketView) (over bool) {
	state := stateOf(t)
	news := matchNews{TicketID: t.ID, Ticket: &state}
	switch t.Status {
	case matchmaking.RequiresAcceptance:
		if t.Outcome != nil && t.Outcome.Match != w.asked {
			w.asked = t.Outcome.Match
			w.door.calls.publish(w, matchAcceptanceEvent, news, false)
		}
		return false
	case matchmaking.Completed:
		news.PlayerID = w.player
		for _, p := range state.Players {
			if p.PlayerID == w.player {
				news.PlayerSessionID = p.PlayerSessionID
			}
		}
		w.door.calls.publish(w, matchCompleteEvent, news, true)
		return true
	case matchmaking.Failed, matchmaking.Cancelled, matchmaking.TimedOut:
		w.door.calls.publish(w, matchFailureEvent, news, true)
		return true
	}
	return false
}

// watch records that a client watches a ticket.
func (c *calls) watch(w *watch) *Problem {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.watches[w.key] != nil:
		return &Problem{status: http.StatusConflict, Name: "AlreadyPolling", Field: "ticketId", Value: excerpt.Short(w.key.ticket),
			Message: "ticket " + excerpt.Short(w.key.ticket) + " is watched on this event stream already"}
	case !c.watching.Take(w.by, 1):
		return problemOf(domain.Refuse(domain.Overloaded, "%d tickets are being watched, and this access key or address has used its share of them", c.watching.Keys.Taken()))
	}
	if c.watches == nil {
		c.watches = map[watchKey]*watch{}
	}
	c.watches[w.key] = w
	w.to = c.stream(w.key.client)
	w.to.users++
	return nil
}

// stopWatch ends a watch: it sends no more events, and another may begin.
func (c *calls) stopWatch(key watchKey) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if w := c.watches[key]; w != nil {
		w.stop()
		delete(c.watches, key)
	}
}

// endWatch releases the resources of a watch.
func (c *calls) endWatch(w *watch) {
	c.watching.Give(w.by, 1)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.watches[w.key] == w {
		delete(c.watches, w.key)
	}
	w.to.users--
	c.tidy(w.to)
}

// publish sends an event of a watch, unless it was stopped. The last event ends the watch, so that a client that gets it may start
// another one.
func (c *calls) publish(w *watch, name string, v any, last bool) {
	data := mustEncode(v)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.watches[w.key] != w {
		return
	}
	if last {
		delete(c.watches, w.key)
	}
	c.keep(&event{name: name, data: data, to: w.to})
}
