package operator

import (
	"context"
	"net/http"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/access"
	"github.com/musterhq/muster/internal/support"
)

// SupportBundlePath is the path of the request for this node's part of a support bundle. The answer is a support.Parts.
const SupportBundlePath = "support-bundle"

// NewSupportBundle is the body of POST support-bundle.
type NewSupportBundle struct {
	ProcessorSeconds int `json:"processorSeconds,omitempty"` // length of the CPU profile: up to 15; 0: no profile
}

// SupportBundle returns this process's part of a support bundle.
type SupportBundle func(ctx context.Context, processor time.Duration) (*support.Parts, error)

func (d *Door) supportRoutes() {
	d.handle("POST "+SupportBundlePath, d.forAdmins("make support bundles", changing(http.StatusOK, d.supportBundle)))
}

func (d *Door) supportBundle(r *http.Request, _ access.Actor, in *NewSupportBundle) (any, error) {
	if d.config.SupportBundle == nil {
		return nil, domain.Refuse(domain.NotFound, "this service makes no support bundles")
	}
	if in.ProcessorSeconds < 0 || in.ProcessorSeconds > int(support.CPUMax/time.Second) {
		return nil, domain.Refuse(domain.Invalid, "processorSeconds: %d, want 0 to %d", in.ProcessorSeconds, int(support.CPUMax/time.Second))
	}
	return d.config.SupportBundle(r.Context(), time.Duration(in.ProcessorSeconds)*time.Second)
}

// Overview returns the answer to GET overview.
func (d *Door) Overview(ctx context.Context) (*Overview, error) { return d.overview(ctx) }
