package cell

import (
	"encoding/json"

	"github.com/musterhq/muster/internal/domain/flow"
)

// playerDataMode WRAP: the PlayerData of a player session says which connection token its player has, so that a game server
// that calls nothing but the hosting API binds the two. docs/spec/player-identity.md#verification; B158.

// wrapped is what a wrapped PlayerData says.
type wrapped struct {
	Version  int    `json:"pf"`
	Instance string `json:"gi"`
	Attempt  int32  `json:"att"`
	Team     string `json:"team"`
	Token    string `json:"tok"`            // SHA-256 of the connection token, in hexadecimal digits
	Data     string `json:"data,omitempty"` // the studio's
}

// wrapData puts the token's hash around the studio's PlayerData of a member's latest reservation. The token must not change any
// more: its end is that of the reservation as it is now, also if a downtime moves that.
func (t *tx) wrapData(r flow.Ref) {
	if t.c.config.Tokens == nil || !t.c.flow.Instances.Get(t.c.flow.Memberships.Get(r).InstanceRef()).Rules.WrapData {
		return
	}
	host := t.c.hostOf(t.c.flow.Memberships.Get(r))
	until := host.ReserveBy
	t.changeMembership(r, func(m *flow.Membership) { m.TokenUntil = until })
	m := t.c.flow.Memberships.Get(r)
	host = t.c.hostOf(m)
	data, _ := json.Marshal(wrapped{1, "gi-" + m.Instance.String(), m.Attempt, m.Team, t.c.config.Tokens.TokenHash(m.Player, host), m.Data}) // has no way to fail
	t.emit(&PlayerDataWrapped{host.Session, string(data)})
}
