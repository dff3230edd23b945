package playerflow

import (
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/flow"
)

// Searching players are told the expected wait, and again after it has changed. This happens in rounds, at most one per queue in ten
// seconds, with a batch of parties per transaction, so that even a large number of parties does not block other commands. B156.
const (
	estimateEvery = 10 * time.Second
	EstimateStep  = 64 // parties examined in one transaction
)

// estimate returns the expected duration of a search in a queue, in milliseconds; 0: unknown.
func (t *searches) estimate(queue string) int64 {
	seconds, _ := t.matchmaking.EstimatedWait(queue, t.Now)
	return int64(seconds) * 1000
}

// queue returns the record of a queue.
func (t *searches) queue(name string) flow.Queue {
	if r, ok := t.Flow.QueueNamed(name); ok {
		return *t.Flow.Queues.Get(r)
	}
	return flow.Queue{Name: name}
}

// MatchesMade schedules a round if matches have changed the expected wait of a queue in which parties search.
func (t *Matches) MatchesMade(queue string) {
	waits := false
	t.Flow.SearchingIn(queue, domain.TicketID{}, func(flow.PartyRef) bool {
		waits = true
		return false
	})
	if !waits {
		return
	}
	q := t.searches.queue(queue)
	if q.TellAt != 0 || q.EstimateMS == t.searches.estimate(queue) {
		return
	}
	q.TellAt = max(t.Now, q.ToldAt.Add(estimateEvery))
	t.Emit(&FlowQueueChanged{q})
}

// tellEstimates begins or continues a round. It skips parties that entered within the last ten seconds, because they have an
// estimate; the next round reaches them.
func (t *searches) tellEstimates(r flow.QueueRef) {
	q := *t.Flow.Queues.Get(r)
	if q.TellAfter.IsZero() {
		q.EstimateMS, q.ToldAt = t.estimate(q.Name), t.Now
	}
	var some []flow.PartyRef
	t.Flow.SearchingIn(q.Name, q.TellAfter, func(party flow.PartyRef) bool {
		some = append(some, party)
		return len(some) < EstimateStep
	})
	q.TellAt = 0
	if len(some) == EstimateStep {
		q.TellAt, q.TellAfter = t.Now, t.Flow.Parties.Get(some[len(some)-1]).Search.Ticket
	} else {
		q.TellAfter = domain.TicketID{}
	}
	t.Emit(&FlowQueueChanged{q})
	for _, party := range some {
		s := t.Flow.Parties.Get(party).Search
		if s.Status > flow.Held || s.EstimateMS == q.EstimateMS || s.Entered.Add(estimateEvery) > t.Now {
			continue
		}
		s = t.changeSearch(party, func(s *flow.Search) { s.EstimateMS = q.EstimateMS })
		t.tellPlayers(flow.OnMatchmakingStatus, flow.Message{Ticket: s.Ticket, Search: s}, t.Flow.Parties.Get(party).Players()...)
	}
}
