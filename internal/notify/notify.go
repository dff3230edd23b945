// Package notify tells receivers outside what has happened: the ends of placements, and matchmaking, as webhooks in the shape of the event
// bus and of the topics that backends of the cloud service listen to.
//
// What is still to be told is in the state until the receiver has said that it has it: each notice is told at least
// once, also when the service dies in between. Receivers have a goroutine and limits of their own, so one that hangs
// holds up nobody else. Each placement has one notice for each receiver; between placements there is no order.
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
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/notice"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/panics"
	"github.com/musterhq/muster/internal/signin"
	"github.com/musterhq/muster/internal/webhook"
)

// Config is what a Sender needs.
type Config struct {
	Engine *engine.Engine
	Bus    string            // URL that is told of everything, in the shape of the event bus; empty: nobody
	Topics map[string]string // ARN of a topic to the URL that listens to it

	Key       func(target string) string     // what messages are signed with; the target is an ARN, or BusTarget
	Token     func(topic, url string) string // what a receiver confirms its subscription with
	ConfirmAt string                         // URL of ConfirmPath, as receivers reach it
	Panics    *panics.Guard
	Proxies   clientaddress.Proxies // for the address of a receiver that confirms
	Signins   *signin.Door          // sees confirmations
	Log       *slog.Logger
	Counts    Counts // nil: nobody has counted

	FirstRetry time.Duration // 0: DefaultFirstRetry; doubled for each attempt that fails
	LastRetry  time.Duration // 0: DefaultLastRetry; so long at most
	Patience   time.Duration // 0: DefaultPatience; for one answer
}

// panicDoor is what panics of this package are counted under.
const panicDoor = "notify"

// BusTarget names the receiver of the event bus where topics are named by their ARN.
const BusTarget = "events"

// IsTarget reports whether a text names a receiver; whether there is one is the settings' matter.
func IsTarget(text string) bool {
	return text == BusTarget || strings.HasPrefix(text, "arn:") && strings.Contains(text, ":sns:")
}

// Defaults of a Config.
const (
	DefaultFirstRetry = time.Second
	DefaultLastRetry  = 30 * time.Second // a receiver that is back waits no longer than that
	DefaultPatience   = 10 * time.Second
)

// Sender is the running webhooks.
type Sender struct {
	config    Config
	client    *http.Client
	receivers []*receiver
	dropped   droppedLog
	unfollow  func()
	cancel    context.CancelFunc
	done      sync.WaitGroup
}

// Start begins to tell what the state says is owed, and what happens from now on.
func Start(c Config) *Sender {
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
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	s.unfollow = c.Engine.Follow(cell.Kinds(cell.KindNoticeWritten, cell.KindNoticesDropped, cell.KindSubscriptionConfirmed), s.committed)
	for _, r := range s.receivers {
		s.done.Go(func() {
			c.Panics.Restart(ctx, panicDoor, c.LastRetry, func() { r.run(ctx) })
		})
	}
	return s
}

// Close stops telling. What is under way is cut off, and told again by the next run.
func (s *Sender) Close() {
	s.unfollow()
	s.cancel()
	s.done.Wait()
	s.client.CloseIdleConnections()
}

// committed wakes the receivers that have something to look at.
func (s *Sender) committed(c engine.Committed) {
	for _, e := range c.Events {
		switch e := e.Event.(type) {
		case *cell.NoticeWritten:
			s.wake(e.Notice.Topic)
		case *cell.SubscriptionConfirmed:
			s.wake(e.Topic)
		case *cell.NoticesDropped:
			s.dropped.note(e.Topic, len(e.Nos))
		}
	}
}

func (s *Sender) wake(topic string) {
	for _, r := range s.receivers {
		if r.topic == topic {
			select {
			case r.wakes <- struct{}{}:
			default: // it will look anyway
			}
		}
	}
}

// droppedLog says that notices were given up, but not once for each of them. Only the follower's goroutine uses it.
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
