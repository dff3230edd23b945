package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/musterhq/muster/internal/localdoor"
	"github.com/musterhq/muster/internal/operator"
	"github.com/musterhq/muster/internal/secretrotation"
)

type secretCommand struct {
	Rotate secretRotate `cmd:"" help:"Create a new generation of the secret while the service runs. It signs everything from now on; signatures of the current one are accepted until its date of last use."`
	List   secretList   `cmd:"" help:"List the generations of the secret, with the date of last use of each, and when a signature of it was last accepted."`
	Retire secretRetire `cmd:"" help:"Refuse the signatures of an earlier generation at once, for example after a leak."`
}

// secretDoor reads and changes the secret of a running service.
type secretDoor interface {
	Secrets(ctx context.Context) ([]secretrotation.Document, error)
	RotateSecret(ctx context.Context, overlap time.Duration) ([]secretrotation.Document, error)
	RetireSecret(ctx context.Context, x secretrotation.Retirement) (secretrotation.Retired, error)
}

var _ secretDoor = (*localdoor.Client)(nil)

// secretAt selects the service whose secret the command changes. The service must run: all its nodes receive a new generation before that generation signs.
type secretAt struct{ runningService }

func (a *secretAt) door(env environment, reason string) (secretDoor, error) {
	remote, local, err := a.reach(env, reason, "the secret is rotated while the service runs")
	switch {
	case err != nil:
		return nil, err
	case remote != nil:
		return &serverSecret{*remote}, nil
	}
	return local, nil
}

// serverSecret reaches the secret of a service over the network.
type serverSecret struct{ remoteService }

func (s *serverSecret) Secrets(ctx context.Context) ([]secretrotation.Document, error) {
	var all operator.SecretList
	err := s.call(ctx, http.MethodGet, operator.SecretPath, nil, &all)
	return all.Generations, err
}

func (s *serverSecret) RotateSecret(ctx context.Context, overlap time.Duration) ([]secretrotation.Document, error) {
	var all operator.SecretList
	err := s.call(ctx, http.MethodPost, operator.SecretPath+"/rotate", operator.SecretRotation{OverlapSeconds: int64(overlap / time.Second)}, &all)
	return all.Generations, err
}

func (s *serverSecret) RetireSecret(ctx context.Context, x secretrotation.Retirement) (done secretrotation.Retired, err error) {
	err = s.call(ctx, http.MethodPost, operator.SecretPath+"/"+strconv.FormatUint(uint64(x.Number), 10)+"/retire", x, &done)
	return done, err
}

type secretRotate struct {
	secretAt
	reasonFlag
	Overlap days `placeholder:"TIME" default:"90d" help:"How long signatures of the current generation are still accepted: 30m to 366d."`
}

func (c *secretRotate) Run(ctx context.Context, stdout io.Writer, env environment) error {
	if d := time.Duration(c.Overlap); d%time.Second != 0 { // --server takes seconds, and 0 for its default
		return fmt.Errorf("--overlap %s: want whole seconds", d)
	}
	door, err := c.door(env, c.Reason)
	if err != nil {
		return err
	}
	all, err := door.RotateSecret(ctx, time.Duration(c.Overlap))
	if err != nil {
		return err
	}
	var until time.Time
	var before uint32
	for _, g := range all {
		switch {
		case g.State == secretrotation.Distributed:
			_, err = fmt.Fprintf(stdout, "generation %d of the secret is being distributed, and signs once all nodes have it; waiting for %s. `muster secret list` shows when\n",
				g.Number, cmp.Or(printable(strings.Join(g.WaitsFor, ", ")), "the node that decides"))
			return err
		case g.State == secretrotation.Accepted:
			before, until = g.Number, g.Until
		case g.State == secretrotation.Signs:
			text := fmt.Sprintf("generation %d of the secret signs from now on\n", g.Number)
			if before != 0 {
				text += fmt.Sprintf("signatures of generation %d are accepted until %s; access keys derived from it keep working\n", before, until.UTC().Format(time.RFC3339))
			}
			if _, err = io.WriteString(stdout, text+"receivers of webhooks need the new key by then: muster webhook-key\n"); err != nil {
				return err
			}
		}
	}
	return nil
}

type secretList struct{ secretAt }

func (c *secretList) Run(ctx context.Context, stdout io.Writer, env environment) error {
	door, err := c.door(env, "")
	if err != nil {
		return err
	}
	all, err := door.Secrets(ctx)
	if err != nil {
		return err
	}
	table := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "GENERATION\tSTATE\tCREATED\tSIGNS SINCE\tDATE OF LAST USE\tLAST USED\tACCESS KEYS\tBY")
	for _, g := range all {
		until := shownTime(g.Until)
		if g.State == secretrotation.Ended {
			until = shownTime(cmp.Or(g.Ended, g.Until)) + " (over)"
		}
		fmt.Fprintf(table, "%d\t%s\t%s\t%s\t%s\t%s\t%d\t%s\n", g.Number, secretState(&g), shownTime(g.Created), shownTime(g.Activated), until, secretUse(&g), g.AccessKeys, printable(g.CreatedBy.String()))
	}
	return table.Flush()
}

func shownTime(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format(time.RFC3339)
}

func secretState(g *secretrotation.Document) string {
	switch {
	case len(g.WaitsFor) > 0:
		return "waits for " + printable(strings.Join(g.WaitsFor, ", "))
	case g.Destroyed:
		return "destroyed"
	}
	return g.State
}

// secretUse describes when the service last accepted something that a generation signed, and what that was.
func secretUse(g *secretrotation.Document) string {
	if g.LastUse == nil {
		return "-"
	}
	return shownTime(g.LastUse.At) + " " + printable(g.LastUse.Purpose)
}

type secretRetire struct {
	secretAt
	reasonFlag
	Generation uint32 `arg:"" help:"Number of the generation, as list shows it."`
	RevokeKeys bool   `help:"Also revoke the access keys derived from the generation. After a leak of the secret, their secrets are exposed, too."`
	Force      bool   `with:"revoke-keys" help:"With --revoke-keys: even if no access key with the role admin is left."`
	DryRun     bool   `help:"Only say what would be refused."`
}

// refusedThen describes what the service refuses after a retirement. See docs/guide/security.md#rotating-the-secret.
const refusedThen = "temporary credentials, tokens of sign-in clients, browsers' sign-ins and links, access tokens of players, auth tokens of computes, tokens of game servers, and tickets for uploads and downloads that generation %d has signed"

func (c *secretRetire) Run(ctx context.Context, stdout io.Writer, env environment) error {
	door, err := c.door(env, c.Reason)
	if err != nil {
		return err
	}
	done, err := door.RetireSecret(ctx, secretrotation.Retirement{Number: c.Generation, RevokeKeys: c.RevokeKeys, Force: c.Force, DryRun: c.DryRun})
	if err != nil {
		return err
	}
	text := "the service refuses from now on " + fmt.Sprintf(refusedThen, c.Generation) + ". Open connections stay.\n"
	if c.DryRun {
		text = "the service would refuse " + fmt.Sprintf(refusedThen, c.Generation) + ".\n"
	}
	text += "last use of the generation: " + secretUse(&done.Generation) + "\n"
	switch keys := printable(strings.Join(done.Keys, ", ")); {
	case len(done.Keys) == 0:
		text += "no valid access key is derived from it\n"
	case done.Revoked:
		text += "revoked with it: the access keys " + keys + "\n"
	case c.DryRun && c.RevokeKeys:
		text += "these access keys are derived from it, and would be revoked: " + keys + "\n"
	default:
		text += "these access keys are derived from it, and keep working: " + keys + ". If the secret has leaked, so have theirs: replace each with `muster keys rotate`, or revoke all with --revoke-keys\n"
	}
	_, err = io.WriteString(stdout, text)
	return err
}
