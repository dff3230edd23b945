package cell

import (
	"github.com/musterhq/muster/internal/domain/access"
	"github.com/musterhq/muster/internal/domain/audit"
	"github.com/musterhq/muster/internal/domain/capacity"
	"github.com/musterhq/muster/internal/domain/gameservers"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/matchmaking"
	"github.com/musterhq/muster/internal/domain/notice"
	"github.com/musterhq/muster/internal/domain/playerflow"
	"github.com/musterhq/muster/internal/domain/quota"
)

// Config holds the limits and periods of commands. Events contain the deadlines that they set, so a change of the configuration does not
// move deadlines that are already set.
type Config struct {
	Hosting     hosting.Config
	GameServers gameservers.Config
	Notify      *notice.Notify // nil: notices have no receivers
	Matchmaking matchmaking.Config
	PlayerFlow  playerflow.Limits
	Access      access.Config
	Audit       audit.Config
	Quotas      *quota.Quotas // nil: defaults
	Pool        capacity.Pool // of hosts, for tests; nil: the joined hosts
}

// DefaultConfig returns the periods of the cloud service and limits far above its quotas, which protect shared hardware. Sources:
// docs/spec/gamelift-api.md#quotas and docs/spec/server-sdk.md#timers; B-numbers in docs/behaviours.md where these are silent.
func DefaultConfig() Config {
	return Config{
		Hosting: hosting.DefaultConfig(), GameServers: gameservers.DefaultConfig(), Matchmaking: matchmaking.DefaultConfig(),
		PlayerFlow: playerflow.DefaultLimits(), Access: access.DefaultConfig(), Audit: audit.DefaultConfig(),
	}
}
