package cell

import (
	"fmt"

	"github.com/musterhq/muster/internal/domain/chunk"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/gameservers"
	"github.com/musterhq/muster/internal/domain/hosts"
	"github.com/musterhq/muster/internal/domain/matchmaking"
	"github.com/musterhq/muster/internal/domain/placement"
	"github.com/musterhq/muster/internal/domain/quota"
)

// Holdings lists how many records of one kind holders have, and how many they may have.
type Holdings struct {
	Kind    quota.Kind
	Total   quota.Amount // including records without a holder
	Highest []quota.Holding
	Most    int // limit of a holder without a quota of its own
	limit   int // the installation's limit
}

// Holdings returns, for each kind of record, the n holders with the most records. It is for metrics and pages, so it may be ahead of what is durable.
func (v *View) Holdings(n int) []Holdings {
	all := make([]Holdings, 0, len(quota.Kinds()))
	for _, k := range quota.Kinds() {
		held, limit := v.c.held(k)
		all = append(all, Holdings{k, held.Total(), held.Highest(n), v.c.Quotas.Most(k, 0, limit), limit})
	}
	return all
}

// MostOf returns how many records of a kind a holder may have.
func (v *View) MostOf(h *Holdings, by quota.Holder) int { return v.c.Quotas.Most(h.Kind, by, h.limit) }

// held returns the counts of a kind, and the installation's limit that applies besides quotas; 0: none.
func (c *Cell) held(k quota.Kind) (held *quota.Held, limit int) {
	f, s, p, m, g := c.hosting.Fleets, c.hosting.Sessions, c.hosting.Placements, c.matchmaking.Records, c.gameservers.Records
	most := &c.config
	switch k {
	case quota.GameSessions:
		return s.GamesHeld(), 0
	case quota.PlayerSessions:
		return s.Held(), 0
	case quota.Placements:
		return p.Held(), 0
	case quota.Tickets:
		return m.Held(), 0
	case quota.Fleets:
		return &f.Held().Fleets, most.Hosting.FleetsMax
	case quota.Locations:
		return &f.Held().Locations, most.Hosting.LocationsMax
	case quota.Computes:
		return &f.Held().Computes, 0
	case quota.Hosts:
		return c.hosts.Records.Held(), hosts.HostsMax
	case quota.Builds:
		return f.Builds.Held(), most.Hosting.BuildsMax
	case quota.Aliases:
		return f.Aliases.Held(), most.Hosting.AliasesMax
	case quota.Queues:
		return p.QueuesHeld(), most.Hosting.QueuesMax
	case quota.RuleSets:
		return m.RuleSetsHeld(), most.Matchmaking.RuleSetsMax
	case quota.Configurations:
		return m.ConfigurationsHeld(), most.Matchmaking.MatchmakersMax
	case quota.GameServerGroups:
		return g.Groups.Held(), most.GameServers.GameServerGroupsMax
	case quota.GameServers:
		return g.Servers.Held(), 0
	case quota.Subscriptions:
		return c.playerflow.Flow.Studio.Held(), 0
	}
	panic(fmt.Sprintf("no counts of %s", k))
}

// Recount counts all records that have a holder, and returns how the maintained counts differ. It is for tests, because it reads all records.
func (c *Cell) Recount() (wrong []string) {
	f, s, p, m, g := c.hosting.Fleets, c.hosting.Sessions, c.hosting.Placements, c.matchmaking.Records, c.gameservers.Records
	all := make([]quota.Held, len(quota.Kinds()))
	for _, x := range s.Games.All() {
		if x.Live() {
			all[quota.GameSessions].Add(x.Holder, 0)
		} else if x.Holder != 0 {
			wrong = append(wrong, fmt.Sprintf("game session %s has ended and has the holder %d", x.ID, x.Holder))
		}
	}
	for _, x := range s.Players.All() {
		all[quota.PlayerSessions].Add(quota.HolderOf(x.Holder, x.Maker), x.Bytes())
	}
	for _, x := range p.Placements.All() {
		all[quota.Placements].Add(quota.HolderOf(x.Holder, x.Maker), x.Bytes())
	}
	for _, x := range m.Tickets.All() {
		all[quota.Tickets].Add(quota.HolderOf(x.Holder, x.Maker), x.Bytes())
	}
	recount(&all[quota.Fleets], f.Fleets, func(x *fleet.Fleet) quota.Holder { return x.Holder })
	recount(&all[quota.Locations], f.Locations, func(x *fleet.Location) quota.Holder { return x.Holder })
	recount(&all[quota.Computes], f.Computes, func(x *fleet.Compute) quota.Holder { return x.Holder })
	recount(&all[quota.Hosts], chunk.Table[hosts.Host](c.hosts.Records), func(x *hosts.Host) quota.Holder {
		if x.Revoked != 0 {
			return 0
		}
		return x.Holder
	})
	recount(&all[quota.Builds], chunk.Table[fleet.Build](f.Builds), func(x *fleet.Build) quota.Holder { return x.Holder })
	recount(&all[quota.Aliases], chunk.Table[fleet.Alias](f.Aliases), func(x *fleet.Alias) quota.Holder { return x.Holder })
	recount(&all[quota.Queues], p.Queues, func(x *placement.Queue) quota.Holder { return x.Holder })
	recount(&all[quota.RuleSets], m.RuleSets, func(x *matchmaking.RuleSet) quota.Holder { return x.Holder })
	recount(&all[quota.Configurations], m.Configurations, func(x *matchmaking.Configuration) quota.Holder { return x.Holder })
	recount(&all[quota.GameServerGroups], chunk.Table[gameservers.Group](g.Groups), func(x *gameservers.Group) quota.Holder { return x.Holder })
	recount(&all[quota.GameServers], chunk.Table[gameservers.Server](g.Servers), func(x *gameservers.Server) quota.Holder { return x.Holder })
	all[quota.Subscriptions] = *c.playerflow.Flow.Studio.Held()
	for _, k := range quota.Kinds() {
		if held, _ := c.held(k); !held.Equal(&all[k]) {
			wrong = append(wrong, fmt.Sprintf("%s: counted %+v, and there are %+v", k, held, &all[k]))
		}
	}
	return wrong
}

func recount[T any](held *quota.Held, records chunk.Table[T], holder func(*T) quota.Holder) {
	for _, x := range records.All() {
		held.Add(holder(x), 0)
	}
}
