package sim

import (
	"fmt"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/catalog"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/kernel"
)

// aliasesMax is the maximum number of aliases at a time.
const aliasesMax = 3

func (w *Wishes) alias(v *cell.View) (fleet.Alias, bool) {
	all := v.Aliases(catalog.Place{}, aliasesMax, nil)
	if len(all) == 0 {
		return fleet.Alias{}, false
	}
	return all[w.chance.IntN(len(all))], true
}

// aliases returns the ARNs of all aliases, as destinations of a queue.
func (w *Wishes) aliases(v *cell.View) (arns []string) {
	for _, a := range v.Aliases(catalog.Place{}, aliasesMax, nil) {
		arns = append(arns, "arn:aws:gamelift:us-east-1:1:alias/"+a.ID)
	}
	return arns
}

func createAlias(w *Wishes, v *cell.View) kernel.Command {
	f, ok := w.fleet(v)
	if !ok || len(w.aliases(v)) == aliasesMax {
		return nil
	}
	return &hosting.CreateAlias{Alias: fleet.Alias{ID: fmt.Sprint("alias-", w.number()), Region: "us-east-1", Account: "1", Name: "live", Fleet: f.ID}}
}

// updateAlias points an alias to another fleet most of the time, or to none.
func updateAlias(w *Wishes, v *cell.View) kernel.Command {
	a, _ := w.alias(v)
	f, ok := w.fleet(v)
	if f.ID == a.Fleet {
		f, ok = w.fleet(v)
	}
	cmd := &hosting.UpdateAlias{ID: a.ID, Route: &hosting.Route{Fleet: f.ID}}
	if !ok || w.oneIn(5) {
		cmd.Route = &hosting.Route{Terminal: true, Message: "closed"}
	}
	return cmd
}

func deleteAlias(w *Wishes, v *cell.View) kernel.Command {
	a, ok := w.alias(v)
	if !ok || !w.oneIn(4) {
		return nil
	}
	return &hosting.DeleteAlias{ID: a.ID}
}

// fleetOrAlias returns a fleet, found directly or through an alias, as backends name fleets.
func (w *Wishes) fleetOrAlias(v *cell.View) (f fleet.Fleet, alias string, ok bool) {
	if a, ok := w.alias(v); ok && w.oneIn(3) {
		id, err := v.ResolveAlias(a.ID)
		if err != nil {
			return fleet.Fleet{}, "", false
		}
		if both, next := v.AliasFleets(a.ID, ""); next != "" && w.oneIn(2) {
			id = both[1] // the share of the new fleet
		}
		f, ok = v.Fleet(id)
		return f, a.ID, ok
	}
	f, ok = w.fleet(v)
	return f, "", ok
}

// knownAlias is the acknowledged state of an alias.
type knownAlias struct {
	updated domain.Time // 0: its creation was not acknowledged
	doubted bool        // a command to delete it was sent
}

func (k *known) toldAlias(w *World, a *fleet.Alias) {
	old := k.aliases[a.ID]
	if a.Updated < old.updated {
		w.violated("%s was changed at %v, the answer after that says %v", a.ID, old.updated, a.Updated)
	}
	old.updated = a.Updated
}

func (w *World) checkAliases(v *cell.View) {
	for _, id := range w.known.aliasOrder {
		k := w.known.aliases[id]
		if a, ok := v.Alias(id); k.updated != 0 && !k.doubted && (!ok || a.Updated < k.updated) {
			w.violated("%s is gone, or was last changed at %v and not at %v", id, a.Updated, k.updated)
		}
	}
}
