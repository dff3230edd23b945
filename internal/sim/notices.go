package sim

import (
	"fmt"
	"slices"
	"time"

	"github.com/musterhq/muster/internal/archive"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/notice"
	"github.com/musterhq/muster/internal/domain/placement"
)

// The topics that queues name. The last one has no receiver.
var topics = []string{"arn:aws:sns:us-east-1:1:lobby", "arn:aws:sns:us-east-1:1:statistics", "arn:aws:sns:us-east-1:1:nobody"}

// drawNotify draws the receivers of notices, and how long the service waits for them.
func (w *World) drawNotify(often func(int) bool) *notice.Notify {
	if !often(85) {
		return nil
	}
	to := &notice.Notify{Bus: often(80), Max: 1000, Age: notice.DefaultNoticeAge}
	for _, topic := range topics[:2] {
		if often(70) {
			to.Topics = append(to.Topics, topic)
		}
	}
	if often(30) {
		to.Max = 1 + w.chance.IntN(4)
	}
	if often(30) {
		to.Age = time.Minute
	}
	return to
}

// receivers returns the topics that have a receiver.
func (w *World) receivers() (all []string) {
	if to := w.cell.Notify; to != nil {
		all = slices.Clone(to.Topics)
		if to.Bus {
			all = append(all, notice.Bus)
		}
	}
	return all
}

// tellSome sends one receiver some of its notices once they are durable. The service may crash before it records the delivery, and then
// sends them again.
func (n *node) tellSome() {
	all := n.w.receivers()
	if len(all) == 0 {
		return
	}
	topic := all[n.w.chance.IntN(len(all))]
	v := n.seq.Cell().View()
	some := v.Notices(topic, 0, 1+n.w.chance.IntN(5))
	if len(some) == 0 || n.w.oneIn(n.w.habits.deaf) {
		return
	}
	if n.w.oneIn(4) { // several are sent at a time, and later ones may arrive first
		slices.Reverse(some)
		some = some[:1]
	}
	n.whenDurable(v.Seen(), func() { n.heard(topic, some) })
}

// heard handles notices in a receiver.
func (n *node) heard(topic string, some []notice.Notice) {
	w := n.w
	have := &notice.DeliverNotices{Topic: topic}
	for _, x := range some {
		key := noticeKey{topic, x.No}
		if !sameNotice(w.chronicle.ever[key], x) {
			w.violated("topic %q was told %+v, which never happened", topic, x)
		}
		w.counts.Told++
		w.chronicle.told[key] = true
		have.Nos = append(have.Nos, x.No)
		if x.Placement == "" {
			continue
		}
		p := w.placementOf(n, x.Placement)
		if p.Status == placement.Pending || p.End != x.At {
			w.violated("topic %q was told at %v that %s has ended, which is %s since %v", topic, x.At, p.ID, p.Status, p.End)
		}
		w.known.toldPlacement(w, p)
	}
	n.submit(have, n.w.known.learner(w, have))
}

// placementOf finds a placement in memory or in the archive.
func (w *World) placementOf(n *node, id string) placement.Placement {
	v := n.seq.Cell().View()
	if p, ok := v.Placement(id); ok {
		return p
	}
	data := w.archived(n.archive, archive.Placement, id)
	if data == nil {
		w.violated("%s is gone", id)
	}
	p, err := hosting.DecodePlacement(data)
	if err != nil || p.Status == placement.Pending {
		w.violated("archive: %s is %s, %v", id, p.Status, err)
	}
	return p
}

// checkNotices compares the waiting notices with the chronicle when all decisions are durable.
func (w *World) checkNotices() {
	v := w.node.seq.Cell().View()
	for _, topic := range append(w.receivers(), topics[2]) {
		if got, want := v.Notices(topic, 0, 1<<20), w.chronicle.waiting[topic]; !slices.EqualFunc(got, want, sameNotice) {
			w.violated("notices that wait for topic %q: %+v, want %+v", topic, got, want)
		}
	}
}

func confirmSubscription(w *Wishes, _ *cell.View) kernel.Command {
	return &notice.ConfirmSubscription{Topic: topics[w.chance.IntN(len(topics))], URL: fmt.Sprint("http://receiver-", w.chance.IntN(2))}
}
