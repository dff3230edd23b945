package keyring

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/musterhq/muster/internal/datadir"
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/access"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/secretkey"
)

// OfflineProgram is the name of this process in the error of another process that tries to open the data directory.
const OfflineProgram = "muster keys"

// Offline has the access keys of a data directory whose service does not run. No other process can open the directory until Close.
type Offline struct {
	dir  *datadir.Dir
	cell *engine.Offline
}

// OpenOffline opens a data directory, or creates it. If another process has it open, the error is an
// *embeddb.InUse. key encrypts the secrets in the directory.
func OpenOffline(ctx context.Context, dir string, key *secretkey.Key, config cell.Config) (_ *Offline, err error) {
	d, err := datadir.Open(datadir.Options{Dir: dir, Program: OfflineProgram, Key: key})
	if err != nil {
		return nil, err
	}
	o := &Offline{dir: d}
	defer func() {
		if err != nil {
			err = errors.Join(err, o.Close())
		}
	}()
	if o.cell, err = engine.OpenOffline(ctx, engine.Config{Journal: d.Journal, Cell: config, Loaded: d.CheckState}); err != nil {
		return nil, d.Explain(err)
	}
	if err := d.Commit(ctx); err != nil {
		return nil, err
	}
	return o, takeOver(ctx, o.cell, dir, d.Secret, slog.New(slog.DiscardHandler), now())
}

func now() domain.Time { return domain.TimeOf(time.Now()) }

// Create makes a key.
func (o *Offline) Create(ctx context.Context, by access.Actor, n New) (identity.AccessKey, error) {
	cmd, err := n.command(by, now())
	if err != nil {
		return identity.AccessKey{}, err
	}
	if n.limited() {
		if err := o.raise(ctx); err != nil {
			return identity.AccessKey{}, err
		}
	}
	if err := o.cell.Do(ctx, cmd); err != nil {
		return identity.AccessKey{}, err
	}
	return o.dir.Secret.AccessKey(&cmd.Key), nil
}

// Revoke revokes a key.
func (o *Offline) Revoke(ctx context.Context, by access.Actor, id string, force bool) (access.Key, error) {
	cmd := &access.RevokeAccessKey{ID: id, By: by, Force: force, At: now()}
	err := o.cell.Do(ctx, cmd)
	return cmd.Key, err
}

// raise puts the level of this release into force, as the first start of the service does: before that, no key may have limits. The directory is not that of a cluster's
// node, because a cluster decides on its own level.
func (o *Offline) raise(ctx context.Context) error {
	return o.cell.Do(ctx, &kernel.RaiseLevel{To: kernel.Level})
}

// Rotate makes the successor of a key, and returns it with the key.
func (o *Offline) Rotate(ctx context.Context, by access.Actor, x Rotation) (successor identity.AccessKey, old access.Key, err error) {
	cmd, err := x.command(by, now())
	if err != nil {
		return successor, old, err
	}
	if err := o.raise(ctx); err != nil {
		return successor, old, err
	}
	if err := o.cell.Do(ctx, cmd); err != nil {
		return successor, old, err
	}
	return o.dir.Secret.AccessKey(&cmd.Successor), cmd.Key, nil
}

// Limit changes until when, and from which networks, a key works.
func (o *Offline) Limit(ctx context.Context, by access.Actor, x Limits) (access.Key, error) {
	cmd, err := x.command(by, now())
	if err != nil {
		return access.Key{}, err
	}
	if err := o.raise(ctx); err != nil {
		return access.Key{}, err
	}
	err = o.cell.Do(ctx, cmd)
	return cmd.Key, err
}

// FinishRotation revokes a key that has a successor.
func (o *Offline) FinishRotation(ctx context.Context, by access.Actor, id string) (access.Key, error) {
	cmd := &access.FinishRotation{ID: id, By: by, At: now()}
	err := o.cell.Do(ctx, cmd)
	return cmd.Key, err
}

// List returns all keys in the order of their creation, including revoked ones.
func (o *Offline) List(ctx context.Context) (all []access.Key, err error) {
	err = o.cell.Read(ctx, func(v *cell.View) error { all = v.AccessKeys(); return nil })
	return all, err
}

// CellSecret returns the secret that the keys are derived from.
func (o *Offline) CellSecret() identity.CellSecret { return o.dir.Secret }

// Close releases the data directory.
func (o *Offline) Close() error { return o.dir.Close() }
