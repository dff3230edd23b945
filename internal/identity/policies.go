package identity

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/musterhq/muster/internal/domain/access"
	"github.com/musterhq/muster/internal/policy"
)

// ErrPolicies is the cause of the end of the Life of a key when the policies change that hold for its holder, or the networks that it works from. The key itself keeps working.
var ErrPolicies = errors.New("the policies or the networks of the access key have changed")

// policies are those in force. Keys whose policies are the same share one policy.Set, and its pointer stays the same as long as nothing in it changes.
type policies struct {
	mu       sync.Mutex
	compiled map[string]compiledPolicy  // by name
	attached map[access.Target][]string // names of policies, the first attached one first
	sets     map[string]*heldSet        // by the names of the policies in it
}

type compiledPolicy struct {
	text   string
	policy *policy.Policy // nil: this program cannot read it, so it denies everything
}

type heldSet struct {
	set   *policy.Set
	named []policy.Named
	used  bool // since the last publication
}

// publish replaces the policies. Its error names those that this program cannot read.
func (p *policies) publish(all []access.Policy, attachments []access.PolicyAttachment) (unread error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	before := p.compiled
	p.compiled, p.attached = map[string]compiledPolicy{}, map[access.Target][]string{}
	for i := range all {
		x := &all[i]
		if was, ok := before[x.Name]; ok && was.text == x.Text {
			p.compiled[x.Name] = was
			continue
		}
		compiled, err := policy.Parse(x.Text)
		if err != nil {
			unread = errors.Join(unread, fmt.Errorf("policy %s: %w", x.Name, err))
		}
		p.compiled[x.Name] = compiledPolicy{x.Text, compiled}
	}
	for i := range attachments {
		x := &attachments[i]
		p.attached[x.Target] = append(p.attached[x.Target], x.Policy)
	}
	for names, held := range p.sets {
		if !held.used {
			delete(p.sets, names)
		}
		held.used = false
	}
	return unread
}

// of returns the policies of some targets; nil if none has any.
func (p *policies) of(targets ...access.Target) *policy.Set {
	p.mu.Lock()
	defer p.mu.Unlock()
	names := p.names(targets)
	if len(names) == 0 {
		return nil
	}
	named := make([]policy.Named, len(names))
	for i, name := range names {
		named[i] = policy.Named{Name: name, Policy: p.compiled[name].policy}
	}
	joined := strings.Join(names, "\x00")
	held, ok := p.sets[joined]
	if !ok || !slices.Equal(held.named, named) {
		held = &heldSet{set: policy.NewSet(named), named: named}
		if p.sets == nil {
			p.sets = map[string]*heldSet{}
		}
		p.sets[joined] = held
	}
	held.used = true
	return held.set
}

// names is called with p.mu held.
func (p *policies) names(targets []access.Target) (names []string) {
	if len(p.attached) == 0 {
		return nil
	}
	for _, target := range targets {
		for _, name := range p.attached[target] {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// targetsOf returns whose policies hold for the holder of a key: those of the key, or of the access key behind temporary credentials, of the groups of a
// person, and of the role. A session with another role than its key has the policies of both roles: what is denied to a key stays denied whatever role it
// assumes. For temporary credentials its caller holds the lock of the sessions.
func (k *Keys) targetsOf(key *AccessKey) []access.Target {
	role := access.Target{Kind: access.RoleTarget, Name: key.Role.String()}
	x := key.session
	switch {
	case x == nil:
		return []access.Target{{Kind: access.KeyTarget, Name: key.ID}, role}
	case x.Source == FromKey:
		own := access.Target{Kind: access.KeyTarget, Name: x.Holder}
		if holder, ok := k.Find(x.Holder); ok && holder.Role != key.Role {
			return []access.Target{own, {Kind: access.RoleTarget, Name: holder.Role.String()}, role}
		}
		return []access.Target{own, role}
	}
	targets, groups := []access.Target{role}, x.Groups
	if x.Source == FromPerson {
		groups = k.sessions.signIns[x.SignIn].Groups
	}
	for _, group := range groups {
		targets = append(targets, access.Target{Kind: access.GroupTarget, Name: group})
	}
	return targets
}

func (k *Keys) policiesOf(key *AccessKey) *policy.Set { return k.policies.of(k.targetsOf(key)...) }

// PublishPolicies replaces the policies, and where they are attached. When it returns, they are in force for all requests, and the Life of every key has ended
// whose policies are others now. An error names the policies that this program cannot read, which deny everything.
func (k *Keys) PublishPolicies(all []access.Policy, attachments []access.PolicyAttachment) error {
	k.publishing.Lock()
	defer k.publishing.Unlock()
	unread := k.policies.publish(all, attachments)
	before := k.known.Load()
	now := *before
	now.keys = make(map[string]AccessKey, len(before.keys))
	var ended []*life
	for id, key := range before.keys {
		if set := k.policiesOf(&key); set != key.policies {
			ended = append(ended, key.life)
			ctx, end := context.WithCancelCause(context.Background())
			key.policies, key.life = set, &life{ctx: ctx, end: end}
		}
		now.keys[id] = key
	}
	if len(ended) > 0 {
		k.known.Store(&now)
		for _, l := range ended {
			l.end(ErrPolicies)
		}
	}
	k.Regroup()
	return unread
}

// Regroup ends the Life of temporary credentials whose policies are others now: the policies have changed, or the role of the key behind them, or the groups of
// their person. Their next request finds them with the policies of then.
func (k *Keys) Regroup() {
	s := &k.sessions
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, key := range s.known {
		if k.policiesOf(&key) != key.policies {
			key.life.end(ErrPolicies)
			delete(s.known, id)
		}
	}
}

// SetOf returns the policies that hold for a key or for temporary credentials; nil: none do.
func (k AccessKey) SetOf() *policy.Set { return k.policies }

// SetFor returns the policies of some targets together, for explanations; nil: they have none.
func (k *Keys) SetFor(targets ...access.Target) *policy.Set { return k.policies.of(targets...) }

// PolicyNames returns the names of the policies of some targets together.
func (k *Keys) PolicyNames(targets ...access.Target) []string {
	k.policies.mu.Lock()
	defer k.policies.mu.Unlock()
	return k.policies.names(targets)
}

// TargetsOf returns whose policies hold for a key or for temporary credentials.
func (k *Keys) TargetsOf(key AccessKey) []access.Target { return k.targetsOf(&key) }

// SessionsOf returns the temporary credentials with an ARN that were used here lately.
func (k *Keys) SessionsOf(arn string) (all []AccessKey) {
	k.sessions.mu.RLock()
	defer k.sessions.mu.RUnlock()
	for _, key := range k.sessions.known {
		if key.session.ARN() == arn {
			all = append(all, key)
		}
	}
	return all
}

// Host is the agent of a host that has joined, or with an empty id one that has come with the token of a compute, as policies see it: it has no role.
func (k *Keys) Host(id, from string) Principal {
	targets := []access.Target{{Kind: access.HostTarget, Name: access.EveryHost}}
	if id != "" {
		targets = append(targets, access.Target{Kind: access.HostTarget, Name: id})
	}
	return Principal{ID: id, Account: DefaultAccount, Address: from, policies: k.policies.of(targets...), agent: true}
}

// Restricted reports whether policies hold for the principal. If not, MayDo allows everything, and a door need not look for what a request is about.
func (p *Principal) Restricted() bool { return p.policies != nil }

// Policies returns the policies that hold for the principal; nil: none do.
func (p *Principal) Policies() *policy.Set { return p.policies }

// Denied is the error of a request that the policies of its principal do not allow. Its text is that of AWS, with the statement at the end.
type Denied struct {
	By       string // ARN of the principal
	Action   policy.Action
	Resource string
	Decision policy.Decision
}

func (d *Denied) Error() string {
	said := fmt.Sprintf("User: %s is not authorized to perform: %s on resource: %s ", d.By, d.Action, d.Resource)
	if d.Decision.Denied {
		return said + "with an explicit deny in " + d.Decision.By.String()
	}
	return said + fmt.Sprintf("because no identity-based policy allows the %s action", d.Action)
}

// MayDo asks the policies of the principal about a request, whose source address it fills in. Its error is a *Denied. The role is asked elsewhere, by each door:
// a policy allows nothing that the role does not.
func (p *Principal) MayDo(q policy.Request) error {
	if p.policies == nil {
		return nil
	}
	q.Source = policy.Address(p.Address)
	if d := p.policies.Decide(&q); !d.Allowed {
		return &Denied{p.ARN(), q.Action, q.Resource, d}
	}
	return nil
}

// MayCall is MayDo for a call by the name of its action, on no resource in particular. A call that is no action is denied.
func (p *Principal) MayCall(name string) error {
	if p.policies == nil {
		return nil
	}
	a, ok := policy.Of(name)
	if !ok {
		//lint:ignore ST1005 as AWS begins it, and clients show it
		return fmt.Errorf("User: %s is not authorized to perform: %s, which no policy can allow in this release", p.ARN(), name)
	}
	return p.MayDo(policy.Request{Action: a, Resource: policy.AnyResource})
}

// MayDoAll is MayDo for an action on several resources, all of which must be allowed; without any it is one on no resource in particular.
func (p *Principal) MayDoAll(a policy.Action, resources ...string) error {
	if p.policies == nil {
		return nil
	}
	if len(resources) == 0 {
		return p.MayDo(policy.Request{Action: a, Resource: policy.AnyResource})
	}
	for _, arn := range resources {
		if err := p.MayDo(policy.Request{Action: a, Resource: arn}); err != nil {
			return err
		}
	}
	return nil
}
