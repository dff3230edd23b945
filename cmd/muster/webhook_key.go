package main

import (
	"fmt"
	"io"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/notify"
	"github.com/musterhq/muster/internal/playerhooks"
)

type webhookKeyCommand struct {
	dataFlag
	Target string `arg:"" help:"ARN of a topic of --notify-topics, \"events\" for the webhook of --notify-events, \"player-hooks\" for the hooks of --player-hooks, id of a subscription to players' events."`
}

func (c *webhookKeyCommand) Run(stdout io.Writer) error {
	_, err := domain.ParseID[flow.SubscriptionID](c.Target)
	if err != nil && !notify.IsTarget(c.Target) && c.Target != playerhooks.KeyTarget {
		return fmt.Errorf("target %q: %w, the ARN of a topic, %q or %q", c.Target, err, notify.BusTarget, playerhooks.KeyTarget)
	}
	secret, err := c.secret()
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(stdout, secret.WebhookKey(c.Target))
	return err
}
