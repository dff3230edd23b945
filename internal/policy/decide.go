package policy

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/musterhq/muster/internal/domain/keyvalue"
)

// Request is one action on one resource.
type Request struct {
	Action       Action
	Resource     string     // an ARN, or AnyResource
	Source       netip.Addr // of the client, without a zone and not IPv4-mapped; zero: unknown
	ResourceTags []keyvalue.Pair
	RequestTags  []keyvalue.Pair // those that the request gives to a resource
}

// AnyResource is the resource of an action that names no resource, such as a list of all fleets. Only "*" matches it.
const AnyResource = "*"

// Address parses the address of a client for Request.Source. For a network, the form used for IPv6 clients, it returns the first
// address.
func Address(text string) netip.Addr {
	if i := strings.IndexByte(text, '/'); i >= 0 {
		text = text[:i]
	}
	a, err := netip.ParseAddr(text)
	if err != nil {
		return netip.Addr{}
	}
	return a.Unmap().WithZone("")
}

// Named is a policy with its name.
type Named struct {
	Name   string
	Policy *Policy
}

// Set is the policies that apply to one principal. The zero value denies everything; a principal without policies has no Set.
type Set struct {
	policies []Named
}

// NewSet returns a Set. A policy whose compiled form is nil denies everything.
func NewSet(policies []Named) *Set { return &Set{policies} }

// Source is the statement that decided.
type Source struct {
	Policy string
	Number int    // of the statement, from 0
	Sid    string // may be empty
}

func (s Source) String() string {
	if s.Sid != "" {
		return fmt.Sprintf("statement %q of policy %s", s.Sid, s.Policy)
	}
	return fmt.Sprintf("statement %d of policy %s", s.Number+1, s.Policy)
}

// Decision is what a Set says about a request.
type Decision struct {
	Allowed bool
	Denied  bool   // by a statement; if neither is set, no statement allows it
	By      Source // if a statement decided
}

// Decide evaluates all statements: a denying statement outweighs all allowing ones, and without an allowing statement the request is
// denied.
func (s *Set) Decide(q *Request) (d Decision) {
	parts, ok := splitARN(q.Resource)
	arn := &parts
	if !ok {
		arn = nil
	}
	for i := range s.policies {
		p := &s.policies[i]
		if p.Policy == nil {
			return Decision{Denied: true, By: Source{Policy: p.Name}}
		}
		for j := range p.Policy.statements {
			x := &p.Policy.statements[j]
			if d.Allowed && !x.deny || !x.covers(q, arn) {
				continue
			}
			d = Decision{Allowed: !x.deny, Denied: x.deny, By: Source{p.Name, j, x.sid}}
			if x.deny {
				return d
			}
		}
	}
	return d
}

func (x *statement) covers(q *Request, arn *[arnParts]string) bool {
	if !x.actions.has(q.Action) || !x.names(arn) {
		return false
	}
	for i := range x.conditions {
		if !x.conditions[i].holds(q) {
			return false
		}
	}
	return true
}

func (x *statement) names(arn *[arnParts]string) bool {
	for i := range x.resources {
		if x.resources[i].match(arn) {
			return true
		}
	}
	return false
}
