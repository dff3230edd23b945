package console

import (
	"context"
	"net/http"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/hosts"
	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/plural"
)

var hostActions = []*action{{
	name: "drain-host", text: "Drain", done: "The host is drained: it gets no new game sessions.", section: "hosts", object: true, may: identity.MayAdminister, service: "muster:Service.DrainHost",
	prepare: func(d *Door, r *http.Request, f *form) error {
		return d.prepareDrain(r, f, false, "Drain host ", "It gets no new game sessions, those that it has finish, and it leaves its fleet.")
	},
	command: func(f *form) string { return terminal("muster hosts drain " + shellWord(f.ID)) },
	do: func(ctx context.Context, d *Door, by *actor, f *form) (string, error) {
		return "hosts", d.engine.Do(ctx, &hosts.Drain{Host: f.ID})
	},
}, {
	name: "undo-drain-host", text: "End drain", done: "The host serves fleets again.", section: "hosts", object: true, may: identity.MayAdminister, service: "muster:Service.DrainHost",
	prepare: func(d *Door, r *http.Request, f *form) error {
		return d.prepareDrain(r, f, true, "End the drain of host ", "It serves fleets again.")
	},
	command: func(f *form) string { return terminal("muster hosts drain --undo " + shellWord(f.ID)) },
	do: func(ctx context.Context, d *Door, by *actor, f *form) (string, error) {
		return "hosts", d.engine.Do(ctx, &hosts.Drain{Host: f.ID, Undo: true})
	},
}}

// prepareDrain fills the form for a host that must, or must not, be drained.
func (d *Door) prepareDrain(r *http.Request, f *form, drained bool, title, effect string) error {
	return d.engine.Read(r.Context(), func(v *cell.View) error {
		h, ok := v.Host(f.ID)
		switch {
		case !ok:
			return domain.Refuse(domain.NotFound, "There is no host %.100q.", f.ID)
		case h.Revoked != 0:
			return domain.Refuse(domain.Invalid, "Host %s is revoked.", h.Name)
		case h.Drained && !drained:
			return domain.Refuse(domain.Invalid, "Host %s is drained already.", h.Name)
		case !h.Drained && drained:
			return domain.Refuse(domain.Invalid, "Host %s is not drained.", h.Name)
		}
		f.Title, f.Effect = title+h.Name, effect
		if id, compute, ok := v.Serves(h.ID); ok && !drained {
			n := v.ComputeCounts(id, compute)
			f.Effect += " Now it hosts " + plural.Of(n.Of(fleet.Hosting), "game session", "game sessions") + "."
		}
		return nil
	})
}
