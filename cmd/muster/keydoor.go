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
func do[T any](ctx context.Context, d *dataKeys, running func(*localdoor.Client) (T, error), offline func(*keyring.Offline) (T, error)) (T, error) {
	var x T
	for began := time.Now(); ; {
		client, err := localdoor.NewClient(d.dir, d.key, userName())
		if err == nil {
			client.Reason = d.reason
			x, err = running(client)
		}
		if !errors.Is(err, localdoor.ErrNoService) {
			return x, err
		}
		silent := err
		o, err := d.open(ctx)
		if err == nil {
			x, err = offline(o)
			return x, errors.Join(err, o.Close())
		}
		used, ok := errors.AsType[*embeddb.InUse](err)
		switch {
		case !ok:
			return x, err
		case time.Since(began) > startPatience:
			return x, fmt.Errorf("%w, and does not answer: %w. Run this where that process runs (for example in its container), or use --server", used, silent)
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return x, ctx.Err()
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

func (d *dataKeys) create(ctx context.Context, n keyring.New) (keyring.Document, error) {
	n.ID = identity.NewKeyID() // the same one in every attempt
	return do(ctx, d, func(c *localdoor.Client) (keyring.Document, error) { return c.Create(ctx, n) }, func(o *keyring.Offline) (keyring.Document, error) {
		key, err := o.Create(d.recorded(ctx, "keys create"), d.actor(), n)
		return keyring.NewDocument(key, d.actor()), err
	})
}

func (d *dataKeys) list(ctx context.Context) ([]keyring.Document, error) {
	return do(ctx, d, func(c *localdoor.Client) ([]keyring.Document, error) { return c.List(ctx) }, func(o *keyring.Offline) ([]keyring.Document, error) {
		keys, err := o.List(ctx)
		return keyring.Documents(keys), err
	})
}

// revoke needs no force: the holder of the directory can make another admin key.
func (d *dataKeys) revoke(ctx context.Context, id string, _ bool) (keyring.Document, error) {
	return do(ctx, d, func(c *localdoor.Client) (keyring.Document, error) { return c.Revoke(ctx, id) }, func(o *keyring.Offline) (keyring.Document, error) {
		key, err := o.Revoke(d.recorded(ctx, "keys revoke"), d.actor(), id, true)
		return keyring.DocumentOf(&key), err
	})
}

func (d *dataKeys) rotate(ctx context.Context, x keyring.Rotation) (keyring.Rotated, error) {
	x.Successor = identity.NewKeyID() // the same one in every attempt
	return do(ctx, d, func(c *localdoor.Client) (keyring.Rotated, error) { return c.Rotate(ctx, x) }, func(o *keyring.Offline) (keyring.Rotated, error) {
		successor, old, err := o.Rotate(d.recorded(ctx, "keys rotate"), d.actor(), x)
		return keyring.Rotated{Key: keyring.DocumentOf(&old), Successor: keyring.NewDocument(successor, d.actor())}, err
	})
}

func (d *dataKeys) finish(ctx context.Context, id string) (keyring.Document, error) {
	return do(ctx, d, func(c *localdoor.Client) (keyring.Document, error) { return c.FinishRotation(ctx, id) }, func(o *keyring.Offline) (keyring.Document, error) {
		key, err := o.FinishRotation(d.recorded(ctx, "keys rotate --finish"), d.actor(), id)
		return keyring.DocumentOf(&key), err
	})
}

// limit needs no force, as revoke.
func (d *dataKeys) limit(ctx context.Context, x keyring.Limits) (keyring.Document, error) {
	return do(ctx, d, func(c *localdoor.Client) (keyring.Document, error) { return c.Limit(ctx, x) }, func(o *keyring.Offline) (keyring.Document, error) {
		x.Force = true
		key, err := o.Limit(d.recorded(ctx, "keys limit"), d.actor(), x)
		return keyring.DocumentOf(&key), err
	})
}

// revokeCredentials needs a running service: without one, the state's time may be earlier than the time when the credentials were issued.
func (d *dataKeys) revokeCredentials(ctx context.Context, x keyring.Credentials) error {
	_, err := do(ctx, d, func(c *localdoor.Client) (struct{}, error) { return struct{}{}, c.RevokeCredentials(ctx, x) },
		func(*keyring.Offline) (struct{}, error) {
			return struct{}{}, fmt.Errorf("no service runs on %s: start it first", d.dir)
		})
	return err
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
