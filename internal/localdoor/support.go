package localdoor

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/support"
)

const supportPath = "/v1/support-bundle"

type supportRequest struct {
	ProcessorSeconds int    `json:"processorSeconds"`
	User             string `json:"user"`
	Reason           string `json:"reason,omitempty"`
}

func (d *Door) support(r *http.Request, body []byte) (any, error) {
	var in supportRequest
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, domain.Refuse(domain.Invalid, "%s", err)
	}
	ctx, err := recorded(r, byUser(r, in.User), "support-bundle", in.Reason)
	if err != nil {
		return nil, err
	}
	p, err := d.config.SupportBundle(ctx, time.Duration(in.ProcessorSeconds)*time.Second)
	d.config.Audit.Refused(ctx, err)
	return p, err
}

// supportPatience limits the wait for a bundle, including the longest profile.
const supportPatience = 2 * time.Minute

// SupportBundle makes the service gather its half of a support bundle. processor is the length of the CPU profile.
func (c *Client) SupportBundle(ctx context.Context, processor time.Duration) (p support.Parts, err error) {
	if err := c.awake(ctx); err != nil {
		return p, err
	}
	patient := *c
	patient.http.Timeout = supportPatience
	err = patient.call(ctx, supportPath, supportRequest{int(processor / time.Second), c.user, c.Reason}, &p)
	return p, err
}
