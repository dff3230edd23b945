package bench

import (
	"context"
	"errors"
	"time"

	"github.com/musterhq/muster/internal/domain/access"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/keyring"
)

var loader = access.Actor{Principal: "muster bench", Door: "offline"}

// withRing opens the keys of an unused data directory for f.
func withRing(ctx context.Context, data string, f func(*keyring.Offline) error) (err error) {
	ring, err := keyring.OpenOffline(ctx, data, nil, cell.DefaultConfig())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ring.Close()) }()
	return f(ring)
}

// firstKey returns the first access key of an unused data directory, and makes an admin key if there is none.
func firstKey(ctx context.Context, data string) (key identity.AccessKey, err error) {
	err = withRing(ctx, data, func(ring *keyring.Offline) error {
		all, err := ring.List(ctx)
		switch {
		case err != nil:
		case len(all) > 0:
			key = ring.CellSecret().AccessKey(&all[0])
		default:
			key, err = ring.Create(ctx, loader, keyring.New{Role: access.Admin, Name: "load"})
		}
		return err
	})
	return key, err
}

// keyBeside makes a second key in an unused data directory.
func keyBeside(ctx context.Context, data string, role access.Role, name string) (key identity.AccessKey, err error) {
	if _, err := firstKey(ctx, data); err != nil {
		return key, err
	}
	err = withRing(ctx, data, func(ring *keyring.Offline) (err error) {
		key, err = ring.Create(ctx, loader, keyring.New{Role: role, Name: name})
		return err
	})
	return key, err
}

// storedKeys returns the keys of an unused data directory.
func storedKeys(ctx context.Context, data string) (keys *identity.Keys, err error) {
	err = withRing(ctx, data, func(ring *keyring.Offline) error {
		all, err := ring.List(ctx)
		keys = identity.NewKeys(ring.CellSecret(), time.Now)
		keys.Publish(all)
		return err
	})
	return keys, err
}
