package fleet

import (
	"time"

	"github.com/musterhq/muster/internal/domain/wire"
)

// Runtime is a fleet's runtime configuration: what an agent on each host is to keep running, and how game sessions begin
// there. It is replaced as a whole.
type Runtime struct {
	Launches          []Launch      // what an agent runs; empty in a fleet whose hosts have none
	ActivationsMax    int32         // game sessions that may be ACTIVATING on one compute at a time; 0: any number
	ActivationTimeout time.Duration // how long one may take; 0: as the service is set
}

// Launch is a server process and how many of it a host runs at a time.
type Launch struct {
	Path       string
	Parameters string
	Copies     int32
}

// Copies is how many server processes a host runs.
func (r *Runtime) Copies() (n int64) {
	for _, l := range r.Launches {
		n += int64(l.Copies)
	}
	return n
}

// ActivationTimeout is how long a game session of the fleet may take to become ACTIVE; 0: as the service is set.
func (f *Fleet) ActivationTimeout() time.Duration {
	if f.Runtime == nil {
		return 0
	}
	return f.Runtime.ActivationTimeout
}

func (f *Fleet) activationsMax() int32 {
	if f.Runtime == nil {
		return 0
	}
	return f.Runtime.ActivationsMax
}

func (r *Runtime) fields(c *wire.Codec) {
	wire.Many(c, 1, &r.Launches, (*Launch).fields)
	wire.Int(c, 2, &r.ActivationsMax)
	seconds := int64(r.ActivationTimeout / time.Second)
	wire.Int(c, 3, &seconds)
	r.ActivationTimeout = time.Duration(seconds) * time.Second
}

func (l *Launch) fields(c *wire.Codec) {
	c.String(1, &l.Path)
	c.String(2, &l.Parameters)
	wire.Int(c, 3, &l.Copies)
}
