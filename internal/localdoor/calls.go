package localdoor

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/musterhq/muster/internal/audit"
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/access"
	"github.com/musterhq/muster/internal/keyring"
)

// sender says who changes something, and why.
type sender struct {
	User   string `json:"user"` // of the operating system, as stated by the caller
	Reason string `json:"reason,omitempty"`
}

func (s sender) sentBy() sender { return s }

// createRequest contains the id: the caller derives the key's secret itself, so it never leaves the directory.
type createRequest struct {
	ID   string      `json:"id"`
	Role access.Role `json:"role"`
	Name string      `json:"name"`

	Expires time.Time `json:"expires,omitzero"`
	Sources []string  `json:"sources,omitempty"`
	sender
}

// rotateRequest contains the id of the successor, as createRequest contains the id of a key.
type rotateRequest struct {
	ID string `json:"id"`
	keyring.Rotation
	sender
}

type limitRequest struct {
	ID string `json:"id"`
	keyring.Limits
	sender
}

type revokeRequest struct {
	ID string `json:"id"`
	sender
}

type revokeCredentialsRequest struct {
	keyring.Credentials
	sender
}

// read decodes the body of a request.
func read[T any](body []byte) (in T, err error) {
	if err := json.Unmarshal(body, &in); err != nil {
		return in, domain.Refuse(domain.Invalid, "%s", err)
	}
	return in, nil
}

// recorded returns the context of a request whose changes the audit log records.
func recorded(r *http.Request, by access.Actor, operation, reason string) (context.Context, error) {
	err := audit.CheckReason(reason)
	return audit.With(r.Context(), audit.Origin{Principal: by.Principal, Door: audit.DoorLocal, Address: by.Address, Operation: operation, Reason: reason}), err
}

// changing returns a call that changes something. The audit log records what do changes, or that it was refused.
func changing[T interface{ sentBy() sender }](d *Door, operation string, do func(ctx context.Context, by access.Actor, in *T) (any, error)) call {
	return func(r *http.Request, body []byte) (any, error) {
		in, err := read[T](body)
		if err != nil {
			return nil, err
		}
		from := in.sentBy()
		by := byUser(r, from.User)
		ctx, err := recorded(r, by, operation, from.Reason)
		if err != nil {
			return nil, err
		}
		answer, err := do(ctx, by, &in)
		d.config.Audit.Refused(ctx, err)
		return answer, err
	}
}

// runs answers that the service runs, even if it cannot work.
func runs(*http.Request, []byte) (any, error) { return struct{}{}, nil }

func (d *Door) list(r *http.Request, _ []byte) (any, error) {
	all, err := d.config.Keys.List(r.Context())
	return keyring.Documents(all), err
}

func (d *Door) create(ctx context.Context, by access.Actor, in *createRequest) (any, error) {
	key, err := d.config.Keys.Create(ctx, by, keyring.New{ID: in.ID, Role: in.Role, Name: in.Name, Expires: in.Expires, Sources: in.Sources})
	if err != nil {
		return nil, err
	}
	key.Secret = ""
	return keyring.NewDocument(key, by), nil
}

// revoke may revoke the last admin key: the holder of the directory can make another one.
func (d *Door) revoke(ctx context.Context, by access.Actor, in *revokeRequest) (any, error) {
	key, err := d.config.Keys.Revoke(ctx, by, in.ID, true)
	return keyring.DocumentOf(&key), err
}

func (d *Door) rotate(ctx context.Context, by access.Actor, in *rotateRequest) (any, error) {
	in.Rotation.ID = in.ID
	successor, old, err := d.config.Keys.Rotate(ctx, by, in.Rotation)
	if err != nil {
		return nil, err
	}
	successor.Secret = ""
	return keyring.Rotated{Key: keyring.DocumentOf(&old), Successor: keyring.NewDocument(successor, by)}, nil
}

func (d *Door) finish(ctx context.Context, by access.Actor, in *revokeRequest) (any, error) {
	key, err := d.config.Keys.FinishRotation(ctx, by, in.ID)
	return keyring.DocumentOf(&key), err
}

// limit needs no force: the holder of the directory can make another admin key.
func (d *Door) limit(ctx context.Context, by access.Actor, in *limitRequest) (any, error) {
	in.Limits.ID, in.Force = in.ID, true
	key, err := d.config.Keys.Limit(ctx, by, in.Limits)
	return keyring.DocumentOf(&key), err
}

func (d *Door) revokeCredentials(ctx context.Context, by access.Actor, in *revokeCredentialsRequest) (any, error) {
	return struct{}{}, d.config.Keys.RevokeCredentials(ctx, in.Revocation(by))
}
