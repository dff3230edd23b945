package playerflow

import (
	"encoding/json"

	"github.com/musterhq/muster/internal/domain/flow"
)

// playerDataMode WRAP: the PlayerData of a player session says which connection token its player has, so that a game server
// that calls nothing but the hosting API binds the two. docs/spec/player-identity.md#verification; B158.

// Wrapped is what a wrapped PlayerData says.
type Wrapped struct {
	Version  int    `json:"pf"`
	Instance string `json:"gi"`
	Attempt  int32  `json:"att"`
	Team     string `json:"team"`
	Token    string `json:"tok"`            // SHA-256 of the connection token, in hexadecimal digits
	Data     string `json:"data,omitempty"` // the studio's
}

// wrapData puts the token's hash around the studio's PlayerData of a member's latest reservation. The token must not change any
// more: its end is that of the reservation as it is now, also if a downtime moves that.
func (t *Memberships) wrapData(r flow.MembershipRef) {
	if t.Limits.Tokens == nil || !t.Flow.Instances.Get(t.Flow.Memberships.Get(r).InstanceRef()).Rules.WrapData {
		return
	}
	host := t.HostOf(t.Flow.Memberships.Get(r))
	until := host.ReserveBy
	t.changeMembership(r, func(m *flow.Membership) { m.TokenUntil = until })
	m := t.Flow.Memberships.Get(r)
	host = t.HostOf(m)
	data, _ := json.Marshal(Wrapped{1, m.Instance.String(), m.Attempt, m.Team, t.Limits.Tokens.TokenHash(m.Player, host), m.Data}) // has no way to fail
	t.hosting.WrapData(host.Session, string(data))
}
