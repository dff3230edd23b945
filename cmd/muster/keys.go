package main

import (
	"fmt"
	"io"
	"os"
	"text/tabwriter"
	"time"

	"github.com/musterhq/muster/internal/identity"
)

// dataFlag is for commands that work on the data directory and need no other setting.
type dataFlag struct {
	Data string `name:"data" placeholder:"DIR" default:"${data}" help:"Data directory of the service."`
}

// openExistingKeys does not make a new directory: a slip in its name should show.
func (d dataFlag) openExistingKeys() (*identity.Keys, error) {
	if _, err := os.Stat(d.Data); err != nil {
		return nil, fmt.Errorf("data directory: %w", err)
	}
	return identity.OpenKeys(d.Data)
}

type keysCommand struct {
	Create keysCreate `cmd:"" help:"Make an access key and show it with its secret."`
	List   keysList   `cmd:"" help:"List all keys, without secrets."`
	Revoke keysRevoke `cmd:"" help:"End a key for good. A running service refuses it within seconds."`
}

type keysCreate struct {
	dataFlag
	Role   identity.Role `required:"" placeholder:"ROLE" help:"What the key may do: admin, backend, client or readonly."`
	Name   string        `help:"What to call it, for the list."`
	Format string        `enum:"text,env" default:"text" help:"text for people, env for a shell to read."`
}

func (c *keysCreate) Run(stdout io.Writer) error {
	keys, err := identity.OpenKeys(c.Data)
	if err != nil {
		return err
	}
	key, err := keys.Create(c.Role, c.Name)
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
	dataFlag
}

func (c *keysList) Run(stdout io.Writer) error {
	keys, err := c.openExistingKeys()
	if err != nil {
		return err
	}
	list, err := keys.List()
	if err != nil {
		return err
	}
	table := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "ID\tROLE\tACCOUNT\tCREATED\tREVOKED\tNAME")
	for _, key := range list {
		revoked := "-"
		if !key.Revoked.IsZero() {
			revoked = key.Revoked.Format(time.RFC3339)
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", key.ID, key.Role, key.Account, key.Created.Format(time.RFC3339), revoked, key.Name)
	}
	return table.Flush()
}

type keysRevoke struct {
	dataFlag
	ID string `arg:"" help:"Id of the key."`
}

func (c *keysRevoke) Run(stdout io.Writer) error {
	keys, err := c.openExistingKeys()
	if err != nil {
		return err
	}
	if err := keys.Revoke(c.ID); err != nil {
		return err
	}
	_, err = fmt.Fprintf(stdout, "%s is revoked\n", c.ID)
	return err
}
