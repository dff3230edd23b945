package feeds

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"

	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/playerflow"
	"github.com/musterhq/muster/internal/playerapi/objects"
	"github.com/musterhq/muster/internal/playerapi/principal"
	"github.com/musterhq/muster/internal/playerapi/problem"
	"github.com/musterhq/muster/internal/playerapi/socket"
)

// eventsProtocol is the subprotocol of a subscription's stream.
const eventsProtocol = "playerflow.events.v1"

// Bounds of one read.
const (
	eventsStep  = 100
	eventsBytes = 256 << 10
)

// ServeSubscription opens the stream of a subscription. A new stream replaces the earlier one.
func (x *Feeds) ServeSubscription(w http.ResponseWriter, r *http.Request) {
	by, after, given, refused := x.admit(r, eventsProtocol, "after")
	if refused != nil {
		problem.Write(w, refused)
		return
	}
	ctx := principal.With(r.Context(), by)
	s, err := x.streamedSubscription(ctx, by, r.URL.Query().Get("subscription_id"))
	if err != nil {
		problem.Write(w, x.State.Problem(ctx, err, ""))
		return
	}
	if !given {
		after = s.Done
	}
	f := &eventFeed{of: x, id: s.ID, after: after, taken: s.Done}
	l, ok := x.open(w, r, by, eventsProtocol, f)
	if !ok {
		return
	}
	all := x.studio
	x.serve(l, func() {
		if old := all[s.ID]; old != nil {
			old.end(socket.Superseded)
		}
		all[s.ID] = l
	}, func() {
		if all[s.ID] == l {
			delete(all, s.ID)
		}
	})
}

func (x *Feeds) streamedSubscription(ctx context.Context, by *principal.Principal, text string) (s flow.Subscription, err error) {
	if err := by.BackendOnly(); err != nil {
		return s, err
	}
	id, err := problem.ParseID[flow.SubscriptionID]("subscription_id", text)
	if err != nil {
		return s, err
	}
	known := false
	err = x.State.Read(ctx, func(v *cell.View) error {
		all, _ := v.Subscriptions()
		if i := slices.IndexFunc(all, func(x flow.Subscription) bool { return x.ID == id }); i >= 0 {
			s, known = all[i], true
		}
		return nil
	})
	switch {
	case err != nil:
		return s, err
	case !known:
		p := problem.Invalid("subscription_id", "there is no subscription %s; Events.Subscribe makes one", text)
		return s, p.WithStatus(http.StatusNotFound, nil)
	case s.Lapsed != 0:
		return s, problem.New(problem.Lapsed, "subscription_id: %s lapsed at %s, because its receiver took nothing for too long; Events.Subscribe with the same X-Request-Id resumes it, and players' states must then be read again", text, objects.Stamp(s.Lapsed))
	case s.URL != "":
		return s, problem.Invalid("subscription_id", "%s has a webhook; want one without url", text)
	}
	return s, nil
}

// eventFeed provides the events of a subscription.
type eventFeed struct {
	of    *Feeds
	id    flow.SubscriptionID
	after uint64 // number of the last event that was sent or skipped
	told  uint64 // number of the last event sent
	gap   uint64 // number after which a gap was reported, plus one

	taken uint64 // number up to which the state has recorded the receiver's acknowledgement
}

// take records that the receiver has the events up to a number, if they were sent to it, so that the state need not keep them.
func (f *eventFeed) take(ctx context.Context, no uint64) {
	no = min(no, f.after)
	// If this fails, the state keeps the events until a later acknowledgement.
	if f.of.State.Do(ctx, &playerflow.TakeEvents{ID: f.id, No: no}) == nil {
		f.taken = max(no, f.taken)
	}
}

// eventsHello is the first frame of a subscription's stream.
type eventsHello struct {
	Type           string `json:"type"`
	SubscriptionID string `json:"subscription_id"`
	After          uint64 `json:"after"`
	Head           uint64 `json:"head"`
	PingIntervalMS int64  `json:"ping_interval_ms"`
	DeadAfterMS    int64  `json:"dead_after_ms"`
}

func (f *eventFeed) hello(ctx context.Context, promised *flow.SessionConfig) ([]byte, error) {
	var head uint64
	err := f.of.State.Read(ctx, func(v *cell.View) error { _, head = v.Subscriptions(); return nil })
	f.after = min(f.after, head)
	body, _ := json.Marshal(eventsHello{
		"hello", objects.ID(f.id), f.after, head, promised.PingInterval.Milliseconds(), promised.DeadAfter.Milliseconds(),
	})
	return body, err
}

func (f *eventFeed) next(ctx context.Context, frames []byte) (all []byte, more bool, code uint16, err error) {
	page, ok, err := f.of.studioEvents(ctx, f.id, f.after)
	switch {
	case err != nil:
		return frames, false, 0, err
	case !ok:
		return frames, false, socket.Ended, nil
	case page.Missed > 0 && f.gap != f.after+1: // once, although the page repeats it until the receiver acknowledges an event
		f.gap = f.after + 1
		frames = socket.Append(frames, socket.Text, []byte(`{"type":"gap","missed":`+strconv.FormatUint(page.Missed, 10)+`}`))
	}
	for i := range page.Events {
		frames = socket.Append(frames, socket.Text, f.of.events.Studio(&page.Events[i]))
	}
	f.after = page.Last
	if n := len(page.Events); n > 0 {
		f.told = page.Events[n-1].No
	}
	// Skipped events count as acknowledged only once all events sent before them are acknowledged.
	if f.taken >= f.told && f.after >= f.taken+passedOver {
		f.take(ctx, f.after)
	}
	return frames, page.More, 0, nil
}

// studioEvents reads this node's own state: its callers were woken by an event that this node has, or know that more exist.
func (x *Feeds) studioEvents(ctx context.Context, id flow.SubscriptionID, after uint64) (page playerflow.StudioPage, ok bool, err error) {
	err = x.State.ReadHere(ctx, func(v *cell.View) error {
		page, ok = v.StudioEvents(id, after, eventsStep, eventsBytes)
		return nil
	})
	return page, ok, err
}
