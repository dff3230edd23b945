package keyring

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/access"
	"github.com/musterhq/muster/internal/domain/keyvalue"
	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/policy"
)

// AccessQuestion asks whether a principal may take an action.
type AccessQuestion struct {
	Who      string   `json:"who"`      // id of an access key, role:NAME, group:NAME, host:ID, or the ARN of a key or session
	Action   string   `json:"action"`   // such as gamelift:CreateFleet
	Resource string   `json:"resource"` // an ARN, or *
	SourceIP string   `json:"sourceIp,omitempty"`
	Tags     []string `json:"tags,omitempty"`        // of the resource: KEY=VALUE
	NewTags  []string `json:"requestTags,omitempty"` // that the request gives to the resource
}

// AccessAnswer answers an AccessQuestion with the reason.
type AccessAnswer struct {
	Allowed  bool     `json:"allowed"`
	Why      string   `json:"why"`
	Who      string   `json:"who"`
	Role     string   `json:"role,omitempty"`
	Policies []string `json:"policies"`            // that apply to the principal
	Policy   string   `json:"policy,omitempty"`    // that decided
	Sid      string   `json:"sid,omitempty"`       // of the statement that decided
	Number   int      `json:"statement,omitempty"` // that decided, from 1
}

// RolesOf returns the roles that may take an action at the doors; false: no door has this action.
type RolesOf func(policy.Action) (identity.Roles, bool)

// subject is the principal whose access is explained.
type subject struct {
	name    string
	role    identity.Role // NoRole: a group, whose people have roles of their own
	targets []access.Target
}

// ExplainAccess answers a question with the keys and policies in force at this node.
func (r *Ring) ExplainAccess(q AccessQuestion, roles RolesOf) (AccessAnswer, error) {
	var a AccessAnswer
	action, ok := policy.Of(q.Action)
	if !ok {
		return a, domain.Refuse(domain.Invalid, "action %.100q: want a full name, such as gamelift:CreateFleet; `muster access actions` lists them", q.Action)
	}
	request := policy.Request{Action: action, Resource: q.Resource}
	if q.Resource != policy.AnyResource && strings.Count(q.Resource, ":") < 5 {
		return a, domain.Refuse(domain.Invalid, "resource %.200q: want an ARN, or *", q.Resource)
	}
	if q.SourceIP != "" {
		if _, err := netip.ParseAddr(q.SourceIP); err != nil {
			return a, domain.Refuse(domain.Invalid, "source address %.100q: want an IP address", q.SourceIP)
		}
		request.Source = policy.Address(q.SourceIP)
	}
	var err error
	if request.ResourceTags, err = tagsOf(q.Tags); err != nil {
		return a, err
	}
	if request.RequestTags, err = tagsOf(q.NewTags); err != nil {
		return a, err
	}
	who, err := r.subjectOf(q.Who)
	if err != nil {
		return a, err
	}
	a.Who, a.Policies = who.name, append([]string{}, r.PolicyNames(who.targets...)...) // JSON must have an empty list, not null
	if who.role != access.NoRole {
		a.Role = who.role.String()
		if may, known := roles(action); known && !may.Allow(who.role) {
			a.Why = fmt.Sprintf("The role %s may not take the action %s, whatever policies say.", who.role, action)
			return a, nil
		}
	}
	set := r.SetFor(who.targets...)
	if set == nil {
		a.Allowed, a.Why = true, fmt.Sprintf("The role %s may take the action, and no policy is attached to %s.", who.role, names(who.targets))
		if who.role == access.NoRole {
			a.Why = "No policy is attached to the group; the role of each of its people decides."
			if who.targets[0].Kind == access.HostTarget {
				a.Why = "No policy is attached to the host, and none to all hosts."
			}
		}
		return a, nil
	}
	d := set.Decide(&request)
	a.Allowed = d.Allowed
	switch {
	case d.Allowed || d.Denied:
		a.Policy, a.Sid, a.Number = d.By.Policy, d.By.Sid, d.By.Number+1
		verb := "allows"
		if d.Denied {
			verb = "denies"
		}
		a.Why = capital(d.By.String()) + " " + verb + " it."
	default:
		bare := func(t access.Target) bool { return len(r.PolicyNames(t)) == 0 }
		a.Why = fmt.Sprintf("No statement allows it, and policies are attached to %s.", names(slices.DeleteFunc(slices.Clone(who.targets), bare)))
	}
	return a, nil
}

func capital(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

func names(targets []access.Target) string {
	var all []string
	for _, t := range targets {
		all = append(all, t.String())
	}
	return strings.Join(all, " and ")
}

// subjectOf finds the subject with a name.
func (r *Ring) subjectOf(who string) (s subject, err error) {
	target := access.ParseTarget(who)
	if arn := strings.Split(who, ":"); len(arn) == 6 && arn[0] == "arn" {
		return r.subjectOfARN(who, arn[5])
	}
	switch target.Kind {
	case access.RoleTarget:
		if s.role, err = access.ParseRole(target.Name); err != nil {
			return s, domain.Refuse(domain.Invalid, "%s", err)
		}
		return subject{target.String(), s.role, []access.Target{target}}, nil
	case access.GroupTarget:
		return subject{target.String(), access.NoRole, []access.Target{target}}, nil
	}
	if target.Kind == access.HostTarget {
		every := access.Target{Kind: access.HostTarget, Name: access.EveryHost}
		return subject{target.String(), access.NoRole, slices.Compact([]access.Target{every, target})}, nil
	}
	key, ok := r.Find(target.Name)
	if !ok {
		return s, domain.Refuse(domain.NotFound, "there is no valid access key %.200q; want an access key id, role:NAME, group:NAME, host:ID or the ARN of a session", target.Name)
	}
	return subject{identity.UserARN(key.Account, key.Role, key.ID), key.Role, r.TargetsOf(key)}, nil
}

// subjectOfARN accepts the ARN of a user, which ends with the id of the access key, or the ARN of a session that was recently used at this node.
func (r *Ring) subjectOfARN(arn, resource string) (s subject, err error) {
	if parts := strings.Split(resource, "/"); len(parts) == 3 && parts[0] == "user" {
		return r.subjectOf("key:" + parts[2])
	}
	var found []identity.AccessKey
	for _, key := range r.SessionsOf(arn) {
		if !slices.ContainsFunc(found, func(x identity.AccessKey) bool { return x.SetOf() == key.SetOf() }) {
			found = append(found, key)
		}
	}
	switch len(found) {
	case 0:
		return s, domain.Refuse(domain.NotFound, "session %.200q was not used at this node recently; explain the access key behind it, or its role", arn)
	case 1:
		return subject{arn, found[0].Role, r.TargetsOf(found[0])}, nil
	}
	return s, domain.Refuse(domain.Conflict, "several holders with different policies have a session %.200q: explain the access key behind it", arn)
}

func tagsOf(texts []string) (all []keyvalue.Pair, err error) {
	for _, text := range texts {
		key, value, ok := strings.Cut(text, "=")
		if !ok || key == "" {
			return nil, domain.Refuse(domain.Invalid, "tag %.100q: want KEY=VALUE", text)
		}
		all = append(all, keyvalue.Pair{Key: key, Value: value})
	}
	return all, nil
}
