package localdoor

import (
	"context"

	"github.com/musterhq/muster/internal/domain/access"
	"github.com/musterhq/muster/internal/settings"
)

const reloadPath = "/v1/reload"

func (d *Door) reload(ctx context.Context, _ access.Actor, _ *sender) (any, error) {
	return d.config.Reload(ctx)
}

// Reload makes the service read its settings again.
func (c *Client) Reload(ctx context.Context) (done settings.Reloaded, err error) {
	err = c.call(ctx, reloadPath, c.sender(), &done)
	return done, err
}
