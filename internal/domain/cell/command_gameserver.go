package cell

import (
	"slices"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/gameservers"
)

// CreateGameServerGroup makes a group. It is ACTIVE at once: there is nothing to start.
type CreateGameServerGroup struct {
	Group gameservers.Group

	// Result: Group as it was stored.
}

func (cmd *CreateGameServerGroup) decide(t *tx) error {
	g, c := &cmd.Group, t.c
	if _, ok := c.gameServers.Groups.Find(g.Name); ok {
		return domain.Refuse(domain.Conflict, "game server group %s exists already", g.Name)
	}
	if n, most := c.gameServers.Groups.Len(), c.config.GameServerGroupsMax; n >= most {
		return domain.Refuse(domain.LimitExceeded, "%d game server groups exist; the limit is %d", n, most)
	}
	if g.SizeMin > g.SizeMax {
		return domain.Refuse(domain.Invalid, "MinSize: %d is more than MaxSize, %d", g.SizeMin, g.SizeMax)
	}
	if (g.Template.ID == "") == (g.Template.Name == "") {
		return domain.Refuse(domain.Invalid, "LaunchTemplate: exactly one of LaunchTemplateId and LaunchTemplateName is wanted")
	}
	if err := checkInstanceTypes(g.Instances); err != nil {
		return err
	}
	tags, err := t.tagged(GameServerGroupResource, nil, g.Tags)
	if err != nil {
		return err
	}
	g.Created, g.Updated, g.Tags = t.now, t.now, tags
	t.emit(&GameServerGroupChanged{*g})
	return nil
}

func checkInstanceTypes(all []gameservers.InstanceType) error {
	for i, x := range all {
		if slices.ContainsFunc(all[:i], func(y gameservers.InstanceType) bool { return x.Name == y.Name }) {
			return domain.Refuse(domain.Invalid, "InstanceDefinitions[%d].InstanceType: %s is given twice", i, x.Name)
		}
	}
	return nil
}

func (c *Cell) groupByName(name string) (*gameservers.Group, error) {
	r, ok := c.gameServers.Groups.Find(name)
	if !ok {
		return nil, domain.Refuse(domain.NotFound, "game server group %s not found", name)
	}
	return c.gameServers.Groups.Get(r), nil
}

// UpdateGameServerGroup changes what is given and keeps the rest.
type UpdateGameServerGroup struct {
	Name       string
	Role       *string
	Balancing  *string
	Protection *string
	Suspended  *bool
	Instances  []gameservers.InstanceType

	// Result
	Group gameservers.Group
}

func (cmd *UpdateGameServerGroup) decide(t *tx) error {
	old, err := t.c.groupByName(cmd.Name)
	if err != nil {
		return err
	}
	if err := checkInstanceTypes(cmd.Instances); err != nil {
		return err
	}
	g := *old
	set(&g.Role, cmd.Role)
	set(&g.Balancing, cmd.Balancing)
	set(&g.Protection, cmd.Protection)
	set(&g.Suspended, cmd.Suspended)
	if cmd.Instances != nil {
		g.Instances = cmd.Instances
	}
	g.Updated = t.now
	t.emit(&GameServerGroupChanged{g})
	cmd.Group = g
	return nil
}

// DeleteGameServerGroup makes a group take nothing new and go with its last game server; by force it goes at once, with
// all that is in it.
type DeleteGameServerGroup struct {
	Name  string
	Force bool

	// Result: the group while it is being deleted
	Group gameservers.Group
}

func (cmd *DeleteGameServerGroup) decide(t *tx) error {
	old, err := t.c.groupByName(cmd.Name)
	switch {
	case err != nil:
		return err
	case old.Deleting && !cmd.Force:
		return domain.Refuse(domain.Invalid, "game server group %s is being deleted already", cmd.Name)
	}
	g := *old
	g.Deleting, g.Updated = true, t.now
	cmd.Group = g
	if cmd.Force || t.c.gameServers.Count(g.Name) == 0 {
		t.emit(&GameServerGroupRemoved{g.Name})
	} else {
		t.emit(&GameServerGroupChanged{g})
	}
	return nil
}

// RegisterGameServer adds a game server to a group.
type RegisterGameServer struct {
	Server gameservers.Server // ID, Group, Instance, Connection, Data

	// Result: Server as it was stored.
}

func (cmd *RegisterGameServer) decide(t *tx) error {
	x, c := &cmd.Server, t.c
	g, err := c.groupByName(x.Group)
	if err != nil {
		return err
	}
	if g.Deleting {
		return domain.Refuse(domain.Invalid, "game server group %s is being deleted", g.Name)
	}
	if r, ok := c.gameServers.Servers.Find(x.ID); ok {
		return domain.Refuse(domain.Conflict, "game server %s is registered in group %s already", x.ID, c.gameServers.Servers.Get(r).Group)
	}
	if n, most := c.gameServers.Count(x.Group), c.config.GameServersInGroupMax; n >= most {
		return domain.Refuse(domain.LimitExceeded, "group %s has %d game servers; the limit is %d", x.Group, n, most)
	}
	x.Registered, x.Healthy, x.HealthBy = t.now, t.now, t.contact.Add(c.config.GameServerHealth)
	t.emit(&GameServerChanged{*x})
	return nil
}

// gameServer finds a game server of a group.
func (c *Cell) gameServer(group, id string) (*gameservers.Server, error) {
	if _, err := c.groupByName(group); err != nil {
		return nil, err
	}
	if r, ok := c.gameServers.Servers.Find(id); ok && c.gameServers.Servers.Get(r).Group == group {
		return c.gameServers.Servers.Get(r), nil
	}
	return nil, domain.Refuse(domain.NotFound, "game server %s not found in group %s", id, group)
}

// ClaimGameServer keeps a game server for its caller until the game server says that it is utilized.
type ClaimGameServer struct {
	Group string
	ID    string // "" for any that is free
	Data  *string
	None  bool // the caller wants none of the instances there are: all of them are ACTIVE

	// Result
	Server gameservers.Server
}

func (cmd *ClaimGameServer) decide(t *tx) error {
	g, err := t.c.groupByName(cmd.Group)
	if err != nil {
		return err
	}
	var old *gameservers.Server
	if cmd.ID != "" {
		if old, err = t.c.gameServer(cmd.Group, cmd.ID); err != nil {
			return err
		}
		if !old.Free() {
			return domain.Refuse(domain.Conflict, "game server %s is claimed or utilized", cmd.ID)
		}
	}
	r, ok := t.c.gameServers.Free(cmd.Group)
	switch {
	case g.Deleting:
		return domain.Refuse(domain.NoCapacity, "game server group %s is being deleted", cmd.Group)
	case !ok || cmd.None:
		return domain.Refuse(domain.NoCapacity, "no game server of group %s is free", cmd.Group)
	case old == nil:
		old = t.c.gameServers.Servers.Get(r)
	}
	x := *old
	set(&x.Data, cmd.Data)
	x.Claimed, x.ClaimBy = t.now, t.contact.Add(t.c.config.GameServerClaim)
	t.emit(&GameServerChanged{x})
	cmd.Server = x
	return nil
}

// UpdateGameServer is what a game server says of itself.
type UpdateGameServer struct {
	Group, ID string
	Data      *string
	Healthy   bool
	Utilized  *bool

	// Result
	Server gameservers.Server
}

func (cmd *UpdateGameServer) decide(t *tx) error {
	old, err := t.c.gameServer(cmd.Group, cmd.ID)
	switch {
	case err != nil:
		return err
	case cmd.Utilized != nil && !*cmd.Utilized && old.Utilized:
		return domain.Refuse(domain.Invalid, "UtilizationStatus: game server %s is UTILIZED and cannot become AVAILABLE again", cmd.ID)
	}
	x := *old
	set(&x.Data, cmd.Data)
	if cmd.Healthy {
		x.Healthy, x.HealthBy = t.now, t.contact.Add(t.c.config.GameServerHealth)
	}
	if cmd.Utilized != nil && *cmd.Utilized {
		x.Utilized, x.ClaimBy = true, 0
	}
	t.emit(&GameServerChanged{x})
	cmd.Server = x
	return nil
}

// DeregisterGameServer removes a game server.
type DeregisterGameServer struct{ Group, ID string }

func (cmd *DeregisterGameServer) decide(t *tx) error {
	x, err := t.c.gameServer(cmd.Group, cmd.ID)
	if err == nil {
		t.removeGameServer(x)
	}
	return err
}

// removeGameServer drops a game server, and its group if that waited for its last one.
func (t *tx) removeGameServer(x *gameservers.Server) {
	group := x.Group
	t.emit(&GameServerRemoved{x.ID})
	if g, err := t.c.groupByName(group); err == nil && g.Deleting && t.c.gameServers.Count(group) == 0 {
		t.emit(&GameServerGroupRemoved{group})
	}
}

// claimOver makes a game server free again that nobody used.
func (t *tx) claimOver(r gameservers.Ref) {
	x := *t.c.gameServers.Servers.Get(r)
	x.ClaimBy = 0
	t.emit(&GameServerChanged{x})
}
