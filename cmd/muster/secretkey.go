package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/musterhq/muster/internal/datadir"
	"github.com/musterhq/muster/internal/plural"
	"github.com/musterhq/muster/internal/secretkey"
)

type secretKeyCommand struct {
	Create secretKeyCreate `cmd:"" help:"Write a new key to a file, for --secret-key-file."`
	Change secretKeyChange `cmd:"" help:"Encrypt the secrets of a data directory with another key. The service must be stopped."`
	Remove secretKeyRemove `cmd:"" help:"Store the secrets of a data directory without encryption. The service must be stopped."`
}

type secretKeyCreate struct {
	File string `arg:"" help:"File to write. It must not exist; keep it outside of the data directory and its backups."`
}

func (c *secretKeyCreate) Run(stdout io.Writer) error {
	key, err := secretkey.Create(c.File)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(stdout, "%s has the new secret key %s. Keep a second copy where backups do not go: without the key, neither the data directory nor its backups can be used.\n", c.File, key.ID())
	return err
}

type secretKeyChange struct {
	dataFlag
	reasonFlag
	To string `name:"to" required:"" placeholder:"FILE" help:"File with the new key."`
}

func (c *secretKeyChange) Run(stdout io.Writer) error {
	if c.To == "" {
		return errors.New("to is empty: want a file with the new key; muster secret-key remove stores the secrets without encryption")
	}
	to, err := secretkey.Read(c.To, c.Data)
	if err != nil {
		return fmt.Errorf("--to: %w", err)
	}
	changed, err := c.changeTo(to)
	if err != nil {
		return err
	}
	recorded := c.recordMade(c.Data, "secret-key change", "secret key", to.ID())
	_, err = fmt.Fprintf(stdout, "the secrets of %s are now encrypted with the secret key %s (%s changed): start the service with --secret-key-file %s\n", c.Data, to.ID(), plural.Of(changed, "file", "files"), c.To)
	return errors.Join(recorded, err)
}

type secretKeyRemove struct {
	dataFlag
	reasonFlag
}

func (c *secretKeyRemove) Run(stdout io.Writer) error {
	changed, err := c.changeTo(nil)
	if err != nil {
		return err
	}
	recorded := c.recordMade(c.Data, "secret-key remove", "secret key", "")
	_, err = fmt.Fprintf(stdout, "the secrets of %s are no longer encrypted (%s changed): start the service without --secret-key-file\n", c.Data, plural.Of(changed, "file", "files"))
	return errors.Join(recorded, err)
}

func (f *dataFlag) changeTo(to *secretkey.Key) (changed int, err error) {
	from, err := f.takeOver()
	if err != nil {
		return 0, err
	}
	return datadir.ChangeKey(datadir.Options{Dir: f.Data, Program: "muster secret-key", Key: from}, to)
}
