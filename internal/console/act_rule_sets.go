package console

import (
	"cmp"
	"context"
	"net/http"
	"strings"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/matchmaking"
)

// Bounds of the rule-set editor's form.
const (
	editorBytesMax  = 2 << 20
	ruleSetMax      = 65_535 // characters, as in the API
	arrivalsTextMax = 256 << 10
)

// starter is the initial text of the editor.
const starter = `{
  "ruleLanguageVersion": "1.0",
  "playerAttributes": [
    {"name": "skill", "type": "number", "default": 1000}
  ],
  "teams": [
    {"name": "red", "minPlayers": 2, "maxPlayers": 2},
    {"name": "blue", "minPlayers": 2, "maxPlayers": 2}
  ],
  "rules": [
    {
      "name": "NearSkill",
      "type": "distance",
      "measurements": ["avg(teams[*].players.attributes[skill])"],
      "referenceValue": "avg(flatten(teams[*].players.attributes[skill]))",
      "maxDistance": 200
    }
  ],
  "expansions": [
    {"target": "rules[NearSkill].maxDistance", "steps": [{"waitTimeSeconds": 20, "value": 500}]}
  ]
}`

var ruleSetActions = []*action{{
	name: "create-rule-set", text: "Create rule set", done: "The rule set exists. No configuration uses it yet.", section: "matchmaking", operation: "CreateMatchmakingRuleSet",
	page: editorPage, bytesMax: editorBytesMax,
	prepare: func(d *Door, r *http.Request, f *form) error {
		f.Title, f.Effect = "Rule-set editor", "A rule set never changes, so your text becomes a new one. It makes matches once a configuration uses it."
		return d.engine.Read(r.Context(), func(v *cell.View) error {
			from, body, err := startingPoint(v, r.URL.Query().Get("from"), r.URL.Query().Get("configuration"))
			f.Fields = []*field{
				{Name: "body", Label: "Rule set", Kind: source, Value: body, Required: true, Most: ruleSetMax},
				{Name: "name", Label: "Name", Hint: "of the new rule set", Required: true, Most: 128},
				{Name: "configuration", Label: "Configuration", Hint: "whose time-out and tickets trials use, and which may use the rule set once it exists", Kind: oneOf, Choices: []pick{{"", "none"}}},
				{Name: "compare", Label: "Compare with", Hint: "in a simulation", Kind: oneOf, Value: from, Choices: []pick{{"", "nothing"}}},
				{Name: "minutes", Label: "Minutes to simulate", Hint: "of an invented population, 1 to 1440", Value: "30", Most: 4},
				{Name: "arrivals", Label: "Players", Kind: source, Most: arrivalsTextMax,
					Hint: "a population, or recorded arrivals as JSON lines or CSV, as muster simulate takes them; empty: one with each attribute is invented"},
			}
			for _, c := range v.Configurations("", "", choicesMax-1) {
				f.field("configuration").Choices = append(f.field("configuration").Choices, pick{c.Name, c.Name + ", which uses " + c.RuleSet})
			}
			for _, s := range v.RuleSets("", choicesMax-1) {
				f.field("compare").Choices = append(f.field("compare").Choices, pick{s.Name, s.Name})
			}
			return err
		})
	},
	command: func(f *form) string {
		name := cmp.Or(f.value("name"), "NAME")
		return terminal("aws gamelift create-matchmaking-rule-set", option{"--name", name, ""}, option{"--rule-set-body", "file://" + name + ".json", ""})
	},
	do: func(ctx context.Context, d *Door, by *actor, f *form) (string, error) {
		if _, err := d.perform(ctx, by, "CreateMatchmakingRuleSet", map[string]any{"Name": f.value("name"), "RuleSetBody": f.value("body")}); err != nil {
			return "", err
		}
		if c := f.value("configuration"); c != "" {
			return "do/use-rule-set/" + escaped(c) + "?ruleSet=" + escaped(f.value("name")), nil
		}
		return "rule-sets", nil
	},
}, {
	name: "use-rule-set", text: "Use another rule set", done: "The configuration now makes matches with the rule set.", section: "matchmaking", object: true, operation: "UpdateMatchmakingConfiguration",
	prepare: func(d *Door, r *http.Request, f *form) error {
		return d.engine.Read(r.Context(), func(v *cell.View) error {
			c, ok := v.Configuration(f.ID)
			if !ok {
				return domain.Refuse(domain.NotFound, "There is no matchmaking configuration %.100q.", f.ID)
			}
			f.Title = "Rule set of configuration " + c.Name
			f.Effect = "The configuration uses " + c.RuleSet + ". With another one, tickets that wait are searched through again, and stay in their places; matches that were made stay as they are."
			f.Now = "the rule set " + c.RuleSet
			f.Fields = []*field{{Name: "ruleSet", Label: "Rule set", Value: c.RuleSet, Required: true, Most: 128}}
			for _, s := range v.RuleSets("", choicesMax) {
				f.field("ruleSet").Choices = append(f.field("ruleSet").Choices, pick{s.Name, s.Name})
			}
			return nil
		})
	},
	command: func(f *form) string {
		return terminal("aws gamelift update-matchmaking-configuration", option{"--name", f.ID, ""}, option{"--rule-set-name", f.value("ruleSet"), "NAME"})
	},
	do: func(ctx context.Context, d *Door, by *actor, f *form) (string, error) {
		d.changing.Lock()
		defer d.changing.Unlock()
		c, _, err := d.configurationOf(ctx, f.ID)
		if err != nil {
			return "", err
		}
		f.Now = "the rule set " + c.RuleSet
		if f.stale(); !f.valid() {
			return "", nil
		}
		_, err = d.perform(ctx, by, "UpdateMatchmakingConfiguration", map[string]any{"Name": f.ID, "RuleSetName": f.value("ruleSet")})
		return "matchmaking", err
	},
}}

// startingPoint returns the initial name and body of the editor: those of a rule set, or of the rule set that a configuration uses.
func startingPoint(v *cell.View, from, configuration string) (name, body string, err error) {
	if from == "" && configuration != "" {
		c, ok := v.Configuration(configuration)
		if !ok {
			return "", "", domain.Refuse(domain.NotFound, "There is no matchmaking configuration %.100q.", configuration)
		}
		from = c.RuleSet
	}
	if from == "" {
		return "", starter, nil
	}
	set, ok := v.RuleSet(from)
	if !ok {
		return "", "", domain.Refuse(domain.NotFound, "There is no rule set %.100q.", from)
	}
	return from, strings.TrimSpace(set.Body), nil
}

// configurationOf returns the configuration named in the editor's form, and its rule set.
func (d *Door) configurationOf(ctx context.Context, name string) (c matchmaking.Configuration, set matchmaking.RuleSet, err error) {
	err = d.engine.Read(ctx, func(v *cell.View) error {
		var ok bool
		if c, ok = v.Configuration(name); !ok {
			return domain.Refuse(domain.NotFound, "There is no matchmaking configuration %.100q.", name)
		}
		if set, ok = v.RuleSet(c.RuleSet); !ok {
			return domain.Refuse(domain.NotFound, "There is no rule set %.100q.", c.RuleSet)
		}
		return nil
	})
	return c, set, err
}
