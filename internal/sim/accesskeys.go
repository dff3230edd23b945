package sim

import (
	"fmt"
	"time"

	"github.com/musterhq/muster/internal/domain/access"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/kernel"
)

func createAccessKey(w *Wishes, v *cell.View) kernel.Command {
	if _, ok := v.AccessKeysTakenOver(); !ok || w.oneIn(20) {
		return &access.TakeOverAccessKeys{Digest: fmt.Sprint("file-", w.chance.IntN(2)), Keys: []access.Key{{ID: "key-file", Role: access.Admin, Created: 1}}}
	}
	cmd := &access.CreateAccessKey{Key: access.Key{
		ID: fmt.Sprint("key-", w.number()), Role: access.Role(1 + w.chance.IntN(4)), Account: "1", Name: "lobby", CreatedBy: access.Actor{Principal: "ops", Door: "operator"},
	}}
	if w.oneIn(3) {
		cmd.Key.Expires = w.now.Add(time.Duration(w.chance.IntN(600)) * time.Second)
	}
	if w.oneIn(4) {
		cmd.Key.Sources = []string{"192.0.2.0/24"}
	}
	return cmd
}

// rotateAccessKey begins or finishes the replacement of a key, or has its use recorded.
func rotateAccessKey(w *Wishes, v *cell.View) kernel.Command {
	all := v.AccessKeys()
	if len(all) == 0 {
		return nil
	}
	id, by := all[w.chance.IntN(len(all))].ID, access.Actor{Principal: "ops", Door: "operator"}
	switch w.chance.IntN(5) {
	case 4:
		cmd := &access.LimitAccessKey{ID: id, By: by, Forever: w.oneIn(2), Anywhere: w.oneIn(2), Force: w.oneIn(2)}
		if !cmd.Forever {
			cmd.Expires = w.now.Add(time.Duration(w.chance.IntN(600)) * time.Second)
		}
		if !cmd.Anywhere {
			cmd.Sources = []string{"198.51.100.0/24"}
		}
		return cmd
	case 0:
		return &access.FinishRotation{ID: id, By: by}
	case 1:
		return &access.NoteKeyUses{Uses: []access.Use{{Key: id, At: w.now, Address: "192.0.2.1", Operation: "ListFleets"}, {Key: "key-nobody", At: w.now}}}
	}
	return &access.RotateAccessKey{ID: id, Successor: access.Key{ID: fmt.Sprint("key-", w.number()), CreatedBy: by}, Overlap: time.Duration(w.chance.IntN(3)) * time.Minute, Forever: w.oneIn(5)}
}

func revokeAccessKey(w *Wishes, v *cell.View) kernel.Command {
	all := v.AccessKeys()
	if len(all) == 0 {
		return nil
	}
	return &access.RevokeAccessKey{ID: all[w.chance.IntN(len(all))].ID, By: access.Actor{Principal: "ops", Door: "local"}, Force: w.oneIn(3)}
}

// knownAccessKey is the acknowledged state of an access key.
type knownAccessKey struct {
	created bool // its creation was acknowledged
	doubted bool // a command to revoke it was sent
	revoked bool // and was told that it is
}

func (k *known) accessKey(id string) *knownAccessKey {
	x := k.accessKeys[id]
	if x == nil {
		x = &knownAccessKey{}
		k.accessKeys[id] = x
		k.accessKeyOrder = append(k.accessKeyOrder, id)
	}
	return x
}

// checkAccessKeys: a revoked key never works again; a created key exists, and is valid unless a command revoked it, or it has expired; what replaces a key names it.
func (w *World) checkAccessKeys(v *cell.View) {
	now := map[string]access.Key{}
	for _, k := range v.AccessKeys() {
		now[k.ID] = k
	}
	for _, k := range v.AccessKeys() {
		if next, ok := now[k.Successor]; ok && next.Replaces != k.ID {
			w.violated("access key %s is replaced by %s, which replaces %q", k.ID, next.ID, next.Replaces)
		}
	}
	for _, id := range w.known.accessKeyOrder {
		k := w.known.accessKeys[id]
		is, ok := now[id]
		switch {
		case k.revoked && ok && is.Works():
			w.violated("access key %s was revoked, and works", id)
		case k.created && !ok:
			w.violated("access key %s is gone", id)
		case k.created && !k.doubted && !is.Works() && !is.Expired():
			w.violated("access key %s is not valid, and no command revoked it", id)
		}
	}
}

// revokeCredentials ends temporary credentials, which no cell knows.
func revokeCredentials(w *Wishes, v *cell.View) kernel.Command {
	cmd := &access.RevokeCredentials{By: access.Actor{Principal: "ops", Door: "local"}}
	switch w.chance.IntN(5) {
	case 0, 1:
		cmd.Session = fmt.Sprint("ASIA", w.chance.IntN(50))
	case 2:
		cmd.Certificate, cmd.Until = fmt.Sprintf("studio/%x", w.chance.IntN(50)), w.now.Add(time.Duration(w.chance.IntN(600))*time.Second)
	default:
		cmd.Holder = fmt.Sprint("key-", w.chance.IntN(50))
	}
	return cmd
}
