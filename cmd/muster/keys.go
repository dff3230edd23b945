package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"text/tabwriter"
	"time"

	"github.com/musterhq/muster/internal/audit"
	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/keyring"
	"github.com/musterhq/muster/internal/localdoor"
	"github.com/musterhq/muster/internal/secretkey"
)

// dataFlag is for commands that work on the data directory and need no other setting.
type dataFlag struct {
	Data          string `name:"data" placeholder:"DIR" default:"${data}" help:"Data directory of the service."`
	SecretKeyFile string `name:"secret-key-file" placeholder:"FILE" help:"The key of the service's --secret-key-file, if it has one."`
}

// key is the one that encrypts the secrets of the data directory.
func (f *dataFlag) key() (*secretkey.Key, error) { return secretkey.Read(f.SecretKeyFile, f.Data) }

// secret is the cell's secret.
func (f *dataFlag) secret() (s identity.CellSecret, err error) {
	key, err := f.key()
	if err != nil {
		return s, err
	}
	return identity.ReadCellSecret(f.Data, key)
}

// client reaches the service that runs on the data directory.
func (f *dataFlag) client() (*localdoor.Client, error) {
	key, err := f.key()
	if err != nil {
		return nil, err
	}
	return localdoor.NewClient(f.Data, key, userName())
}

type keysCommand struct {
	Create keysCreate `cmd:"" help:"Create an access key and show it with its secret. A running service accepts it at once."`
	List   keysList   `cmd:"" help:"List all keys, without secrets."`
	Revoke keysRevoke `cmd:"" help:"Revoke a key for good and close its connections. A running service refuses it when the command returns."`

	RevokeCredentials keysRevokeCredentials `cmd:"" help:"Revoke temporary credentials before they expire: those of one session, or all that were issued to a holder."`
}

// keysAt selects the service whose keys the command changes.
type keysAt struct {
	dataFlag
	LimitAccessKeys int    `name:"limit-access-keys" hidden:""` // the service's setting, used while no service runs
	Server          string `placeholder:"URL" help:"Call the service at this URL instead of using --data, with an admin key of the environment (AWS_ACCESS_KEY_ID, AWS_PROFILE) or of --profile."`
	Profile         string `placeholder:"NAME" help:"AWS profile whose access key signs for --server."`
}

// door returns the access to the keys, for changes with a reason. With exists it requires that the directory exists; otherwise it may create it.
func (a *keysAt) door(env environment, exists bool, reason string) (keyDoor, error) {
	if err := audit.CheckReason(reason); err != nil {
		return nil, err
	}
	if a.Server != "" {
		door, err := newServerKeys(a.Server, a.Profile, env)
		if err == nil {
			door.reason = reason
		}
		return door, err
	}
	if exists {
		if err := mustExist(a.Data); err != nil {
			return nil, err
		}
	}
	key, err := a.key()
	if err != nil {
		return nil, err
	}
	return &dataKeys{dir: a.Data, key: key, keysMax: a.LimitAccessKeys, mayYield: true, notes: os.Stderr, reason: reason}, nil
}

type keysCreate struct {
	keysAt
	reasonFlag
	Role   identity.Role `required:"" placeholder:"ROLE" help:"Permissions of the key: admin, backend, client or readonly."`
	Name   string        `help:"Name of the key in the list."`
	Format string        `enum:"text,env" default:"text" help:"text for people, env for a shell."`
}

func (c *keysCreate) Run(ctx context.Context, stdout io.Writer, env environment) error {
	door, err := c.door(env, false, c.Reason)
	if err != nil {
		return err
	}
	key, err := door.create(ctx, keyring.New{Role: c.Role, Name: c.Name})
	if err != nil {
		return err
	}
	if c.Format == "env" {
		_, err = fmt.Fprintf(stdout, "export AWS_ACCESS_KEY_ID=%s\nexport AWS_SECRET_ACCESS_KEY=%s\n", key.ID, key.Secret)
		return err
	}
	_, err = fmt.Fprintf(stdout, "access key id      %s\nsecret access key  %s\nrole               %s\n", key.ID, key.Secret, key.Role)
	return err
}

type keysList struct {
	keysAt
}

func (c *keysList) Run(ctx context.Context, stdout io.Writer, env environment) error {
	door, err := c.door(env, true, "")
	if err != nil {
		return err
	}
	list, err := door.list(ctx)
	if err != nil {
		return err
	}
	table := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "ID\tROLE\tACCOUNT\tCREATED\tREVOKED\tNAME\tBY")
	for _, key := range list {
		revoked, by := "-", key.CreatedBy
		if !key.Works() {
			revoked, by = key.Revoked.Format(time.RFC3339), cmp.Or(key.RevokedBy, by)
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", key.ID, key.Role, key.Account, key.Created.Format(time.RFC3339), revoked, cmp.Or(printable(key.Name), "-"), printable(by.String()))
	}
	return table.Flush()
}

type keysRevoke struct {
	keysAt
	reasonFlag
	ID    string `arg:"" help:"Id of the key."`
	Force bool   `help:"With --server: revoke even the last admin key. --data needs no --force."`
}

func (c *keysRevoke) Run(ctx context.Context, stdout io.Writer, env environment) error {
	door, err := c.door(env, true, c.Reason)
	if err != nil {
		return err
	}
	if _, err := door.revoke(ctx, c.ID, c.Force); err != nil {
		return err
	}
	_, err = fmt.Fprintf(stdout, "%s is revoked: the service refuses its requests, and has closed its connections\n", c.ID)
	return err
}

type keysRevokeCredentials struct {
	keysAt
	reasonFlag
	Session     string    `placeholder:"ID" xor:"which" required:"" help:"Access key id of the temporary credentials, ASIA…."`
	Holder      string    `placeholder:"NAME" xor:"which" required:"" help:"Id of the access key that they were issued to, or PROVIDER/SUBJECT of a web identity."`
	IssuedUntil time.Time `placeholder:"TIME" help:"With --holder: credentials that were issued later keep working, such as 2026-11-23T12:00:00Z. Default: now."`
}

func (c *keysRevokeCredentials) Run(ctx context.Context, stdout io.Writer, env environment) error {
	door, err := c.door(env, true, c.Reason)
	if err != nil {
		return err
	}
	if err := door.revokeCredentials(ctx, keyring.Credentials{Session: c.Session, Holder: c.Holder, IssuedUntil: c.IssuedUntil}); err != nil {
		return err
	}
	_, err = fmt.Fprintf(stdout, "the temporary credentials of %s are revoked: the service refuses them, and has closed their connections\n", cmp.Or(c.Session, c.Holder))
	return err
}
