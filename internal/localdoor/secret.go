package localdoor

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/secretrotation"
)

// Paths of the generations of the cell's secret.
const (
	secretsPath      = "/v1/secret/list"
	rotateSecretPath = "/v1/secret/rotate"
	retireSecretPath = "/v1/secret/retire"
)

type rotateSecretRequest struct {
	Overlap time.Duration `json:"overlap,omitempty"` // in nanoseconds; 0: the default
	User    string        `json:"user"`
	Reason  string        `json:"reason,omitempty"`
}

type retireSecretRequest struct {
	secretrotation.Retirement
	User   string `json:"user"`
	Reason string `json:"reason,omitempty"`
}

func (d *Door) secretPaths(mux *http.ServeMux) {
	mux.HandleFunc("POST "+secretsPath, d.wrap(func(r *http.Request, _ []byte) (any, error) { return d.config.Secrets.List(r.Context()) }))
	mux.HandleFunc("POST "+rotateSecretPath, d.wrap(d.rotateSecret))
	mux.HandleFunc("POST "+retireSecretPath, d.wrap(d.retireSecret))
}

func (d *Door) rotateSecret(r *http.Request, body []byte) (any, error) {
	var in rotateSecretRequest
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, domain.Refuse(domain.Invalid, "%s", err)
	}
	by := byUser(r, in.User)
	ctx, err := recorded(r, by, "secret rotate", in.Reason)
	if err != nil {
		return nil, err
	}
	all, err := d.config.Secrets.Rotate(ctx, by, in.Overlap)
	d.config.Audit.Refused(ctx, err)
	return all, err
}

func (d *Door) retireSecret(r *http.Request, body []byte) (any, error) {
	var in retireSecretRequest
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, domain.Refuse(domain.Invalid, "%s", err)
	}
	by := byUser(r, in.User)
	ctx, err := recorded(r, by, "secret retire", in.Reason)
	if err != nil {
		return nil, err
	}
	done, err := d.config.Secrets.Retire(ctx, by, in.Retirement)
	d.config.Audit.Refused(ctx, err)
	return done, err
}

// Secrets returns the generations of the cell's secret, the oldest first.
func (c *Client) Secrets(ctx context.Context) (all []secretrotation.Document, err error) {
	err = c.call(ctx, secretsPath, struct{}{}, &all)
	return all, err
}

// RotateSecret makes a new generation of the cell's secret, and returns all generations.
func (c *Client) RotateSecret(ctx context.Context, overlap time.Duration) (all []secretrotation.Document, err error) {
	err = c.call(ctx, rotateSecretPath, rotateSecretRequest{overlap, c.user, c.Reason}, &all)
	return all, err
}

// RetireSecret ends a generation of the cell's secret: its signatures are refused.
func (c *Client) RetireSecret(ctx context.Context, x secretrotation.Retirement) (done secretrotation.Retired, err error) {
	err = c.call(ctx, retireSecretPath, retireSecretRequest{x, c.user, c.Reason}, &done)
	return done, err
}
