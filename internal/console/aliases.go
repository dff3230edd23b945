package console

import (
	"net/http"

	"github.com/musterhq/muster/internal/domain/catalog"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/fleet"
)

type aliasRow struct {
	fleet.Alias
	Rollout *fleet.Rollout // the latest; nil: there was none
}

// Moves reports whether a rollout moves the alias now.
func (a *aliasRow) Moves() bool { return a.Rollout != nil && a.Rollout.Phase == fleet.RolloutMoving }

// Undoable reports whether the latest rollout can be undone.
func (a *aliasRow) Undoable() bool {
	return a.Moves() || a.Rollout != nil && a.Rollout.Phase == fleet.RolloutDone && !a.Terminal && a.Fleet == a.Rollout.To
}

func (d *Door) aliases(r *http.Request) (*content, error) {
	var all []*aliasRow
	err := d.engine.Read(r.Context(), func(v *cell.View) error {
		latest := map[string]*fleet.Rollout{}
		for _, x := range v.Rollouts() {
			latest[x.Alias] = &x
		}
		for _, a := range v.Aliases(catalog.Place{}, catalogMost, func(*fleet.Alias) bool { return true }) {
			all = append(all, &aliasRow{a, latest[a.ID]})
		}
		return nil
	})
	return &content{Title: "Aliases", Section: "aliases", page: "aliases", Data: all, Command: "aws gamelift list-aliases"}, err
}
