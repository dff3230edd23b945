package feeds

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/playerflow"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/playerapi/objects"
	"github.com/musterhq/muster/internal/playerapi/state"
	"github.com/musterhq/muster/internal/webhook"
)

const (
	webhookPatience   = 10 * time.Second // for one answer
	webhookFirstRetry = time.Second      // doubled for each attempt that fails
	webhookLastRetry  = 30 * time.Second // the longest wait of a receiver that is back
	// passedOver is the number of skipped events after which the journal records the progress.
	passedOver = 1000
	takeWait   = 2 * time.Second // for recording the progress
)

// delivery is the webhook of one subscription: one message at a time, so that the order of events is that of the commits. Events that the
// receiver has not taken stay in the state and are sent again, also by the next run.
type delivery struct {
	feeds *Feeds
	id    flow.SubscriptionID
	url   string
	after uint64 // number of the latest event that was sent or skipped; only its goroutine uses it
	taken uint64 // as recorded in the state
	owes  bool   // the receiver has more than is recorded
	wakes chan struct{}
	ctx   context.Context
	stop  context.CancelFunc

	mu       sync.Mutex
	failures int // in a row
}

func newDelivery(x *Feeds, s *flow.Subscription) *delivery {
	d := &delivery{feeds: x, id: s.ID, url: s.URL, after: s.Done, taken: s.Done, wakes: make(chan struct{}, 1)}
	d.ctx, d.stop = context.WithCancel(x.ctx)
	return d
}

func (d *delivery) wake() {
	select {
	case d.wakes <- struct{}{}:
	default: // it is awake already
	}
}

// run sends events until the subscription ends or the service stops.
func (d *delivery) run() {
	for d.ctx.Err() == nil {
		page, ok, err := d.feeds.studioEvents(d.ctx, d.id, d.after)
		switch {
		case err != nil || !ok:
			if err != nil && d.ctx.Err() == nil && !errors.Is(err, engine.ErrStopped) {
				d.feeds.State.Log.Error("a webhook of players' events stops", "subscription", objects.ID(d.id), "error", err)
			}
			return
		case len(page.Events) == 0 && page.Missed == 0:
			if d.after = page.Last; d.owes || d.after >= d.taken+passedOver {
				d.take(d.after)
			}
			var pause <-chan time.Time
			if d.owes {
				pause = time.After(webhookFirstRetry)
			}
			if !page.More && !d.wait(pause) {
				return
			}
		case d.post(&page) == nil:
			d.after = page.Last
			d.take(d.after)
		case !d.wait(time.After(d.pause())):
			return
		}
	}
}

// wait waits until there may be work; false when the delivery has ended.
func (d *delivery) wait(pause <-chan time.Time) bool {
	wakes := d.wakes
	if pause != nil { // the next attempt comes first
		wakes = nil
	}
	select {
	case <-wakes:
	case <-pause:
	case <-d.ctx.Done():
		return false
	}
	return true
}

// take records in the state which events the receiver has.
func (d *delivery) take(no uint64) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(d.ctx), takeWait) // also at the end, or the next run would send them again
	defer cancel()
	if d.owes = d.feeds.State.Do(ctx, &playerflow.TakeEvents{ID: d.id, No: no}) != nil; !d.owes {
		d.taken = no
	}
}

// post sends one message with some events, and records the outcome. Only an answer of 2xx confirms them.
func (d *delivery) post(page *playerflow.StudioPage) error {
	if err := d.feeds.State.Decides(d.ctx); err != nil { // another node may be further by now
		return err
	}
	err := d.try(page)
	if d.ctx.Err() != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	log := d.feeds.State.Log.With("subscription", objects.ID(d.id), "url", webhook.PlainURL(d.url))
	switch {
	case err == nil && d.failures > 0:
		log.Info("a webhook of players' events takes them again")
		d.failures = 0
	case err != nil:
		if d.failures++; d.failures == 1 {
			log.Warn("a webhook of players' events does not take them; they wait", "error", err)
		}
	}
	return err
}

func (d *delivery) try(page *playerflow.StudioPage) (err error) {
	x := d.feeds
	defer x.Panics.Catch(state.PanicDoor, &err) // a failure like others: it is tried again, later and later
	var body bytes.Buffer
	body.WriteString(`{"subscription_id":"` + objects.ID(d.id) + `","missed":` + strconv.FormatUint(page.Missed, 10) + `,"events":[`)
	for i := range page.Events {
		if i > 0 {
			body.WriteByte(',')
		}
		body.Write(x.events.Studio(&page.Events[i]))
	}
	body.WriteString("]}")
	return webhook.Tell(d.ctx, d.feeds.client, time.Now(), &webhook.Message{
		URL: d.url, Keys: x.Auth.Secret.WebhookKeys(objects.ID(d.id)), Header: http.Header{"Content-Type": {"application/json"}}, Body: body.Bytes(),
	})
}

// pause grows with each failure, and varies so that not all attempts come at once.
func (d *delivery) pause() time.Duration {
	d.mu.Lock()
	n := d.failures - 1
	d.mu.Unlock()
	pause := webhookLastRetry
	if n < 30 {
		pause = min(pause, webhookFirstRetry<<max(n, 0))
	}
	return time.Duration(float64(pause) * (0.75 + rand.Float64()/2))
}

// notTaken is all that callers learn of an attempt that failed: whether no server listened, the server was slow, or the address is one that
// webhooks may not go to would make this service a scanner of networks that its callers cannot reach.
const notTaken = "the receiver did not take the last message; the log of the service has the reason"

// Health returns the state of a subscription's webhook.
func (x *Feeds) Health(id flow.SubscriptionID) (attached bool, failures int, lastError string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if d := x.deliveries[id]; d != nil {
		d.mu.Lock()
		defer d.mu.Unlock()
		if failures = d.failures; failures > 0 {
			lastError = notTaken
		}
	}
	return x.studio[id] != nil, failures, lastError
}
