package notice

import (
	"slices"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/kernel"
)

// Notify configures the receivers of notices.
type Notify struct {
	Bus    bool     // the event bus has a receiver, which gets all notices
	Topics []string // ARNs, one of which a queue may name

	Max int           // most notices that may wait for one receiver; beyond this, the oldest are dropped
	Age time.Duration // how long each may wait
}

// Defaults of a Notify.
const (
	DefaultNoticesMax = 100_000
	DefaultNoticeAge  = 24 * time.Hour
)

// Tell records a notice for the bus and for a topic, if they have receivers.
func (t *Tx) Tell(n Notice, topic string) {
	to := t.notify
	if to == nil {
		return
	}
	n.ID, n.At, n.Until = t.NewID(), t.Now, t.Now.Add(to.Age)
	if to.Bus {
		t.notice(n, Bus, to.Max)
	}
	if topic != Bus && slices.Contains(to.Topics, topic) {
		t.notice(n, topic, to.Max)
	}
}

// notice records a notice for one receiver, and drops the receiver's oldest one if there are too many.
func (t *Tx) notice(n Notice, topic string, most int) {
	for t.Records.Count(topic) >= most {
		no, _ := t.Records.First(topic)
		t.Emit(&NoticesDropped{topic, []NoticeNo{NoticeNo(no)}})
	}
	n.Topic, n.No = topic, t.noticeNo+1
	t.Emit(&NoticeWritten{n})
}

// DeliverNotices records that a receiver has received some of its notices. It ignores those that no longer exist.
type DeliverNotices struct {
	Topic string
	Nos   []uint64
}

func (cmd *DeliverNotices) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	e := &NoticesDelivered{Topic: cmd.Topic}
	for _, no := range cmd.Nos {
		if _, ok := t.Records.Find(cmd.Topic, no); ok && !slices.Contains(e.Nos, NoticeNo(no)) {
			e.Nos = append(e.Nos, NoticeNo(no))
		}
	}
	if len(e.Nos) > 0 {
		t.Emit(e)
	}
	return nil
}

// ConfirmSubscription records that the receiver at a URL wants the notices of a topic.
type ConfirmSubscription struct{ Topic, URL string }

func (cmd *ConfirmSubscription) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	if cmd.Topic == "" || cmd.URL == "" {
		return domain.Refuse(domain.Invalid, "subscription of %q to topic %q: want both", cmd.URL, cmd.Topic)
	}
	if _, ok := t.Records.Subscription(cmd.Topic, cmd.URL); !ok {
		t.Emit(&SubscriptionConfirmed{cmd.Topic, cmd.URL})
	}
	return nil
}

// noticeDue drops a notice that its receiver did not take in time.
func (t *Tx) noticeDue(r Ref) {
	n := t.Records.Notices.Get(r)
	t.Emit(&NoticesDropped{n.Topic, []NoticeNo{NoticeNo(n.No)}})
}

func (c *State) Apply(at domain.Time, event kernel.Event) {
	switch e := event.(type) {
	case *NoticeWritten:
		c.noticeNo = e.Notice.No
		c.Waiting.SetWall(NoticeAge, c.Records.Add(e.Notice).Any(), e.Notice.Until)
	case *NoticesDelivered:
		c.removeNotices(e.Topic, e.Nos)
	case *NoticesDropped:
		c.removeNotices(e.Topic, e.Nos)
	case *SubscriptionConfirmed:
		c.Records.Subscribe(Subscription{Topic: e.Topic, URL: e.URL, Confirmed: at, Changed: c.Number()})
	}
	c.Touch()
}

func (c *State) removeNotices(topic string, nos []NoticeNo) {
	for _, no := range nos {
		r, _ := c.Records.Find(topic, uint64(no))
		c.Waiting.Clear(NoticeAge, r.Any())
		c.Records.Remove(r)
	}
}

// Notices returns up to limit notices that wait for the receiver of a topic, in their order, beginning after a number.
func (v *View) Notices(topic string, after uint64, limit int) []Notice {
	v.SawAll()
	return kernel.Page(limit, func(take func(*Notice) bool) { v.c.Records.From(topic, after, take) })
}

// NoticeCount returns the number of notices that wait for the receiver of a topic.
func (v *View) NoticeCount(topic string) int {
	v.SawAll()
	return v.c.Records.Count(topic)
}

// Subscribed reports whether the receiver at a URL has confirmed its subscription to a topic.
func (v *View) Subscribed(topic, url string) bool {
	v.SawAll()
	_, ok := v.c.Records.Subscription(topic, url)
	return ok
}
