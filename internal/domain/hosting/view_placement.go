package hosting

import (
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/placement"
)

// Queue returns a queue.
func (v *View) Queue(name string) (q placement.Queue, ok bool) {
	r, ok := v.c.Placements.Queue(name)
	if ok {
		q = *v.c.Queue(r)
	}
	return q, v.Found(ok, q.Changed)
}

// Queues returns up to limit queues, ordered by name, beginning after `after`.
func (v *View) Queues(after string, limit int) []placement.Queue {
	v.SawAll()
	return kernel.Page(limit, func(take func(*placement.Queue) bool) { v.c.Placements.QueuesFrom(after, take) })
}

// Placement returns a placement in memory; the engine reads others from the archive.
func (v *View) Placement(id string) (placement.Placement, bool) {
	r, ok := v.c.Placements.Placement(id)
	if !ok {
		v.SawAll()
		return placement.Placement{}, false
	}
	return v.placement(r), true
}

func (v *View) placement(r placement.Ref) placement.Placement {
	p := *v.c.Placement(r)
	v.Saw(p.Changed)
	return p
}

// Choice is a place that a waiting placement may use, or the reason why it may not.
type Choice struct {
	placement.Try
	Free int // free processes there now
}

// Choices returns where a waiting placement would go next, best first, and the places that it passes over, with
// reasons.
func (v *View) Choices(id string, now domain.Time) (choices []Choice) {
	v.SawAll()
	now = max(now, v.c.Last())
	r, ok := v.c.Placements.Placement(id)
	if !ok || v.c.Placement(r).Status != placement.Pending {
		return nil
	}
	best, passed := v.c.candidates(r, now)
	for _, b := range best {
		choices = append(choices, Choice{v.c.noneFree(b.Place, now), v.c.Fleets.IdleCount(b.Fleet, b.Location)})
	}
	for _, p := range passed {
		choices = append(choices, Choice{Try: p})
	}
	return choices
}
