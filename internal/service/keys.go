package service

import (
	"context"

	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/keyring"
	"github.com/musterhq/muster/internal/localdoor"
)

// openKeys publishes the access keys of the state to the doors.
func (x *Service) openKeys(ctx context.Context, secret identity.CellSecret) (err error) {
	if x.keys, err = keyring.Open(ctx, keyring.Config{Engine: x.engine, Dir: x.settings.Data, Secret: secret, Log: x.log}); err != nil {
		return err
	}
	if list, err := x.keys.List(ctx); err == nil && len(list) == 0 && !x.settings.Dev {
		x.log.Warn("there is no access key, so every request will be refused; create one with `muster keys create`", "directory", x.settings.Data)
	}
	return nil
}

// openLocalDoor lets commands on this machine reach the service.
func (x *Service) openLocalDoor() (err error) {
	x.local, err = localdoor.Open(localdoor.Config{Dir: x.settings.Data, Keys: x.keys, Log: x.log})
	return err
}
