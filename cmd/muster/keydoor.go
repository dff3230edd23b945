package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"time"

	"github.com/musterhq/muster/internal/atomicfile"
	"github.com/musterhq/muster/internal/audit"
	"github.com/musterhq/muster/internal/domain/access"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/embeddb"
	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/keyring"
	"github.com/musterhq/muster/internal/localdoor"
	"github.com/musterhq/muster/internal/secretkey"
)

// keyDoor reads and changes the access keys of a service. A change is in force when the method returns.
type keyDoor interface {
	create(ctx context.Context, n keyring.New) (keyring.Document, error)
	list(ctx context.Context) ([]keyring.Document, error)
	revoke(ctx context.Context, id string, force bool) (keyring.Document, error)
	revokeCredentials(ctx context.Context, x keyring.Credentials) error
	rotate(ctx context.Context, x keyring.Rotation) (keyring.Rotated, error)
	finish(ctx context.Context, id string) (keyring.Document, error)
	limit(ctx context.Context, x keyring.Limits) (keyring.Document, error)
}

// dataKeys reaches the keys of a data directory: through the service that runs on it, or directly while none does.
type dataKeys struct {
	dir      string
	key      *secretkey.Key
	keysMax  int       // most keys; 0: the default
	mayYield bool      // may change from root to the owner of the directory, for the rest of this process
	notes    io.Writer // receives hints for the user
	reason   string    // of a change, for the audit log; empty: none
}

// startPatience is how long a command waits for a service that holds the directory and does not answer yet.
const startPatience = 30 * time.Second

// do calls the running service, or opens the directory itself if none runs. If a service holds the directory but does not answer yet, it is starting,
// and do tries again.
func (d *dataKeys) do(ctx context.Context, running func(*localdoor.Client) error, offline func(*keyring.Offline) error) error {
	for began := time.Now(); ; {
		client, err := localdoor.NewClient(d.dir, d.key, userName())
		if err == nil {
			client.Reason = d.reason
			err = running(client)
		}
		if !errors.Is(err, localdoor.ErrNoService) {
			return err
		}
		silent := err
		o, err := d.open(ctx)
		if err == nil {
			return errors.Join(offline(o), o.Close())
		}
		used, ok := errors.AsType[*embeddb.InUse](err)
		switch {
		case !ok:
			return err
		case time.Since(began) > startPatience:
			return fmt.Errorf("%w, and does not answer: %w. Run this where that process runs (for example in its container), or use --server", used, silent)
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// open opens the directory as the user that the service runs as: it could not start with files that belong to root.
func (d *dataKeys) open(ctx context.Context) (*keyring.Offline, error) {
	owner, err := ownerOf(d.dir)
	switch {
	case errors.Is(err, fs.ErrNotExist) && isRoot():
		fmt.Fprintf(d.notes, "%s is new and belongs to root. If the service runs as another user, give the directory to that user first: chown -R USER %s\n", d.dir, d.dir)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("data directory: %w", err)
	case err == nil && isRoot() && !owner.isRoot() && !d.mayYield:
		return nil, fmt.Errorf("no service runs on %s, which belongs to %s: start the service first, or run this as that user", d.dir, owner)
	case err == nil && isRoot() && !owner.isRoot():
		if err := owner.become(); err != nil {
			return nil, fmt.Errorf("data directory %s belongs to %s: %w; run this as that user", d.dir, owner, err)
		}
	}
	if err := atomicfile.MakeDir(d.dir, 0o700); err != nil {
		return nil, fmt.Errorf("data directory: %w", err)
	}
	config := cell.DefaultConfig()
	if d.keysMax > 0 {
		config.Access.AccessKeysMax = d.keysMax
	}
	return keyring.OpenOffline(ctx, d.dir, d.key, config)
}

func (d *dataKeys) actor() access.Actor {
	return access.Actor{Principal: localdoor.Principal(userName()), Door: audit.DoorOffline}
}

// recorded returns the context of a change without a running service.
func (d *dataKeys) recorded(ctx context.Context, operation string) context.Context {
	by := d.actor()
	return audit.With(ctx, audit.Origin{Principal: by.Principal, Door: by.Door, Operation: operation, Reason: d.reason})
}

func (d *dataKeys) create(ctx context.Context, n keyring.New) (made keyring.Document, err error) {
	n.ID = identity.NewKeyID() // the same one in every attempt
	err = d.do(ctx, func(c *localdoor.Client) (err error) {
		made, err = c.Create(ctx, n)
		return err
	}, func(o *keyring.Offline) error {
		key, err := o.Create(d.recorded(ctx, "keys create"), d.actor(), n)
		made = keyring.NewDocument(key, d.actor())
		return err
	})
	return made, err
}

func (d *dataKeys) list(ctx context.Context) (all []keyring.Document, err error) {
	err = d.do(ctx, func(c *localdoor.Client) (err error) {
		all, err = c.List(ctx)
		return err
	}, func(o *keyring.Offline) error {
		keys, err := o.List(ctx)
		all = keyring.Documents(keys)
		return err
	})
	return all, err
}

func (d *dataKeys) revoke(ctx context.Context, id string, force bool) (revoked keyring.Document, err error) {
	err = d.do(ctx, func(c *localdoor.Client) (err error) {
		revoked, err = c.Revoke(ctx, id)
		return err
	}, func(o *keyring.Offline) error {
		// The holder of the directory can make another admin key.
		key, err := o.Revoke(d.recorded(ctx, "keys revoke"), d.actor(), id, true)
		revoked = keyring.DocumentOf(&key)
		return err
	})
	return revoked, err
}

func (d *dataKeys) rotate(ctx context.Context, x keyring.Rotation) (done keyring.Rotated, err error) {
	x.Successor = identity.NewKeyID() // the same one in every attempt
	err = d.do(ctx, func(c *localdoor.Client) (err error) {
		done, err = c.Rotate(ctx, x)
		return err
	}, func(o *keyring.Offline) error {
		successor, old, err := o.Rotate(d.recorded(ctx, "keys rotate"), d.actor(), x)
		done = keyring.Rotated{Key: keyring.DocumentOf(&old), Successor: keyring.NewDocument(successor, d.actor())}
		return err
	})
	return done, err
}

func (d *dataKeys) finish(ctx context.Context, id string) (ended keyring.Document, err error) {
	err = d.do(ctx, func(c *localdoor.Client) (err error) {
		ended, err = c.FinishRotation(ctx, id)
		return err
	}, func(o *keyring.Offline) error {
		key, err := o.FinishRotation(d.recorded(ctx, "keys rotate --finish"), d.actor(), id)
		ended = keyring.DocumentOf(&key)
		return err
	})
	return ended, err
}

func (d *dataKeys) limit(ctx context.Context, x keyring.Limits) (key keyring.Document, err error) {
	err = d.do(ctx, func(c *localdoor.Client) (err error) {
		key, err = c.Limit(ctx, x)
		return err
	}, func(o *keyring.Offline) error {
		x.Force = true // the holder of the directory can make another admin key
		limited, err := o.Limit(d.recorded(ctx, "keys limit"), d.actor(), x)
		key = keyring.DocumentOf(&limited)
		return err
	})
	return key, err
}

// revokeCredentials needs a running service: without one, the state's time may be earlier than the time when the credentials were issued.
func (d *dataKeys) revokeCredentials(ctx context.Context, x keyring.Credentials) error {
	return d.do(ctx, func(c *localdoor.Client) error { return c.RevokeCredentials(ctx, x) },
		func(*keyring.Offline) error { return fmt.Errorf("no service runs on %s: start it first", d.dir) })
}

// mustExist refuses a directory that does not exist: a mistyped name must not create one.
func mustExist(dir string) error {
	if _, err := os.Stat(dir); err != nil {
		return fmt.Errorf("data directory: %w", err)
	}
	return nil
}

// userName returns the operating system's user, for audit entries.
func userName() string {
	if u, err := user.Current(); err == nil && u.Username != "" {
		return u.Username
	}
	return strconv.Itoa(os.Getuid())
}

// ownerFiles are checked in turn: the owner of the first one that exists is the user that the service runs as.
var ownerFiles = []string{"journal", "cell.secret", "."}

func ownerOf(dir string) (o owner, err error) {
	for _, name := range ownerFiles {
		var info os.FileInfo
		if info, err = os.Stat(filepath.Join(dir, name)); err == nil {
			return ownerOfFile(info), nil
		}
	}
	return o, err
}
