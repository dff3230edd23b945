package matchmaking

import (
	"github.com/musterhq/muster/internal/domain/fleet"
)

// ServerProcess is the game server that asks for the command; nil: an AWS client does.

func (cmd *StartMatchBackfill) ServerProcess() *fleet.Key { return cmd.Server }
func (cmd *StopMatchmaking) ServerProcess() *fleet.Key    { return cmd.Server }
