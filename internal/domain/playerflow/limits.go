package playerflow

import (
	"github.com/musterhq/muster/internal/domain/flow"
)

// Limits bounds what the room keeps. The rules of player flow are in flow.Config.
type Limits struct {
	PlayersMax         int // players whom player flow knows: those who logged in, and those the studio described
	LoginTicketsMax    int // login tickets and used signed tokens that are remembered until they expire
	RequestsMax        int // answered calls of player flow that are remembered for a repeat; then the oldest are forgotten
	InvitesToPlayerMax int // invites that one player can see

	Flow   *flow.Config // nil: there is no player flow
	Tokens TokenHasher  // nil: PlayerData is never wrapped
}

// DefaultLimits returns limits that protect memory, without player flow.
func DefaultLimits() Limits {
	return Limits{PlayersMax: 10_000_000, LoginTicketsMax: 1_000_000, RequestsMax: 4_000_000, InvitesToPlayerMax: 100}
}
