package partners

import (
	"context"
	"errors"
	"net/url"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/playerflow"
	"github.com/musterhq/muster/internal/playerapi/calls"
	"github.com/musterhq/muster/internal/playerapi/objects"
	"github.com/musterhq/muster/internal/playerapi/principal"
	"github.com/musterhq/muster/internal/playerapi/problem"
)

// SubscribeRequest selects the events for a backend of the studio.
type SubscribeRequest struct {
	URL       string   `json:"url,omitempty" maxLength:"2048" doc:"The URL of a webhook: https, or http to the service's own machine if the operator allows it; empty: the subscription's stream carries the events."`
	Types     []string `json:"types,omitempty" maxItems:"64" doc:"Types of players' events; none: all except OnAllowedActionsChanged."`
	PlayerIDs []string `json:"player_ids,omitempty" maxItems:"1000" doc:"Only events for these players; none: for all players."`
}

// SubscribeAnswer is the subscription.
type SubscribeAnswer struct {
	SubscriptionID string `json:"subscription_id"`
	SigningKey     string `json:"signing_key,omitempty" doc:"The key that signs the messages to the webhook."`
	StreamPath     string `json:"stream_path,omitempty" doc:"Where its stream is, if it has no webhook."`
	Head           uint64 `json:"head" doc:"Number of the latest event: the subscription gets the events after it."`
	LapsedAt       string `json:"lapsed_at,omitempty" format:"date-time" doc:"The subscription had lapsed and is resumed now; events in between are lost."`
}

// UnsubscribeRequest ends a subscription.
type UnsubscribeRequest struct {
	SubscriptionID string `json:"subscription_id" maxLength:"64"`
}

// UnsubscribeAnswer reports whether the subscription existed.
type UnsubscribeAnswer struct {
	Known bool `json:"known"`
}

// SubscriptionsAnswer lists all subscriptions.
type SubscriptionsAnswer struct {
	Subscriptions []Subscription `json:"subscriptions"`
	Head          uint64         `json:"head" doc:"Number of the latest event."`
}

// Subscription is a subscription with its state.
type Subscription struct {
	SubscriptionID string   `json:"subscription_id"`
	URL            string   `json:"url,omitempty"`
	Types          []string `json:"types"`
	PlayerIDs      []string `json:"player_ids"`
	CreatedAt      string   `json:"created_at" format:"date-time"`
	CreatedBy      string   `json:"created_by"`
	Taken          uint64   `json:"taken" doc:"Number of the latest event that its receiver has."`
	Attached       bool     `json:"attached" doc:"Its stream is open."`
	Failures       int      `json:"failures,omitempty" doc:"Attempts in a row that its webhook did not take."`
	LastError      string   `json:"last_error,omitempty" doc:"That the last attempt failed. Why, only the log of the service says."`
	LapsesAt       string   `json:"lapses_at,omitempty" format:"date-time" doc:"When it lapses unless its receiver takes events; absent: no events wait."`
	LapsedAt       string   `json:"lapsed_at,omitempty" format:"date-time" doc:"Since when no events are kept or sent, because its receiver took none for too long. Events.Subscribe with the earlier X-Request-Id resumes it."`
}

func (d *door) declareEvents() {
	calls.Partner(d.realm, "Events.Subscribe", "Sends players' events to the studio's backend, by a webhook or a stream.", d.subscribe)
	calls.Partner(d.realm, "Events.Unsubscribe", "Ends a subscription. A second call changes nothing.",
		func(ctx context.Context, _ string, body *UnsubscribeRequest) (*UnsubscribeAnswer, error) {
			id, err := problem.ParseID[flow.SubscriptionID]("subscription_id", body.SubscriptionID)
			if err == nil {
				err = principal.Of(ctx).BackendOnly()
			}
			if err != nil {
				return nil, err
			}
			cmd := playerflow.UnsubscribeEvents{ID: id}
			err = d.State.Do(ctx, &cmd)
			return &UnsubscribeAnswer{cmd.Known}, err
		})
	calls.Partner(d.realm, "Events.List", "All subscriptions, and how they go.", d.listSubscriptions)
}

func (d *door) subscribe(ctx context.Context, request string, body *SubscribeRequest) (*SubscribeAnswer, error) {
	err := principal.Of(ctx).BackendOnly()
	if err == nil && body.URL != "" {
		err = d.checkWebhook(body.URL)
	}
	for _, name := range body.Types {
		if err == nil && (!flow.KnownMessage(name) || name == flow.OnSync.String()) {
			err = problem.Invalid("types", "%.60q is not an event that players receive", name)
		}
	}
	if err != nil {
		return nil, err
	}
	by := principal.Of(ctx).ID
	x := flow.Subscription{ID: flow.SubscriptionID(idOf("subscribe", by, request)), URL: body.URL, Types: body.Types, Players: body.PlayerIDs, By: by}
	cmd := playerflow.SubscribeEvents{Subscription: x}
	if err := d.State.Do(ctx, &cmd); err != nil {
		return nil, err
	}
	answer := &SubscribeAnswer{SubscriptionID: objects.ID(x.ID), Head: cmd.Subscription.Done, LapsedAt: objects.Stamp(cmd.Lapsed)}
	if cmd.Subscription.URL != "" {
		answer.SigningKey = d.Auth.Secret.WebhookKey(answer.SubscriptionID)
	} else {
		answer.StreamPath = objects.EventsPath + "?subscription_id=" + answer.SubscriptionID
	}
	return answer, nil
}

// checkWebhook checks that the service may post messages to a URL, and that third parties cannot read them in transit.
func (d *door) checkWebhook(text string) error {
	targets := d.Feeds.Webhooks.Get()
	err := targets.CheckURL(text)
	if u, _ := url.Parse(text); err == nil && u.User != nil {
		err = errors.New("want one without a user; the messages are signed")
	}
	if err == nil {
		return nil
	}
	return problem.Invalid("url", "%s", err)
}

func (d *door) listSubscriptions(ctx context.Context, _ string, _ *calls.None) (*SubscriptionsAnswer, error) {
	if err := principal.Of(ctx).BackendOnly(); err != nil {
		return nil, err
	}
	answer := &SubscriptionsAnswer{Subscriptions: []Subscription{}}
	var all []flow.Subscription
	var lapses []domain.Time
	err := d.State.Read(ctx, func(v *cell.View) error {
		all, answer.Head = v.Subscriptions()
		for i := range all {
			lapses = append(lapses, v.LapsesAt(&all[i]))
		}
		return nil
	})
	for i, s := range all {
		x := Subscription{
			SubscriptionID: objects.ID(s.ID), URL: s.URL, Types: objects.OrEmpty(s.Types), PlayerIDs: objects.OrEmpty(s.Players), CreatedAt: objects.Stamp(s.Created),
			CreatedBy: s.By, Taken: s.Done, LapsesAt: objects.Stamp(lapses[i]), LapsedAt: objects.Stamp(s.Lapsed),
		}
		x.Attached, x.Failures, x.LastError = d.Feeds.Health(s.ID)
		answer.Subscriptions = append(answer.Subscriptions, x)
	}
	return answer, err
}
