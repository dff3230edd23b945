// Package notify sends webhooks about ended placements and about matchmaking events, in the formats of the cloud
// service's event bus and topics.
//
// Each notice stays in the state until its receiver has confirmed it, so it is delivered at least once, even if the
// service crashes meanwhile. Each receiver has its own goroutine and limits, so one that hangs does not delay the
// others. Each placement has one notice for each receiver. Notices of different placements have no order.
package notify

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/musterhq/muster/internal/clientaddress"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/notice"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/panics"
	"github.com/musterhq/muster/internal/signin"
	"github.com/musterhq/muster/internal/tracing"
	"github.com/musterhq/muster/internal/webhook"
)

// Config is what a Sender needs.
type Config struct {
	Tracing *tracing.Tracer // of notices about placements; nil: none is traced
	Engine  *engine.Engine
	Bus     string            // URL for all events, in the form of the event bus; empty: none
	Topics  map[string]string // ARN of a topic to the URL of its receiver

	Keys      func(target string) []string        // returns the keys that sign messages; the target is an ARN, or BusTarget
	Token     func(topic, url string) string      // with which a receiver confirms its subscription
	Confirms  func(topic, url, token string) bool // reports whether a token confirms the subscription
	ConfirmAt string                              // URL of ConfirmPath, for receivers
	Panics    *panics.Guard
	Proxies   *clientaddress.Proxies // for the address of a receiver that confirms
	Signins   *signin.Door           // of confirmations
	Log       *slog.Logger
	Counts    Counts // nil: no counts

	FirstRetry time.Duration // 0: DefaultFirstRetry; doubled for each attempt that fails
	LastRetry  time.Duration // 0: DefaultLastRetry; the longest pause
	Patience   time.Duration // 0: DefaultPatience; for one answer
}

// panicDoor is the label of panics of this package.
const panicDoor = "notify"

// BusTarget identifies the event bus's receiver; receivers of topics are identified by ARN.
const BusTarget = "events"

// IsTarget reports whether a text has the form of a receiver's name; the settings decide whether that receiver exists.
func IsTarget(text string) bool {
	return text == BusTarget || strings.HasPrefix(text, "arn:") && strings.Contains(text, ":sns:")
}

// Defaults of a Config.
const (
	DefaultFirstRetry = time.Second
	DefaultLastRetry  = 30 * time.Second // so a receiver that has recovered waits no longer than this
	DefaultPatience   = 10 * time.Second
)

// Sender sends the webhooks while this node is the leader, and accepts confirmations at any time.
type Sender struct {
	config    Config
	client    *http.Client
	receivers []*receiver
	dropped   droppedLog

	unfollow func() // nil while another node is the leader
	cancel   context.CancelFunc
	done     sync.WaitGroup
}

// New returns a Sender that sends nothing before Lead.
func New(c Config) *Sender {
	c.FirstRetry = cmp.Or(c.FirstRetry, DefaultFirstRetry)
	c.LastRetry = cmp.Or(c.LastRetry, DefaultLastRetry)
	c.Patience = cmp.Or(c.Patience, DefaultPatience)
	s := &Sender{config: c, dropped: droppedLog{log: c.Log}}
	s.client = webhook.NewClient(concurrency)
	s.client.Timeout = c.Patience
	if c.Bus != "" {
		s.receivers = append(s.receivers, newReceiver(s, notice.Bus, c.Bus))
	}
	for topic, to := range c.Topics {
		s.receivers = append(s.receivers, newReceiver(s, topic, to))
	}
	return s
}

// Lead starts to send the notices in the state, and those of new events.
func (s *Sender) Lead() {
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	s.unfollow = s.config.Engine.Follow(kernel.Kinds(new(notice.NoticeWritten), new(notice.NoticesDropped), new(notice.SubscriptionConfirmed)), s.committed)
	for _, r := range s.receivers {
		s.done.Go(func() {
			s.config.Panics.Restart(ctx, panicDoor, s.config.LastRetry, func() { r.run(ctx) })
		})
	}
}

// Rest stops sending. It interrupts requests in progress, which the next Lead repeats, at this node or another one.
func (s *Sender) Rest() {
	if s.unfollow == nil {
		return
	}
	s.unfollow()
	s.unfollow = nil
	s.cancel()
	s.done.Wait()
	s.client.CloseIdleConnections()
}

// committed wakes the receivers that have new notices.
func (s *Sender) committed(c engine.Committed) {
	if c.Gap {
		for _, r := range s.receivers {
			r.wake()
		}
	}
	for _, e := range c.Events {
		switch e := e.Event.(type) {
		case *notice.NoticeWritten:
			s.wake(e.Notice.Topic)
		case *notice.SubscriptionConfirmed:
			s.wake(e.Topic)
		case *notice.NoticesDropped:
			s.dropped.note(e.Topic, len(e.Nos))
		}
	}
}

func (s *Sender) wake(topic string) {
	for _, r := range s.receivers {
		if r.topic == topic {
			r.wake()
		}
	}
}

func (r *receiver) wake() {
	select {
	case r.wakes <- struct{}{}:
	default: // it is awake already
	}
}

// droppedLog logs dropped notices, several in one line. Only the follower's goroutine uses it.
type droppedLog struct {
	log    *slog.Logger
	counts map[string]int
	last   time.Time
}

func (d *droppedLog) note(topic string, n int) {
	if d.counts == nil {
		d.counts = map[string]int{}
	}
	d.counts[cmp.Or(topic, BusTarget)] += n
	if now := time.Now(); now.Sub(d.last) >= 10*time.Second {
		d.last = now
		for target, n := range d.counts {
			d.log.Warn("notifications were dropped: their receiver did not accept them in time, or too many were waiting", "target", target, "count", n)
		}
		clear(d.counts)
	}
}
