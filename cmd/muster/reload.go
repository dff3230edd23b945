package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/musterhq/muster/internal/localdoor"
	"github.com/musterhq/muster/internal/operator"
	"github.com/musterhq/muster/internal/settings"
)

type reloadCommand struct {
	dataFlag
	reasonFlag
	Server  string `placeholder:"URL" instead:"data,secret-key-file" help:"Ask the service at this URL instead of the one that runs on --data, with an admin key from the environment (AWS_ACCESS_KEY_ID, AWS_PROFILE) or --profile."`
	Profile string `placeholder:"NAME" with:"server" help:"AWS profile whose access key or sign-in is used for --server."`
	JSON    bool   `name:"json" help:"Print the answer as JSON."`
}

// Run makes a service reload its settings. The service reads its own settings file and environment, not those of this command.
func (c *reloadCommand) Run(ctx context.Context, env environment, stdout io.Writer) error {
	done, err := c.reload(ctx, env)
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(stdout, done)
	}
	_, err = io.WriteString(stdout, reloadText(&done))
	return err
}

func (c *reloadCommand) reload(ctx context.Context, env environment) (done settings.Reloaded, err error) {
	if c.Server != "" {
		at := adminChange{serviceFlags{dataFlag: c.dataFlag, PublicURL: c.Server, Profile: c.Profile}, c.reasonFlag}
		err = at.post(ctx, env, operator.ReloadPath, struct{}{}, &done)
		return done, err
	}
	if err := mustExist(c.Data); err != nil {
		return done, err
	}
	client, err := c.client()
	if err == nil {
		client.Reason = c.Reason
		done, err = client.Reload(ctx)
	}
	if errors.Is(err, localdoor.ErrNoService) {
		return done, fmt.Errorf("%w: it reads its settings when it starts", err)
	}
	return done, err
}

// reloadText returns the answer as text.
func reloadText(done *settings.Reloaded) string {
	b := &strings.Builder{}
	change := func(c *settings.Changed) {
		fmt.Fprintf(b, "  %s: %s → %s", c.Setting, cmp.Or(c.Before, "-"), cmp.Or(c.After, "-"))
		if c.From != "" {
			fmt.Fprintf(b, "  (%s)", c.From)
		}
		if c.Why != "" {
			fmt.Fprintf(b, "; %s", c.Why)
		}
		b.WriteString("\n")
	}
	if len(done.Changed)+len(done.ReadAgain) == 0 {
		b.WriteString("Nothing changed that takes effect now.\n")
	} else {
		b.WriteString("In force now:\n")
	}
	for i := range done.Changed {
		change(&done.Changed[i])
	}
	for _, f := range done.ReadAgain {
		fmt.Fprintf(b, "  %s: %s was read again\n", f.Setting, f.File)
	}
	if len(done.NeedsRestart) > 0 {
		b.WriteString("Need a restart:\n")
	}
	for i := range done.NeedsRestart {
		change(&done.NeedsRestart[i])
	}
	if len(done.Overridden) > 0 {
		b.WriteString("In the file without effect:\n")
	}
	for _, o := range done.Overridden {
		fmt.Fprintf(b, "  %s: %s is overridden by %s\n", o.Setting, o.At, o.By)
	}
	if done.File == "" {
		b.WriteString("The service was started without a settings file: its flags and variables change only with a restart.\n")
	}
	if done.Node != "" {
		fmt.Fprintf(b, "This was node %s. Each node of the cluster has its own settings: run this command at the others, too.\n", done.Node)
	}
	return b.String()
}
