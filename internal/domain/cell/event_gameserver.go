package cell

import (
	"github.com/musterhq/muster/internal/domain/catalog"
	"github.com/musterhq/muster/internal/domain/gameservers"
	"github.com/musterhq/muster/internal/domain/wire"
)

// GameServerGroupChanged is a group as it is now: new, or changed.
type GameServerGroupChanged struct{ Group gameservers.Group }

// GameServerGroupRemoved is the end of a group and of the game servers that are still in it.
type GameServerGroupRemoved struct{ Name string }

// GameServerChanged is a game server as it is now: new, claimed, utilized, healthy.
type GameServerChanged struct{ Server gameservers.Server }

// GameServerRemoved is the end of a game server.
type GameServerRemoved struct{ ID string }

func (*GameServerGroupChanged) kind() Kind { return KindGameServerGroupChanged }
func (*GameServerGroupRemoved) kind() Kind { return KindGameServerGroupRemoved }
func (*GameServerChanged) kind() Kind      { return KindGameServerChanged }
func (*GameServerRemoved) kind() Kind      { return KindGameServerRemoved }

// Fields of the event.
func (e *GameServerGroupChanged) Fields(c *wire.Codec) {
	wire.Sub(c, 1, &e.Group, true, (*gameservers.Group).Fields)
}

// Fields of the event.
func (e *GameServerGroupRemoved) Fields(c *wire.Codec) { c.String(1, &e.Name) }

// Fields of the event.
func (e *GameServerChanged) Fields(c *wire.Codec) {
	wire.Sub(c, 1, &e.Server, true, (*gameservers.Server).Fields)
}

// Fields of the event.
func (e *GameServerRemoved) Fields(c *wire.Codec) { c.String(1, &e.ID) }

func (c *Cell) applyGameServer(event Event) {
	number := c.touch()
	switch e := event.(type) {
	case *GameServerGroupChanged:
		g := e.Group
		g.Changed = number
		c.gameServers.Groups.Put(g)
	case *GameServerGroupRemoved:
		for {
			last := gameservers.Ref(0)
			c.gameServers.ServersOf(e.Name, catalog.Place{}, false, func(x *gameservers.Server) bool {
				last, _ = c.gameServers.Servers.Find(x.ID)
				return false
			})
			if last == 0 {
				break
			}
			c.dropGameServer(last)
		}
		r, _ := c.gameServers.Groups.Find(e.Name)
		c.gameServers.DropGroup(r)
	case *GameServerChanged:
		s := e.Server
		s.Changed = number
		r := c.gameServers.PutServer(s)
		c.waiting.set(gameServerClaim, r, s.ClaimBy)
		c.waiting.set(gameServerHealth, r, s.HealthBy)
	case *GameServerRemoved:
		r, _ := c.gameServers.Servers.Find(e.ID)
		c.dropGameServer(r)
	}
}

func (c *Cell) dropGameServer(r gameservers.Ref) {
	c.waiting.clear(gameServerClaim, r)
	c.waiting.clear(gameServerHealth, r)
	c.gameServers.DropServer(r)
}
