package access

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/wire"
)

// Bounds of policies. All policies are in the state of every node.
const (
	PoliciesMax            = 256
	PolicyTextMax          = 10 << 10 // bytes
	PolicyNameMax          = 128      // bytes
	PolicyTargetNameMax    = 256      // bytes
	AttachmentsOfTargetMax = 10
	AttachmentsMax         = 4096

	policyLevel = 2
)

// Policy is a named text that says what principals may do to which resources: docs/guide/policies.md. This room does not interpret the text: the
// caller of a command has compiled it, and the nodes compile it again.
type Policy struct {
	Name      string
	Text      string
	Version   uint64 // starts at 1 and is incremented with each change of the text
	Created   domain.Time
	CreatedBy Actor
	Updated   domain.Time // equal to Created until the first change
	UpdatedBy Actor
}

// Level returns the level of the snapshot part.
func (*Policy) Level() uint { return policyLevel }

// Fields of a Policy.
func (x *Policy) Fields(c *wire.Codec) {
	c.String(1, &x.Name)
	c.String(2, &x.Text)
	wire.Int(c, 3, &x.Version)
	wire.Int(c, 4, &x.Created)
	wire.Sub(c, 5, &x.CreatedBy, x.CreatedBy != Actor{}, (*Actor).Fields)
	wire.Int(c, 6, &x.Updated)
	wire.Sub(c, 7, &x.UpdatedBy, x.UpdatedBy != Actor{}, (*Actor).Fields)
}

// TargetKind is a kind of target to which a policy can be attached.
type TargetKind uint8

// The numbers are in the journal and never change.
const (
	KeyTarget   TargetKind = iota + 1 // an access key, by its id
	RoleTarget                        // all principals with a role
	GroupTarget                       // all people in a group of an identity provider, and backends that a rule puts into the group
	HostTarget                        // the agent of a host, by its id; EveryHost: all agents
)

var targetKindNames = [...]string{KeyTarget: "key", RoleTarget: "role", GroupTarget: "group", HostTarget: "host"}

// EveryHost is the name of the HostTarget for all agents, including those that use a compute's token.
const EveryHost = "*"

func (k TargetKind) String() string {
	if k == 0 || int(k) >= len(targetKindNames) {
		return fmt.Sprintf("TargetKind(%d)", uint8(k))
	}
	return targetKindNames[k]
}

// Target identifies the principals whose requests a policy restricts.
type Target struct {
	Kind TargetKind
	Name string // id of the access key or host, name of the role or of the group
}

// ParseTarget parses the text form of a Target: role:NAME, group:NAME, host:ID or key:ID. The prefix key: may be omitted.
func ParseTarget(text string) Target {
	for _, kind := range []TargetKind{KeyTarget, RoleTarget, GroupTarget, HostTarget} {
		if name, ok := strings.CutPrefix(text, kind.String()+":"); ok {
			return Target{kind, name}
		}
	}
	return Target{KeyTarget, text}
}

func (x Target) String() string { return x.Kind.String() + ":" + x.Name }

// check refuses a target that no principal can match.
func (x Target) check() error {
	switch x.Kind {
	case KeyTarget:
	case RoleTarget:
		if _, err := ParseRole(x.Name); err != nil {
			return domain.Refuse(domain.Invalid, "%s", err)
		}
	case GroupTarget, HostTarget:
		if x.Name == "" || len(x.Name) > PolicyTargetNameMax || !utf8.ValidString(x.Name) || strings.ContainsFunc(x.Name, func(r rune) bool { return r < ' ' || r == 0x7f }) {
			return domain.Refuse(domain.Invalid, "%s %.100q: want a name of 1 to %d bytes without control characters", x.Kind, x.Name, PolicyTargetNameMax)
		}
	default:
		return domain.Refuse(domain.Invalid, "target %s: want the kind key, role, group or host", x.Kind)
	}
	return nil
}

// PolicyAttachment is the attachment of a policy to a target.
type PolicyAttachment struct {
	Policy string
	Target Target
	At     domain.Time
	By     Actor
}

// Level returns the level of the snapshot part.
func (*PolicyAttachment) Level() uint { return policyLevel }

// Fields of a PolicyAttachment.
func (x *PolicyAttachment) Fields(c *wire.Codec) {
	c.Shared(1, &x.Policy)
	wire.Int(c, 2, &x.Target.Kind)
	c.Shared(3, &x.Target.Name)
	wire.Int(c, 4, &x.At)
	wire.Sub(c, 5, &x.By, x.By != Actor{}, (*Actor).Fields)
}

func (c *State) policy(name string) (p Policy, ok bool) {
	at := slices.IndexFunc(c.policies, func(x Policy) bool { return x.Name == name })
	if at < 0 {
		return p, false
	}
	return c.policies[at], true
}

func noPolicy(name string) error {
	return domain.Refuse(domain.NotFound, "there is no policy %.200q", name)
}

func checkPolicyName(name string) error {
	odd := func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("_+=,.@-", r)
	}
	if name == "" || len(name) > PolicyNameMax || strings.ContainsFunc(name, odd) {
		return domain.Refuse(domain.Invalid, "policy %.200q: want a name of 1 to %d letters, digits and characters of _+=,.@-", name, PolicyNameMax)
	}
	return nil
}

func checkPolicyText(name, text string) error {
	if text == "" || len(text) > PolicyTextMax || !utf8.ValidString(text) {
		return domain.Refuse(domain.Invalid, "policy %s: its text has %d bytes; want 1 to %d of UTF-8", name, len(text), PolicyTextMax)
	}
	return nil
}

// CreatePolicy creates a policy, which takes effect once it is attached. A repeat finds the policy.
type CreatePolicy struct {
	Name, Text string
	By         Actor

	// Result
	Policy Policy
	Number uint64 // of the journal entry
}

// Decide emits PolicyPut.
func (cmd *CreatePolicy) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	if err := checkPolicyName(cmd.Name); err != nil {
		return err
	}
	if err := checkPolicyText(cmd.Name, cmd.Text); err != nil {
		return err
	}
	if old, ok := t.policy(cmd.Name); ok {
		if old.Text != cmd.Text {
			return domain.Refuse(domain.Conflict, "policy %s exists already, at version %d; update it instead", cmd.Name, old.Version)
		}
		cmd.Policy = old
		return nil
	}
	if n := len(t.policies); n >= PoliciesMax {
		return domain.Refuse(domain.LimitExceeded, "%d policies exist, which is the limit", n)
	}
	by := cmd.By.Cut()
	cmd.Policy = Policy{Name: cmd.Name, Text: cmd.Text, Version: 1, Created: t.Now, CreatedBy: by, Updated: t.Now, UpdatedBy: by}
	t.Emit(&PolicyPut{cmd.Policy})
	cmd.Number = t.Number()
	return nil
}

// UpdatePolicy replaces the text of a policy. Version is that of the text that its author has edited.
type UpdatePolicy struct {
	Name, Text string
	Version    uint64
	By         Actor

	// Result
	Policy Policy
	Number uint64
}

// Decide emits PolicyPut. A repeat changes nothing.
func (cmd *UpdatePolicy) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	old, ok := t.policy(cmd.Name)
	if !ok {
		return noPolicy(cmd.Name)
	}
	if err := checkPolicyText(cmd.Name, cmd.Text); err != nil {
		return err
	}
	switch {
	case old.Text == cmd.Text && (cmd.Version == old.Version || cmd.Version+1 == old.Version):
		cmd.Policy = old
		return nil
	case cmd.Version != old.Version:
		return domain.Refuse(domain.Conflict, "policy %s is at version %d, but the update is based on version %d: the policy has changed since; read it again", cmd.Name, old.Version, cmd.Version)
	}
	cmd.Policy = old
	cmd.Policy.Text, cmd.Policy.Version, cmd.Policy.Updated, cmd.Policy.UpdatedBy = cmd.Text, old.Version+1, t.Now, cmd.By.Cut()
	t.Emit(&PolicyPut{cmd.Policy})
	cmd.Number = t.Number()
	return nil
}

// DeletePolicy removes a policy without attachments.
type DeletePolicy struct {
	Name string
	By   Actor

	// Result
	Number uint64
}

// Decide emits PolicyDeleted.
func (cmd *DeletePolicy) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	if _, ok := t.policy(cmd.Name); !ok {
		return noPolicy(cmd.Name)
	}
	for _, a := range t.attachments {
		if a.Policy == cmd.Name {
			return domain.Refuse(domain.Conflict, "policy %s is attached to %s: detach it first", cmd.Name, a.Target)
		}
	}
	t.Emit(&PolicyDeleted{Name: cmd.Name, By: cmd.By.Cut()})
	cmd.Number = t.Number()
	return nil
}

// AttachPolicy attaches a policy to a target. A repeat changes nothing.
type AttachPolicy struct {
	Policy string
	Target Target
	By     Actor

	// Result
	Number uint64
}

// Decide emits PolicyAttached.
func (cmd *AttachPolicy) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	if _, ok := t.policy(cmd.Policy); !ok {
		return noPolicy(cmd.Policy)
	}
	if err := cmd.Target.check(); err != nil {
		return err
	}
	if cmd.Target.Kind == KeyTarget {
		if err := t.mustWork(cmd.Target.Name); err != nil {
			return err
		}
	}
	ofTarget := 0
	for _, a := range t.attachments {
		if a.Target != cmd.Target {
			continue
		}
		if a.Policy == cmd.Policy {
			return nil
		}
		ofTarget++
	}
	switch {
	case ofTarget >= AttachmentsOfTargetMax:
		return domain.Refuse(domain.LimitExceeded, "%s has %d policies, which is the limit", cmd.Target, ofTarget)
	case len(t.attachments) >= AttachmentsMax:
		return domain.Refuse(domain.LimitExceeded, "policies are attached in %d places, which is the limit; attach one to a role instead of to each key", len(t.attachments))
	}
	t.Emit(&PolicyAttached{PolicyAttachment{Policy: cmd.Policy, Target: cmd.Target, At: t.Now, By: cmd.By.Cut()}})
	cmd.Number = t.Number()
	return nil
}

// DetachPolicy detaches a policy from a target.
type DetachPolicy struct {
	Policy string
	Target Target
	By     Actor

	// Result
	Number uint64
}

// Decide emits PolicyDetached.
func (cmd *DetachPolicy) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	if !slices.ContainsFunc(t.attachments, func(a PolicyAttachment) bool { return a.Policy == cmd.Policy && a.Target == cmd.Target }) {
		return domain.Refuse(domain.NotFound, "policy %.200q is not attached to %.300s", cmd.Policy, cmd.Target)
	}
	t.Emit(&PolicyDetached{Policy: cmd.Policy, Target: cmd.Target.Kind, TargetName: cmd.Target.Name, By: cmd.By.Cut()})
	cmd.Number = t.Number()
	return nil
}

// applyPolicy makes new slices, because a snapshot may share the old ones.
func (c *State) applyPolicy(event kernel.Event) {
	c.Touch()
	switch e := event.(type) {
	case *PolicyPut:
		c.policies = append(slices.DeleteFunc(slices.Clone(c.policies), func(x Policy) bool { return x.Name == e.Policy.Name }), e.Policy)
	case *PolicyDeleted:
		c.policies = slices.DeleteFunc(slices.Clone(c.policies), func(x Policy) bool { return x.Name == e.Name })
	case *PolicyAttached:
		c.attachments = append(slices.Clone(c.attachments), e.Attachment)
	case *PolicyDetached:
		c.detach(func(a *PolicyAttachment) bool {
			return a.Policy == e.Policy && a.Target == Target{e.Target, e.TargetName}
		})
	}
}

func (c *State) detach(gone func(*PolicyAttachment) bool) {
	if slices.ContainsFunc(c.attachments, func(a PolicyAttachment) bool { return gone(&a) }) {
		c.attachments = slices.DeleteFunc(slices.Clone(c.attachments), func(a PolicyAttachment) bool { return gone(&a) })
	}
}

// detachKey detaches all policies from a revoked key, which no longer needs them.
func (c *State) detachKey(id string) {
	c.detach(func(a *PolicyAttachment) bool { return a.Target == Target{KeyTarget, id} })
}

// Policies returns all policies, in the order of their last changes.
func (v *View) Policies() []Policy {
	v.SawAll()
	return slices.Clone(v.c.policies)
}

// Policy returns a policy.
func (v *View) Policy(name string) (Policy, bool) {
	v.SawAll()
	return v.c.policy(name)
}

// PolicyAttachments returns all attachments, oldest first.
func (v *View) PolicyAttachments() []PolicyAttachment {
	v.SawAll()
	return slices.Clone(v.c.attachments)
}
