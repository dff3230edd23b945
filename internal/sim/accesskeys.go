package sim

import (
	"fmt"
	"time"

	"github.com/musterhq/muster/internal/domain"
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

// settleAccessKeys revokes the keys that would expire only after the run: a successor lives as long as the key that it replaces was meant to.
func (w *World) settleAccessKeys() {
	v := w.node.seq.Cell().View()
	for _, k := range v.AccessKeys() {
		if k.Expires > domain.TimeOf(w.now.Add(20*time.Minute)) {
			cmd := &access.RevokeAccessKey{ID: k.ID, By: access.Actor{Principal: "ops", Door: "operator"}, Force: true}
			w.node.submit(cmd, w.known.learner(w, cmd))
		}
	}
	w.node.drain()
}

// rotateAccessKey begins or finishes the replacement of a key, or records its use.
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
		if id == "key-file" { // from 1970: its successor would live for as long, and the end of a run waits for that
			cmd.Forever, cmd.Expires = true, 0
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

// rotateSecret moves the generations of the cell's secret a step further.
func rotateSecret(w *Wishes, v *cell.View) kernel.Command {
	all, by := v.SecretGenerations(), access.Actor{Principal: "ops", Door: "operator"}
	if len(all) == 0 {
		return nil
	}
	last, some := all[len(all)-1], all[w.chance.IntN(len(all))].Number
	switch w.chance.IntN(7) {
	case 6:
		return &access.NoteBackup{Backup: access.Backup{At: w.now, Entry: uint64(w.number()), To: "/backup/"}}
	case 0:
		return &access.HoldSecret{Number: last.Number, Check: last.Check, Node: fmt.Sprint("node-", w.chance.IntN(3))}
	case 1:
		return &access.ActivateSecret{Number: last.Number, Nodes: []string{"node-0"}}
	case 2:
		return &access.EndSecret{Number: some, Revoke: w.oneIn(4), Force: w.oneIn(4), By: by}
	case 3:
		return &access.NoteSecretUses{Uses: []access.SecretUse{{Number: some, At: w.now, Purpose: "temporary credentials"}}}
	case 4:
		return &access.EndOldSecrets{}
	}
	number := last.Number + uint32(w.chance.IntN(8)/7) + 1
	return &access.PrepareSecret{Number: number, Check: fmt.Sprint("check-", w.number()), Node: "node-0", Overlap: time.Duration(w.chance.IntN(60)) * time.Minute, By: by}
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
	revoked bool // and its revocation was acknowledged
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

// checkAccessKeys: a revoked key never works again; a created key exists, and is valid unless a command revoked it or it has expired; a successor names the key that it replaces.
func (w *World) checkAccessKeys(v *cell.View) {
	w.checkSecrets(v)
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

// checkSecrets: once there is a generation of the secret, one signs; an access key that works is derived from one that the nodes need.
func (w *World) checkSecrets(v *cell.View) {
	signing, needed := 0, map[uint32]bool{}
	all := v.SecretStandings()
	for _, g := range all {
		if g.Signs() {
			signing++
		}
		needed[g.Number] = g.Needed
	}
	if len(all) > 0 && signing != 1 {
		w.violated("%d generations of the secret sign: %+v", signing, all)
	}
	for _, k := range v.AccessKeys() {
		if k.Works() && len(all) > 0 && !needed[k.SecretGeneration()] {
			w.violated("access key %s is derived from generation %d of the secret, which no node needs", k.ID, k.SecretGeneration())
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
