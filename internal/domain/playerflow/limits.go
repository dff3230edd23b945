package playerflow

import (
	"github.com/musterhq/muster/internal/domain/flow"
)

// Limits bounds the records of the room. The rules of player flow are in flow.Config.
type Limits struct {
	PlayersMax         int // known players: those who logged in and those described by the studio
	LoginTicketsMax    int // login tickets and used signed tokens that are remembered until they expire
	RequestsMax        int // answered calls remembered for repeats; beyond this, the oldest are dropped
	InvitesToPlayerMax int // invites that one player can see

	Flow   *flow.Config // nil: player flow is off
	Tokens TokenHasher  // nil: PlayerData is never wrapped
}

// DefaultLimits returns limits that protect memory, without player flow.
func DefaultLimits() Limits {
	return Limits{PlayersMax: 10_000_000, LoginTicketsMax: 1_000_000, RequestsMax: 4_000_000, InvitesToPlayerMax: 100}
}
