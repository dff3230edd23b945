package operators

import (
	"github.com/musterhq/muster/internal/audit"
	"github.com/musterhq/muster/internal/playerapi/calls"
	"github.com/musterhq/muster/internal/playerapi/state"
	"github.com/musterhq/muster/internal/playerapi/streams"
)

// Config has the dependencies of the operators' calls.
type Config struct {
	State   *state.State
	Streams *streams.Streams
	Audit   *audit.Log // for refused attempts; nil: they are not recorded
}

type door struct {
	Config
	realm *calls.Realm
}

// Declare declares the calls of operators.
func Declare(r *calls.Realm, c Config) {
	d := &door{c, r}
	d.declareOperator()
	d.declareConfig()
	d.declareDrain()
}
