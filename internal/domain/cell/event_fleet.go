package cell

import (
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/wire"
)

// Ticked says that the service was alive at this moment. One is written at least every second while anybody who could
// not reach us would be late.
type Ticked struct{}

// Resumed says that the service was down until now.
type Resumed struct {
	Downtime int64              // milliseconds since the last transaction
	LostBy   domain.ContactTime // for every link that was open then, or lost with its grace not over
	SeatsBy  domain.ContactTime // no reservation ends before; 0 in journals of releases that gave none more time
}

// LocationChanged is a custom location as it is now: new, or with other tags.
type LocationChanged struct{ Location fleet.Location }

// LocationRemoved is the end of a custom location.
type LocationRemoved struct{ Name string }

// FleetChanged is a fleet as it is now: new, or with other attributes.
type FleetChanged struct{ Fleet fleet.Fleet }

// FleetRemoved is the end of a fleet. Its computes ended before.
type FleetRemoved struct{ ID string }

// ComputeRegistered is a compute as it is now: new, or with another address.
type ComputeRegistered struct{ Compute fleet.Compute }

// ComputeRemoved is the end of a compute and of all processes on it.
type ComputeRemoved struct{ Fleet, Name string }

// TokenIssued says which generation of a compute's auth token is good from now on. It holds no token.
type TokenIssued struct {
	Fleet, Compute  string
	Generation      uint32
	Expires         domain.Time
	PreviousExpires domain.Time
	Void            uint32 // tokens of this generation and those before are void
	KeepLinks       bool   // connections that came with a token that is void by this event stay
}

// FleetEventWritten is an entry of a fleet's event log.
type FleetEventWritten struct{ Event fleet.Event }

// CreationCounted says that a creator made a game session, for the fleet's creation policy.
type CreationCounted struct{ Creation fleet.Creation }

// CreationsForgotten says that creations which ran out before now no longer count.
type CreationsForgotten struct{}

func (*Ticked) kind() Kind             { return kindTicked }
func (*Resumed) kind() Kind            { return kindResumed }
func (*LocationChanged) kind() Kind    { return KindLocationChanged }
func (*LocationRemoved) kind() Kind    { return KindLocationRemoved }
func (*FleetChanged) kind() Kind       { return KindFleetChanged }
func (*FleetRemoved) kind() Kind       { return KindFleetRemoved }
func (*ComputeRegistered) kind() Kind  { return KindComputeRegistered }
func (*ComputeRemoved) kind() Kind     { return KindComputeRemoved }
func (*TokenIssued) kind() Kind        { return KindTokenIssued }
func (*FleetEventWritten) kind() Kind  { return KindFleetEventWritten }
func (*CreationCounted) kind() Kind    { return kindCreationCounted }
func (*CreationsForgotten) kind() Kind { return kindCreationsForgotten }

// Fields of the event.
func (e *Ticked) Fields(*wire.Codec) {}

// Fields of the event.
func (e *Resumed) Fields(c *wire.Codec) {
	wire.Int(c, 1, &e.Downtime)
	wire.Int(c, 2, &e.LostBy)
	wire.Int(c, 3, &e.SeatsBy)
}

// Fields of the event.
func (e *LocationChanged) Fields(c *wire.Codec) {
	wire.Sub(c, 1, &e.Location, true, (*fleet.Location).Fields)
}

// Fields of the event.
func (e *LocationRemoved) Fields(c *wire.Codec) { c.String(1, &e.Name) }

// Fields of the event.
func (e *FleetChanged) Fields(c *wire.Codec) { wire.Sub(c, 1, &e.Fleet, true, (*fleet.Fleet).Fields) }

// Fields of the event.
func (e *FleetRemoved) Fields(c *wire.Codec) { c.String(1, &e.ID) }

// Fields of the event.
func (e *ComputeRegistered) Fields(c *wire.Codec) {
	wire.Sub(c, 1, &e.Compute, true, (*fleet.Compute).Fields)
}

// Fields of the event.
func (e *ComputeRemoved) Fields(c *wire.Codec) {
	c.String(1, &e.Fleet)
	c.String(2, &e.Name)
}

// Fields of the event.
func (e *TokenIssued) Fields(c *wire.Codec) {
	c.String(1, &e.Fleet)
	c.String(2, &e.Compute)
	wire.Int(c, 3, &e.Generation)
	wire.Int(c, 4, &e.Expires)
	wire.Int(c, 5, &e.PreviousExpires)
	wire.Int(c, 6, &e.Void)
	c.Bool(7, &e.KeepLinks)
}

// Fields of the event.
func (e *FleetEventWritten) Fields(c *wire.Codec) {
	wire.Sub(c, 1, &e.Event, true, (*fleet.Event).Fields)
}

// Fields of the event.
func (e *CreationCounted) Fields(c *wire.Codec) {
	wire.Sub(c, 1, &e.Creation, true, (*fleet.Creation).Fields)
}

// Fields of the event.
func (e *CreationsForgotten) Fields(*wire.Codec) {}
