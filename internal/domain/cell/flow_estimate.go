package cell

import (
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/flow"
)

// Who searches is told how long it takes, and again when that has changed: in rounds, one for a queue every ten seconds at
// most, some parties in a transaction, so that no number of them holds anything up. B156.
const (
	estimateEvery = 10 * time.Second
	estimateStep  = 64 // parties that a transaction looks at
)

// estimate is how long a search in a queue is expected to take, in milliseconds; 0: not known.
func (t *tx) estimate(queue string) int64 {
	seconds, _ := t.c.matchmaking.EstimatedWait(queue, t.now)
	return int64(seconds) * 1000
}

// queueNamed is what is known of a queue.
func (t *tx) queueNamed(name string) flow.Queue {
	if r, ok := t.c.flow.QueueNamed(name); ok {
		return *t.c.flow.Queues.Get(r)
	}
	return flow.Queue{Name: name}
}

// planEstimates wants a round when what is expected has changed by a match, and somebody waits.
func (t *tx) planEstimates(queue string) {
	somebody := false
	t.c.flow.SearchingIn(queue, domain.UUID{}, func(flow.Ref) bool {
		somebody = true
		return false
	})
	if !somebody {
		return
	}
	q := t.queueNamed(queue)
	if q.TellAt != 0 || q.EstimateMS == t.estimate(queue) {
		return
	}
	q.TellAt = max(t.now, q.ToldAt.Add(estimateEvery))
	t.emit(&FlowQueueChanged{q})
}

// tellEstimates goes on with a round, or begins it. Who was told something else in the latest ten seconds, by entering, is
// passed over: the next round comes to them.
func (t *tx) tellEstimates(r flow.Ref) {
	q := *t.c.flow.Queues.Get(r)
	if q.TellAfter.IsZero() {
		q.EstimateMS, q.ToldAt = t.estimate(q.Name), t.now
	}
	var some []flow.Ref
	t.c.flow.SearchingIn(q.Name, q.TellAfter, func(party flow.Ref) bool {
		some = append(some, party)
		return len(some) < estimateStep
	})
	q.TellAt = 0
	if len(some) == estimateStep {
		q.TellAt, q.TellAfter = t.now, t.c.flow.Parties.Get(some[len(some)-1]).Search.Ticket
	} else {
		q.TellAfter = domain.UUID{}
	}
	t.emit(&FlowQueueChanged{q})
	for _, party := range some {
		s := t.c.flow.Parties.Get(party).Search
		if s.Status > flow.Held || s.EstimateMS == q.EstimateMS || s.Entered.Add(estimateEvery) > t.now {
			continue
		}
		s = t.changeSearch(party, func(s *flow.Search) { s.EstimateMS = q.EstimateMS })
		t.tellPlayers(flow.OnMatchmakingStatus, flow.Message{Ticket: s.Ticket, Search: s}, partyPlayers(t.c.flow.Parties.Get(party))...)
	}
}
