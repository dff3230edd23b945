package identity

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/musterhq/muster/internal/domain/access"
	"github.com/musterhq/muster/internal/policy"
)

// ErrPolicies is the cause with which the Life of a key ends when its holder's policies or its networks change. The key itself keeps working.
var ErrPolicies = errors.New("the policies or the networks of the access key have changed")

// policies are the policies in force. Keys with the same policies share one policy.Set. Its pointer stays the same while nothing in it changes.
type policies struct {
	mu       sync.Mutex
	compiled map[string]compiledPolicy  // by name
	attached map[access.Target][]string // names of policies, in the order of attachment
	sets     map[string]*heldSet        // by the names of the policies in it
}

type compiledPolicy struct {
	text   string
	policy *policy.Policy // nil: this program cannot parse it, so it denies everything
}

type heldSet struct {
	set   *policy.Set
	named []policy.Named
	used  bool // since the last publication
}

// publish replaces the policies. Its error names those that this program cannot parse.
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

// names returns the names of the policies of some targets. The caller holds p.mu.
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

// targetsOf returns the targets whose policies apply to the holder of a key: the key itself or the access key behind temporary credentials, the groups of a
// person, and the role. A session whose role differs from its key's has the policies of both roles: whatever is denied to a key stays denied in every role that
// it assumes. For temporary credentials, the caller holds the lock of the sessions.
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

// PublishPolicies replaces the policies and their attachments. When it returns, they are in force for all requests, and the Life of every key whose policies
// have changed has ended. The error names the policies that this program cannot parse, which deny everything.
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
			key.policies, key.life = set, newLife()
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

// Regroup ends the Life of temporary credentials whose policies have changed: because of the policies, the role of the key behind them, or the groups of
// their person. The next request finds them with the new policies.
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

// SetOf returns the policies that apply to a key or to temporary credentials; nil: none do.
func (k AccessKey) SetOf() *policy.Set { return k.policies }

// SetFor returns the policies of some targets together, for explanations; nil: they have none.
func (k *Keys) SetFor(targets ...access.Target) *policy.Set { return k.policies.of(targets...) }

// PolicyNames returns the names of the policies of some targets together.
func (k *Keys) PolicyNames(targets ...access.Target) []string {
	k.policies.mu.Lock()
	defer k.policies.mu.Unlock()
	return k.policies.names(targets)
}

// TargetsOf returns the targets whose policies apply to a key or to temporary credentials.
func (k *Keys) TargetsOf(key AccessKey) []access.Target {
	k.sessions.mu.RLock()
	defer k.sessions.mu.RUnlock()
	return k.targetsOf(&key)
}

// SessionsOf returns the temporary credentials with an ARN that were recently used on this node.
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

// Host returns the principal of a host's agent, for policies; it has no role. id is that of a joined host, or empty for an agent with the token of a compute.
func (k *Keys) Host(id, from string) Principal {
	targets := []access.Target{{Kind: access.HostTarget, Name: access.EveryHost}}
	if id != "" {
		targets = append(targets, access.Target{Kind: access.HostTarget, Name: id})
	}
	return Principal{ID: id, Account: DefaultAccount, Address: from, policies: k.policies.of(targets...), agent: true}
}

// Restricted reports whether policies apply to the principal. If not, MayDo allows everything, and a door need not determine the resources of a request.
func (p *Principal) Restricted() bool { return p.policies != nil }

// Policies returns the policies that apply to the principal; nil: none do.
func (p *Principal) Policies() *policy.Set { return p.policies }

// Denied is the error of a request that the principal's policies do not allow. Its text is AWS's, with the statement at the end.
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

// MayDo checks a request, whose source address it fills in, against the principal's policies. Its error is a *Denied. Each door checks the role separately:
// a policy cannot allow more than the role does.
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

// MayCall is MayDo for the name of an action, on no particular resource. It denies names that are no actions.
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

// MayDoAll is MayDo for an action on several resources, all of which must be allowed. Without resources, it checks the action on no particular resource.
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
