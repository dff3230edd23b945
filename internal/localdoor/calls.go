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

// createRequest contains the id: the caller derives the key's secret itself, so it never leaves the directory.
type createRequest struct {
	ID   string      `json:"id"`
	Role access.Role `json:"role"`
	Name string      `json:"name"`
	User string      `json:"user"` // of the operating system, as stated by the caller

	Expires time.Time `json:"expires,omitzero"`
	Sources []string  `json:"sources,omitempty"`

	Reason string `json:"reason,omitempty"`
}

// rotateRequest contains the id of the successor, as createRequest contains the id of a key.
type rotateRequest struct {
	ID string `json:"id"`
	keyring.Rotation
	User   string `json:"user"`
	Reason string `json:"reason,omitempty"`
}

type limitRequest struct {
	ID string `json:"id"`
	keyring.Limits
	User   string `json:"user"`
	Reason string `json:"reason,omitempty"`
}

type revokeRequest struct {
	ID     string `json:"id"`
	User   string `json:"user"`
	Reason string `json:"reason,omitempty"`
}

type revokeCredentialsRequest struct {
	keyring.Credentials
	User   string `json:"user"`
	Reason string `json:"reason,omitempty"`
}

// recorded returns the context of a request whose changes the audit log records.
func recorded(r *http.Request, by access.Actor, operation, reason string) (context.Context, error) {
	err := audit.CheckReason(reason)
	return audit.With(r.Context(), audit.Origin{Principal: by.Principal, Door: audit.DoorLocal, Address: by.Address, Operation: operation, Reason: reason}), err
}

// runs answers that the service runs, even if it cannot work.
func runs(*http.Request, []byte) (any, error) { return struct{}{}, nil }

func (d *Door) list(r *http.Request, _ []byte) (any, error) {
	all, err := d.config.Keys.List(r.Context())
	return keyring.Documents(all), err
}

func (d *Door) create(r *http.Request, body []byte) (any, error) {
	var in createRequest
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, domain.Refuse(domain.Invalid, "%s", err)
	}
	by := byUser(r, in.User)
	ctx, err := recorded(r, by, "keys create", in.Reason)
	if err != nil {
		return nil, err
	}
	key, err := d.config.Keys.Create(ctx, by, keyring.New{ID: in.ID, Role: in.Role, Name: in.Name, Expires: in.Expires, Sources: in.Sources})
	d.config.Audit.Refused(ctx, err)
	if err != nil {
		return nil, err
	}
	key.Secret = ""
	return keyring.NewDocument(key, by), nil
}

// revoke may revoke the last admin key: the holder of the directory can make another one.
func (d *Door) revoke(r *http.Request, body []byte) (any, error) {
	var in revokeRequest
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, domain.Refuse(domain.Invalid, "%s", err)
	}
	by := byUser(r, in.User)
	ctx, err := recorded(r, by, "keys revoke", in.Reason)
	if err != nil {
		return nil, err
	}
	key, err := d.config.Keys.Revoke(ctx, by, in.ID, true)
	d.config.Audit.Refused(ctx, err)
	return keyring.DocumentOf(&key), err
}

func (d *Door) rotate(r *http.Request, body []byte) (any, error) {
	var in rotateRequest
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, domain.Refuse(domain.Invalid, "%s", err)
	}
	by := byUser(r, in.User)
	ctx, err := recorded(r, by, "keys rotate", in.Reason)
	if err != nil {
		return nil, err
	}
	in.Rotation.ID = in.ID
	successor, old, err := d.config.Keys.Rotate(ctx, by, in.Rotation)
	d.config.Audit.Refused(ctx, err)
	if err != nil {
		return nil, err
	}
	successor.Secret = ""
	return keyring.Rotated{Key: keyring.DocumentOf(&old), Successor: keyring.NewDocument(successor, by)}, nil
}

func (d *Door) finish(r *http.Request, body []byte) (any, error) {
	var in revokeRequest
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, domain.Refuse(domain.Invalid, "%s", err)
	}
	by := byUser(r, in.User)
	ctx, err := recorded(r, by, "keys rotate --finish", in.Reason)
	if err != nil {
		return nil, err
	}
	key, err := d.config.Keys.FinishRotation(ctx, by, in.ID)
	d.config.Audit.Refused(ctx, err)
	return keyring.DocumentOf(&key), err
}

// limit needs no force: the holder of the directory can make another admin key.
func (d *Door) limit(r *http.Request, body []byte) (any, error) {
	var in limitRequest
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, domain.Refuse(domain.Invalid, "%s", err)
	}
	by := byUser(r, in.User)
	ctx, err := recorded(r, by, "keys limit", in.Reason)
	if err != nil {
		return nil, err
	}
	in.Limits.ID, in.Force = in.ID, true
	key, err := d.config.Keys.Limit(ctx, by, in.Limits)
	d.config.Audit.Refused(ctx, err)
	return keyring.DocumentOf(&key), err
}

func (d *Door) revokeCredentials(r *http.Request, body []byte) (any, error) {
	var in revokeCredentialsRequest
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, domain.Refuse(domain.Invalid, "%s", err)
	}
	by := byUser(r, in.User)
	ctx, err := recorded(r, by, "keys revoke-credentials", in.Reason)
	if err != nil {
		return nil, err
	}
	err = d.config.Keys.RevokeCredentials(ctx, in.Revocation(by))
	d.config.Audit.Refused(ctx, err)
	return struct{}{}, err
}
