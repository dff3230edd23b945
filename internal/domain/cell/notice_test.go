package cell

import (
	"fmt"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/notice"
	"github.com/musterhq/muster/internal/domain/placement"
	"github.com/musterhq/muster/internal/domain/session"
)

const testTopic = "arn:aws:sns:us-east-1:000000000000:placements"

func notifying(n notice.Notify) Config {
	c := DefaultConfig()
	n.Max, n.Age = max(n.Max, 1), max(n.Age, time.Hour)
	c.Notify = &n
	return c
}

func (w *world) notices(topic string) []notice.Notice {
	v := w.cell.View()
	return v.Notices(topic, 0, 1000)
}

// checked compares a replay and a loaded snapshot with the cell.
func (w *world) checked() {
	w.t.Helper()
	if err := w.checkRestarts(); err != nil {
		w.t.Error(err)
	}
}

func TestEveryEndOfAPlacementIsTold(t *testing.T) {
	w := newWorld(t, notifying(notice.Notify{Bus: true, Topics: []string{testTopic}, Max: 100}))
	w.grounds(placement.Queue{NotificationTarget: testTopic, CustomEventData: "data", Timeout: 30 * time.Second})
	w.start(placement.Placement{ID: "stopped"})
	w.must(&hosting.StopPlacement{ID: "stopped"})
	w.start(placement.Placement{ID: "late"})
	w.advance(30 * time.Second)
	key := w.serverAt("custom-a", "s1")
	w.start(placement.Placement{ID: "fulfilled"})
	w.must(&hosting.ActivateGameSession{Process: key, Game: session.ID(w.placement("fulfilled").Game)})
	w.serverAt("custom-a", "s2")
	w.start(placement.Placement{ID: "failed"})
	w.must(&hosting.TerminateGameSession{ID: session.ID(w.placement("failed").Game)})
	w.start(placement.Placement{ID: "orphan"})
	w.must(&hosting.DeleteQueue{Name: "q"})

	bus, topic := w.notices(notice.Bus), w.notices(testTopic)
	if len(bus) != 5 || len(topic) != 5 {
		t.Fatalf("%d for the bus, %d for the topic, want 5", len(bus), len(topic))
	}
	for i, id := range []string{"stopped", "late", "fulfilled", "failed", "orphan"} {
		b, x := bus[i], topic[i]
		if b.Placement != id || b.CustomEventData != "data" || b.At != w.placement(id).End || b.ID.IsZero() {
			t.Errorf("%s: got %+v", id, b)
		}
		if x.Placement != id || x.ID != b.ID || x.No == b.No {
			t.Errorf("%s: the topic got %+v, the bus %+v", id, x, b)
		}
	}
	w.checked()
	w.must(&notice.DeliverNotices{Topic: testTopic, Nos: []uint64{topic[1].No, topic[3].No, topic[3].No, 999}})
	if left := w.notices(testTopic); len(left) != 3 || left[1].Placement != "fulfilled" {
		t.Errorf("left: %+v", left)
	}
	if len(w.notices(notice.Bus)) != 5 {
		t.Error("what one receiver has is gone for the other")
	}
	before := w.number
	w.must(&notice.DeliverNotices{Topic: testTopic, Nos: []uint64{topic[1].No}})
	if w.number != before {
		t.Error("a repeat is written down")
	}
	w.checked()
}

func TestNobodyIsToldInVain(t *testing.T) {
	for name, config := range map[string]Config{
		"nobody listens": DefaultConfig(), "not to this topic": notifying(notice.Notify{Topics: []string{"arn:aws:sns:us-east-1:000000000000:other"}}),
	} {
		w := newWorld(t, config)
		w.grounds(placement.Queue{NotificationTarget: testTopic})
		w.start(placement.Placement{ID: "p1"})
		w.must(&hosting.StopPlacement{ID: "p1"})
		if w.cell.notices.Records.Notices.Len() != 0 {
			t.Errorf("%s: a notice is kept", name)
		}
	}
}

func TestNoticesAreBounded(t *testing.T) {
	w := newWorld(t, notifying(notice.Notify{Bus: true, Max: 3, Age: time.Hour}))
	w.grounds(placement.Queue{})
	for i := range 5 {
		id := fmt.Sprint("p", i)
		w.start(placement.Placement{ID: id})
		w.must(&hosting.StopPlacement{ID: id})
	}
	left := w.notices(notice.Bus)
	if len(left) != 3 || left[0].Placement != "p2" || left[2].Placement != "p4" {
		t.Fatalf("got %+v, want the latest three", left)
	}
	w.checked()
	w.advance(time.Hour)
	if left := w.notices(notice.Bus); len(left) != 0 {
		t.Errorf("after their time: %+v", left)
	}
	w.start(placement.Placement{ID: "next"})
	w.must(&hosting.StopPlacement{ID: "next"})
	if next := w.notices(notice.Bus); len(next) != 1 || next[0].No != left[2].No+1 {
		t.Errorf("numbers go on: %+v", next)
	}
	w.checked()
}

func TestSubscriptionIsRemembered(t *testing.T) {
	w := newWorld(t, DefaultConfig())
	v := w.cell.View()
	if v.Subscribed(testTopic, "https://a") {
		t.Error("confirmed from the beginning")
	}
	w.must(&notice.ConfirmSubscription{Topic: testTopic, URL: "https://a"})
	before := w.number
	w.must(&notice.ConfirmSubscription{Topic: testTopic, URL: "https://a"})
	if v := w.cell.View(); !v.Subscribed(testTopic, "https://a") || v.Subscribed(testTopic, "https://b") || w.number != before {
		t.Error("want one subscription, written down once")
	}
	if w.do(&notice.ConfirmSubscription{Topic: testTopic}) == nil {
		t.Error("a subscription without a receiver")
	}
	w.checked()
}
