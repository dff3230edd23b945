package cell

import (
	"github.com/musterhq/muster/internal/domain/access"
	"github.com/musterhq/muster/internal/domain/gameservers"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/matchmaking"
	"github.com/musterhq/muster/internal/domain/notice"
	"github.com/musterhq/muster/internal/domain/playerflow"
)

// Config holds the limits and periods that commands are decided with. Deadlines are written into events when they are
// set, so a change of the configuration never changes what waits already.
type Config struct {
	Hosting     hosting.Config
	GameServers gameservers.Config
	Notify      *notice.Notify // nil: there are no receivers of notices
	Matchmaking matchmaking.Config
	PlayerFlow  playerflow.Limits
	Access      access.Config
}

// DefaultConfig returns the periods of the cloud service and limits far above its quotas, which protect nothing on own
// hosts. Sources: docs/spec/gamelift-api.md#quotas and docs/spec/server-sdk.md#timers; B-numbers in docs/behaviours.md where neither
// says anything.
func DefaultConfig() Config {
	return Config{
		Hosting: hosting.DefaultConfig(), GameServers: gameservers.DefaultConfig(), Matchmaking: matchmaking.DefaultConfig(),
		PlayerFlow: playerflow.DefaultLimits(), Access: access.DefaultConfig(),
	}
}
