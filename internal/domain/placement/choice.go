package placement

import "github.com/musterhq/muster/internal/domain"

// Choice compares where a placement went with where it could have gone.
type Choice struct {
	First         Place // the first choice when the placement ended; empty if there was none
	LowestLatency bool  // it has latencies and went to the location with the lowest average
	LowestPrice   bool  // it has latencies and went to a fleet that costs no more than the others in its location
}

// ChoiceOf compares where a fulfilled placement went with where it could have gone.
func (q *Queue) ChoiceOf(p *Placement, fleet string, destinations []Destination, now domain.Time) (c Choice) {
	best, _ := q.Candidates(p, destinations, now)
	if len(best) == 0 {
		return c
	}
	c.First = best[0].Place
	taken := -1
	for i := range best {
		if best[i].Fleet == fleet && best[i].Location == p.Location {
			taken = i
		}
	}
	if taken < 0 || len(p.Latencies) == 0 {
		return c
	}
	c.LowestLatency, c.LowestPrice = true, true
	for i := range best {
		x := &best[i]
		c.LowestLatency = c.LowestLatency && best[taken].latency <= x.latency
		c.LowestPrice = c.LowestPrice && (x.Location != p.Location || best[taken].cost <= x.cost)
	}
	return c
}
