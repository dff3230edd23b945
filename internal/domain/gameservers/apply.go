package gameservers

import (
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/catalog"
	"github.com/musterhq/muster/internal/domain/kernel"
)

func (c *State) Apply(_ domain.Time, event kernel.Event) {
	number := c.Touch()
	switch e := event.(type) {
	case *GameServerGroupChanged:
		g := e.Group
		g.Changed = number
		c.Records.Groups.Put(g)
	case *GameServerGroupRemoved:
		for {
			last := ServerRef(0)
			c.Records.ServersOf(e.Name, catalog.Place{}, false, func(x *Server) bool {
				last, _ = c.Records.Servers.Find(x.ID)
				return false
			})
			if last == 0 {
				break
			}
			c.dropGameServer(last)
		}
		r, _ := c.Records.Groups.Find(e.Name)
		c.Records.DropGroup(r)
	case *GameServerChanged:
		s := e.Server
		s.Changed = number
		r := c.Records.PutServer(s)
		c.Waiting.Set(GameServerClaim, r.Any(), s.ClaimBy)
		c.Waiting.Set(GameServerHealth, r.Any(), s.HealthBy)
	case *GameServerRemoved:
		r, _ := c.Records.Servers.Find(e.ID)
		c.dropGameServer(r)
	}
}

func (c *State) dropGameServer(r ServerRef) {
	c.Waiting.Clear(GameServerClaim, r.Any())
	c.Waiting.Clear(GameServerHealth, r.Any())
	c.Records.DropServer(r)
}
