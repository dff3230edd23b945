package cell

import (
	"github.com/musterhq/muster/internal/domain/catalog"
	"github.com/musterhq/muster/internal/domain/gameservers"
)

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
