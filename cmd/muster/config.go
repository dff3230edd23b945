package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/musterhq/muster/internal/settings"
)

type configCommand struct {
	Show  configShow  `cmd:"" default:"withargs" help:"Show every setting, its value, and where that comes from."`
	Check configCheck `cmd:"" help:"Check a settings file without a service."`
}

// configCheck reads a file as serve would, but without flags and variables, which could hide a mistake in the file.
type configCheck struct {
	File string `arg:"" help:"Settings file, JSON."`
}

// Run reports every mistake that it finds.
func (c *configCheck) Run(ctx context.Context, stdout io.Writer) error {
	err := run(ctx, []string{"config", "show", "--config", c.File}, nil, io.Discard)
	switch {
	case err == nil:
	case strings.Contains(err.Error(), c.File): // the error names the line
		return err
	default:
		return fmt.Errorf("%s: %w", c.File, err)
	}
	_, err = fmt.Fprintf(stdout, "%s: all settings are valid\n", c.File)
	return err
}

// configShow takes the same flags as serve, to show their effect.
type configShow struct {
	settings.Settings
}

// Run prints all settings, also invalid ones, and then reports what is wrong with them.
func (c *configShow) Run(stdout io.Writer, sources *sources) error {
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
