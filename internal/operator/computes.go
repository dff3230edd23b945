package operator

import (
	"fmt"
	"net/http"
	"time"

	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/identity"
)

// RotateTokenPath is the path of a request that replaces the auth token of a compute. The query names fleet and compute;
// with keep-links=true, connections made with the old token stay open. It requires the role admin.
const RotateTokenPath = "computes/rotate-token"

// RotatedToken is the answer. It does not contain the token: GetComputeAuthToken returns the new one.
type RotatedToken struct {
	Fleet   string    `json:"fleet"`
	Compute string    `json:"compute"`
	Expires time.Time `json:"expires"` // of the new token
}

func (d *Door) rotateToken(w http.ResponseWriter, r *http.Request) {
	by, ok := d.authorize(w, r, nil, identity.MayAdminister, "operate the service")
	if !ok {
		return
	}
	if r, ok = d.recorded(w, r, &by); !ok {
		return
	}
	w, r, traced := d.traced(w, r)
	defer traced()
	q := r.URL.Query()
	keep := q.Get("keep-links")
	if keep != "" && keep != "true" && keep != "false" {
		answer(w, http.StatusBadRequest, Problem{fmt.Sprintf("keep-links is %.40q, want true or false", keep)})
		return
	}
	cmd := hosting.RotateToken{Fleet: q.Get("fleet"), Compute: q.Get("compute"), KeepLinks: keep == "true"}
	if err := d.engine.Do(r.Context(), &cmd); err != nil {
		d.refuse(w, r, err)
		return
	}
	d.log.Info("the auth token of a compute was replaced", "fleet", cmd.Fleet, "compute", cmd.Compute, "keep_links", cmd.KeepLinks, "principal", by.ID)
	answer(w, http.StatusOK, RotatedToken{cmd.Fleet, cmd.Compute, cmd.Expires.Std()})
}
