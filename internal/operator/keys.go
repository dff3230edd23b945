package operator

import (
	"bytes"
	"encoding/json"
	"io"
	"mime"
	"net/http"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/access"
	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/keyring"
)

// keyBodyMax bounds the body of requests about access keys, in bytes.
const keyBodyMax = 16 << 10

// NewKey is the body of POST keys.
type NewKey struct {
	Role access.Role `json:"role"`
	Name string      `json:"name,omitempty"`

	Expires time.Time `json:"expires,omitzero"`  // absent: never
	Sources []string  `json:"sources,omitempty"` // the only networks from which it is valid; absent: any
}

// Revocation is the body of POST keys/{id}/revoke. Without force, the last admin key cannot be revoked.
type Revocation struct {
	Force bool `json:"force,omitempty"`
}

// KeyList is the answer to GET keys.
type KeyList struct {
	Keys []keyring.Document `json:"keys"`
}

// keyRoutes registers the paths for admins about access keys.
func (d *Door) keyRoutes() {
	d.handle("GET keys", d.forAdmins("change access keys", d.listKeys))
	d.handle("POST keys", d.forAdmins("change access keys", d.createKey))
	d.handle("POST keys/{id}/revoke", d.forAdmins("change access keys", changing(http.StatusOK, d.revokeKey)))
	d.handle("POST keys/{id}/rotate", d.forAdmins("change access keys", d.rotateKey))
	d.handle("POST keys/{id}/finish-rotation", d.forAdmins("change access keys", changing(http.StatusOK, d.finishRotation)))
	d.handle("POST keys/{id}/limit", d.forAdmins("change access keys", changing(http.StatusOK, d.limitKey)))
	d.handle("POST keys/revoke-credentials", d.forAdmins("revoke temporary credentials", changing(http.StatusOK, d.revokeCredentials)))
}

// handler carries out an authorized request. It answers the request, or returns why it is refused.
type handler func(w http.ResponseWriter, r *http.Request, by access.Actor, body []byte) error

// changing returns the handler of a request whose body has the form T. It answers with what do returns.
func changing[T any](status int, do func(r *http.Request, by access.Actor, in *T) (any, error)) handler {
	return func(w http.ResponseWriter, r *http.Request, by access.Actor, body []byte) error {
		var in T
		if err := readKeyBody(body, &in); err != nil {
			return err
		}
		x, err := do(r, by, &in)
		return reply(w, status, x, err)
	}
}

// reply answers with x unless there is an error, which it returns.
func reply(w http.ResponseWriter, status int, x any, err error) error {
	if err == nil {
		answer(w, status, x)
	}
	return err
}

// forAdmins serves a request that only admins may make; what describes it.
func (d *Door) forAdmins(what string, do handler) http.HandlerFunc {
	return d.signed(identity.MayAdminister, what+"; want admin", do)
}

// signed serves a request that the roles in may can make; what describes it. It reads the request in full before it verifies the
// signature, which covers the body.
func (d *Door) signed(may identity.Roles, what string, do handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, keyBodyMax))
		if err != nil {
			answer(w, http.StatusRequestEntityTooLarge, Problem{"the body cannot be read, or has more than 16384 bytes"})
			return
		}
		if r.Method == http.MethodPost {
			if kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); kind != "application/json" {
				answer(w, http.StatusUnsupportedMediaType, Problem{"want Content-Type: application/json"})
				return
			}
		}
		by, ok := d.authorize(w, r, body, may, what)
		if !ok {
			return
		}
		if r, ok = d.recorded(w, r, &by); !ok {
			return
		}
		w, r, traced := d.traced(w, r)
		defer traced()
		if err := do(w, r, by.Actor(r, "operator"), body); err != nil {
			d.refuse(w, r, err)
		}
	}
}

func (d *Door) listKeys(w http.ResponseWriter, r *http.Request, _ access.Actor, _ []byte) error {
	all, err := d.config.Keys.List(r.Context())
	return reply(w, http.StatusOK, KeyList{keyring.Documents(all)}, err)
}

// createKey answers with the secret, which is shown only once; answers are not logged.
func (d *Door) createKey(w http.ResponseWriter, r *http.Request, by access.Actor, body []byte) error {
	if !d.config.Private(r) {
		answer(w, http.StatusForbidden, Problem{"the answer contains the secret of the key: use https"})
		return nil
	}
	var in NewKey
	if err := readKeyBody(body, &in); err != nil {
		return err
	}
	key, err := d.config.Keys.Create(r.Context(), by, keyring.New{Role: in.Role, Name: in.Name, Expires: in.Expires, Sources: in.Sources})
	return reply(w, http.StatusCreated, keyring.NewDocument(key, by), err)
}

func (d *Door) revokeKey(r *http.Request, by access.Actor, in *Revocation) (any, error) {
	key, err := d.config.Keys.Revoke(r.Context(), by, r.PathValue("id"), in.Force)
	return keyring.DocumentOf(&key), err
}

// rotateKey answers with the successor's secret, which is shown only once.
func (d *Door) rotateKey(w http.ResponseWriter, r *http.Request, by access.Actor, body []byte) error {
	if !d.config.Private(r) {
		answer(w, http.StatusForbidden, Problem{"the answer contains the secret of the key: use https"})
		return nil
	}
	var in keyring.Rotation
	if err := readKeyBody(body, &in); err != nil {
		return err
	}
	in.ID = r.PathValue("id")
	successor, old, err := d.config.Keys.Rotate(r.Context(), by, in)
	return reply(w, http.StatusCreated, keyring.Rotated{Key: keyring.DocumentOf(&old), Successor: keyring.NewDocument(successor, by)}, err)
}

func (d *Door) limitKey(r *http.Request, by access.Actor, in *keyring.Limits) (any, error) {
	in.ID = r.PathValue("id")
	key, err := d.config.Keys.Limit(r.Context(), by, *in)
	return keyring.DocumentOf(&key), err
}

func (d *Door) finishRotation(r *http.Request, by access.Actor, _ *struct{}) (any, error) {
	key, err := d.config.Keys.FinishRotation(r.Context(), by, r.PathValue("id"))
	return keyring.DocumentOf(&key), err
}

// revokeCredentials answers with an empty object, because the service does not know which credentials existed.
func (d *Door) revokeCredentials(r *http.Request, by access.Actor, in *keyring.Credentials) (any, error) {
	return struct{}{}, d.config.Keys.RevokeCredentials(r.Context(), in.Revocation(by))
}

func readKeyBody(body []byte, to any) error {
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(to); err != nil {
		return domain.Refuse(domain.Invalid, "body: %s", err)
	}
	return nil
}
