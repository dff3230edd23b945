package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/musterhq/muster/internal/settings"
)

// configCommand takes the same flags as serve, to show their effect.
type configCommand struct {
	settings.Settings
}

// Run prints all settings, also invalid ones, and then reports what is wrong with them.
func (c *configCommand) Run(stdout io.Writer, sources *sources) error {
	table := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "SETTING\tVALUE\tFROM")
	for _, x := range c.All(sources.of) {
		fmt.Fprintf(table, "%s\t%s\t%s\n", x.Name, cmp.Or(x.Value, "-"), x.From)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	options, err := c.PlayerFlowOptions()
	if len(options) > 0 {
		fmt.Fprintln(table, "\nOPTION OF PLAYER FLOW\tVALUE\tFROM")
		for _, o := range options {
			fmt.Fprintf(table, "%s\t%s\t%s\n", o.Name, cmp.Or(o.Value, "-"), o.From)
		}
		if err := table.Flush(); err != nil {
			return err
		}
	}
	return errors.Join(c.Check(), err)
}
