package sim

import (
	"slices"
	"strings"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/notice"
	"github.com/musterhq/muster/internal/domain/placement"
)

// chronicle reads the durable events in order and checks them with a slow and simple model of which event may follow which: where a
// placement may go, which computes get nothing new, and which notices are owed.
type chronicle struct {
	queues   map[string]placement.Queue
	pending  map[string]string // a placement's queue
	aliases  map[string]string // an alias's fleet, "" when it is terminal
	rollouts rollouts
	draining map[[2]string]bool

	owed    []notice.Notice // by the latest event: the very next notices
	lastNo  uint64
	ever    map[noticeKey]notice.Notice
	waiting map[string][]notice.Notice // by topic: neither delivered nor dropped
	told    map[noticeKey]bool         // a receiver has it

	tickets ticketBook
	pushes  pushBook
}

type noticeKey struct {
	topic string
	no    uint64
}

func newChronicle() chronicle {
	return chronicle{
		queues: map[string]placement.Queue{}, pending: map[string]string{}, aliases: map[string]string{},
		rollouts: rollouts{map[string]fleet.Rollout{}, map[turnKey]bool{}, map[string]int{}}, draining: map[[2]string]bool{},
		ever: map[noticeKey]notice.Notice{}, waiting: map[string][]notice.Notice{}, told: map[noticeKey]bool{}, pushes: newPushBook(),
	}
}

// read takes the events of a journal entry.
func (c *chronicle) read(w *World, batch []byte) {
	err := w.history.cell.EachEvent(batch, func(at domain.Time, e kernel.Event) { c.event(w, at, e) })
	if err != nil {
		w.violated("%v", err)
	}
	c.nothingOwed(w)
}

func (c *chronicle) event(w *World, at domain.Time, e kernel.Event) {
	c.tickets.event(w, e)
	c.pushes.event(w, at, e)
	switch e := e.(type) {
	case *hosting.QueueChanged:
		c.queues[e.Queue.Name] = e.Queue
	case *hosting.QueueRemoved:
		for id, queue := range c.pending {
			if queue == e.Name {
				w.violated("queue %s is gone, and %s is pending in it", queue, id)
			}
		}
		delete(c.queues, e.Name)
	case *hosting.PlacementStarted:
		c.pending[e.Placement.ID] = e.Placement.Queue
	case *hosting.PlacementEnded:
		c.ended(w, at, e)
	case *hosting.AliasChanged:
		c.aliases[e.Alias.ID] = e.Alias.Fleet
	case *hosting.AliasRemoved:
		delete(c.aliases, e.ID)
		delete(c.rollouts.now, e.ID)
	case *hosting.RolloutChanged:
		c.rollouts.changed(w, e.Rollout)
	case *hosting.RolloutTurnTaken:
		c.rollouts.turn(w, e)
	case *hosting.ComputeRegistered:
		c.draining[[2]string{e.Compute.FleetID, e.Compute.Name}] = slices.Contains(e.Compute.Tags, fleet.Tag{Key: "muster:drain", Value: "true"})
	case *hosting.ComputeRemoved:
		delete(c.draining, [2]string{e.Fleet, e.Name})
	case *hosting.GameSessionCreated:
		c.placed(w, e)
	case *notice.NoticeWritten:
		c.written(w, e.Notice)
	case *notice.NoticesDelivered:
		for _, no := range e.Nos {
			if !c.told[noticeKey{e.Topic, uint64(no)}] {
				w.violated("notice %d of topic %q counts as delivered, and was never sent", no, e.Topic)
			}
			c.drop(w, e.Topic, uint64(no))
		}
	case *notice.NoticesDropped:
		for _, no := range e.Nos {
			c.givenUp(w, at, e.Topic, uint64(no))
		}
	}
}

// placed checks the place of a new game session.
func (c *chronicle) placed(w *World, e *hosting.GameSessionCreated) {
	if c.draining[[2]string{e.Process.Fleet, e.Process.Compute}] {
		w.violated("%s was given to %s, whose compute is being drained", e.ID, e.Process)
	}
	if e.Placement == "" {
		return
	}
	q, ok := c.queues[c.pending[e.Placement]]
	if !ok {
		w.violated("%s was made for %s, which is not pending", e.ID, e.Placement)
	}
	for _, arn := range q.Destinations {
		name := arn[strings.LastIndexByte(arn, '/')+1:]
		if name == e.Process.Fleet || strings.HasPrefix(name, "alias-") && (c.aliases[name] == e.Process.Fleet || c.rollouts.allows(e.Placement, name, e.Process.Fleet)) {
			return
		}
	}
	w.violated("%s was made for %s in a fleet that its queue %s does not name now: %v, with aliases %v", e.ID, e.Placement, q.Name, q.Destinations, c.aliases)
}

// ended records the notices that the end of a placement owes.
func (c *chronicle) ended(w *World, at domain.Time, e *hosting.PlacementEnded) {
	c.nothingOwed(w)
	queue, ok := c.pending[e.ID]
	if !ok {
		w.violated("%s ended %s, and was not pending", e.ID, e.Status)
	}
	delete(c.pending, e.ID)
	to := w.cell.Notify
	if to == nil {
		return
	}
	q := c.queues[queue]
	n := notice.Notice{At: at, Until: at.Add(to.Age), Placement: e.ID, CustomEventData: q.CustomEventData}
	if to.Bus {
		c.owed = append(c.owed, n)
	}
	if n.Topic = q.NotificationTarget; slices.Contains(to.Topics, n.Topic) {
		c.owed = append(c.owed, n)
	}
}

func (c *chronicle) nothingOwed(w *World) {
	if len(c.owed) > 0 {
		w.violated("%s ended, and topic %q is not told", c.owed[0].Placement, c.owed[0].Topic)
	}
}

func (c *chronicle) written(w *World, n notice.Notice) {
	c.lastNo++
	c.ever[noticeKey{n.Topic, n.No}] = n
	c.waiting[n.Topic] = append(c.waiting[n.Topic], n)
	if n.Placement == "" {
		return // not about a placement
	}
	if len(c.owed) == 0 {
		w.violated("a notice that is not owed: %+v", n)
	}
	want := c.owed[0]
	want.No, want.ID = c.lastNo, n.ID
	if n != want || n.ID == (domain.UUID{}) {
		w.violated("a notice is %+v, want %+v", n, want)
	}
	if c.owed = c.owed[1:]; len(c.owed) > 0 {
		c.owed[0].ID = n.ID
	}
}

// sameNotice compares the fields by which receivers distinguish notices.
func sameNotice(a, b notice.Notice) bool {
	return a.No == b.No && a.ID == b.ID && a.Placement == b.Placement && a.At == b.At
}

// givenUp checks that a notice was dropped only because it was too old, or the oldest of too many.
func (c *chronicle) givenUp(w *World, at domain.Time, topic string, no uint64) {
	n := c.ever[noticeKey{topic, no}]
	crowded := len(c.waiting[topic]) >= w.cell.Notify.Max && c.waiting[topic][0].No == no
	if n.Until > at && !crowded {
		w.violated("notice %d of topic %q was given up at %v; it is good until %v, and %d are waiting", no, topic, at, n.Until, len(c.waiting[topic]))
	}
	c.drop(w, topic, no)
}

func (c *chronicle) drop(w *World, topic string, no uint64) {
	all := c.waiting[topic]
	i := slices.IndexFunc(all, func(n notice.Notice) bool { return n.No == no })
	if i < 0 {
		w.violated("notice %d of topic %q was taken away twice", no, topic)
	}
	c.waiting[topic] = slices.Delete(all, i, i+1)
}
