package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/operator"
)

type rolloutCommand struct {
	Start  rolloutStart  `cmd:"" default:"withargs" help:"Move the new game sessions of an alias to another fleet, at once or in steps; or undo that. Running game sessions stay where they are."`
	Status rolloutStatus `cmd:"" help:"Show the latest rollout of each alias."`
}

type rolloutStart struct {
	serviceFlags
	reasonFlag
	Alias          string        `required:"" placeholder:"ALIAS" help:"Id, ARN or name of the alias."`
	To             string        `placeholder:"FLEET" xor:"what" help:"Id or ARN of the fleet that gets the new game sessions."`
	Undo           bool          `xor:"what" instead:"steps,step-time,failures,failure-percent,keep" help:"Send new game sessions to the old fleet again. One that has drained gets its hosts back first."`
	Steps          []int32       `placeholder:"PERCENT,…" default:"100" help:"Share of new game sessions that goes to the new fleet in each step: rising, the last one 100, 20 steps at most."`
	StepTime       time.Duration `default:"10m" help:"How long each step lasts, including the last, after which the old fleet drains."`
	Failures       int32         `default:"3" help:"Roll back when at least this many server processes of the new fleet ended with an error in a step, or this many of its game sessions were never active, and"`
	FailurePercent int32         `default:"20" help:"they are more than this percentage of those in the step."`
	Keep           bool          `help:"The old fleet keeps its hosts at the end."`
	Wait           bool          `help:"Wait for the end. The exit status is 1 if the alias was rolled back."`
	JSON           bool          `name:"json" help:"Print JSON."`
}

func (c *rolloutStart) Run(ctx context.Context, stdout io.Writer, env environment) error {
	if c.To == "" && !c.Undo {
		return errors.New("--to FLEET or --undo is required; muster rollout status shows the current state")
	}
	if c.StepTime%time.Second != 0 {
		return fmt.Errorf("--step-time %s: want whole seconds", c.StepTime)
	}
	service, err := c.reach(ctx, env, identity.MayAdminister)
	if err != nil {
		return err
	}
	service.reason = c.Reason
	path, body := "rollouts/undo", any(operator.RolloutUndo{Alias: c.Alias})
	if !c.Undo {
		path, body = "rollouts", operator.NewRollout{
			Alias: c.Alias, To: c.To, Steps: c.Steps, StepSeconds: int64(c.StepTime / time.Second), Failures: c.Failures, FailurePercent: c.FailurePercent, Keep: c.Keep,
		}
	}
	var x operator.Rollout
	if err := service.call(ctx, http.MethodPost, path, body, &x); err != nil {
		return err
	}
	wanted := "DONE"
	if c.Undo {
		wanted = "UNDONE"
	}
	if c.Wait {
		if x, err = c.await(ctx, service, x); err != nil {
			return err
		}
	}
	if err := printRollouts(stdout, c.JSON, []operator.Rollout{x}); err != nil {
		return err
	}
	if c.Wait && x.Phase != wanted {
		return fmt.Errorf("the rollout is %s: %s", x.Phase, x.Why)
	}
	return nil
}

// awaitPatience is how long every answer may be an error before --wait gives up. It outlasts a restart of the service.
const awaitPatience = 5 * time.Minute

// await polls every second until a rollout is neither MOVING nor RETURNING.
func (c *rolloutStart) await(ctx context.Context, service remoteService, x operator.Rollout) (operator.Rollout, error) {
	for answered := time.Now(); x.Phase == "MOVING" || x.Phase == "RETURNING"; {
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return x, ctx.Err()
		}
		list, err := rollouts(ctx, service, x.Alias)
		if err == nil && (len(list) != 1 || !list[0].Started.Equal(x.Started)) {
			return x, errors.New("the rollout was replaced by another one")
		}
		switch {
		case err == nil:
			x, answered = list[0], time.Now()
		case time.Since(answered) > awaitPatience:
			return x, fmt.Errorf("no answer about the rollout for %s: %w", awaitPatience, err)
		}
	}
	return x, nil
}

type rolloutStatus struct {
	serviceFlags
	Alias string `placeholder:"ALIAS" help:"Only the rollout of this alias: id, ARN or name."`
	JSON  bool   `name:"json" help:"Print JSON."`
}

func (c *rolloutStatus) Run(ctx context.Context, stdout io.Writer, env environment) error {
	service, err := c.reach(ctx, env, identity.MayLook)
	if err != nil {
		return err
	}
	list, err := rollouts(ctx, service, c.Alias)
	if err != nil {
		return err
	}
	return printRollouts(stdout, c.JSON, list)
}

func rollouts(ctx context.Context, service remoteService, alias string) ([]operator.Rollout, error) {
	path := "rollouts"
	if alias != "" {
		path += "?alias=" + url.QueryEscape(alias)
	}
	var list operator.RolloutList
	err := service.call(ctx, http.MethodGet, path, nil, &list)
	return list.Rollouts, err
}

func printRollouts(stdout io.Writer, asJSON bool, all []operator.Rollout) error {
	if asJSON {
		return printJSON(stdout, operator.RolloutList{Rollouts: all})
	}
	table := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "ALIAS\tPHASE\tSTEP\tNEW SESSIONS TO\tUNTIL\tFAILED PROCESSES\tFAILED SESSIONS\tOLD FLEET\tSESSIONS\tNEW FLEET\tSESSIONS")
	for i := range all {
		r := &all[i]
		until, to := "-", "the old fleet"
		if !r.StepEnds.IsZero() {
			until = r.StepEnds.Format(time.RFC3339)
		}
		if r.Percent > 0 {
			to = strconv.Itoa(int(r.Percent)) + " % the new fleet"
		}
		fmt.Fprintf(table, "%s\t%s\t%d of %d\t%s\t%s\t%d of %d\t%d of %d\t%s\t%d\t%s\t%d\n", printable(r.Name), r.Phase, r.Step, len(r.Steps), to, until,
			r.ProcessesFailed, r.Processes, r.GameSessionsFailed, r.GameSessions, r.From, r.OldGameSessions, r.To, r.NewGameSessions)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for i := range all {
		if why := strings.TrimSpace(all[i].Why); why != "" {
			if _, err := fmt.Fprintf(stdout, "%s: %s\n", printable(all[i].Name), printable(why)); err != nil {
				return err
			}
		}
	}
	return nil
}
