package localdoor

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/settings"
)

const reloadPath = "/v1/reload"

func (d *Door) reload(r *http.Request, body []byte) (any, error) {
	var in userRequest
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, domain.Refuse(domain.Invalid, "%s", err)
	}
	ctx, err := recorded(r, byUser(r, in.User), "reload", in.Reason)
	if err != nil {
		return nil, err
	}
	done, err := d.config.Reload(ctx)
	d.config.Audit.Refused(ctx, err)
	return done, err
}

// Reload makes the service read its settings again.
func (c *Client) Reload(ctx context.Context) (done settings.Reloaded, err error) {
	err = c.call(ctx, reloadPath, userRequest{c.user, c.Reason}, &done)
	return done, err
}
