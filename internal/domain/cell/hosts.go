package cell

import (
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/capacity"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/hosts"
)

// joinedHosts is the pool of joined hosts.
type joinedHosts struct{ *hosts.State }

// EachHost yields the hosts with the data that a plan needs.
func (p *joinedHosts) EachHost(yield func(capacity.Host) bool) {
	p.Each(func(h *hosts.Host) bool {
		x := capacity.Host{ID: h.ID, Name: h.Name, Location: h.Location, Fleet: h.Fleet, MemoryMB: h.MemoryMB, Ports: h.Ports, IP: h.IP, DNS: h.DNS, Holder: h.Holder}
		switch {
		case h.Drained:
			x.Standing = capacity.Drained
		case h.Silent():
			x.Standing = capacity.Silent
		}
		return yield(x)
	})
}

// hostFleets is the part of hosting and capacity that the room hosts needs.
type hostFleets struct{ c *Cell }

var _ hosts.Fleets = (*hostFleets)(nil)

func (f *hostFleets) CheckSite(fleetID, location string) error {
	return f.c.hosting.CheckSite(fleetID, location)
}

func (f *hostFleets) CheckName(fleetID, name string) error {
	if _, taken := f.c.hosting.HostCompute(fleetID, name); taken {
		return domain.Refuse(domain.Conflict, "fleet %s has a compute named %s already: choose another name with --compute-name", fleetID, name)
	}
	return nil
}

func (f *hostFleets) Admit(h *hosts.Host) error {
	x := fleet.Compute{FleetID: h.Fleet, Name: h.Name, Location: h.Location, IPAddress: h.IP, DNSName: h.DNS, Holder: h.Holder}
	if a, ok := f.c.capacity.AssignmentOf(h.ID); ok {
		if _, there := f.c.hosting.HostCompute(a.Fleet, a.Compute); !there {
			return nil // the next plan ends the assignment
		}
		x.FleetID, x.Name = a.Fleet, a.Compute
	} else if f.planned(h) {
		return nil
	}
	if err := f.c.hosting.AdmitHost(x); err != nil {
		return err
	}
	if h.Drained {
		f.Drain(h)
	}
	return nil
}

// planned reports whether capacity's plans decide which fleet a host serves.
func (f *hostFleets) planned(h *hosts.Host) bool {
	if h.Fleet == "" {
		return true
	}
	_, managed := f.c.hosting.ManagedFleet(h.Fleet)
	return managed
}

func (f *hostFleets) Drain(h *hosts.Host) {
	if !f.planned(h) {
		f.c.hosting.DrainHost(h.Fleet, h.Name, h.Drained)
	}
}

func (f *hostFleets) Remove(h *hosts.Host) {
	if fleetID, name, ok := f.c.serves(h); ok {
		f.c.hosting.LeaveHost(fleetID, name)
	}
}

// serves returns the compute that represents a host.
func (c *Cell) serves(h *hosts.Host) (fleetID, compute string, ok bool) {
	if a, assigned := c.capacity.AssignmentOf(h.ID); assigned {
		fleetID, compute = a.Fleet, a.Compute
	} else if _, managed := c.hosting.ManagedFleet(h.Fleet); h.Fleet != "" && !managed {
		fleetID, compute = h.Fleet, h.Name
	}
	_, ok = c.hosting.HostCompute(fleetID, compute)
	return fleetID, compute, ok
}

// HostState describes in one word what a host does: new before its first connection, ready, silent, drained, releasing while it leaves a fleet, or
// revoked.
func (v *View) HostState(h *hosts.Host) string {
	a, assigned := v.AssignmentOf(h.ID)
	switch {
	case h.Revoked != 0:
		return "revoked"
	case h.Drained:
		return "drained"
	case h.Seen == 0:
		return "new"
	case h.Silent():
		return "silent"
	case assigned && a.Releasing:
		return "releasing"
	}
	return "ready"
}

// Serves returns the compute that currently represents a host; false if it serves no fleet.
func (v *View) Serves(host string) (fleetID, compute string, ok bool) {
	v.own.SawAll()
	h, ok := v.Host(host)
	if !ok || h.Revoked != 0 {
		return "", "", false
	}
	return v.c.serves(&h)
}
