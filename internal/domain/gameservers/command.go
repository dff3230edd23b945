package gameservers

import (
	"slices"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/quota"
)

// CreateGameServerGroup creates a group, which is ACTIVE at once, because there is nothing to start.
type CreateGameServerGroup struct {
	Group Group

	// Result: Group, as stored.
}

// Hold implements quota.Taker.
func (cmd *CreateGameServerGroup) Hold(h quota.Holder) { cmd.Group.Holder = h }

func (cmd *CreateGameServerGroup) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	g, c := &cmd.Group, t.State
	if _, ok := c.Records.Groups.Find(g.Name); ok {
		return domain.Refuse(domain.Conflict, "game server group %s exists already", g.Name)
	}
	if n, most := c.Records.Groups.Len(), c.Config.GameServerGroupsMax; n >= most {
		return domain.Refuse(domain.LimitExceeded, "%d game server groups exist; the limit is %d", n, most)
	}
	if err := t.Take(quota.GameServerGroups, c.Records.Groups.Held(), &g.Holder, c.Config.GameServerGroupsMax); err != nil {
		return err
	}
	if g.SizeMin > g.SizeMax {
		return domain.Refuse(domain.Invalid, "MinSize: %d is more than MaxSize, %d", g.SizeMin, g.SizeMax)
	}
	if (g.Template.ID == "") == (g.Template.Name == "") {
		return domain.Refuse(domain.Invalid, "LaunchTemplate: want exactly one of LaunchTemplateId and LaunchTemplateName")
	}
	if err := checkInstanceTypes(g.Instances); err != nil {
		return err
	}
	tags, err := t.tags.Tagged(nil, nil, g.Tags)
	if err != nil {
		return err
	}
	g.Created, g.Updated, g.Tags = t.Now, t.Now, tags
	t.Emit(&GameServerGroupChanged{*g})
	return nil
}

func checkInstanceTypes(all []InstanceType) error {
	for i, x := range all {
		if slices.ContainsFunc(all[:i], func(y InstanceType) bool { return x.Name == y.Name }) {
			return domain.Refuse(domain.Invalid, "InstanceDefinitions[%d].InstanceType: %s is given twice", i, x.Name)
		}
	}
	return nil
}

func (c *State) groupByName(name string) (*Group, error) {
	r, ok := c.Records.Groups.Find(name)
	if !ok {
		return nil, domain.Refuse(domain.NotFound, "game server group %s not found", name)
	}
	return c.Records.Groups.Get(r), nil
}

// UpdateGameServerGroup changes the given fields and keeps the others.
type UpdateGameServerGroup struct {
	Name       string
	Role       *string
	Balancing  *string
	Protection *string
	Suspended  *bool
	Instances  []InstanceType

	// Result
	Group Group
}

func (cmd *UpdateGameServerGroup) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	old, err := t.groupByName(cmd.Name)
	if err != nil {
		return err
	}
	if err := checkInstanceTypes(cmd.Instances); err != nil {
		return err
	}
	g := *old
	kernel.Patch(&g.Role, cmd.Role)
	kernel.Patch(&g.Balancing, cmd.Balancing)
	kernel.Patch(&g.Protection, cmd.Protection)
	kernel.Patch(&g.Suspended, cmd.Suspended)
	if cmd.Instances != nil {
		g.Instances = cmd.Instances
	}
	g.Updated = t.Now
	t.Emit(&GameServerGroupChanged{g})
	cmd.Group = g
	return nil
}

// DeleteGameServerGroup closes a group to new game servers and removes it with its last one. With force, it removes the group and its
// game servers at once.
type DeleteGameServerGroup struct {
	Name  string
	Force bool

	// Result: the group while it is being deleted
	Group Group
}

func (cmd *DeleteGameServerGroup) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	old, err := t.groupByName(cmd.Name)
	switch {
	case err != nil:
		return err
	case old.Deleting && !cmd.Force:
		return domain.Refuse(domain.Invalid, "game server group %s is being deleted already", cmd.Name)
	}
	g := *old
	g.Deleting, g.Updated = true, t.Now
	cmd.Group = g
	if cmd.Force || t.Records.Count(g.Name) == 0 {
		t.Emit(&GameServerGroupRemoved{g.Name})
	} else {
		t.Emit(&GameServerGroupChanged{g})
	}
	return nil
}

// RegisterGameServer adds a game server to a group.
type RegisterGameServer struct {
	Server Server // ID, Group, Instance, Connection, Data

	// Result: Server, as stored.
}

// Hold implements quota.Taker.
func (cmd *RegisterGameServer) Hold(h quota.Holder) { cmd.Server.Holder = h }

func (cmd *RegisterGameServer) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	x, c := &cmd.Server, t.State
	g, err := c.groupByName(x.Group)
	if err != nil {
		return err
	}
	if g.Deleting {
		return domain.Refuse(domain.Invalid, "game server group %s is being deleted", g.Name)
	}
	if r, ok := c.Records.Servers.Find(x.ID); ok {
		return domain.Refuse(domain.Conflict, "game server %s is registered in group %s already", x.ID, c.Records.Servers.Get(r).Group)
	}
	if n, most := c.Records.Count(x.Group), c.Config.GameServersInGroupMax; n >= most {
		return domain.Refuse(domain.LimitExceeded, "group %s has %d game servers; the limit is %d", x.Group, n, most)
	}
	if err := t.Take(quota.GameServers, c.Records.Servers.Held(), &x.Holder, 0); err != nil {
		return err
	}
	x.Registered, x.Healthy, x.HealthBy = t.Now, t.Now, t.Contact.Add(c.Config.GameServerHealth)
	t.Emit(&GameServerChanged{*x})
	return nil
}

// GameServer finds a game server of a group.
func (c *State) GameServer(group, id string) (*Server, error) {
	if _, err := c.groupByName(group); err != nil {
		return nil, err
	}
	if r, ok := c.Records.Servers.Find(id); ok && c.Records.Servers.Get(r).Group == group {
		return c.Records.Servers.Get(r), nil
	}
	return nil, domain.Refuse(domain.NotFound, "game server %s not found in group %s", id, group)
}

// ClaimGameServer reserves a game server for its caller until the game server reports that it is utilized.
type ClaimGameServer struct {
	Group string
	ID    string // "" for any that is free
	Data  *string
	None  bool // the caller's filter excludes every instance, because all of them are ACTIVE

	// Result
	Server Server
}

func (cmd *ClaimGameServer) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	g, err := t.groupByName(cmd.Group)
	if err != nil {
		return err
	}
	var old *Server
	if cmd.ID != "" {
		if old, err = t.GameServer(cmd.Group, cmd.ID); err != nil {
			return err
		}
		if !old.Free() {
			return domain.Refuse(domain.Conflict, "game server %s is claimed or utilized", cmd.ID)
		}
	}
	r, ok := t.Records.Free(cmd.Group)
	switch {
	case g.Deleting:
		return domain.Refuse(domain.NoCapacity, "game server group %s is being deleted", cmd.Group)
	case !ok || cmd.None:
		return domain.Refuse(domain.NoCapacity, "no game server of group %s is free", cmd.Group)
	case old == nil:
		old = t.Records.Servers.Get(r)
	}
	x := *old
	kernel.Patch(&x.Data, cmd.Data)
	x.Claimed, x.ClaimBy = t.Now, t.Contact.Add(t.Config.GameServerClaim)
	t.Emit(&GameServerChanged{x})
	cmd.Server = x
	return nil
}

// UpdateGameServer is a game server's report about itself.
type UpdateGameServer struct {
	Group, ID string
	Data      *string
	Healthy   bool
	Utilized  *bool

	// Result
	Server Server
}

func (cmd *UpdateGameServer) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	old, err := t.GameServer(cmd.Group, cmd.ID)
	switch {
	case err != nil:
		return err
	case cmd.Utilized != nil && !*cmd.Utilized && old.Utilized:
		return domain.Refuse(domain.Invalid, "UtilizationStatus: game server %s is UTILIZED and cannot become AVAILABLE again", cmd.ID)
	}
	x := *old
	kernel.Patch(&x.Data, cmd.Data)
	if cmd.Healthy {
		x.Healthy, x.HealthBy = t.Now, t.Contact.Add(t.Config.GameServerHealth)
	}
	if cmd.Utilized != nil && *cmd.Utilized {
		x.Utilized, x.ClaimBy = true, 0
	}
	t.Emit(&GameServerChanged{x})
	cmd.Server = x
	return nil
}

// DeregisterGameServer removes a game server.
type DeregisterGameServer struct{ Group, ID string }

func (cmd *DeregisterGameServer) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	x, err := t.GameServer(cmd.Group, cmd.ID)
	if err == nil {
		t.removeGameServer(x)
	}
	return err
}

// removeGameServer removes a game server, and its group if that is being deleted and has no others.
func (t *Tx) removeGameServer(x *Server) {
	group := x.Group
	t.Emit(&GameServerRemoved{x.ID})
	if g, err := t.groupByName(group); err == nil && g.Deleting && t.Records.Count(group) == 0 {
		t.Emit(&GameServerGroupRemoved{group})
	}
}

// claimOver frees a game server that was claimed but not utilized in time.
func (t *Tx) claimOver(r ServerRef) {
	x := *t.Records.Servers.Get(r)
	x.ClaimBy = 0
	t.Emit(&GameServerChanged{x})
}
