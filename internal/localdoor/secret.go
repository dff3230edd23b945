package localdoor

import (
	"context"
	"net/http"
	"time"

	"github.com/musterhq/muster/internal/domain/access"
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
	sender
}

type retireSecretRequest struct {
	secretrotation.Retirement
	sender
}

func (d *Door) secretPaths(mux *http.ServeMux) {
	secrets := d.config.Secrets
	mux.HandleFunc("POST "+secretsPath, d.wrap(func(r *http.Request, _ []byte) (any, error) { return secrets.List(r.Context()) }))
	mux.HandleFunc("POST "+rotateSecretPath, d.wrap(changing(d, "secret rotate", func(ctx context.Context, by access.Actor, in *rotateSecretRequest) (any, error) {
		return secrets.Rotate(ctx, by, in.Overlap)
	})))
	mux.HandleFunc("POST "+retireSecretPath, d.wrap(changing(d, "secret retire", func(ctx context.Context, by access.Actor, in *retireSecretRequest) (any, error) {
		return secrets.Retire(ctx, by, in.Retirement)
	})))
}

// Secrets returns the generations of the cell's secret, the oldest first.
func (c *Client) Secrets(ctx context.Context) (all []secretrotation.Document, err error) {
	err = c.call(ctx, secretsPath, struct{}{}, &all)
	return all, err
}

// RotateSecret makes a new generation of the cell's secret, and returns all generations.
func (c *Client) RotateSecret(ctx context.Context, overlap time.Duration) (all []secretrotation.Document, err error) {
	err = c.call(ctx, rotateSecretPath, rotateSecretRequest{overlap, c.sender()}, &all)
	return all, err
}

// RetireSecret ends a generation of the cell's secret: its signatures are refused.
func (c *Client) RetireSecret(ctx context.Context, x secretrotation.Retirement) (done secretrotation.Retired, err error) {
	err = c.call(ctx, retireSecretPath, retireSecretRequest{x, c.sender()}, &done)
	return done, err
}
