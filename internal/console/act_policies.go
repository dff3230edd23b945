package console

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/access"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/keyring"
	"github.com/musterhq/muster/internal/policy"
)

// policyStarter is the initial text of the policy editor.
const policyStarter = `{
  "Version": "2012-10-17",
  "Statement": [
    {
      "Sid": "LookAround",
      "Effect": "Allow",
      "Action": ["gamelift:Describe*", "gamelift:List*"],
      "Resource": "*"
    }
  ]
}`

// policyFields returns the fields of the policy editor. An existing policy has a name.
func policyFields(name, text string) []*field {
	fields := []*field{{Name: "body", Label: "Document", Kind: source, Value: text, Required: true, Most: policy.DocumentMax}}
	if name == "" {
		fields = append(fields, &field{Name: "name", Label: "Name", Hint: "letters, digits and _+=,.@-", Required: true, Most: access.PolicyNameMax})
	}
	return fields
}

// policyOf returns the policy that a form is about.
func policyOf(v *cell.View, name string) (access.Policy, error) {
	p, ok := v.Policy(name)
	if !ok {
		return p, domain.Refuse(domain.NotFound, "There is no policy %.100q.", name)
	}
	return p, nil
}

const wayBack = " If administrators lock themselves out, run muster policies detach with --data on the machine of a node."

var policyActions = []*action{{
	name: "create-policy", text: "Create policy", done: "The policy exists. It takes effect once it is attached.", section: "policies", may: identity.MayAdminister, service: "muster:Service.CreatePolicy", page: policyEditorPage,
	prepare: func(_ *Door, _ *http.Request, f *form) error {
		f.Title, f.Effect, f.Fields = "New policy", "A policy says what principals may do to which resources, within their roles. It takes effect once it is attached.", policyFields("", policyStarter)
		return nil
	},
	command: func(f *form) string {
		name := cmp.Or(f.value("name"), "NAME")
		return terminal("muster policies create "+shellWord(name)+" "+shellWord(name+".json"), option{"--reason", f.value(reasonField), ""})
	},
	do: func(ctx context.Context, d *Door, by *actor, f *form) (string, error) {
		if len(mistakesIn(f.value("body"))) > 0 {
			f.Problem = "The document is not valid. Nothing was changed."
			return "", nil
		}
		p, err := d.config.Keyring.CreatePolicy(ctx, by.changes(), keyring.PolicyChange{Name: f.value("name"), Document: json.RawMessage(f.value("body"))})
		return policyPath(p.Name), err
	},
}, {
	name: "change-policy", text: "Change policy", done: "The new document is in force.", section: "policies", object: true, may: identity.MayAdminister, service: "muster:Service.UpdatePolicy", page: policyEditorPage,
	prepare: func(d *Door, r *http.Request, f *form) error {
		return d.engine.Read(r.Context(), func(v *cell.View) error {
			p, err := policyOf(v, f.ID)
			f.Title, f.Grave, f.Fields, f.Now = "Change policy "+f.ID, true, policyFields(f.ID, p.Text), "version "+strconv.FormatUint(p.Version, 10)
			f.Effect = "The new document takes effect at every node within a second, and ends connections of the keys that it is attached to." + wayBack
			return err
		})
	},
	command: func(f *form) string {
		version, _ := strings.CutPrefix(f.value(seenField), "version ")
		return terminal("muster policies update "+shellWord(f.ID)+" "+shellWord(f.ID+".json"), option{"--version", version, ""}, option{"--reason", f.value(reasonField), ""})
	},
	do: func(ctx context.Context, d *Door, by *actor, f *form) (string, error) {
		if len(mistakesIn(f.value("body"))) > 0 {
			f.Problem = "The document is not valid. Nothing was changed."
			return "", nil
		}
		text, _ := strings.CutPrefix(f.Now, "version ")
		version, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			return "", err
		}
		_, err = d.config.Keyring.UpdatePolicy(ctx, by.changes(), f.ID, keyring.PolicyChange{Document: json.RawMessage(f.value("body")), Version: version})
		return policyPath(f.ID), err
	},
}, {
	name: "attach-policy", text: "Attach", done: "The policy is attached.", section: "policies", object: true, may: identity.MayAdminister, service: "muster:Service.AttachPolicy",
	prepare: func(d *Door, r *http.Request, f *form) error {
		return d.engine.Read(r.Context(), func(v *cell.View) error {
			_, err := policyOf(v, f.ID)
			f.Title, f.Grave = "Attach policy "+f.ID, true
			f.Effect = "From now on, every request of these principals must be allowed by a statement of one of their policies. Connections of their keys end, and their clients reconnect." + wayBack
			f.Fields = []*field{{Name: "target", Label: "To", Hint: "role:NAME, group:NAME of an identity provider or of certificates, key:ID, host:ID, or host:* for all agents", Required: true, Most: access.PolicyTargetNameMax + 8, Choices: targetChoices(v)}}
			return err
		})
	},
	command: func(f *form) string {
		target := cmp.Or(f.value("target"), "TARGET")
		return terminal("muster policies attach "+shellWord(f.ID)+" "+shellWord(target), option{"--reason", f.value(reasonField), ""})
	},
	do: func(ctx context.Context, d *Door, by *actor, f *form) (string, error) {
		return policyPath(f.ID), d.config.Keyring.AttachPolicy(ctx, by.changes(), f.ID, f.value("target"))
	},
}, {
	name: "detach-policy", text: "Detach", done: "The policy is detached.", section: "policies", object: true, may: identity.MayAdminister, service: "muster:Service.DetachPolicy",
	prepare: func(d *Door, r *http.Request, f *form) error {
		return d.engine.Read(r.Context(), func(v *cell.View) error {
			name, target, _ := strings.Cut(f.ID, "/")
			if _, err := policyOf(v, name); err != nil {
				return err
			}
			for _, a := range v.PolicyAttachments() {
				if a.Policy == name && a.Target == access.ParseTarget(target) {
					f.Title, f.Grave = "Detach policy "+name+" from "+target, true
					f.Effect = "The policy no longer applies to " + target + ". Without another policy, only the role decides."
					return nil
				}
			}
			return domain.Refuse(domain.NotFound, "Policy %s is not attached to %.100q.", name, target)
		})
	},
	command: func(f *form) string {
		name, target, _ := strings.Cut(f.ID, "/")
		return terminal("muster policies detach "+shellWord(name)+" "+shellWord(target), option{"--reason", f.value(reasonField), ""})
	},
	do: func(ctx context.Context, d *Door, by *actor, f *form) (string, error) {
		name, target, _ := strings.Cut(f.ID, "/")
		return policyPath(name), d.config.Keyring.DetachPolicy(ctx, by.changes(), name, target)
	},
}, {
	name: "delete-policy", text: "Delete", done: "The policy is deleted.", section: "policies", object: true, may: identity.MayAdminister, service: "muster:Service.DeletePolicy",
	prepare: func(d *Door, r *http.Request, f *form) error {
		return d.engine.Read(r.Context(), func(v *cell.View) error {
			_, err := policyOf(v, f.ID)
			f.Title, f.Confirm, f.Effect = "Delete policy "+f.ID, f.ID, "Its document is lost. An attached policy cannot be deleted: detach it first."
			return err
		})
	},
	command: func(f *form) string {
		return terminal("muster policies delete "+shellWord(f.ID), option{"--reason", f.value(reasonField), ""})
	},
	do: func(ctx context.Context, d *Door, by *actor, f *form) (string, error) {
		return "policies", d.config.Keyring.DeletePolicy(ctx, by.changes(), f.ID)
	},
}}
