package hosting

import (
	"slices"
	"strings"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/session"
)

// Location returns a custom location.
func (v *View) Location(name string) (l fleet.Location, ok bool) {
	r, ok := v.c.Fleets.Location(name)
	if ok {
		l = *v.c.Fleets.Locations.Get(r)
	}
	return l, v.Found(ok, l.Changed)
}

// Locations returns up to limit custom locations, ordered by name, beginning after `after`.
func (v *View) Locations(after string, limit int) []fleet.Location {
	v.SawAll()
	return kernel.Page(limit, func(take func(*fleet.Location) bool) { v.c.Fleets.LocationsFrom(after, take) })
}

// Fleet returns a fleet.
func (v *View) Fleet(id string) (f fleet.Fleet, ok bool) {
	r, ok := v.c.Fleets.Fleet(id)
	if ok {
		f = *v.c.fleet(r)
	}
	return f, v.Found(ok, f.Changed)
}

// Fleets returns up to limit fleets in creation order, beginning after the fleet (created, id).
func (v *View) Fleets(created domain.Time, id string, limit int) []fleet.Fleet {
	v.SawAll()
	return kernel.Page(limit, func(take func(*fleet.Fleet) bool) { v.c.Fleets.FleetsFrom(int64(created), id, take) })
}

// FleetsOfBuild is Fleets for those that run a build.
func (v *View) FleetsOfBuild(build string, created domain.Time, id string, limit int) []fleet.Fleet {
	v.SawAll()
	var page []fleet.Fleet
	v.c.Fleets.FleetsFrom(int64(created), id, func(f *fleet.Fleet) bool {
		if f.Managed != nil && f.Managed.Build == build {
			page = append(page, *f)
		}
		return len(page) < limit
	})
	return page
}

// Compute returns a compute of a fleet.
func (v *View) Compute(fleetID, name string) (x fleet.Compute, ok bool) {
	r, ok := v.c.Fleets.Compute(fleetID, name)
	if ok {
		x = *v.c.compute(r)
	}
	return x, v.Found(ok, x.Changed)
}

// ComputeNamed finds a compute by "<fleet id>/<name>", or by a name that only one fleet has.
func (v *View) ComputeNamed(id string) (x fleet.Compute, err error) {
	v.SawAll()
	r, err := v.c.computeNamed(id)
	if err != nil {
		return x, err
	}
	return *v.c.compute(r), nil
}

// Computes returns up to limit computes of a fleet in creation order, beginning after (created, name). A location other than "" selects
// only its computes.
func (v *View) Computes(fleetID, location string, created domain.Time, name string, limit int) []fleet.Compute {
	v.SawAll()
	var page []fleet.Compute
	take := func(_ fleet.ComputeRef, x *fleet.Compute) bool {
		page = append(page, *x)
		return len(page) < limit
	}
	if location == "" {
		v.c.Fleets.ComputesFrom(fleetID, int64(created), name, take)
	} else {
		v.c.Fleets.ComputesIn(fleetID, location, int64(created), name, take)
	}
	return page
}

// Process returns a server process.
func (v *View) Process(key fleet.Key) (p fleet.Process, ok bool) {
	r, ok := v.c.Fleets.Process(key)
	if ok {
		p = *v.c.Process(r)
	}
	return p, v.Found(ok, p.Changed)
}

// Hosting returns the game session that a process hosts.
func (v *View) Hosting(key fleet.Key) (session.GameSession, bool) {
	r, ok := v.c.Fleets.Process(key)
	if !ok || v.c.Process(r).Session == 0 {
		v.SawAll()
		return session.GameSession{}, false
	}
	return v.game(session.GameRef(v.c.Process(r).Session)), true
}

// ProcessesOn returns the running processes of a compute.
func (v *View) ProcessesOn(fleetID, compute string) []fleet.Process {
	v.SawAll()
	var all []fleet.Process
	if r, ok := v.c.Fleets.Compute(fleetID, compute); ok {
		v.c.Fleets.ProcessesOn(r, func(_ fleet.ProcessRef, p *fleet.Process) bool {
			if p.State != fleet.Ended {
				all = append(all, *p)
			}
			return true
		})
	}
	return all
}

// Utilization counts what runs in a location of a fleet.
type Utilization struct {
	session.Counts
	Processes        int32 // ready or hosting
	IdleProcesses    int32 // how many of them could start a game session now
	Computes         int32
	ComputesWithGame int32
}

// Utilization counts what runs in a location of a fleet; location "" means all of them.
func (v *View) Utilization(fleetID, location string) Utilization {
	v.SawAll()
	var u Utilization
	r, ok := v.c.Fleets.Fleet(fleetID)
	if !ok {
		return u
	}
	for _, l := range v.c.fleet(r).Locations {
		if location != "" && l.Name != location {
			continue
		}
		n := v.c.Sessions.Utilization(fleetID, l.Name)
		u.Add(&n)
		at := v.c.Fleets.SiteCounts(fleetID, l.Name)
		u.Computes += at.Computes
		u.ComputesWithGame += at.ComputesWithGame
		u.Processes += at.Processes
		u.IdleProcesses += at.Idle
	}
	return u
}

// FleetEvents returns a fleet's event log between two times, newest first, beginning after the event with number `before` (0: with the
// newest).
func (v *View) FleetEvents(fleetID string, from, to domain.Time, before uint64, limit int) []fleet.Event {
	v.SawAll()
	var page []fleet.Event
	for _, r := range slices.Backward(v.c.Fleets.EventsOf(fleetID)) {
		e := v.c.Fleets.Events.Get(r)
		if (before == 0 || e.No < before) && e.At >= from && (to == 0 || e.At <= to) {
			page = append(page, *e)
			if len(page) == limit {
				break
			}
		}
	}
	return page
}

// GameSession returns a game session in memory; the engine reads others from the archive.
func (v *View) GameSession(id session.ID) (session.GameSession, bool) {
	r, ok := v.c.Sessions.Game(id)
	if !ok {
		v.SawAll()
		return session.GameSession{}, false
	}
	return v.game(r), true
}

func (v *View) game(r session.GameRef) session.GameSession {
	g := *v.c.Game(r)
	v.Saw(g.Changed)
	return g
}

// GameFilter selects game sessions of a fleet. Zero fields select all.
type GameFilter struct {
	Location string
	Status   session.Status
}

// Matches reports whether the filter selects g.
func (f GameFilter) Matches(g *session.GameSession) bool {
	return (f.Location == "" || g.Location == f.Location) && (f.Status == 0 || g.Status == f.Status)
}

// GameSessions returns game sessions of a fleet in memory, in creation order, beginning after (created, id). It reads at most `most`
// records. `at` is where the next call begins; done reports that there are no more.
func (v *View) GameSessions(fleetID string, f GameFilter, created domain.Time, id session.ID, most int) (page []session.GameSession, at GamePlace, done bool) {
	v.SawAll()
	done, at = true, GamePlace{created, id}
	looked := 0
	v.c.Sessions.GamesFrom(fleetID, created, id, func(_ session.GameRef, g *session.GameSession) bool {
		if looked == most {
			done = false
			return false
		}
		looked++
		at = GamePlace{g.Created, g.ID}
		if f.Matches(g) {
			page = append(page, *g)
		}
		return true
	})
	return page, at, done
}

// GamePlace is a position in the creation order of game sessions.
type GamePlace struct {
	Created domain.Time
	ID      session.ID
}

// PlayerSession is a player session with the fields of its game session that the API shows.
type PlayerSession struct {
	session.PlayerSession
	GameID          session.ID
	FleetID         string
	Region, Account string
	IPAddress       string
	DNSName         string
	Port            uint16
}

func (c *State) playerSession(p *session.PlayerSession, g *session.GameSession) PlayerSession {
	return PlayerSession{*p, g.ID, g.FleetID, g.Region, g.Account, g.IPAddress, g.DNSName, g.Port}
}

// PlayerSession returns a player session in memory.
func (v *View) PlayerSession(id domain.PlayerSessionID) (PlayerSession, bool) {
	r, ok := v.c.Sessions.PlayerByID(id)
	if !ok {
		v.SawAll()
		return PlayerSession{}, false
	}
	return v.player(v.c.PlayerSession(r)), true
}

func (v *View) player(p *session.PlayerSession) PlayerSession {
	v.Saw(p.Changed)
	return v.c.playerSession(p, v.c.Game(p.Game))
}

// PlayersIn returns the player sessions of a game session in memory, in creation order, beginning after (created, id). Status 0 selects
// all.
func (v *View) PlayersIn(game session.ID, status session.PlayerStatus, created domain.Time, id domain.PlayerSessionID, limit int) []PlayerSession {
	v.SawAll()
	r, ok := v.c.Sessions.Game(game)
	if !ok {
		return nil
	}
	var all []*session.PlayerSession
	v.c.Sessions.PlayersIn(r, func(_ session.PlayerRef, p *session.PlayerSession) bool {
		if (status == 0 || p.Status == status) && playerAfter(p, created, id) {
			all = append(all, p)
		}
		return true
	})
	return v.page(all, limit)
}

// PlayersNamed returns the player sessions of a player in memory, like PlayersIn.
func (v *View) PlayersNamed(player string, created domain.Time, id domain.PlayerSessionID, limit int) []PlayerSession {
	v.SawAll()
	var all []*session.PlayerSession
	v.c.Sessions.PlayersNamed(player, func(_ session.PlayerRef, p *session.PlayerSession) bool {
		if playerAfter(p, created, id) {
			all = append(all, p)
		}
		return true
	})
	return v.page(all, limit)
}

func playerAfter(p *session.PlayerSession, created domain.Time, id domain.PlayerSessionID) bool {
	return p.Created > created || p.Created == created && strings.Compare(string(p.ID[:]), string(id[:])) > 0
}

// page sorts by (created, id) and keeps the first limit.
func (v *View) page(all []*session.PlayerSession, limit int) []PlayerSession {
	slices.SortFunc(all, func(a, b *session.PlayerSession) int {
		if a.Created != b.Created {
			return int(a.Created - b.Created)
		}
		return strings.Compare(string(a.ID[:]), string(b.ID[:]))
	})
	page := make([]PlayerSession, 0, min(limit, len(all)))
	for _, p := range all[:min(limit, len(all))] {
		page = append(page, v.player(p))
	}
	return page
}

// Totals counts the records in memory, for metrics and logs.
type Totals struct {
	Fleets, Computes, Processes, GameSessions, PlayerSessions, Ended int
}

// Totals counts the records in memory.
func (v *View) Totals() Totals {
	c := v.c
	return Totals{
		c.Fleets.Fleets.Len(), c.Fleets.Computes.Len(), c.Fleets.Processes.Len(),
		c.Sessions.Games.Len(), c.Sessions.Players.Len(), c.Ended.Len(),
	}
}
