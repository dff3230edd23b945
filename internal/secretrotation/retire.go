package secretrotation

import (
	"context"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/access"
	"github.com/musterhq/muster/internal/domain/cell"
)

// Retirement selects a generation to end.
type Retirement struct {
	Number     uint32 `json:"number"`
	RevokeKeys bool   `json:"revokeKeys,omitempty"` // also the access keys that are derived from the generation
	Force      bool   `json:"force,omitempty"`      // even if no admin key is left
	DryRun     bool   `json:"dryRun,omitempty"`     // only report what would be refused
}

// Retired describes what ended, or would end.
type Retired struct {
	Generation Document `json:"generation"`
	Keys       []string `json:"accessKeys"` // derived from it; they keep working unless they were revoked with it
	Revoked    bool     `json:"keysRevoked,omitempty"`
	Ended      bool     `json:"ended"` // now or earlier
}

// Retire ends an earlier generation at once: when it returns, this node refuses its signatures; other nodes do so within a second.
func (r *Rotator) Retire(ctx context.Context, by access.Actor, x Retirement) (done Retired, err error) {
	if x.DryRun {
		return r.would(ctx, x)
	}
	cmd := &access.EndSecret{Number: x.Number, Revoke: x.RevokeKeys, Force: x.Force, By: by}
	if err := r.config.Engine.Do(ctx, cmd); err != nil {
		return done, err
	}
	r.config.Log.Warn("a generation of the secret was retired: everything that it has signed is refused", "generation", x.Number, "principal", by.Principal, "address", by.Address, "door", by.Door)
	if err := r.await(context.WithoutCancel(ctx), x.Number, func(g *access.SecretStanding) bool { return g.Ended != 0 }); err != nil {
		return done, err
	}
	done = Retired{Keys: ids(cmd.Keys), Revoked: x.RevokeKeys && len(cmd.Keys) > 0, Ended: true}
	all, err := r.list(ctx, r.config.Engine.ReadHere) // without a leader: the change is made, and await has seen it here
	if err != nil {
		return done, err
	}
	done.Generation, err = numbered(all, x.Number)
	return done, err
}

// would is a dry run of Retire.
func (r *Rotator) would(ctx context.Context, x Retirement) (done Retired, err error) {
	done = Retired{Keys: []string{}}
	all, err := r.List(ctx)
	if err != nil {
		return done, err
	}
	if done.Generation, err = numbered(all, x.Number); err != nil {
		return done, err
	}
	if done.Generation.State == Signs {
		return done, domain.Refuse(domain.Conflict, "generation %d of the secret is the one that signs: begin with `muster secret rotate`", x.Number)
	}
	err = r.config.Engine.Read(ctx, func(v *cell.View) error { done.Keys = ids(v.KeysOfSecret(x.Number)); return nil })
	done.Ended = done.Generation.State == Ended
	return done, err
}

func ids(keys []access.Key) []string {
	all := []string{} // in JSON a list
	for i := range keys {
		all = append(all, keys[i].ID)
	}
	return all
}
