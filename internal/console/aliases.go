package console

import (
	"net/http"
	"net/url"

	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/fleet"
)

type aliasRow struct {
	fleet.Alias
	Rollout fleet.Rollout // the latest; without a phase, there was none
}

func (a *aliasRow) moves() bool { return a.Rollout.Phase == fleet.RolloutMoving }

// undoable reports whether the latest rollout can be undone.
func (a *aliasRow) undoable() bool {
	return a.moves() || a.Rollout.Phase == fleet.RolloutDone && !a.Terminal && a.Fleet == a.Rollout.To
}

var aliasList = list[aliasRow]{
	name: "aliases", label: "Aliases", most: 200,
	empty: "There is no alias. <code>aws gamelift create-alias --name NAME --routing-strategy Type=SIMPLE,FleetId=FLEET</code>",
	columns: []column[aliasRow]{
		{name: "name", head: "Alias", value: func(a *aliasRow) value { return words(a.Name) }},
		{name: "id", head: "Id", value: func(a *aliasRow) value { return code(a.ID) }},
		{name: "routing", head: "Routing", value: func(a *aliasRow) value {
			if a.Terminal {
				return state("TERMINAL")
			}
			return state("SIMPLE")
		}},
		{name: "fleet", head: "Leads to", value: func(a *aliasRow) value { return linked(a.Fleet, "fleets/"+escaped(a.Fleet)) }},
		{name: "message", head: "Message", value: func(a *aliasRow) value { return words(a.Message) }},
		{name: "rollout", head: "Rollout", value: func(a *aliasRow) value {
			if a.Rollout.Phase == 0 {
				return words("none")
			}
			return state(a.Rollout.Phase.String())
		}},
		{name: "rollout-to", head: "Rollout to", value: func(a *aliasRow) value { return linked(a.Rollout.To, "fleets/"+escaped(a.Rollout.To)) }},
		{name: "rollout-why", head: "Why", value: func(a *aliasRow) value { return words(a.Rollout.Why) }},
		{name: "description", head: "Description", hidden: true, value: func(a *aliasRow) value { return words(a.Description) }},
		{name: "created", head: "Created", hidden: true, value: func(a *aliasRow) value { return instant(a.Created) }},
		{name: "updated", head: "Updated", value: func(a *aliasRow) value { return instant(a.Updated) }},
	},
	id: func(a *aliasRow) string { return a.ID },
	offers: func(a *aliasRow) []offered {
		all := []offered{eventsOfRow("alias", a.ID)}
		if !a.moves() {
			all = append(all, offered{action: "pause-alias", id: a.ID}, offered{action: "route-alias", id: a.ID})
			if !a.Terminal {
				all = append(all, offered{action: "start-rollout", id: a.ID})
			}
		}
		if a.undoable() {
			all = append(all, offered{action: "undo-rollout", id: a.ID})
		}
		return all
	},
	rows: func(d *Door, r *http.Request, query url.Values, most int) (all []aliasRow, next url.Values, err error) {
		err = d.engine.Read(r.Context(), func(v *cell.View) error {
			latest := map[string]fleet.Rollout{}
			for _, x := range v.Rollouts() {
				latest[x.Alias] = x
			}
			page, behind := cut(v.Aliases(place(query), most+1, func(*fleet.Alias) bool { return true }), most, func(a *fleet.Alias) url.Values { return since(a.Created, a.ID) })
			for _, a := range page {
				all = append(all, aliasRow{a, latest[a.ID]})
			}
			next = behind
			return nil
		})
		return all, next, err
	},
}
