package access

import (
	"cmp"
	"slices"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/kernel"
)

// OverlapMax is the longest overlap for which a replaced key may be kept valid. Without an overlap, it stays valid until FinishRotation.
const OverlapMax = 366 * 24 * time.Hour

// RotateAccessKey creates the successor of a key. The successor gets the key's role, account, name, policies and limits, except for those that the
// command sets. Both keys are valid until FinishRotation or until the overlap ends. A repeat finds the existing successor.
type RotateAccessKey struct {
	ID        string
	Successor Key           // ID, CreatedBy; Expires, 0: it gets the validity period that the key was given; Sources, nil: those of the key
	Forever   bool          // the successor does not expire
	Overlap   time.Duration // 0: the key stays valid until FinishRotation
	At        domain.Time   // 0: now; see CreateAccessKey

	// Result: Successor, as stored, and the key.
	Key Key
}

func (cmd *RotateAccessKey) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	old, err := t.existing(cmd.ID)
	if err != nil {
		return err
	}
	next, now := &cmd.Successor, cmp.Or(cmd.At, t.Now)
	existing, exists := t.Records.Keys.Find(next.ID)
	switch {
	case exists && old.Successor == next.ID:
		cmd.Key, cmd.Successor = old, *t.Records.Keys.Get(existing)
		return nil
	case !old.Works():
		return domain.Refuse(domain.Conflict, "access key %s was revoked, or has expired; create another one", cmd.ID)
	case t.works(old.Successor):
		return domain.Refuse(domain.Conflict, "access key %s is being replaced by %s already: finish that, or revoke %[2]s to begin again", cmd.ID, old.Successor)
	case cmd.Overlap < 0 || cmd.Overlap > OverlapMax:
		return domain.Refuse(domain.Invalid, "overlap %s: want 0s to %s", cmd.Overlap, OverlapMax)
	case t.Level() < levelOfLimits:
		return domain.Refuse(domain.Overloaded, "access keys can be rotated as soon as all nodes of the cluster run this release")
	}
	if exists {
		return domain.Refuse(domain.Conflict, "access key %s exists already", next.ID)
	}
	next.Role, next.Account, next.Name, next.Created, next.Replaces = old.Role, old.Account, old.Name, now, old.ID
	switch {
	case cmd.Forever:
		next.Expires = 0
	case next.Expires == 0:
		like := old
		if r, ok := t.Records.Keys.Find(old.Successor); ok { // an earlier rotation's overlap may have shortened the key's validity
			if before := *t.Records.Keys.Get(r); before.Created >= old.Limited {
				like = before
			}
		}
		if like.Expires != 0 {
			next.Expires = now.Add(like.Expires.Sub(max(like.Created, like.Limited)))
		}
	}
	if len(next.Sources) == 0 {
		next.Sources = slices.Clone(old.Sources)
	}
	if err := next.Check(); err != nil {
		return err
	}
	forgotten, err := t.roomFor(next)
	if err != nil {
		return err
	}
	policies := slices.DeleteFunc(slices.Clone(t.attachments), func(a PolicyAttachment) bool { return a.Target != Target{KeyTarget, old.ID} })
	if n := len(t.attachments) + len(policies); n > AttachmentsMax {
		return domain.Refuse(domain.LimitExceeded, "policies would be attached in %d places; the limit is %d", n, AttachmentsMax)
	}
	until := old.Expires
	if end := now.Add(cmd.Overlap); cmd.Overlap > 0 && (until == 0 || end < until) {
		until = end
	}
	t.create(next, forgotten)
	for _, a := range policies {
		t.Emit(&PolicyAttached{PolicyAttachment{Policy: a.Policy, Target: Target{KeyTarget, next.ID}, At: now, By: next.CreatedBy}})
	}
	t.Emit(&AccessKeyRotated{ID: old.ID, Successor: next.ID, Expires: until})
	cmd.Key = t.key(old.ID)
	next.Changed = cmd.Key.Changed
	return nil
}

func (t *Tx) works(id string) bool {
	r, ok := t.Records.Keys.Find(id)
	return ok && t.Records.Keys.Get(r).Works()
}

// FinishRotation revokes a key whose successor is valid. A repeat changes nothing.
type FinishRotation struct {
	ID string
	By Actor
	At domain.Time // 0: now; see CreateAccessKey

	// Result
	Key Key
}

func (cmd *FinishRotation) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	key, err := t.existing(cmd.ID)
	if err != nil {
		return err
	}
	cmd.Key = key
	switch {
	case cmd.Key.Successor == "":
		return domain.Refuse(domain.Conflict, "access key %s is not being replaced: begin with `muster keys rotate %[1]s`", cmd.ID)
	case !cmd.Key.Works():
		return nil
	case !t.works(cmd.Key.Successor):
		return domain.Refuse(domain.Conflict, "access key %s, which replaces %s, no longer works: rotate again, or revoke the key itself", cmd.Key.Successor, cmd.ID)
	}
	t.Emit(&AccessKeyRevoked{cmd.ID, cmp.Or(cmd.At, t.Now), cmd.By.Cut()})
	cmd.Key = t.key(cmd.ID)
	return nil
}
