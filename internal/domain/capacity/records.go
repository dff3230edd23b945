package capacity

import (
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/catalog"
	"github.com/musterhq/muster/internal/domain/wire"
)

// Assignment is a host of a fleet. The host is a compute of the fleet until the assignment ends.
type Assignment struct {
	Host      string // its id
	Fleet     string
	Location  string
	Compute   string // the host's name, which is also its name as a compute of the fleet
	Since     domain.Time
	Releasing bool // it leaves the fleet when its last game session has ended

	Changed uint64 // journal number of the last change, 0 when older than this run
}

// Level returns the level of the snapshot part.
func (*Assignment) Level() uint { return level }

// Fields of an Assignment.
func (a *Assignment) Fields(c *wire.Codec) {
	c.String(1, &a.Host)
	c.Shared(2, &a.Fleet)
	c.Shared(3, &a.Location)
	c.String(4, &a.Compute)
	wire.Int(c, 5, &a.Since)
	c.Bool(6, &a.Releasing)
}

// Scaling records when a scaling policy last acted in a location.
type Scaling struct {
	Fleet, Location, Policy string
	At                      domain.Time

	Changed uint64
}

// Level returns the level of the snapshot part.
func (*Scaling) Level() uint { return level }

// Fields of a Scaling.
func (s *Scaling) Fields(c *wire.Codec) {
	c.Shared(1, &s.Fleet)
	c.Shared(2, &s.Location)
	c.Shared(3, &s.Policy)
	wire.Int(c, 4, &s.At)
}

// scalingID returns the id of a Scaling. Fleet ids and locations contain no slash; the policy's name comes last.
func scalingID(fleet, location, policy string) string { return fleet + "/" + location + "/" + policy }

func newAssignments() catalog.Catalog[Assignment] {
	return catalog.New(func(a *Assignment) catalog.Place { return catalog.Place{Created: a.Since, ID: a.Host} })
}

func newScalings() catalog.Catalog[Scaling] {
	return catalog.New(func(s *Scaling) catalog.Place { return catalog.Place{ID: scalingID(s.Fleet, s.Location, s.Policy)} })
}
