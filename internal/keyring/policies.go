package keyring

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/access"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/policy"
)

// PolicyDocument is the JSON form of a policy. In lists, Document is empty.
type PolicyDocument struct {
	Name      string          `json:"name"`
	Version   uint64          `json:"version"` // starts at 1 and grows by one with each change of the document
	Document  json.RawMessage `json:"document,omitempty"`
	Attached  []string        `json:"attached"` // key:ID, role:NAME or group:NAME
	Created   time.Time       `json:"created"`
	CreatedBy *Actor          `json:"createdBy,omitempty"`
	Updated   time.Time       `json:"updated"`
	UpdatedBy *Actor          `json:"updatedBy,omitempty"`
}

// PolicyChange is a new policy, or a new document for an existing one.
type PolicyChange struct {
	Name     string          `json:"name,omitempty"`
	Document json.RawMessage `json:"document"`
	Version  uint64          `json:"version,omitempty"` // of the document that the author edited; 0: a new policy
}

func documentOf(p *access.Policy, attachments []access.PolicyAttachment) PolicyDocument {
	d := PolicyDocument{
		Name: p.Name, Version: p.Version, Document: json.RawMessage(p.Text), Attached: []string{},
		Created: p.Created.Std(), CreatedBy: ActorOf(p.CreatedBy), Updated: p.Updated.Std(), UpdatedBy: ActorOf(p.UpdatedBy),
	}
	for i := range attachments {
		if attachments[i].Policy == p.Name {
			d.Attached = append(d.Attached, attachments[i].Target.String())
		}
	}
	return d
}

// changesPolicies are the events that change policies or attachments.
var changesPolicies = []kernel.Event{new(access.PolicyPut), new(access.PolicyDeleted), new(access.PolicyAttached), new(access.PolicyDetached)}

// readPolicies puts the policies of the state into force. The caller holds r.mu.
func (r *Ring) readPolicies(ctx context.Context) error {
	var all []access.Policy
	var attachments []access.PolicyAttachment
	err := r.engine.ReadHere(ctx, func(v *cell.View) error {
		all, attachments = v.Policies(), v.PolicyAttachments()
		return nil
	})
	if err != nil {
		return fmt.Errorf("read the policies: %w", err)
	}
	if err := r.PublishPolicies(all, attachments); err != nil { // they were checked before they were stored, but perhaps by a later release
		r.log.Error("this release cannot read some policies: they deny everything to the keys, roles, groups and hosts that they are attached to", "error", err)
	}
	return nil
}

// checkPolicy refuses a document that is not a valid policy.
func checkPolicy(document json.RawMessage) error {
	_, err := policy.Parse(string(document))
	if mistake, ok := errors.AsType[*policy.Mistake](err); ok {
		return domain.Refuse(domain.Invalid, "document: %s", mistake)
	}
	return err
}

// CreatePolicy creates a policy.
func (r *Ring) CreatePolicy(ctx context.Context, by access.Actor, c PolicyChange) (d PolicyDocument, err error) {
	if err := checkPolicy(c.Document); err != nil {
		return d, err
	}
	cmd := &access.CreatePolicy{Name: c.Name, Text: string(c.Document), By: by}
	if err := r.changePolicy(ctx, cmd, &cmd.Number, "policy created", by, "policy", c.Name); err != nil {
		return d, err
	}
	return documentOf(&cmd.Policy, nil), nil
}

// UpdatePolicy replaces the document of a policy. When it returns, the new one is in force at this node.
func (r *Ring) UpdatePolicy(ctx context.Context, by access.Actor, name string, c PolicyChange) (d PolicyDocument, err error) {
	if err := checkPolicy(c.Document); err != nil {
		return d, err
	}
	cmd := &access.UpdatePolicy{Name: name, Text: string(c.Document), Version: c.Version, By: by}
	if err := r.changePolicy(ctx, cmd, &cmd.Number, "policy updated", by, "policy", name); err != nil {
		return d, err
	}
	var attachments []access.PolicyAttachment
	err = r.engine.ReadHere(ctx, func(v *cell.View) error { attachments = v.PolicyAttachments(); return nil }) // without a leader: the change is made
	return documentOf(&cmd.Policy, attachments), err
}

// DeletePolicy removes a policy that is attached to nothing.
func (r *Ring) DeletePolicy(ctx context.Context, by access.Actor, name string) error {
	cmd := &access.DeletePolicy{Name: name, By: by}
	return r.changePolicy(ctx, cmd, &cmd.Number, "policy deleted", by, "policy", name)
}

// AttachPolicy attaches a policy to a target: key:ID, role:NAME, group:NAME, or the id of a key. When it returns, the policy is in force at this node.
func (r *Ring) AttachPolicy(ctx context.Context, by access.Actor, name, target string) error {
	cmd := &access.AttachPolicy{Policy: name, Target: access.ParseTarget(target), By: by}
	return r.changePolicy(ctx, cmd, &cmd.Number, "policy attached", by, "policy", name, "target", cmd.Target.String())
}

// DetachPolicy detaches a policy from a target.
func (r *Ring) DetachPolicy(ctx context.Context, by access.Actor, name, target string) error {
	cmd := &access.DetachPolicy{Policy: name, Target: access.ParseTarget(target), By: by}
	return r.changePolicy(ctx, cmd, &cmd.Number, "policy detached", by, "policy", name, "target", cmd.Target.String())
}

// changePolicy executes a command that changes policies or attachments, and logs it once it is in force at this node.
func (r *Ring) changePolicy(ctx context.Context, cmd kernel.Command, number *uint64, what string, by access.Actor, attributes ...any) error {
	if err := r.change(ctx, cmd, number); err != nil {
		return err
	}
	r.logChange(what, by, attributes...)
	return nil
}

// Policies returns all policies by name, without their documents.
func (r *Ring) Policies(ctx context.Context) (all []PolicyDocument, err error) {
	all = []PolicyDocument{}
	err = r.engine.Read(ctx, func(v *cell.View) error {
		attachments := v.PolicyAttachments()
		for _, p := range v.Policies() {
			d := documentOf(&p, attachments)
			d.Document = nil
			all = append(all, d)
		}
		return nil
	})
	slices.SortFunc(all, func(a, b PolicyDocument) int { return strings.Compare(a.Name, b.Name) })
	return all, err
}

// Policy returns a policy with its document.
func (r *Ring) Policy(ctx context.Context, name string) (d PolicyDocument, err error) {
	err = r.engine.Read(ctx, func(v *cell.View) error {
		p, ok := v.Policy(name)
		if !ok {
			return domain.Refuse(domain.NotFound, "there is no policy %.200q", name)
		}
		d = documentOf(&p, v.PolicyAttachments())
		return nil
	})
	return d, err
}
