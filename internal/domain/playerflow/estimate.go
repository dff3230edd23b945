package playerflow

import (
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/flow"
)

// Who searches is told how long it takes, and again when that has changed: in rounds, one for a queue every ten seconds at
// most, some parties in a transaction, so that no number of them holds anything up. B156.
const (
	estimateEvery = 10 * time.Second
	EstimateStep  = 64 // parties that a transaction looks at
)

// estimate is how long a search in a queue is expected to take, in milliseconds; 0: not known.
func (t *searches) estimate(queue string) int64 {
	seconds, _ := t.matchmaking.EstimatedWait(queue, t.Now)
	return int64(seconds) * 1000
}

// queue is what is known of a queue.
func (t *searches) queue(name string) flow.Queue {
	if r, ok := t.Flow.QueueNamed(name); ok {
		return *t.Flow.Queues.Get(r)
	}
	return flow.Queue{Name: name}
}

// MatchesMade wants a round when what is expected has changed by a match, and somebody waits.
func (t *Matches) MatchesMade(queue string) {
	somebody := false
	t.Flow.SearchingIn(queue, domain.TicketID{}, func(flow.PartyRef) bool {
		somebody = true
		return false
	})
	if !somebody {
		return
	}
	q := t.searches.queue(queue)
	if q.TellAt != 0 || q.EstimateMS == t.searches.estimate(queue) {
		return
	}
	q.TellAt = max(t.Now, q.ToldAt.Add(estimateEvery))
	t.Emit(&FlowQueueChanged{q})
}

// tellEstimates goes on with a round, or begins it. Who was told something else in the latest ten seconds, by entering, is
// passed over: the next round comes to them.
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
