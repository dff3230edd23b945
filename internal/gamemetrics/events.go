package gamemetrics

import (
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/matchmaking"
	"github.com/musterhq/muster/internal/domain/placement"
)

var followedEvents = []kernel.Event{
	new(hosting.ProcessActivated), new(hosting.ProcessEnded), new(hosting.PlayerAccepted), new(hosting.PlacementStarted), new(hosting.PlacementEnded),
	new(matchmaking.TicketStarted), new(matchmaking.TicketsSearching), new(matchmaking.TicketEnded),
	new(matchmaking.MatchProposed), new(matchmaking.MatchAccepted), new(matchmaking.MatchDropped), new(matchmaking.MatchCompleted),
}

// count counts events. It looks up what they do not contain in the state, which keeps ended records for a while. A placement that has left the state is counted from the archive.
func (r *Recorder) count(events []kernel.Emitted) {
	var archived []*hosting.PlacementEnded
	_ = r.config.Engine.ReadHere(background, func(v *cell.View) error { // if the engine has stopped, nothing is counted
		r.mu.Lock()
		defer r.mu.Unlock()
		for i := range events {
			at := events[i].At
			switch e := events[i].Event.(type) {
			case *hosting.ProcessActivated:
				r.add(activations, e.Process.Fleet, r.locationOf(v, e.Process), 1)
			case *hosting.ProcessEnded:
				location := r.locationOf(v, e.Process)
				r.add(terminations, e.Process.Fleet, location, 1)
				if e.Reason != fleet.EndedNormally {
					r.add(abnormal, e.Process.Fleet, location, 1)
				}
			case *hosting.PlayerAccepted:
				if p, ok := v.PlayerSession(e.PlayerSession); ok {
					fleetID, location := cutLocation(string(p.GameID))
					r.add(playerActivations, fleetID, location, 1)
				}
			case *hosting.PlacementStarted:
				r.add(placementsStarted, e.Placement.Queue, "", 1)
			case *hosting.PlacementEnded:
				p, ok := v.Placement(e.ID)
				if !ok {
					archived = append(archived, e)
					continue
				}
				r.placementEnded(v, &p)
			default:
				r.matchmaking(at, e)
			}
		}
		return nil
	})
	for _, e := range archived {
		if p, err := r.config.Engine.Placement(background, e.ID); err == nil {
			r.mu.Lock()
			r.placementEnded(nil, &p)
			r.mu.Unlock()
		}
	}
}

// locationOf returns the location of a server process's compute, which may be gone.
func (r *Recorder) locationOf(v *cell.View, p fleet.Key) string {
	names := [2]string{p.Fleet, p.Compute}
	if x, ok := v.Compute(p.Fleet, p.Compute); ok {
		if r.computes[names] != x.Location {
			if len(r.computes) >= computesMax {
				clear(r.computes)
			}
			r.computes[names] = x.Location
		}
		return x.Location
	}
	location := r.computes[names]
	delete(r.computes, names)
	return location
}

// computesMax bounds the computes whose locations are remembered after they are gone.
const computesMax = 100_000

var placementEnds = map[placement.Status]*Definition{
	placement.Fulfilled: placementsSucceeded, placement.Cancelled: placementsCanceled, placement.TimedOut: placementsTimedOut, placement.Failed: placementsFailed,
}

// placementEnded counts the end of a placement. v is nil if the state no longer has it.
func (r *Recorder) placementEnded(v *cell.View, p *placement.Placement) {
	d := placementEnds[p.Status]
	if d == nil {
		return
	}
	r.add(d, p.Queue, "", 1)
	if p.Status != placement.Fulfilled {
		return
	}
	r.add(placementsTo, p.Queue, p.Location, 1)
	if v == nil {
		return
	}
	o, _ := v.PlacementOutcome(p.ID)
	if o.LowestLatency {
		r.add(lowestLatency, p.Queue, "", 1)
		r.add(lowestLatencyAt, p.Location, "", 1)
	}
	if o.LowestPrice {
		r.add(lowestPrice, p.Queue, "", 1)
		r.add(lowestPriceAt, p.Location, "", 1)
	}
	switch {
	case o.Missed && o.NotViable:
		r.add(firstNotViable, p.Queue, "", 1)
		r.add(firstNotViableAt, p.Location, "", 1)
	case o.Missed:
		r.add(firstFull, p.Queue, "", 1)
		r.add(firstFullAt, p.Location, "", 1)
	}
}

// openMatches has facts about tickets and matches that their later events do not contain.
type openMatches struct {
	tickets map[uint64]openTicket // by number
	matches map[string]openMatch  // by id
}

type openTicket struct {
	configuration string
	start         domain.Time
	searching     domain.Time // since when it is SEARCHING; 0: it is not, or unknown
}

type openMatch struct {
	configuration string
	tickets       []uint64
	asked         bool // its players were asked to accept
}

func (o *openMatches) reset() {
	o.tickets, o.matches = map[uint64]openTicket{}, map[string]openMatch{}
}

// openStep is how many records are read at once.
const openStep = 2048

// findOpen reads the tickets and matches that began before the first counted event.
func (r *Recorder) findOpen() {
	r.mu.Lock()
	r.open.reset()
	r.mu.Unlock()
	var next matchmaking.TicketRef
	for more := true; more; more = more && next != 0 {
		err := r.config.Engine.ReadHere(background, func(v *cell.View) error {
			r.mu.Lock()
			defer r.mu.Unlock()
			next = v.OpenTickets(next, openStep, func(t *matchmaking.Ticket) {
				if _, known := r.open.tickets[t.No]; !known {
					r.open.tickets[t.No] = openTicket{configuration: t.Configuration, start: t.Start}
				}
			})
			return nil
		})
		more = err == nil
	}
	var nextMatch matchmaking.MatchRef
	for more := true; more; more = more && nextMatch != 0 {
		err := r.config.Engine.ReadHere(background, func(v *cell.View) error {
			r.mu.Lock()
			defer r.mu.Unlock()
			nextMatch = v.OpenMatches(nextMatch, openStep, func(m *matchmaking.Match) {
				if _, known := r.open.matches[m.ID]; !known && m.Of != nil {
					r.open.matches[m.ID] = matchOf(m.Of.Name, m)
				}
			})
			return nil
		})
		more = err == nil
	}
}

func matchOf(configuration string, m *matchmaking.Match) openMatch {
	x := openMatch{configuration: configuration, asked: m.AcceptBy != 0}
	for _, s := range m.Seats {
		x.tickets = append(x.tickets, s.Ticket)
	}
	return x
}

var ticketEnds = map[matchmaking.Status]*Definition{matchmaking.Failed: ticketsFailed, matchmaking.TimedOut: ticketsTimedOut}

// matchmaking counts an event of matchmaking.
func (r *Recorder) matchmaking(at domain.Time, event kernel.Event) {
	switch e := event.(type) {
	case *matchmaking.TicketStarted:
		t := &e.Ticket
		r.open.tickets[t.No] = openTicket{configuration: t.Configuration, start: t.Start}
		r.add(ticketsStarted, t.Configuration, "", 1)
		r.add(playersStarted, t.Configuration, "", float64(t.Players))
	case *matchmaking.TicketsSearching:
		r.searching(at, e.Tickets)
	case *matchmaking.TicketEnded:
		t, ok := r.open.tickets[uint64(e.Ticket)]
		if !ok {
			return
		}
		r.searched(at, t)
		delete(r.open.tickets, uint64(e.Ticket))
		if d := ticketEnds[e.Status]; d != nil {
			r.add(d, t.configuration, "", 1)
		} else if e.Status == matchmaking.Cancelled {
			r.took(timeToCancel, t.configuration, t.start, at)
		}
	case *matchmaking.MatchProposed:
		m := matchOf(e.Configuration, &e.Match)
		r.open.matches[e.Match.ID] = m
		r.add(matchesCreated, m.configuration, "", 1)
		for _, no := range m.tickets {
			if t, ok := r.open.tickets[no]; ok {
				r.took(timeToMatch, m.configuration, t.start, at)
				r.searched(at, t)
				t.searching = 0
				r.open.tickets[no] = t
			}
		}
	case *matchmaking.MatchAccepted:
		if m, ok := r.open.matches[e.ID]; ok && m.asked {
			r.add(matchesAccepted, m.configuration, "", 1)
		}
	case *matchmaking.MatchDropped:
		r.searching(at, e.Returned)
		m, ok := r.open.matches[e.ID]
		if !ok {
			return
		}
		delete(r.open.matches, e.ID)
		switch e.Reason {
		case matchmaking.ProposedMatchRejected:
			r.add(matchesRejected, m.configuration, "", 1)
		case matchmaking.ProposedMatchTimedOut:
			r.add(acceptancesTimedOut, m.configuration, "", 1)
		}
	case *matchmaking.MatchCompleted:
		m, ok := r.open.matches[e.ID]
		if !ok {
			return
		}
		delete(r.open.matches, e.ID)
		if e.Game != "" {
			r.add(matchesPlaced, m.configuration, "", 1)
		}
		for _, no := range m.tickets {
			if t, ok := r.open.tickets[no]; ok {
				delete(r.open.tickets, no)
				r.took(timeToSuccess, t.configuration, t.start, at)
			}
		}
	}
}

func (r *Recorder) searching(at domain.Time, tickets []matchmaking.TicketNo) {
	for _, no := range tickets {
		if t, ok := r.open.tickets[uint64(no)]; ok {
			t.searching = at
			r.open.tickets[uint64(no)] = t
		}
	}
}

// searched counts how long a ticket was in the pool that it leaves.
func (r *Recorder) searched(at domain.Time, t openTicket) {
	if t.searching != 0 {
		r.took(searchTime, t.configuration, t.searching, at)
	}
}
