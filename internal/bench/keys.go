package bench

import (
	"context"
	"errors"

	"github.com/musterhq/muster/internal/domain/access"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/keyring"
)

var loader = access.Actor{Principal: "muster bench", Door: "offline"}

// firstKey returns the first access key of an unused data directory, and makes an admin key if there is none.
func firstKey(ctx context.Context, data string) (key identity.AccessKey, err error) {
	ring, err := keyring.OpenOffline(ctx, data, cell.DefaultConfig())
	if err != nil {
		return key, err
	}
	defer func() { err = errors.Join(err, ring.Close()) }()
	all, err := ring.List(ctx)
	if err != nil {
		return key, err
	}
	if len(all) > 0 {
		return ring.CellSecret().AccessKey(&all[0]), nil
	}
	return ring.Create(ctx, loader, keyring.New{Role: access.Admin, Name: "load"})
}

// keyBeside makes a second key in an unused data directory.
func keyBeside(ctx context.Context, data string, role access.Role, name string) (key identity.AccessKey, err error) {
	if _, err := firstKey(ctx, data); err != nil {
		return key, err
	}
	ring, err := keyring.OpenOffline(ctx, data, cell.DefaultConfig())
	if err != nil {
		return key, err
	}
	defer func() { err = errors.Join(err, ring.Close()) }()
	return ring.Create(ctx, loader, keyring.New{Role: role, Name: name})
}

// storedKeys returns the keys of an unused data directory.
func storedKeys(ctx context.Context, data string) (_ *identity.Keys, err error) {
	ring, err := keyring.OpenOffline(ctx, data, cell.DefaultConfig())
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, ring.Close()) }()
	all, err := ring.List(ctx)
	keys := identity.NewKeys(ring.CellSecret())
	keys.Publish(all)
	return keys, err
}
