package agentlink

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/agentproto"
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/hosts"
	"github.com/musterhq/muster/internal/hostproof"
	"github.com/musterhq/muster/internal/signin"
	"github.com/musterhq/muster/internal/sigv4"
	"github.com/musterhq/muster/internal/steady"
)

// This file handles the connections of hosts that have joined. Such a host signs its connection. The service determines which fleet it serves: none,
// the one to which it is bound, or one after the other.

// keepEvery is how often the service records which hosts are connected: three times within hosts.SilentAfter.
const keepEvery = time.Minute

// clockSkew is by how much a host's clock may differ, as for its game servers.
const clockSkew = sigv4.ServerSkew

// fleetless returns a placeholder compute for a host that serves no fleet. Fleet ids are never empty.
func fleetless(host string) compute { return compute{name: host} }

// welcomeHost verifies the proof of a host.
func (s *Server) welcomeHost(r *http.Request, h *hello) error {
	proof, err := hostproof.Read(r)
	if err != nil {
		return s.failed(h, signin.Malformed, fmt.Errorf("%w: %w", errForbidden, err))
	}
	var known hosts.Host
	var found bool
	if err := s.engine.Read(r.Context(), func(v *cell.View) error { known, found = v.Host(proof.Host); return nil }); err != nil {
		return err
	}
	outside, _ := url.Parse(s.config.Endpoint)
	off := time.Since(time.UnixMilli(proof.At))
	switch {
	case !found || !proof.Signed(known.Key):
		return s.failed(h, signin.WrongToken, fmt.Errorf("%w: no host %.100q has joined, or the signature is not its own", errForbidden, proof.Host))
	case !proof.For(r, outside.Host, outside.Path):
		return s.failed(h, signin.WrongToken, fmt.Errorf("%w: the signature is for %.20s %.200s at %.200s, not for this request", errForbidden, proof.Method, proof.Path, proof.Server))
	case known.Revoked != 0:
		return s.failed(h, signin.Expired, fmt.Errorf("%w: host %s was revoked at %s", errRevoked, known.ID, known.Revoked.Std().Format(time.RFC3339)))
	case off > clockSkew || off < -clockSkew:
		return s.failed(h, signin.Clock, fmt.Errorf("%w: the clock of host %s is off by %v; want at most %v", errForbidden, known.ID, off.Round(time.Second), clockSkew))
	}
	cmd := hosts.Attach{Host: known.ID, Signed: domain.Time(proof.At), IP: proof.IP, DNS: proof.DNS}
	err = s.engine.Do(s.countedFor(r.Context(), known.Holder), &cmd)
	if refusal, ok := errors.AsType[*domain.Refusal](err); ok && refusal.Reason == domain.Conflict {
		return s.failed(h, signin.Clock, fmt.Errorf("%w: %s", errForbidden, refusal.Detail))
	}
	if err != nil {
		return err
	}
	x, err := s.standing(known.ID)
	h.host, h.name, h.signed, h.compute = known.ID, known.Name, cmd.Signed, x.at
	return err
}

// standing is a host's status at the service.
type standing struct {
	host    hosts.Host
	gone    bool // unknown or revoked
	at      compute
	leaving string // why it must start nothing more; empty: it may
}

// standing reads this node's state, because what an agent is told must not lag behind the events that this node has followed.
func (s *Server) standing(host string) (x standing, err error) {
	x.at = fleetless(host)
	err = s.engine.ReadHere(s.ctx, func(v *cell.View) error {
		var ok bool
		if x.host, ok = v.Host(host); !ok || x.host.Revoked != 0 {
			x.gone = true
			return nil
		}
		if fleetID, name, serves := v.Serves(host); serves {
			x.at = compute{fleetID, name}
		}
		if a, ok := v.AssignmentOf(host); ok && a.Releasing {
			x.leaving = "the host leaves the fleet"
		}
		return nil
	})
	return x, err
}

// settle assigns the link to the compute that currently represents its host, and tells the agent of a change. It runs as a task of the link, or
// before there are any tasks.
func (l *link) settle() {
	s := l.server
	x, err := s.standing(l.host)
	if err != nil {
		return // the engine has stopped; so will the link
	}
	if x.gone {
		s.log.Info("the connection of a host was closed: it was revoked", "host", l.host)
		l.push(&agentproto.DrainCompute{DeadlineMillis: 1, Reason: "the host was revoked"}) // a deadline in the past by any clock
		l.dismiss(closeRevoked)
		return
	}
	if was := l.compute(); was != x.at {
		s.move(l, x.at)
		l.push(&agentproto.DrainCompute{Cancel: true})
		l.drained = ""
		l.push(&agentproto.UpdateHost{HelloAnswer: *s.helloOf(&x)})
		l.pushOwed()
		s.log.Debug("host serves another fleet", "host", l.host, "fleet", x.at.fleet, "before", was.fleet)
	}
	if x.leaving != l.drained || !l.settled { // the agent may have missed the end of a drain while disconnected
		l.push(&agentproto.DrainCompute{Reason: x.leaving, Cancel: x.leaving == ""})
		l.drained, l.settled = x.leaving, true
	}
}

// helloOf returns what an agent is told about its host.
func (s *Server) helloOf(x *standing) *agentproto.HelloAnswer {
	answer := &agentproto.HelloAnswer{
		HostID: x.host.ID, FleetID: x.at.fleet, ComputeName: x.host.Name, Location: x.host.Location, SDKEndpoint: s.config.SDKEndpoint,
		HeartbeatMillis: s.config.Periods.Heartbeat.Milliseconds(),
	}
	if x.at.fleet != "" {
		answer.ComputeName = x.at.name
	}
	return answer
}

// helloHost stores what the agent reports about its host, and returns the host's status.
func (l *link) helloHost(r *agentproto.AgentHello) (*agentproto.HelloAnswer, error) {
	s := l.server
	if err := s.engine.Do(s.ctx, &hosts.Describe{Host: l.host, Version: r.Version, Ports: portsIn(r.Ports), MemoryMB: r.MemoryMB}); err != nil {
		return nil, err
	}
	x, err := s.standing(l.host)
	if err != nil {
		return nil, err
	}
	if x.gone {
		return nil, domain.Refuse(domain.NotFound, "host %s was revoked", l.host)
	}
	if x.at != l.compute() {
		s.move(l, x.at)
	}
	return s.helloOf(&x), nil
}

// portsIn counts the ports of a range such as "7000-7999"; 0 if the text is not a range.
func portsIn(text string) int32 {
	var first, last uint16
	if _, err := fmt.Sscanf(strings.TrimSpace(text), "%d-%d", &first, &last); err != nil || last < first {
		return 0
	}
	return int32(last-first) + 1
}

// settleHost makes the links of a host check its status again.
func (s *Server) settleHost(host string) {
	for _, l := range s.links() {
		if l.host == host {
			l.enqueue((*link).settle)
		}
	}
}

// keepHosts records which hosts are connected.
func (s *Server) keepHosts(now time.Time) {
	seen := map[string]bool{}
	var all []string
	for _, l := range s.links() {
		if heard := steady.Time(l.heard.Load()); l.host != "" && !seen[l.host] && now.Sub(heard) < s.config.Periods.Ping+5*time.Second {
			seen[l.host] = true
			all = append(all, l.host)
		}
	}
	if len(all) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(s.ctx, keepEvery)
	defer cancel()
	if err := s.engine.Do(ctx, &hosts.Keep{Hosts: all}); err != nil {
		s.log.Warn("the connected hosts could not be recorded: the service tries again in a minute", "hosts", len(all), "error", err)
	}
}

// move moves a link to another compute, unless the link has ended.
func (s *Server) move(l *link, to compute) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.remove(l) {
		return
	}
	l.at.Store(&to)
	all := append(s.agents[to], l)
	slices.SortStableFunc(all, func(x, y *link) int { return x.opened.Compare(y.opened) }) // connections of one host are moved in any order
	s.agents[to] = all
}
