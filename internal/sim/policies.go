package sim

import (
	"fmt"

	"github.com/musterhq/muster/internal/domain/access"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/kernel"
)

// changePolicy makes, changes or deletes one of a few policies. The core does not read their texts.
func changePolicy(w *Wishes, v *cell.View) kernel.Command {
	by := access.Actor{Principal: "ops", Door: "operator"}
	name, text := fmt.Sprint("policy-", w.chance.IntN(5)), fmt.Sprint("text ", w.chance.IntN(100))
	p, ok := v.Policy(name)
	switch {
	case !ok:
		return &access.CreatePolicy{Name: name, Text: text, By: by}
	case w.oneIn(4):
		return &access.DeletePolicy{Name: name, By: by}
	case w.oneIn(5):
		p.Version++ // which must be refused
	}
	return &access.UpdatePolicy{Name: name, Text: text, Version: p.Version, By: by}
}

// attachPolicy attaches or detaches a policy, which may not exist.
func attachPolicy(w *Wishes, v *cell.View) kernel.Command {
	by := access.Actor{Principal: "ops", Door: "operator"}
	target := access.Target{Kind: access.RoleTarget, Name: access.Role(1 + w.chance.IntN(4)).String()}
	if keys := v.AccessKeys(); len(keys) > 0 && w.oneIn(2) {
		target = access.Target{Kind: access.KeyTarget, Name: keys[w.chance.IntN(len(keys))].ID}
	} else if w.oneIn(3) {
		target = access.Target{Kind: access.GroupTarget, Name: "builders"}
	}
	name := fmt.Sprint("policy-", w.chance.IntN(5))
	if w.oneIn(3) {
		return &access.DetachPolicy{Policy: name, Target: target, By: by}
	}
	return &access.AttachPolicy{Policy: name, Target: target, By: by}
}

// checkPolicies: attached policies exist, and only valid keys have attachments of their own.
func (w *World) checkPolicies(v *cell.View) {
	works := map[string]bool{}
	for _, k := range v.AccessKeys() {
		works[k.ID] = k.Works()
	}
	known := map[string]bool{}
	for _, p := range v.Policies() {
		known[p.Name] = true
	}
	for _, a := range v.PolicyAttachments() {
		if !known[a.Policy] {
			w.violated("policy %s is attached to %s, and does not exist", a.Policy, a.Target)
		}
		if a.Target.Kind == access.KeyTarget && !works[a.Target.Name] {
			w.violated("policy %s is attached to access key %s, which does not work", a.Policy, a.Target.Name)
		}
	}
}
