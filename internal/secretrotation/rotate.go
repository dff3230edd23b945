package secretrotation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/access"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/identity"
)

// Rotate makes a new generation, which signs as soon as all nodes have it. It returns the generations then, or after activateWait, while the rotation continues. overlap is how long
// the current generation is still accepted; 0: access.SecretOverlap.
func (r *Rotator) Rotate(ctx context.Context, by access.Actor, overlap time.Duration) ([]Document, error) {
	if !r.rotating.TryLock() {
		return nil, domain.Refuse(domain.Conflict, "another rotation of the secret has just begun")
	}
	defer r.rotating.Unlock()
	number, err := r.next(ctx)
	if err != nil {
		return nil, err
	}
	secret := identity.NewCellSecret()
	if err := r.secrets.Add(number, secret); err != nil {
		return nil, fmt.Errorf("store the new secret: %w", err)
	}
	cmd := &access.PrepareSecret{Number: number, Check: secret.Check(), Node: r.node(), Overlap: overlap, By: by}
	if err := r.config.Engine.Do(ctx, cmd); err != nil {
		if _, refused := errors.AsType[*domain.Refusal](err); refused {
			err = errors.Join(err, r.secrets.Remove(number))
		}
		return nil, err // any other error leaves open whether it is in the state: the follower finds out
	}
	r.config.Log.Info("the secret is being rotated", "generation", number, "principal", by.Principal, "address", by.Address, "door", by.Door)
	if err := r.await(ctx, number, func(g *access.SecretStanding) bool { return !g.Pending() }); err != nil {
		return nil, err
	}
	return r.list(ctx, r.config.Engine.ReadHere) // without a leader: the change is made
}

// next returns the number of the next generation.
func (r *Rotator) next(ctx context.Context) (number uint32, err error) {
	err = r.config.Engine.Read(ctx, func(v *cell.View) error {
		for _, g := range v.SecretGenerations() {
			if g.Pending() {
				return domain.Refuse(domain.Conflict, "generation %d of the secret is being distributed to the nodes: wait for it, or give it up with `muster secret retire %[1]d`", g.Number)
			}
			number = max(number, g.Number)
		}
		return nil
	})
	return number + 1, err
}

// await returns once this node has followed the state to a point where is holds for a generation, or after activateWait.
func (r *Rotator) await(ctx context.Context, number uint32, is func(*access.SecretStanding) bool) error {
	wait := time.NewTimer(activateWait)
	defer wait.Stop()
	for {
		r.mu.Lock()
		changed := r.changed
		r.mu.Unlock()
		all, err := r.standings(ctx)
		if err != nil {
			return err
		}
		at := slices.IndexFunc(all, func(g access.SecretStanding) bool { return g.Number == number })
		if at >= 0 && is(&all[at]) && r.follows(&all[at]) {
			return nil
		}
		select {
		case <-changed:
		case <-wait.C:
			return nil
		case <-r.config.Engine.Stopped():
			return fmt.Errorf("the rotation is stored and continues at the next start: %w", engine.ErrStopped)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// follows reports whether this node treats a generation as the state requires.
func (r *Rotator) follows(g *access.SecretStanding) bool {
	if g.Signs() {
		return r.config.Secret.Generation() == g.Number
	}
	return g.Ended == 0 || !r.config.Secret.Accepted(g.Number, "")
}
