package simulate

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/matcher"
	"github.com/musterhq/muster/internal/domain/ruleset"
)

// Settings are settings of the matchmaking configuration and of the service that runs it.
type Settings struct {
	Name           string        // of the rule set, for the report
	RequestTimeout time.Duration // how long a ticket may wait; 0: DefaultRequestTimeout
	Additional     int32         // slots that new matches keep free
	PassEvery      time.Duration // minimum interval between two passes; 0: DefaultPassEvery
	Seed           uint64        // for the matcher's random choices

	// ProcessorShare is the part of one processor that the simulation may use, above 0 and below 1; 0: all of it.
	ProcessorShare float64
	// OnEnd is called with the index and the outcome of each arrival; may be nil.
	OnEnd func(arrival int, o Outcome)
}

// Ending is how a ticket ends.
type Ending string

const (
	Matched  Ending = "matched"
	TimedOut Ending = "timed out"
	Left     Ending = "left"
)

// Outcome is how a ticket ended, and how long it waited.
type Outcome struct {
	Ending Ending
	Wait   time.Duration
}

const (
	DefaultRequestTimeout = 5 * time.Minute
	DefaultPassEvery      = 100 * time.Millisecond // as the service's

	// continueEvery is the time between two turns of searches that used up their budget. In the service they occur about as often
	// as passes; once a second keeps the simulation of a day short.
	continueEvery = time.Second
)

// run is the state of a simulation.
type run struct {
	rules    *ruleset.RuleSet
	settings Settings
	arrivals []Arrival
	pool     *matcher.Matcher
	ended    []bool // by arrival
	byEnd    []int  // arrivals in the order in which they end if they are not matched
	expired  int    // in byEnd: those before it have ended
	pace     *pace
	made     *measured
}

// Run simulates the arrivals, which must be sorted by time, until each is matched, has timed out or has left. It fails for attributes
// of another type than the rule set declares.
func Run(ctx context.Context, rules *ruleset.RuleSet, s Settings, arrivals []Arrival) (*Report, error) {
	s.RequestTimeout = cmp.Or(s.RequestTimeout, DefaultRequestTimeout)
	s.PassEvery = cmp.Or(s.PassEvery, DefaultPassEvery)
	if err := Fits(rules, arrivals); err != nil {
		return nil, err
	}
	r := &run{
		rules: rules, settings: s, arrivals: arrivals, ended: make([]bool, len(arrivals)), pace: newPace(s.ProcessorShare),
		pool: matcher.New(rules, matcher.Config{Name: fmt.Sprintf("%s/%d", s.Name, s.Seed), AdditionalPlayers: s.Additional}),
	}
	r.made = newMeasured(r)
	r.byEnd = make([]int, len(arrivals))
	for i := range r.byEnd {
		r.byEnd[i] = i
	}
	slices.SortStableFunc(r.byEnd, func(a, b int) int { return cmp.Compare(r.deadline(a), r.deadline(b)) })
	if err := r.play(ctx); err != nil {
		return nil, err
	}
	return r.made.report(r.pool.Stats()), nil
}

// never is later than every event.
const never = time.Duration(1<<63 - 1)

func (r *run) play(ctx context.Context) error {
	arrived, lastPass := 0, -r.settings.PassEvery
	now := time.Duration(0)
	for {
		pass := r.nextPass(now, lastPass)
		next := min(pass, r.nextExpiry())
		if arrived < len(r.arrivals) {
			next = min(next, r.arrivals[arrived].At)
		}
		if next == never {
			return nil
		}
		now = max(now, next)
		for ; arrived < len(r.arrivals) && r.arrivals[arrived].At <= now; arrived++ {
			if err := r.arrive(arrived); err != nil {
				return err
			}
		}
		r.expire(now)
		if pass <= now {
			lastPass = now
			if err := r.pace.keep(ctx); err != nil {
				return err
			}
			for _, p := range r.pool.Pass(at(now)) {
				r.match(now, &p)
			}
		}
	}
}

// at converts a time since the beginning for the matcher; the day does not matter.
func at(t time.Duration) domain.Time { return domain.Time(t / time.Millisecond) }

func (r *run) nextPass(now, last time.Duration) time.Duration {
	earliest := last + r.settings.PassEvery
	if r.pool.Dirty() {
		return max(now, earliest)
	}
	next := never
	if due, ok := r.pool.Due(at(now)); ok {
		next = max(time.Duration(due)*time.Millisecond, earliest)
	}
	if r.pool.Unfinished() {
		next = min(next, max(last+continueEvery, earliest))
	}
	return next
}

// deadline returns when a ticket ends without a match: when it times out or its players leave.
func (r *run) deadline(i int) time.Duration {
	if r.leaves(i) {
		return r.arrivals[i].Leaves
	}
	return r.arrivals[i].At + r.settings.RequestTimeout
}

// leaves reports whether a ticket's players leave before it would time out.
func (r *run) leaves(i int) bool {
	a := &r.arrivals[i]
	return a.Leaves != 0 && a.Leaves < a.At+r.settings.RequestTimeout
}

// nextExpiry returns when the first of the waiting tickets ends without a match.
func (r *run) nextExpiry() time.Duration {
	for r.expired < len(r.byEnd) && r.ended[r.byEnd[r.expired]] {
		r.expired++
	}
	if r.expired == len(r.byEnd) {
		return never
	}
	return r.deadline(r.byEnd[r.expired])
}

func (r *run) expire(now time.Duration) {
	for r.nextExpiry() <= now {
		i := r.byEnd[r.expired]
		a := &r.arrivals[i]
		r.pool.Remove(key(i))
		if r.leaves(i) {
			r.made.left(a)
			r.end(i, Left, r.deadline(i))
		} else {
			r.made.timedOut(a)
			r.end(i, TimedOut, r.deadline(i))
		}
	}
}

func (r *run) end(i int, how Ending, now time.Duration) {
	r.ended[i] = true
	if r.settings.OnEnd != nil {
		r.settings.OnEnd(i, Outcome{how, now - r.arrivals[i].At})
	}
}

func key(arrival int) uint64 { return uint64(arrival) + 1 }

func (r *run) arrive(i int) error {
	a := &r.arrivals[i]
	t := matcher.Ticket{Key: key(i), Start: at(a.At), No: key(i), Players: make([]matcher.Player, len(a.Players))}
	for j, p := range a.Players {
		t.Players[j] = matcher.Player{ID: p.ID, Attributes: p.Attributes, Latencies: p.Latencies}
	}
	if err := r.pool.Add(t); err != nil {
		return fmt.Errorf("ticket %s: %w", a.Ticket, err)
	}
	return nil
}

func (r *run) match(now time.Duration, p *matcher.Proposal) {
	tickets := make([]*Arrival, len(p.Tickets))
	for i, k := range p.Tickets {
		r.end(int(k-1), Matched, now)
		tickets[i] = &r.arrivals[k-1]
	}
	r.made.matched(now, p, tickets)
}
