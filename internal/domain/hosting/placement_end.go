package hosting

import (
	"github.com/musterhq/muster/internal/domain/notice"
	"github.com/musterhq/muster/internal/domain/placement"
)

// finishPlacement ends a placement and writes down who is to be told.
func (t *Tx) finishPlacement(id string, status placement.Status, passed []placement.Try) {
	t.Emit(&PlacementEnded{id, status, passed})
	t.tellPlacementEnd(id)
	if t.hooks != nil {
		t.hooks.PlacementEnded(id, status)
	}
}

// tellPlacementEnd writes down who is to be told of the end of a placement.
func (t *Tx) tellPlacementEnd(id string) {
	r, _ := t.Placements.Placement(id)
	queue, ok := t.Placements.Queue(t.Placements.Placements.Get(r).Queue)
	if !ok {
		return
	}
	q := t.Placements.Queues.Get(queue)
	t.notices.Tell(notice.Notice{Placement: id, CustomEventData: q.CustomEventData}, q.NotificationTarget)
}
