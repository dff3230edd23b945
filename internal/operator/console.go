package operator

import (
	"net/http"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/access"
)

// ConsoleLinksPath is the path where POST creates a link.
const ConsoleLinksPath = "console/links"

// ConsoleLink is the answer to POST console/links: where to sign in to the console without a secret. The request body is an empty object.
type ConsoleLink struct {
	Path    string    `json:"path"`             // its fragment is a secret until it is used
	Key     string    `json:"key"`              // access key that it signs in with
	Expires time.Time `json:"expires,omitzero"` // absent with --dev, which needs no sign-in
}

// newConsoleLink answers with the link, which is shown only once; answers are not logged.
func (d *Door) newConsoleLink(w http.ResponseWriter, r *http.Request, by access.Actor, body []byte) error {
	if !d.config.Private(r) {
		answer(w, http.StatusForbidden, Problem{"the answer contains a link that signs in: use https"})
		return nil
	}
	if err := readKeyBody(body, &struct{}{}); err != nil {
		return err
	}
	if r.Header.Get("X-Amz-Security-Token") != "" {
		return domain.Refuse(domain.Invalid, "the request is signed with temporary credentials, which the sign-in would outlive: want an access key, or sign in on the page of the console with these credentials")
	}
	if d.config.ConsoleLink == nil {
		return domain.Refuse(domain.NotFound, "this service has no console")
	}
	path, expires, err := d.config.ConsoleLink(r.Context(), by.Principal)
	if err != nil {
		return err
	}
	d.log.Info("link to the console made", "key", by.Principal, "address", by.Address)
	answer(w, http.StatusCreated, ConsoleLink{Path: path, Key: by.Principal, Expires: expires})
	return nil
}
