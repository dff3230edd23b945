package settings

import (
	"fmt"

	"github.com/musterhq/muster/internal/webhook"
)

// WebhookTargets are the allowed targets of webhooks that callers name. Webhooks that the operator names, in these settings and the
// hooks file, may go anywhere.
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
