package gameservers

import (
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/catalog"
)

// GameServerGroup returns a group, or refuses.
func (v *View) GameServerGroup(name string) (Group, error) {
	g, err := v.c.groupByName(name)
	if err != nil {
		v.SawAll()
		return Group{}, err
	}
	v.Saw(g.Changed)
	return *g, nil
}

// GameServerGroups returns up to limit groups in creation order, beginning after a place.
func (v *View) GameServerGroups(after catalog.Place, limit int) []Group {
	v.SawAll()
	return v.c.Records.Groups.Page(after, limit, nil)
}

// GameServer returns a game server of a group, or refuses.
func (v *View) GameServer(group, id string) (Server, error) {
	x, err := v.c.GameServer(group, id)
	if err != nil {
		v.SawAll()
		return Server{}, err
	}
	v.Saw(x.Changed)
	return *x, nil
}

// GameServers returns up to limit game servers of a group in the order of registration, or in the opposite one, beginning after a place.
func (v *View) GameServers(group string, after catalog.Place, newestFirst bool, limit int) (page []Server, err error) {
	v.SawAll()
	if _, err := v.c.groupByName(group); err != nil {
		return nil, err
	}
	v.c.Records.ServersOf(group, after, newestFirst, func(x *Server) bool {
		page = append(page, *x)
		return len(page) < limit
	})
	return page, nil
}

// GameServerInstances returns up to limit instances of a group's game servers, starting after one. If wanted is not empty, it returns only those,
// and refuses unknown ones.
func (v *View) GameServerInstances(group, after string, wanted []string, limit int) (page []string, err error) {
	v.SawAll()
	if _, err := v.c.groupByName(group); err != nil {
		return nil, err
	}
	for _, id := range wanted {
		if !v.c.Records.HasInstance(group, id) {
			return nil, domain.Refuse(domain.NotFound, "instance %s has no game server in group %s", id, group)
		}
		page = append(page, id)
	}
	if len(wanted) > 0 {
		return page, nil
	}
	v.c.Records.InstancesOf(group, after, func(id string) bool {
		page = append(page, id)
		return len(page) < limit
	})
	return page, nil
}

// GameServersIn returns how many game servers a group has, and how many of them are UTILIZED. The counts are for metrics and may be ahead of what is
// durable.
func (v *View) GameServersIn(group string) (all, utilized int) {
	return v.c.Records.Count(group), v.c.Records.Utilized(group)
}
