package matchmaking

import (
	"github.com/musterhq/muster/internal/domain/fleet"
)

// ServerProcess returns the game server that sent the command; nil if an AWS client sent it.

func (cmd *StartMatchBackfill) ServerProcess() *fleet.Key { return cmd.Server }
func (cmd *StopMatchmaking) ServerProcess() *fleet.Key    { return cmd.Server }
