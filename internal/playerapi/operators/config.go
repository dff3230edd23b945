package operators

import (
	"context"
	"encoding/json"

	"github.com/danielgtaylor/huma/v2"

	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/playerflow"
	"github.com/musterhq/muster/internal/playerapi/objects"
	"github.com/musterhq/muster/internal/playerapi/principal"
	"github.com/musterhq/muster/internal/playerapi/problem"
)

// SetConfigRequest changes options.
type SetConfigRequest struct {
	Why
	Config objects.Object `json:"config" doc:"A document in the form of the settings file: sections with options, and queues. Options that it does not name stay; null reverts an earlier setting."`
}

// ConfigAnswer is the configuration in force.
type ConfigAnswer struct {
	Config    objects.Object  `json:"config" doc:"All options, as a document."`
	Overrides objects.Object  `json:"overrides" doc:"The operators' changes, as a document."`
	Ignored   []problem.Field `json:"ignored" doc:"The parts that have no effect, because they contradict the settings with which the service was started."`
	Options   []OptionState   `json:"options"`
	Changes   []Change        `json:"changes" doc:"The latest ones by operators, oldest first."`
}

// OptionState is one option.
type OptionState struct {
	Name    string `json:"name" doc:"With its section: PartyServiceConfig.maxMembers."`
	Value   Value  `json:"value"`
	Default Value  `json:"default"`
	Source  string `json:"source" enum:"DEFAULT,START,OPERATOR" doc:"Where the value comes from: DEFAULT, START (flags and settings file), or OPERATOR (SetConfig)."`
	Range   string `json:"range"`
	Applies string `json:"applies" enum:"AT_ONCE,NEW_DEADLINES,NEW_PARTIES,NEW_GAMES" doc:"What a new value counts for."`
	Queue   bool   `json:"queue" doc:"A queue may have its own."`
	Note    string `json:"note,omitempty"`
}

// Change is a change by an operator.
type Change struct {
	At     string         `json:"at" format:"date-time"`
	By     string         `json:"by" doc:"The access key; empty in development."`
	Reason string         `json:"reason"`
	Config objects.Object `json:"config"`
}

// Value is the value of an option: a string, a number, a boolean or a list.
type Value string

// MarshalJSON writes the value.
func (v Value) MarshalJSON() ([]byte, error) { return []byte(v), nil }

// Schema returns the schema of a value: any type.
func (Value) Schema(huma.Registry) *huma.Schema { return &huma.Schema{} }

func (d *door) declareConfig() {
	operatorCall(d, "Operator.GetConfig", "The configuration in force, and the source of each value.",
		func(ctx context.Context, _ *Why) (*ConfigAnswer, error) { return d.configNow(ctx) })
	operatorCall(d, "Operator.SetConfig", "Changes options while the service runs: all named ones, or none. The change survives restarts.",
		func(ctx context.Context, body *SetConfigRequest) (*ConfigAnswer, error) {
			document, err := body.Config.MarshalJSON()
			if err != nil {
				return nil, err
			}
			cmd := playerflow.SetFlowConfig{Document: string(document), By: principal.Of(ctx).ID, Reason: body.Reason}
			err = d.State.Do(ctx, &cmd)
			if err == nil {
				err = d.State.Reconfigure(ctx) // the change is in force before the call returns
			}
			if err != nil {
				return nil, err
			}
			return d.configNow(ctx)
		})
}

func (d *door) configNow(ctx context.Context) (*ConfigAnswer, error) {
	var c flow.Config
	var set flow.Overrides
	var ignored flow.Faults
	err := d.State.Read(ctx, func(v *cell.View) error {
		c = v.FlowConfig()
		set, ignored = v.FlowOverrides()
		return nil
	})
	if err != nil {
		return nil, err
	}
	answer := &ConfigAnswer{Config: objects.Object(c.Document()), Overrides: objects.Object(set.Document), Ignored: problem.FieldsOf(ignored), Changes: []Change{}}
	for _, x := range set.Changes {
		answer.Changes = append(answer.Changes, Change{objects.Stamp(x.At), x.By, x.Reason, objects.Object(x.Document)})
	}
	defaults, start := flow.DefaultConfig(), d.State.CellConfig().PlayerFlow.Flow
	for _, o := range flow.Options() {
		x := OptionState{
			Name: o.Path(), Value: valueOf(&o, &c), Default: valueOf(&o, &defaults), Source: "DEFAULT", Range: o.Want(), Applies: o.When.String(),
			Queue: o.Queue, Note: o.Note,
		}
		switch {
		case set.Document != "" && flow.Says(set.Document, &o) && !ignores(ignored, o.Path()):
			x.Source = "OPERATOR"
		case valueOf(&o, start) != x.Default:
			x.Source = "START"
		}
		answer.Options = append(answer.Options, x)
	}
	return answer, nil
}

func ignores(ignored flow.Faults, path string) bool {
	for _, f := range ignored {
		if f.Path == path {
			return true
		}
	}
	return false
}

func valueOf(o *flow.Option, c *flow.Config) Value {
	text, err := json.Marshal(o.Value(c))
	if err != nil {
		return "null" // unreachable: a value is a string, a number, a boolean or a list of strings
	}
	return Value(text)
}
