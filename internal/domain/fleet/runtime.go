package fleet

import (
	"time"

	"github.com/musterhq/muster/internal/domain/wire"
)

// Runtime is a fleet's runtime configuration: the server processes that an agent keeps running on each host, and limits for the
// activation of game sessions. It is replaced as a whole.
type Runtime struct {
	Launches          []Launch      // what an agent runs; empty for hosts without agents
	ActivationsMax    int32         // game sessions that may be ACTIVATING on one compute at a time; 0: any number
	ActivationTimeout time.Duration // how long an activation may take; 0: the service's setting
}

// Launch is a server process and the number of copies that a host runs.
type Launch struct {
	Path       string
	Parameters string
	Copies     int32
}

// Copies returns the number of server processes on a host.
func (r *Runtime) Copies() (n int64) {
	for _, l := range r.Launches {
		n += int64(l.Copies)
	}
	return n
}

// ActivationTimeout returns how long a game session of the fleet may take to become ACTIVE; 0: the service's setting.
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
	c.Duration(3, &r.ActivationTimeout, time.Second)
}

func (l *Launch) fields(c *wire.Codec) {
	c.String(1, &l.Path)
	c.String(2, &l.Parameters)
	wire.Int(c, 3, &l.Copies)
}
