package operator

import (
	"context"
	"errors"
	"net/http"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/access"
	"github.com/musterhq/muster/internal/settings"
)

// ReloadPath is the path of the request that makes this node reload its settings. The answer is a settings.Reloaded.
const ReloadPath = "settings/reload"

// ReloadProblem is the answer if the settings are invalid: nothing was changed.
type ReloadProblem struct {
	Problem
	Mistakes settings.Mistakes `json:"mistakes"`
}

// Reload makes this process reload its settings.
type Reload func(ctx context.Context) (settings.Reloaded, error)

func (d *Door) settingsRoutes() {
	d.handle("POST "+ReloadPath, d.forAdmins("reload settings", d.reload))
}

func (d *Door) reload(w http.ResponseWriter, r *http.Request, _ access.Actor, _ []byte) error {
	if d.config.Reload == nil {
		return domain.Refuse(domain.NotFound, "the settings of this service cannot be reloaded")
	}
	done, err := d.config.Reload(r.Context())
	if mistakes, ok := errors.AsType[settings.Mistakes](err); ok {
		d.config.Audit.Refused(r.Context(), err)
		refusal, _ := errors.AsType[*domain.Refusal](err)
		answer(w, http.StatusBadRequest, ReloadProblem{Problem{refusal.Detail}, mistakes})
		return nil
	}
	return reply(w, http.StatusOK, done, err)
}
