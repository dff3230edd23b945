package playerflow

import (
	"encoding/json"

	"github.com/musterhq/muster/internal/domain/flow"
)

// playerDataMode WRAP: the PlayerData of a player session contains the hash of its player's connection token, so that a game
// server that uses only the hosting API can tie the token to the player session. docs/spec/player-identity.md#verification;
// B158.

// Wrapped is the content of a wrapped PlayerData.
type Wrapped struct {
	Version  int    `json:"pf"`
	Instance string `json:"gi"`
	Attempt  int32  `json:"att"`
	Team     string `json:"team"`
	Token    string `json:"tok"`            // SHA-256 of the connection token, in hexadecimal digits
	Data     string `json:"data,omitempty"` // the studio's
}

// wrapData wraps the studio's PlayerData of a member's latest reservation together with the token's hash. The token must not
// change afterwards: it expires at the current end of the reservation, even if downtime extends the reservation.
func (t *Memberships) wrapData(r flow.MembershipRef) {
	if t.Limits.Tokens == nil || !t.Flow.Instances.Get(t.Flow.Memberships.Get(r).InstanceRef()).Rules.WrapData {
		return
	}
	host := t.HostOf(t.Flow.Memberships.Get(r))
	until := host.ReserveBy
	t.changeMembership(r, func(m *flow.Membership) { m.TokenUntil = until })
	m := t.Flow.Memberships.Get(r)
	host = t.HostOf(m)
	data, _ := json.Marshal(Wrapped{1, m.Instance.String(), m.Attempt, m.Team, t.Limits.Tokens.TokenHash(m.Player, host), m.Data}) // cannot fail
	t.hosting.WrapData(host.Session, string(data))
}
