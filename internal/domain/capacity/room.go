// Package capacity is the room that assigns hosts to fleets of builds: as many as a fleet wants in each of its locations, as far as there are hosts.
// It also changes how many hosts a fleet wants, according to scaling policies.
//
// The leader issues the command Plan every second. Plan compares the fleets' demands with the hosts of the pool (plan.go) and moves hosts one by one:
// an assigned host becomes a compute of its fleet, and its agent starts the fleet's server processes. A released host drains: its idle processes are
// asked to end, its game sessions finish, and then it is free. No plan ever ends a game session.
//
// The leader also issues ScaleFleet every minute, with its measurements (scaling.go).
package capacity

import (
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/catalog"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/kernel"
)

// Room is the room's number.
const Room kernel.RoomNo = 11

// level is the level from which the room's events may be written.
const level = 2

// Pool has the hosts.
type Pool interface {
	// EachHost yields the hosts that fleets of builds may have, always in the same order.
	EachHost(yield func(Host) bool)
}

// Fleets is the part of hosting that the room needs.
type Fleets interface {
	// ManagedFleets yields the fleets of builds in creation order.
	ManagedFleets(yield func(*fleet.Fleet) bool)
	// ManagedFleet finds a fleet of a build.
	ManagedFleet(id string) (*fleet.Fleet, bool)
	// HostCompute returns the compute of a fleet that represents a host.
	HostCompute(fleetID, name string) (*fleet.Compute, bool)
	// Measure takes the counts that scaling policies use.
	Measure(fleetID, location string, now domain.Time) Sample

	// JoinHost makes a host a compute of a fleet.
	JoinHost(x fleet.Compute)
	// DrainHost stops or resumes new game sessions on a compute.
	DrainHost(fleetID, name string, drain bool)
	// EndIdle asks the server processes of a compute that host no game session to end.
	EndIdle(fleetID, name string)
	// LeaveHost removes a compute and ends everything left on it.
	LeaveHost(fleetID, name string)
	// HostReplaced records in the fleet's events that a disconnected host makes room for others.
	HostReplaced(fleetID, location, name string)
	// AdvanceFleet moves a fleet towards ACTIVE, according to what has happened on its hosts.
	AdvanceFleet(id string)
	// Scale sets the desired number of hosts and records the reason in the fleet's events.
	Scale(fleetID, location string, desired int32, why string)
}

// State is the room's records.
type State struct {
	*kernel.Kernel
	assignments catalog.Catalog[Assignment]
	scalings    catalog.Catalog[Scaling]
	pool        Pool
	fleets      Fleets
}

// Tx is the room: its state and its part of the current transaction.
type Tx struct {
	*kernel.Tx
	*State
	kernel.Plain
}

// New returns an empty room.
func New(k *kernel.Kernel, fleets Fleets) *Tx {
	return &Tx{Tx: k.Tx(), State: &State{Kernel: k, assignments: newAssignments(), scalings: newScalings(), fleets: fleets}}
}

// Connect sets the pool. It is called once, before the first command.
func (c *State) Connect(p Pool) { c.pool = p }

// Events returns the constructors of the room's events.
func (*Tx) Events() []func() kernel.Event { return events }

// Apply applies an event.
func (c *State) Apply(_ domain.Time, event kernel.Event) {
	number := c.Touch()
	switch e := event.(type) {
	case *HostAssigned:
		a := e.Assignment
		a.Changed = number
		c.assignments.Put(a)
	case *HostReleasing:
		r, _ := c.assignments.Find(e.Host)
		a := c.assignments.Mut(r)
		a.Releasing, a.Changed = !e.Undone, number
	case *HostReleased:
		r, _ := c.assignments.Find(e.Host)
		c.assignments.Drop(r)
	case *FleetScaled:
		s := e.Scaling
		s.Changed = number
		c.scalings.Put(s)
	case *ScalingForgotten:
		r, _ := c.scalings.Find(e.ID)
		c.scalings.Drop(r)
	}
}

// Field numbers of message SnapshotPart in proto/journal.proto.
const (
	partAssignment = 90
	partScaling    = 91
)

// Freeze returns the room's part of a snapshot.
func (c *State) Freeze(*kernel.Head) []kernel.Frozen {
	return []kernel.Frozen{kernel.Freeze(partAssignment, c.assignments), kernel.Freeze(partScaling, c.scalings)}
}

// Load reads a part of a snapshot.
func (c *State) Load(l *kernel.Loader, kind uint64, body []byte) (known bool, err error) {
	switch kind {
	case partAssignment:
		return true, kernel.LoadInto(l, body, c.assignments)
	case partScaling:
		return true, kernel.LoadInto(l, body, c.scalings)
	}
	return false, nil
}

// Restore rebuilds the data that snapshots omit.
func (c *State) Restore(*kernel.Head) error {
	c.assignments.Restore()
	c.scalings.Restore()
	return nil
}
