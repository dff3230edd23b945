package feeds

import (
	"testing"

	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/playerflow"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/playerapi/objects"
	"github.com/musterhq/muster/internal/playerapi/socket"
)

// Feeds whose node missed events start new subscriptions, end those that are over, and send the others all waiting events.
func TestFeedsBehindAGap(t *testing.T) {
	x := newStudio(t)
	stays, over := x.subscribe(), x.subscribe()
	socketOf, got := x.openSubscription(stays, "")
	go got.read(socketOf)
	other, ended := x.openSubscription(over, "")
	go ended.read(other)
	x.connectionOf(stays)
	x.connectionOf(over)
	x.feeds.unfollow()
	x.feeds.unlisten()
	x.login("ann")
	hook := flow.SubscriptionID(objects.NewID())
	x.do(&playerflow.SubscribeEvents{Subscription: flow.Subscription{ID: hook, URL: "https://127.0.0.1:1/events"}})
	x.do(&playerflow.UnsubscribeEvents{ID: over})
	gap := engine.Committed{Gap: true}
	x.feeds.follow(gap)
	x.feeds.wakeStudio(gap)
	for event := range got.got {
		if event["no"] != nil || event["type"] != "hello" {
			break
		}
	}
	if code := <-ended.ended; code != socket.Ended {
		t.Errorf("the connection of the subscription that is over was closed with %d, want %d", code, socket.Ended)
	}
	deliveries := func() bool {
		x.feeds.mu.Lock()
		defer x.feeds.mu.Unlock()
		return x.feeds.deliveries[hook] != nil
	}
	if !deliveries() {
		t.Error("the webhook of the new subscription does not run")
	}
	x.do(&playerflow.UnsubscribeEvents{ID: hook})
	x.feeds.follow(gap)
	if deliveries() {
		t.Error("the webhook of a subscription that is over still runs")
	}
}
