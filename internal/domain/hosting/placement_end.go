package hosting

import (
	"github.com/musterhq/muster/internal/domain/notice"
	"github.com/musterhq/muster/internal/domain/placement"
)

// finishPlacement ends a placement and records the notices about it.
func (t *Tx) finishPlacement(id string, status placement.Status, passed []placement.Try) {
	t.Emit(&PlacementEnded{id, status, passed})
	t.tellPlacementEnd(id)
	if t.hooks != nil {
		t.hooks.PlacementEnded(id, status)
	}
}

// tellPlacementEnd records the notices about the end of a placement.
func (t *Tx) tellPlacementEnd(id string) {
	r, _ := t.Placements.Placement(id)
	queue, ok := t.Placements.Queue(t.Placement(r).Queue)
	if !ok {
		return
	}
	q := t.Queue(queue)
	t.notices.Tell(notice.Notice{Placement: id, CustomEventData: q.CustomEventData}, q.NotificationTarget)
}
