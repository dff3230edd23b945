package notify

import (
	"cmp"
	"container/heap"
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/notice"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/tracing"
	"github.com/musterhq/muster/internal/webhook"
)

const (
	concurrency = 16              // requests to one receiver at a time
	readAhead   = 256             // notices in one read of the state
	downAfter   = 3               // consecutive failures after which a receiver gets single requests with growing pauses
	confirmWait = time.Hour       // before a receiver that accepted the confirmation request gets another one
	lastWait    = 2 * time.Second // for recording the latest deliveries at the end
	recordMost  = 1000            // deliveries in one command: the time that it takes grows with their square
)

// receiver is one URL that gets notices. Only its own goroutine uses its fields.
type receiver struct {
	sender     *Sender
	topic, url string
	wakes      chan struct{}

	fresh    []notice.Notice // read, and not tried yet
	cursor   uint64          // number of the last notice read
	more     bool            // there may be some after the cursor
	again    retries
	underway int
	results  chan attempt

	failures int       // consecutive
	judged   time.Time // when it was last found to be down; attempts that started earlier are not counted
	pause    time.Time // a receiver that is down gets no request before
	have     []uint64  // notices that it has confirmed and that are still in the state
}

// attempt is a notice that is being sent.
type attempt struct {
	notice notice.Notice
	tries  int
	began  time.Time
	next   time.Time // time of the next attempt, if this one failed
	err    error
}

// retries is a heap of failed attempts, ordered by the time of the next attempt.
type retries []attempt

func (h retries) Len() int           { return len(h) }
func (h retries) Less(i, j int) bool { return h[i].next.Before(h[j].next) }
func (h retries) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *retries) Push(x any)        { *h = append(*h, x.(attempt)) }
func (h *retries) Pop() any {
	old := *h
	last := old[len(old)-1]
	*h = old[:len(old)-1]
	return last
}

func newReceiver(s *Sender, topic, url string) *receiver {
	return &receiver{sender: s, topic: topic, url: url, wakes: make(chan struct{}, 1)}
}

// reset forgets all notices, because they will be read from the state again.
func (r *receiver) reset() {
	r.fresh, r.cursor, r.more, r.again, r.have = nil, 0, true, nil, nil
	r.underway, r.results = 0, make(chan attempt, concurrency) // the earlier ones end by themselves
}

func (r *receiver) target() string { return cmp.Or(r.topic, BusTarget) }

// run sends notices until ctx ends, or the engine stops.
func (r *receiver) run(ctx context.Context) {
	r.reset()
	if r.topic != notice.Bus && !r.confirmed(ctx) {
		return
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for ctx.Err() == nil {
		wait, err := r.begin(ctx)
		if !r.flush(ctx) {
			wait = min(wait, r.sender.config.FirstRetry)
		}
		if err != nil {
			if ctx.Err() == nil && !errors.Is(err, engine.ErrStopped) {
				r.sender.config.Log.Error("notifications to a receiver stopped until the service restarts", "target", r.target(), "error", err)
			}
			break
		}
		timer.Reset(wait)
		select {
		case x := <-r.results:
			r.ended(x)
		case <-r.wakes:
			r.more = true
		case <-timer.C:
		case <-ctx.Done():
		}
	}
	for r.underway > 0 { // their requests end with ctx
		if x := <-r.results; x.err == nil {
			r.outcome(x)
		} else {
			r.underway--
		}
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWait)
	defer cancel()
	r.flush(last) // or the next run would repeat the latest deliveries
}

// begin starts as many attempts as allowed, and returns how long to wait if nothing happens.
func (r *receiver) begin(ctx context.Context) (wait time.Duration, err error) {
	for {
		now := time.Now()
		most := concurrency
		if r.failures >= downAfter {
			if now.Before(r.pause) {
				return r.pause.Sub(now), nil
			}
			most = 1
		}
		if r.underway >= most {
			return time.Minute, nil // a result arrives before
		}
		x, ok, err := r.next(ctx, now)
		switch {
		case err != nil:
			return 0, err
		case ok:
			r.underway++
			go r.attempt(ctx, x, r.results)
		case len(r.again) > 0:
			return r.again[0].next.Sub(now), nil
		default:
			return time.Minute, nil // until woken
		}
	}
}

// next selects the notice to try: first those whose retry is due, then new ones. For a receiver that is down, any notice
// serves as the trial.
func (r *receiver) next(ctx context.Context, now time.Time) (x attempt, ok bool, err error) {
	if len(r.again) > 0 && !r.again[0].next.After(now) {
		return heap.Pop(&r.again).(attempt), true, nil
	}
	if len(r.fresh) == 0 && r.more {
		err := r.sender.config.Engine.ReadHere(ctx, func(v *cell.View) error {
			r.fresh = v.Notices(r.topic, r.cursor, readAhead)
			return nil
		})
		if err != nil {
			return x, false, err
		}
		if n := len(r.fresh); n > 0 {
			r.cursor = r.fresh[n-1].No
		}
		r.more = len(r.fresh) == readAhead
	}
	switch {
	case len(r.fresh) > 0:
		x.notice, r.fresh = r.fresh[0], r.fresh[1:]
		return x, true, nil
	case len(r.again) > 0 && r.failures >= downAfter:
		return heap.Pop(&r.again).(attempt), true, nil
	default:
		return x, false, nil
	}
}

// ended handles this result and any others that have arrived.
func (r *receiver) ended(x attempt) {
	for {
		r.outcome(x)
		select {
		case x = <-r.results:
		default:
			return
		}
	}
}

// flush records in the state which notices the receiver has confirmed.
func (r *receiver) flush(ctx context.Context) bool {
	for len(r.have) > 0 { // many, if the core could record none for a while
		n := min(len(r.have), recordMost)
		err := r.sender.config.Engine.Do(ctx, &notice.DeliverNotices{Topic: r.topic, Nos: r.have[:n]})
		if err != nil && ctx.Err() != nil { // those that the engine executed nevertheless are no longer in the state
			return false
		}
		if err != nil { // the next run would send them again, so this one tries to record them again
			r.sender.config.Log.Warn("delivered notifications could not be recorded as delivered yet; they may be sent again", "target", r.target(), "error", err)
			return false
		}
		r.have = r.have[n:]
	}
	return true
}

func (r *receiver) outcome(x attempt) {
	c := &r.sender.config
	r.underway--
	if x.err == nil {
		if r.failures >= downAfter {
			c.Log.Info("a receiver of notifications accepts them again", "target", r.target())
		}
		r.failures = 0
		r.have = append(r.have, x.notice.No)
		return
	}
	now := time.Now()
	if errors.Is(x.err, engine.ErrNotLeading) { // says nothing about the receiver
		x.next, x.err, x.tries = now.Add(c.FirstRetry), nil, x.tries-1
		heap.Push(&r.again, x)
		return
	}
	if x.began.After(r.judged) {
		if r.failures++; r.failures == downAfter {
			c.Log.Warn("a receiver of notifications does not accept them; they wait", "target", r.target(), "url", webhook.PlainURL(r.url), "error", x.err)
		}
		if r.failures >= downAfter {
			r.judged, r.pause = now, now.Add(r.backoff(r.failures-downAfter))
		}
	}
	x.next, x.err = now.Add(r.backoff(x.tries-1)), nil
	heap.Push(&r.again, x)
}

// backoff returns the pause after n failures. It grows with n and has jitter, so that not all attempts happen at once.
func (r *receiver) backoff(n int) time.Duration {
	d := r.sender.config.LastRetry
	if n < 30 {
		d = min(d, r.sender.config.FirstRetry<<max(n, 0))
	}
	return time.Duration(float64(d) * (0.75 + rand.Float64()/2))
}

// attempt tries once and reports the result. A panic counts as a failure, so the notice is retried with growing pauses.
func (r *receiver) attempt(ctx context.Context, x attempt, results chan<- attempt) {
	defer func() { results <- x }()
	x.tries++
	x.began = time.Now()
	defer r.sender.config.Panics.Catch(panicDoor, &x.err)
	x.err = r.try(ctx, x)
}

// try sends a notice once. If the notice no longer exists, it was dropped meanwhile and counts as delivered.
func (r *receiver) try(ctx context.Context, x attempt) error {
	n := &x.notice
	e := r.sender.config.Engine
	if x.tries > 1 {
		there := false
		err := e.ReadHere(ctx, func(v *cell.View) error {
			first := v.Notices(r.topic, n.No-1, 1)
			there = len(first) == 1 && first[0].No == n.No
			return nil
		})
		if err != nil || !there {
			return err
		}
	}
	if n.Match != nil {
		return r.tryMatch(ctx, n)
	}
	p, err := e.Placement(ctx, n.Placement)
	if domain.IsRefused(err, domain.NotFound) {
		r.sender.config.Log.Error("a notification was dropped: its placement does not exist", "target", r.target(), "placement", n.Placement)
		return nil
	}
	if err != nil {
		return err
	}
	ctx, span := r.sender.config.Tracing.Continue(ctx, "notify", trace.SpanKindClient, tracing.Cause{Kind: tracing.Placement, ID: n.Placement})
	span.Set("muster.placement.id", n.Placement)
	err = r.send(ctx, n, placementDocument(n, &p))
	span.EndWith(err)
	return err
}

// tryMatch sends a matchmaking event. An event about a match belongs to the trace in which the match was made.
func (r *receiver) tryMatch(ctx context.Context, n *notice.Notice) (err error) {
	if id := n.Match.ID; id != "" {
		var span *tracing.Span
		ctx, span = r.sender.config.Tracing.Continue(ctx, "notify", trace.SpanKindClient, tracing.Cause{Kind: tracing.Placement, ID: id})
		span.Set("muster.match.event", n.Match.Type)
		defer func() { span.EndWith(err) }()
	}
	return r.send(ctx, n, matchDocumentOf(n, r.sender.config.Counts))
}

// send posts an event in the receiver's envelope.
func (r *receiver) send(ctx context.Context, n *notice.Notice, event []byte) error {
	m := busMessage(event)
	if r.topic != notice.Bus {
		m = r.notification(n, m.body)
	}
	return r.post(ctx, m)
}

// post sends a message. Only a 2xx answer confirms it.
func (r *receiver) post(ctx context.Context, m message) error {
	config := &r.sender.config
	if err := config.Engine.Decides(ctx); err != nil {
		return err
	}
	return webhook.Tell(ctx, r.sender.client, time.Now(), &webhook.Message{URL: r.url, Keys: config.Keys(r.target()), Header: m.header, Body: m.body})
}

// confirmed asks the receiver of a topic to confirm its subscription, until it has done so.
func (r *receiver) confirmed(ctx context.Context) bool {
	c := &r.sender.config
	for tries := 0; ; tries++ {
		if subscribed, err := r.subscribed(ctx); subscribed || err != nil {
			return err == nil
		}
		wait := confirmWait
		if err := r.post(ctx, r.confirmation(time.Now())); err != nil {
			if !errors.Is(err, engine.ErrNotLeading) && ctx.Err() == nil {
				c.Log.Warn("the request to confirm a subscription could not be delivered", "topic", r.topic, "url", webhook.PlainURL(r.url), "error", err)
			}
			wait = r.backoff(tries)
		} else {
			c.Log.Info("a receiver of notifications must confirm its subscription; opening this URL also confirms it", "topic", r.topic,
				"url", webhook.PlainURL(r.url), "subscribe_url", r.subscribeURL(c.Token(r.topic, r.url)))
		}
		if !r.sleepUnconfirmed(ctx, wait) {
			return false
		}
	}
}

// subscribed reports whether the receiver has confirmed its subscription.
func (r *receiver) subscribed(ctx context.Context) (is bool, err error) {
	err = r.sender.config.Engine.ReadHere(ctx, func(v *cell.View) error { is = v.Subscribed(r.topic, r.url); return nil })
	return is, err
}

// sleepUnconfirmed waits, but not longer than until the subscription is confirmed.
func (r *receiver) sleepUnconfirmed(ctx context.Context, wait time.Duration) bool {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
			return true
		case <-ctx.Done():
			return false
		case <-r.wakes: // by the confirmation, or by one more notice that has to wait for it
			if subscribed, err := r.subscribed(ctx); subscribed || err != nil {
				return err == nil
			}
		}
	}
}
