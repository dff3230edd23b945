package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/notify"
	"github.com/musterhq/muster/internal/playerapi/objects"
	"github.com/musterhq/muster/internal/playerhooks"
)

type webhookKeyCommand struct {
	dataFlag
	Target string `arg:"" help:"ARN of a topic of --notify-topics, \"events\" for the webhook of --notify-events, \"player-hooks\" for the hooks of --player-hooks, id of a subscription to players' events."`
}

func (c *webhookKeyCommand) Run(stdout io.Writer) error {
	if !notify.IsTarget(c.Target) && c.Target != playerhooks.KeyTarget && !strings.HasPrefix(c.Target, objects.SubscriptionPrefix) {
		return fmt.Errorf("target %q: want the ARN of a topic, %q, %q or %s and a UUID", c.Target, notify.BusTarget, playerhooks.KeyTarget, objects.SubscriptionPrefix)
	}
	secret, err := identity.ReadCellSecret(c.Data)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(stdout, secret.WebhookKey(c.Target))
	return err
}
