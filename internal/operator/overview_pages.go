package operator

import (
	"context"
	"slices"
	"time"

	"github.com/musterhq/muster/internal/attention"
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/session"
	"github.com/musterhq/muster/internal/engine"
)

// FleetPage is a fleet with everything that runs in it.
type FleetPage struct {
	FleetLine
	Places       []PlaceLine       `json:"places"`
	Processes    []ProcessLine     `json:"serverProcesses"`
	GameSessions []GameSessionLine `json:"liveGameSessions"` // oldest first
	More         bool              `json:"more,omitempty"`   // some server processes or game sessions are not listed
}

// PlaceLine is a location of a fleet.
type PlaceLine struct {
	FleetLine
	Why string `json:"why,omitempty"` // why no server process is free there
}

// ProcessLine is a server process.
type ProcessLine struct {
	ID        string    `json:"id"` // FLEET/COMPUTE/PROCESS
	Compute   string    `json:"compute"`
	Location  string    `json:"location"`
	Standing  string    `json:"standing"` // whether a game session could start on it, or why not
	Health    string    `json:"health"`
	Port      uint16    `json:"port,omitempty"`
	Since     time.Time `json:"since"` // when it connected
	Connected bool      `json:"connected"`
}

// GameSessionLine is a game session.
type GameSessionLine struct {
	ID         string    `json:"id"`
	Name       string    `json:"name,omitempty"`
	Status     string    `json:"status"`
	Process    string    `json:"process"` // FLEET/COMPUTE/PROCESS
	Location   string    `json:"location"`
	SeatsHeld  int32     `json:"seatsHeld"`
	PlayersMax int32     `json:"playersMax"`
	Created    time.Time `json:"created"`
}

// fleetPage returns the page of a fleet, given its id.
func (d *Door) fleetPage(ctx context.Context, id string) (x *FleetPage, err error) {
	agents, now := d.config.Attention.Agents(), domain.TimeOf(d.engine.Now())
	err = d.engine.Read(ctx, func(v *cell.View) error {
		f, ok := v.Fleet(id)
		if !ok {
			return domain.Refuse(domain.NotFound, "fleet %.100q not found", id)
		}
		x = &FleetPage{FleetLine: fleetLine(v, &f), Places: []PlaceLine{}, Processes: []ProcessLine{}, GameSessions: []GameSessionLine{}}
		for _, p := range v.Places(id) {
			status, _ := f.HasLocation(p.Location)
			line := PlaceLine{FleetLine: FleetLine{ID: id, Name: f.Name, Location: p.Location, Status: status.String()}}
			line.add(&p.Hosts, &p.Sessions)
			line.Why, _ = attention.Place(v, &f, &p, agents, now)
			x.Places = append(x.Places, line)
		}
		x.More = x.addProcesses(v)
		return nil
	})
	if err != nil {
		return nil, err
	}
	// Ended game sessions are left out: live ones fill a few pages, but the archive may have millions.
	for _, status := range []session.Status{session.Activating, session.Active, session.Terminating} {
		games, more, err := d.engine.GameSessions(ctx, id, hosting.GameFilter{Status: status}, hosting.GamePlace{}, overviewMost-len(x.GameSessions)+1)
		if err != nil {
			return nil, err
		}
		for i := range games {
			if more = more || len(x.GameSessions) == overviewMost; len(x.GameSessions) < overviewMost {
				x.GameSessions = append(x.GameSessions, gameLine(&games[i]))
			}
		}
		x.More = x.More || more
	}
	return x, nil
}

// addProcesses adds the running server processes, and reports whether there are more.
func (x *FleetPage) addProcesses(v *cell.View) (more bool) {
	computes := v.Computes(x.ID, "", 0, "", overviewMost+1)
	for i := range computes[:min(len(computes), overviewMost)] {
		c := &computes[i]
		for _, p := range v.ProcessesOn(x.ID, c.Name) {
			if len(x.Processes) == overviewMost {
				return true
			}
			x.Processes = append(x.Processes, processLine(&p, c))
		}
	}
	return len(computes) > overviewMost
}

func processLine(p *fleet.Process, on *fleet.Compute) ProcessLine {
	return ProcessLine{
		ID: p.Key.String(), Compute: p.Key.Compute, Location: p.Location, Standing: p.Standing(on).String(), Health: p.Health.String(), Port: p.Port, Since: p.Connected.Std(), Connected: p.Linked,
	}
}

func gameLine(g *session.GameSession) GameSessionLine {
	key := fleet.Key{Fleet: g.FleetID, Compute: g.ComputeName, Process: g.ProcessID}
	return GameSessionLine{
		ID: string(g.ID), Name: g.Name, Status: g.Status.String(), Process: key.String(), Location: g.Location, SeatsHeld: g.SeatsHeld, PlayersMax: g.PlayersMax, Created: g.Created.Std(),
	}
}

// GamePage is a game session with its player sessions, oldest first.
type GamePage struct {
	GameSessionLine
	Players []PlayerSessionLine `json:"players"`
	More    bool                `json:"more,omitempty"`
}

// PlayerSessionLine is a player session.
type PlayerSessionLine struct {
	ID          string    `json:"id"`
	Player      string    `json:"player"`
	Status      string    `json:"status"`
	GameSession string    `json:"gameSession"`
	Since       time.Time `json:"since"` // when it was reserved
}

func (d *Door) gamePage(ctx context.Context, id string) (*GamePage, error) {
	g, err := d.engine.GameSession(ctx, session.ID(id))
	if err != nil {
		return nil, err
	}
	players, more, err := d.engine.PlayersIn(ctx, g.ID, 0, engine.PlayerPlace{}, overviewMost)
	return &GamePage{gameLine(&g), playerLines(players), more}, err
}

// PlayerPage is a player with player sessions.
type PlayerPage struct {
	Player   string              `json:"player"`
	Live     []PlayerSessionLine `json:"live"`     // those that have not ended
	Sessions []PlayerSessionLine `json:"sessions"` // all of them, oldest first
	More     bool                `json:"more,omitempty"`
}

// playerPage returns the page of a player, given the id. Any text but the empty one may be an id, so an unknown player is not an error.
func (d *Door) playerPage(ctx context.Context, id string) (*PlayerPage, error) {
	if id == "" {
		return nil, domain.Refuse(domain.Invalid, "the path ends without the id of a player")
	}
	var here []hosting.PlayerSession
	err := d.engine.Read(ctx, func(v *cell.View) error {
		here = v.PlayersNamed(id, 0, domain.PlayerSessionID{}, overviewMost)
		return nil
	})
	if err != nil {
		return nil, err
	}
	here = slices.DeleteFunc(here, func(p hosting.PlayerSession) bool { return !p.Status.Live() })
	all, more, err := d.engine.PlayersNamed(ctx, id, engine.PlayerPlace{}, overviewMost)
	return &PlayerPage{id, playerLines(here), playerLines(all), more}, err
}

func playerLines(all []hosting.PlayerSession) []PlayerSessionLine {
	lines := make([]PlayerSessionLine, len(all))
	for i := range all {
		p := &all[i]
		lines[i] = PlayerSessionLine{ID: p.ID.String(), Player: p.Player, Status: p.Status.String(), GameSession: string(p.GameID), Since: p.Created.Std()}
	}
	return lines
}
