package agentlink

import (
	"context"
	"errors"
	"fmt"

	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/permit"
	"github.com/musterhq/muster/internal/policy"
)

// ConnectAction is the policy action for the connection of an agent to the fleet that its host serves, and for a machine that
// joins.
var ConnectAction = policy.MustBe("muster:Agent.Connect")

// Policies returns the principal of an agent with the policies that apply to it. *identity.Keys implements it.
type Policies interface {
	Host(id, from string) identity.Principal
}

// asked is the last policy check.
type asked struct {
	set *policy.Set
	at  compute
}

// mayConnect checks an agent's policies for a connection to a fleet, which may be none.
func (s *Server) mayConnect(ctx context.Context, by *identity.Principal, fleetID string) error {
	if !by.Restricted() {
		return nil
	}
	r := permit.Request{By: by, Engine: s.engine}
	if fleetID == "" {
		r.Any()
	} else {
		r.Name(permit.Fleet, fleetID)
	}
	if err := r.May(ctx, ConnectAction); err != nil {
		return fmt.Errorf("%w: %w", errForbidden, err)
	}
	return nil
}

// permitted checks the policies of an agent that wants to connect or join.
func (s *Server) permitted(ctx context.Context, h *hello) error {
	if s.config.Policies == nil {
		return nil
	}
	by := s.config.Policies.Host(h.host, h.from)
	return s.mayConnect(ctx, &by, h.compute.fleet)
}

// checkPolicies checks an agent's policies again if they have changed or its host serves another fleet.
func (l *link) checkPolicies() {
	p := l.server.config.Policies
	if p == nil {
		return
	}
	by, last := p.Host(l.host, l.from), l.asked.Load()
	now := asked{by.Policies(), l.compute()}
	if last == nil && now.set == nil || last != nil && *last == now {
		return
	}
	l.asked.Store(&now)
	l.enqueue(func(l *link) { l.askPolicies(&by, now.at) })
}

// askPolicies ends the link of an agent whose policies no longer allow it to connect. The agent learns the reason when it
// reconnects.
func (l *link) askPolicies(by *identity.Principal, at compute) {
	s := l.server
	err := s.mayConnect(s.ctx, by, at.fleet)
	if err == nil {
		return
	}
	if _, denied := errors.AsType[*identity.Denied](err); !denied {
		l.asked.Store(nil) // the state could not be read
		return
	}
	s.log.Info("a host agent's connection was closed: policies do not allow it to connect", "host", l.host, "fleet", at.fleet, "compute", at.name, "error", err)
	l.dismiss(closeRevoked)
}
