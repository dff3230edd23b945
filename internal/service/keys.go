package service

import (
	"context"
	"errors"
	"time"

	"github.com/musterhq/muster/internal/embeddb"
	"github.com/musterhq/muster/internal/identity"
	journalpebble "github.com/musterhq/muster/internal/journal/pebble"
	"github.com/musterhq/muster/internal/keyring"
	"github.com/musterhq/muster/internal/localdoor"
)

// openKeys makes the access keys of the state known to the doors.
func (x *Service) openKeys(ctx context.Context, secret identity.CellSecret) (err error) {
	if x.keys, err = keyring.Open(ctx, keyring.Config{Engine: x.engine, Dir: x.settings.Data, Secret: secret, Log: x.log}); err != nil {
		return err
	}
	if list, err := x.keys.List(ctx); err == nil && len(list) == 0 && !x.settings.Dev {
		x.log.Warn("there is no access key, so every request will be refused; `muster keys create` makes one", "data", x.settings.Data)
	}
	return nil
}

// openLocalDoor lets commands on this machine reach the service.
func (x *Service) openLocalDoor() (err error) {
	x.local, err = localdoor.Open(localdoor.Config{Dir: x.settings.Data, Keys: x.keys, Log: x.log})
	return err
}

// keysPatience is how long a start waits for `muster keys`, which has the directory open for moments only.
const keysPatience = 10 * time.Second

// openJournal opens the journal, and waits while `muster keys` changes something in it.
func openJournal(ctx context.Context, o journalpebble.Options) (*journalpebble.Journal, error) {
	for began := time.Now(); ; {
		j, err := journalpebble.Open(o)
		used, ok := errors.AsType[*embeddb.InUse](err)
		if !ok || used.Holder.Program != keyring.OfflineProgram || time.Since(began) > keysPatience {
			return j, err
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
