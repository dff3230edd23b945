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
	webhookLastRetry  = 30 * time.Second // the longest wait, also for a receiver that is available again
	// passedOver is the number of skipped events after which the feed records its progress in the journal.
	passedOver = 1000
	takeWait   = 2 * time.Second // for recording the progress
)

// delivery is the webhook of one subscription. It sends one message at a time, so that events arrive in the order of the commits. Events
// that the receiver has not confirmed stay in the state and are sent again, also after a restart.
type delivery struct {
	feeds *Feeds
	id    flow.SubscriptionID
	url   string
	after uint64 // number of the last event that was sent or skipped; only its goroutine uses it
	taken uint64 // as recorded in the state
	owes  bool   // the receiver has confirmed more than the state records
	wakes chan struct{}
	ctx   context.Context
	stop  context.CancelFunc

	mu       sync.Mutex
	failures int // consecutive
}

func newDelivery(x *Feeds, s *flow.Subscription) *delivery {
	d := &delivery{feeds: x, id: s.ID, url: s.URL, after: s.Done, taken: s.Done, wakes: make(chan struct{}, 1)}
	d.ctx, d.stop = context.WithCancel(x.ctx)
	return d
}

func (d *delivery) wake() {
	select {
	case d.wakes <- struct{}{}:
	default: // already awake
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

// wait waits until work may exist. It returns false when the delivery has ended.
func (d *delivery) wait(pause <-chan time.Time) bool {
	wakes := d.wakes
	if pause != nil { // the next attempt has precedence
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
	ctx, cancel := context.WithTimeout(context.WithoutCancel(d.ctx), takeWait) // also when the delivery ends, or the next run would send them again
	defer cancel()
	if d.owes = d.feeds.State.Do(ctx, &playerflow.TakeEvents{ID: d.id, No: no}) != nil; !d.owes {
		d.taken = no
	}
}

// post sends one message with some events, and records the outcome. Only a 2xx answer confirms them.
func (d *delivery) post(page *playerflow.StudioPage) error {
	if err := d.feeds.State.Decides(d.ctx); err != nil { // another node may lead and have progressed further
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
		log.Info("a webhook of players' events accepts them again")
		d.failures = 0
	case err != nil:
		if d.failures++; d.failures == 1 {
			log.Warn("a webhook of players' events does not accept them; they wait", "error", err)
		}
	}
	return err
}

func (d *delivery) try(page *playerflow.StudioPage) (err error) {
	x := d.feeds
	defer x.Panics.Catch(state.PanicDoor, &err) // a failure like others: retried with growing delays
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

// pause returns the wait before the next attempt. It grows with each failure and is randomised, so that not all webhooks retry together.
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

// notTaken is all that callers learn about a failed attempt. If they learned whether no server listened, the server was slow, or webhooks
// may not use the address, they could scan networks through this service that they cannot reach themselves.
const notTaken = "the receiver did not accept the last message; the service's log has the reason"

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
