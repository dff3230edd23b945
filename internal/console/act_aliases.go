package console

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/identity"
)

var aliasActions = []*action{{
	name: "pause-alias", text: "Pause", done: "The alias is paused: callers get its message.", section: "aliases", object: true, operation: "UpdateAlias",
	prepare: func(d *Door, r *http.Request, f *form) error {
		return d.prepareAlias(r, f, func(_ *cell.View, a *fleet.Alias) error {
			f.Title, f.Effect = "Pause alias "+a.Name, "New game sessions through this alias are refused with the message. Running ones stay."
			f.Fields = []*field{{Name: "message", Label: "Message", Hint: "what callers get", Value: a.Message, Required: true}}
			return nil
		})
	},
	command: func(f *form) string {
		return terminal("aws gamelift update-alias", option{"--alias-id", f.ID, ""}, option{"--routing-strategy", routing(map[string]string{"Type": "TERMINAL", "Message": f.value("message")}), ""})
	},
	do: func(ctx context.Context, d *Door, by *actor, f *form) (string, error) {
		_, err := d.perform(ctx, by, "UpdateAlias", map[string]any{"AliasId": f.ID, "RoutingStrategy": map[string]string{"Type": "TERMINAL", "Message": f.value("message")}})
		return "aliases", err
	},
}, {
	name: "route-alias", text: "Route to a fleet", done: "New game sessions by the alias go to the fleet.", section: "aliases", object: true, operation: "UpdateAlias",
	prepare: func(d *Door, r *http.Request, f *form) error {
		return d.prepareAlias(r, f, func(v *cell.View, a *fleet.Alias) error {
			f.Title, f.Effect = "Route alias "+a.Name, "All new game sessions through this alias go to the fleet at once. Running ones stay. To move in steps, use a rollout."
			f.Fields = []*field{fleetField(v, a.Fleet)}
			return nil
		})
	},
	command: func(f *form) string {
		strategy := map[string]string{"Type": "SIMPLE", "FleetId": f.value("fleet")}
		if f.value("fleet") == "" {
			strategy["FleetId"] = "FLEET"
		}
		return terminal("aws gamelift update-alias", option{"--alias-id", f.ID, ""}, option{"--routing-strategy", routing(strategy), ""})
	},
	do: func(ctx context.Context, d *Door, by *actor, f *form) (string, error) {
		_, err := d.perform(ctx, by, "UpdateAlias", map[string]any{"AliasId": f.ID, "RoutingStrategy": map[string]string{"Type": "SIMPLE", "FleetId": f.value("fleet")}})
		return "aliases", err
	},
}, {
	name: "start-rollout", text: "Roll out", done: "The rollout has begun.", section: "aliases", object: true, may: identity.MayAdminister, service: "muster:Service.StartRollout",
	prepare: func(d *Door, r *http.Request, f *form) error {
		return d.prepareAlias(r, f, func(v *cell.View, a *fleet.Alias) error {
			f.Title = "Roll out alias " + a.Name
			f.Effect = "New game sessions through this alias move from fleet " + a.Fleet + " to another one in steps, and roll back if too much fails there. Running ones stay."
			to := fleetField(v, "")
			to.Label = "New fleet"
			f.Fields = []*field{
				to,
				{Name: "steps", Label: "Steps", Hint: "percentage of new game sessions for the new fleet: rising, the last is 100", Value: "10, 50, 100", Required: true, Most: 200},
				{Name: "time", Label: "Time of each step", Hint: "such as 10m or 1h30m", Value: "10m", Required: true, Most: 20},
				{Name: "failures", Label: "Failures", Hint: "the alias rolls back when at least this many server processes or game sessions fail in a step,", Value: "3", Required: true, Most: 10},
				{Name: "percent", Label: "Failure percent", Hint: "and they are more than this percentage of those in the step", Value: "20", Required: true, Most: 3},
				{Name: "keep", Label: "The old fleet keeps its hosts at the end", Kind: onOff},
			}
			return nil
		})
	},
	command: func(f *form) string {
		keep := ""
		if f.value("keep") != "" {
			keep = " --keep"
		}
		return terminal("muster rollout", option{"--alias", f.ID, ""}, option{"--to", f.value("fleet"), "FLEET"}, option{"--steps", strings.ReplaceAll(f.value("steps"), " ", ""), ""},
			option{"--step-time", f.value("time"), ""}, option{"--failures", f.value("failures"), ""}, option{"--failure-percent", f.value("percent"), ""}) + keep
	},
	do: func(ctx context.Context, d *Door, by *actor, f *form) (string, error) {
		cmd := hosting.StartRollout{
			Alias: f.ID, To: f.value("fleet"), Weights: f.percents("steps"), Failures: int32(f.number("failures", 1, 1_000_000)), FailurePercent: int32(f.number("percent", 0, 100)),
			Keep: f.value("keep") != "", By: by.name(),
		}
		var err error
		if cmd.StepTime, err = time.ParseDuration(f.value("time")); err != nil || cmd.StepTime < hosting.RolloutStepMin || cmd.StepTime > hosting.RolloutStepMax || cmd.StepTime%time.Second != 0 {
			f.field("time").refuse("whole seconds from 1s to 168h")
		}
		if !f.valid() {
			return "", nil
		}
		return "aliases", d.engine.Do(ctx, &cmd)
	},
}, {
	name: "undo-rollout", text: "Undo rollout", done: "New game sessions go to the old fleet again.", section: "aliases", object: true, may: identity.MayAdminister, service: "muster:Service.UndoRollout",
	prepare: func(d *Door, r *http.Request, f *form) error {
		return d.prepareAlias(r, f, func(v *cell.View, a *fleet.Alias) error {
			for _, x := range v.Rollouts() {
				if x.Alias == a.ID && (x.Phase == fleet.RolloutMoving || x.Phase == fleet.RolloutDone) {
					f.Title = "Undo the rollout of alias " + a.Name
					f.Effect = "New game sessions through this alias go to fleet " + x.From + " again. If it was drained, it gets its hosts back first."
					return nil
				}
			}
			return domain.Refuse(domain.Invalid, "Alias %s has no rollout to undo.", a.Name)
		})
	},
	command: func(f *form) string { return terminal("muster rollout --undo", option{"--alias", f.ID, ""}) },
	do: func(ctx context.Context, d *Door, by *actor, f *form) (string, error) {
		return "aliases", d.engine.Do(ctx, &hosting.UndoRollout{Alias: f.ID, By: by.name()})
	},
}}

func (d *Door) prepareAlias(r *http.Request, f *form, fill func(*cell.View, *fleet.Alias) error) error {
	return d.engine.Read(r.Context(), func(v *cell.View) error {
		a, ok := v.Alias(f.ID)
		if !ok {
			return domain.Refuse(domain.NotFound, "There is no alias %.100q.", f.ID)
		}
		return fill(v, &a)
	})
}

// fleetField returns an input for a fleet's id, with suggestions.
func fleetField(v *cell.View, id string) *field {
	x := &field{Name: "fleet", Label: "Fleet", Hint: "its id", Value: id, Required: true, Most: 512}
	for _, f := range v.Fleets(0, "", choicesMax) {
		x.Choices = append(x.Choices, pick{f.ID, f.Name})
	}
	return x
}

// routing formats a routing strategy for a terminal: as JSON, because its message may contain any character.
func routing(strategy map[string]string) string { return string(mustJSON(strategy)) }

// percents parses a comma-separated list of integers.
func (f *form) percents(name string) (all []int32) {
	for part := range strings.SplitSeq(f.value(name), ",") {
		n, err := strconv.ParseInt(strings.TrimSpace(part), 10, 32)
		if err != nil || n < 1 || n > 100 || len(all) >= hosting.RolloutStepsMax || len(all) > 0 && int32(n) <= all[len(all)-1] {
			f.field(name).refuse("rising whole numbers from 1 to 100 between commas, " + strconv.Itoa(hosting.RolloutStepsMax) + " at most")
			return nil
		}
		all = append(all, int32(n))
	}
	if all[len(all)-1] != 100 {
		f.field(name).refuse("100 as the last step")
	}
	return all
}
