package cell

import (
	"slices"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/notice"
	"github.com/musterhq/muster/internal/domain/placement"
)

// Notify says who is told of the ends of placements.
type Notify struct {
	Bus    bool     // somebody is told of all of them
	Topics []string // ARNs; a queue may name one of them

	Max int           // notices that may wait for one receiver; then the oldest are given up
	Age time.Duration // how long each of them may wait
}

// Defaults of a Notify.
const (
	DefaultNoticesMax = 100_000
	DefaultNoticeAge  = 24 * time.Hour
)

// finishPlacement ends a placement and writes down who is to be told.
func (t *tx) finishPlacement(id string, status placement.Status, passed []placement.Try) {
	t.emit(&PlacementEnded{id, status, passed})
	t.tellPlacementEnd(id)
	t.matchPlaced(id, status)
	if status != placement.Fulfilled {
		t.instanceNotPlaced(id, status)
	}
}

// tellPlacementEnd writes down who is to be told of the end of a placement.
func (t *tx) tellPlacementEnd(id string) {
	to := t.c.config.Notify
	if to == nil {
		return
	}
	r, _ := t.c.placements.Placement(id)
	queue, ok := t.c.placements.Queue(t.c.placements.Placements.Get(r).Queue)
	if !ok {
		return
	}
	q := t.c.placements.Queues.Get(queue)
	t.tell(notice.Notice{Placement: id, CustomEventData: q.CustomEventData}, q.NotificationTarget)
}

// tell writes a notice down for the bus and for a topic, as far as anybody listens to them.
func (t *tx) tell(n notice.Notice, topic string) {
	to := t.c.config.Notify
	n.ID, n.At, n.Until = t.newID(), t.now, t.now.Add(to.Age)
	if to.Bus {
		t.notice(n, notice.Bus, to.Max)
	}
	if topic != notice.Bus && slices.Contains(to.Topics, topic) {
		t.notice(n, topic, to.Max)
	}
}

// notice writes a notice down for one receiver, and gives up its oldest one when there are too many.
func (t *tx) notice(n notice.Notice, topic string, most int) {
	for t.c.notices.Count(topic) >= most {
		no, _ := t.c.notices.First(topic)
		t.emit(&NoticesDropped{topic, []NoticeNo{NoticeNo(no)}})
	}
	n.Topic, n.No = topic, t.c.noticeNo+1
	t.emit(&NoticeWritten{n})
}

// DeliverNotices says that a receiver has some of its notices. Those that are not there any more do not matter.
type DeliverNotices struct {
	Topic string
	Nos   []uint64
}

func (cmd *DeliverNotices) decide(t *tx) error {
	e := &NoticesDelivered{Topic: cmd.Topic}
	for _, no := range cmd.Nos {
		if _, ok := t.c.notices.Find(cmd.Topic, no); ok && !slices.Contains(e.Nos, NoticeNo(no)) {
			e.Nos = append(e.Nos, NoticeNo(no))
		}
	}
	if len(e.Nos) > 0 {
		t.emit(e)
	}
	return nil
}

// ConfirmSubscription says that the receiver at a URL wants to hear of a topic.
type ConfirmSubscription struct{ Topic, URL string }

func (cmd *ConfirmSubscription) decide(t *tx) error {
	if cmd.Topic == "" || cmd.URL == "" {
		return domain.Refuse(domain.Invalid, "subscription of %q to topic %q: want both", cmd.URL, cmd.Topic)
	}
	if _, ok := t.c.notices.Subscription(cmd.Topic, cmd.URL); !ok {
		t.emit(&SubscriptionConfirmed{cmd.Topic, cmd.URL})
	}
	return nil
}

// noticeDue gives up a notice that nobody took in time.
func (t *tx) noticeDue(r notice.Ref) {
	n := t.c.notices.Notices.Get(r)
	t.emit(&NoticesDropped{n.Topic, []NoticeNo{NoticeNo(n.No)}})
}

func (c *Cell) applyNotice(at domain.Time, event Event) {
	switch e := event.(type) {
	case *NoticeWritten:
		c.noticeNo = e.Notice.No
		c.waiting.setWall(noticeAge, c.notices.Add(e.Notice), e.Notice.Until)
	case *NoticesDelivered:
		c.removeNotices(e.Topic, e.Nos)
	case *NoticesDropped:
		c.removeNotices(e.Topic, e.Nos)
	case *SubscriptionConfirmed:
		c.notices.Subscribe(notice.Subscription{Topic: e.Topic, URL: e.URL, Confirmed: at, Changed: c.number})
	}
	c.touch()
}

func (c *Cell) removeNotices(topic string, nos []NoticeNo) {
	for _, no := range nos {
		r, _ := c.notices.Find(topic, uint64(no))
		c.waiting.clear(noticeAge, r)
		c.notices.Remove(r)
	}
}

// Notices returns up to limit notices that wait for the receiver of a topic, in their order, beginning behind a number.
func (v *View) Notices(topic string, after uint64, limit int) []notice.Notice {
	v.sawAll()
	var page []notice.Notice
	v.c.notices.From(topic, after, func(n *notice.Notice) bool {
		page = append(page, *n)
		return len(page) < limit
	})
	return page
}

// NoticeCount is the number of notices that wait for the receiver of a topic.
func (v *View) NoticeCount(topic string) int {
	v.sawAll()
	return v.c.notices.Count(topic)
}

// Subscribed reports whether the receiver at a URL has confirmed that it wants to hear of a topic.
func (v *View) Subscribed(topic, url string) bool {
	v.sawAll()
	_, ok := v.c.notices.Subscription(topic, url)
	return ok
}
