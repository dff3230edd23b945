package rehearsal

import (
	"context"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/matcher"
	"github.com/musterhq/muster/internal/domain/matchmaking"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/simulate"
)

// Recorded has the tickets of a configuration from the last hour, as arrivals, with their outcomes.
type Recorded struct {
	Arrivals    []simulate.Arrival
	From, Until domain.Time // when the first of them began; when those that had not ended are assumed to leave
	Whole       bool        // false: later tickets were omitted
	Backfills   int         // number of backfill tickets, which are omitted: their game sessions are not recorded

	Completed, TimedOut, Cancelled, Failed, Waiting int
	Wait                                            simulate.Spread // of completed tickets, in seconds, including acceptance and placement
}

// LastHour waits for its turn, and reads the tickets of a configuration that ended in the last hour and those that are waiting. Like Run, it refuses with Overloaded.
func (s *Stage) LastHour(ctx context.Context, e *engine.Engine, configuration string) (*Recorded, error) {
	leave, err := s.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	since := domain.TimeOf(e.Now().Add(-time.Hour))
	found, err := e.TicketsSince(ctx, configuration, since, TicketsMax)
	if err != nil {
		return nil, err
	}
	return record(found), nil
}

func record(found engine.TicketsSince) *Recorded {
	r := &Recorded{Until: found.Until, Whole: found.Whole}
	var waits []float64
	var rosters matchmaking.RosterReader
	values := 0
	for i := range found.Tickets {
		t := &found.Tickets[i]
		if t.Backfill {
			r.Backfills++
			continue
		}
		if r.From == 0 {
			r.From = t.Start
		}
		a := simulate.Arrival{At: t.Start.Sub(r.From), Ticket: t.ID}
		for _, p := range rosters.Decode(t.Roster) {
			player := simulate.Player{ID: p.ID, Attributes: p.Attributes}
			for _, l := range p.Latencies {
				player.Latencies = append(player.Latencies, matcher.Latency(l))
			}
			values += len(p.Attributes) + len(p.Latencies)
			a.Players = append(a.Players, player)
		}
		if values > valuesMax {
			r.Until, r.Whole = t.Start, false
			break
		}
		r.count(t, &waits)
		if left := r.leaves(t); left != 0 {
			a.Leaves = max(left.Sub(r.From), a.At+time.Millisecond)
		}
		r.Arrivals = append(r.Arrivals, a)
	}
	r.Wait = simulate.SpreadOf(waits)
	return r
}

// count counts the outcome of a ticket.
func (r *Recorded) count(t *matchmaking.Ticket, waits *[]float64) {
	switch {
	case !r.ended(t):
		r.Waiting++
	case t.Status == matchmaking.Completed:
		r.Completed++
		*waits = append(*waits, t.End.Sub(t.Start).Seconds())
	case t.Status == matchmaking.TimedOut:
		r.TimedOut++
	case t.Status == matchmaking.Cancelled:
		r.Cancelled++
	default:
		r.Failed++
	}
}

func (r *Recorded) ended(t *matchmaking.Ticket) bool { return !t.Status.Active() && t.End <= r.Until }

// leaves returns when the players of a ticket would have given up without a match; 0: not before its timeout. The players of a cancelled ticket gave up, unless it had been in a match
// that a player rejected. For a ticket that has not ended it is unknown, and leaves returns the end of the recording.
func (r *Recorded) leaves(t *matchmaking.Ticket) domain.Time {
	switch {
	case !r.ended(t):
		return r.Until
	case t.Status == matchmaking.Cancelled && t.Outcome == nil:
		return t.End
	}
	return 0
}
