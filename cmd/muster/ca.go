package main

import (
	"fmt"
	"io"

	"github.com/musterhq/muster/internal/listen/devca"
)

type caCommand struct {
	dataFlag
	PEM bool `name:"pem" help:"Print only the certificate, for a file."`
}

func (c *caCommand) Run(stdout io.Writer) error {
	authority, err := devca.Load(c.Data)
	if err != nil {
		return err
	}
	if _, err := stdout.Write(authority.PEM()); err != nil || c.PEM {
		return err
	}
	_, err = fmt.Fprint(stdout, "\n", authority.TrustText())
	return err
}
