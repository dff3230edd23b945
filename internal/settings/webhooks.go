package settings

import (
	"fmt"

	"github.com/musterhq/muster/internal/webhook"
)

// WebhookTargets says where webhooks may go that callers name. Those that the operator names, in these settings and the file of
// hooks, may go anywhere.
func (s Settings) WebhookTargets() (webhook.Targets, error) {
	targets, err := webhook.ParseTargets(s.WebhookAllow)
	if err != nil {
		return targets, fmt.Errorf("webhook-allow: %w", err)
	}
	targets.Loopback = s.Dev
	return targets, nil
}

func (s Settings) checkWebhookAllow() error {
	_, err := s.WebhookTargets()
	return err
}
