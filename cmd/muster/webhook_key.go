package main

import (
	"fmt"
	"io"

	"github.com/musterhq/muster/internal/notify"
)

type webhookKeyCommand struct {
	dataFlag
	Target string `arg:"" help:"ARN of a topic of --notify-topics, or \"events\" for the webhook of --notify-events."`
}

func (c *webhookKeyCommand) Run(stdout io.Writer) error {
	if !notify.IsTarget(c.Target) {
		return fmt.Errorf("target %q: want the ARN of a topic, or %q", c.Target, notify.BusTarget)
	}
	keys, err := c.openExistingKeys()
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(stdout, keys.CellSecret().WebhookKey(c.Target))
	return err
}
