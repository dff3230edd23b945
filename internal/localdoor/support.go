package localdoor

import (
	"context"
	"time"

	"github.com/musterhq/muster/internal/domain/access"
	"github.com/musterhq/muster/internal/support"
)

const supportPath = "/v1/support-bundle"

type supportRequest struct {
	ProcessorSeconds int `json:"processorSeconds"`
	sender
}

func (d *Door) support(ctx context.Context, _ access.Actor, in *supportRequest) (any, error) {
	return d.config.SupportBundle(ctx, time.Duration(in.ProcessorSeconds)*time.Second)
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
	err = patient.call(ctx, supportPath, supportRequest{int(processor / time.Second), c.sender()}, &p)
	return p, err
}
