package operator

import (
	"context"
	"net/http"
	"time"

	"github.com/musterhq/muster/internal/attention"
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/placement"
	"github.com/musterhq/muster/internal/domain/session"
)

// OverviewPath is the path where GET answers with an Overview, and below it with the details of one of its lines.
const OverviewPath = "overview"

// overviewMost bounds each list of an Overview and of its detail pages.
const overviewMost = 200

// Overview is the first thing that an operator looks at. Lists have at most 200 entries; Sums and HostsIn count
// everything.
type Overview struct {
	At          time.Time           `json:"at"` // by the service's clock
	Attention   *attention.Found    `json:"attention"`
	Sums        Sums                `json:"sums"`
	Fleets      []FleetLine         `json:"fleets"` // oldest first
	HostsIn     map[string]int      `json:"hostsIn"`
	Hosts       []Host              `json:"hosts"`
	Queues      []QueueLine         `json:"queues"`
	Matchmaking []ConfigurationLine `json:"matchmaking"`
	Health      Health              `json:"health"`
	Cluster     *Cluster            `json:"cluster,omitempty"` // absent with a single node
	Backup      *Backup             `json:"backup,omitempty"`  // the latest one; absent: none is known
	Secret      Secret              `json:"secret"`
}

// Backup is the latest stored backup.
type Backup struct {
	Made time.Time `json:"made"`
	To   string    `json:"to"`
}

// Secret summarizes the generations of the secret.
type Secret struct {
	Generations int       `json:"generations"`          // number in use
	Since       time.Time `json:"since,omitzero"`       // when the signing generation began to sign
	NextEnds    time.Time `json:"nextEnds,omitzero"`    // when the next earlier one is refused
	AccessKeys  int       `json:"accessKeys,omitempty"` // valid ones derived from earlier generations
}

// Sums are totals over the whole service.
type Sums struct {
	Fleets           int   `json:"fleets"`
	Computes         int32 `json:"computes"`
	Processes        int32 `json:"processes"` // running server processes
	FreeProcesses    int32 `json:"freeProcesses"`
	GameSessions     int32 `json:"gameSessions"`
	FreeSeats        int32 `json:"freeSeats"`
	PlayersConnected int32 `json:"playersConnected"`
	PlayersReserved  int32 `json:"playersReserved"`
	Placements       int   `json:"placements"`         // waiting ones
	Tickets          int   `json:"tickets"`            // active ones
	LoggedIn         int   `json:"loggedIn,omitempty"` // players of player flow
	Parties          int   `json:"parties,omitempty"`
}

// FleetLine is a fleet, or one of its locations, with what runs there.
type FleetLine struct {
	ID               string `json:"id"`
	Name             string `json:"name"`
	Location         string `json:"location,omitempty"` // empty: all of them
	Status           string `json:"status"`
	Computes         int32  `json:"computes"`
	Processes        int32  `json:"processes"`
	FreeProcesses    int32  `json:"freeProcesses"`
	GameSessions     int32  `json:"gameSessions"`
	FreeSeats        int32  `json:"freeSeats"`
	PlayersConnected int32  `json:"playersConnected"`
	PlayersReserved  int32  `json:"playersReserved"`
}

// QueueLine is a queue with its waiting placements.
type QueueLine struct {
	Name        string  `json:"name"`
	Placements  int     `json:"placements"`
	WaitSeconds float64 `json:"waitSeconds"` // their average wait
}

// ConfigurationLine is a matchmaking configuration with its active tickets.
type ConfigurationLine struct {
	Name    string `json:"name"`
	Tickets int    `json:"tickets"`
}

// Cluster is what the answering node knows of the other nodes.
type Cluster struct {
	Leader  string   `json:"leader,omitempty"` // empty: unknown
	Outlook string   `json:"outlook"`          // what would happen if one more node failed
	Members []Member `json:"members"`
}

// Member is a node of the cluster.
type Member struct {
	ID      string `json:"id"`
	Address string `json:"address"`
	Role    string `json:"role"` // leader, voter or observer
	Version string `json:"version,omitempty"`
	Behind  uint64 `json:"behind,omitempty"` // entries
	Missing bool   `json:"missing,omitempty"`
}

func (d *Door) overviewRoutes() {
	d.handle("GET "+OverviewPath, read(d, func(ctx context.Context, _ string) (any, error) { return d.overview(ctx) }))
	d.handle("GET "+OverviewPath+"/fleets/{id}", read(d, d.fleetPage))
	d.handle("GET "+OverviewPath+"/game-sessions/{id...}", read(d, d.gamePage))
	d.handle("GET "+OverviewPath+"/queues/{id}", read(d, d.queuePage))
	d.handle("GET "+OverviewPath+"/players/{id...}", read(d, d.playerPage))
	d.handle("GET "+FindPath+"/{id...}", read(d, d.find))
}

// read returns the handler of a request that changes nothing.
func read[T any](d *Door, of func(ctx context.Context, id string) (T, error)) http.HandlerFunc {
	return d.looking(func(w http.ResponseWriter, r *http.Request) {
		x, err := of(r.Context(), r.PathValue("id"))
		if err != nil {
			d.refuse(w, r, err)
			return
		}
		answer(w, http.StatusOK, x)
	})
}

func (d *Door) overview(ctx context.Context) (*Overview, error) {
	found, err := d.config.Attention.Find(ctx)
	if err != nil {
		return nil, err
	}
	now := d.engine.Now()
	x := &Overview{At: now, Attention: found, Fleets: []FleetLine{}, HostsIn: map[string]int{}, Hosts: []Host{}, Queues: []QueueLine{}, Matchmaking: []ConfigurationLine{}, Health: d.health()}
	if x.Attention.Items == nil {
		x.Attention.Items = []attention.Item{} // null in JSON would not be a list
	}
	err = d.engine.Read(ctx, func(v *cell.View) error {
		x.sum(v)
		x.Secret = secretOf(v)
		if b, ok := v.LastBackup(); ok {
			x.Backup = &Backup{b.At.Std(), b.To}
		}
		for _, f := range v.Fleets(0, "", overviewMost) {
			x.Fleets = append(x.Fleets, fleetLine(v, &f))
		}
		all := v.Hosts()
		for i := range all {
			x.HostsIn[v.HostState(&all[i])]++
			if i < overviewMost {
				x.Hosts = append(x.Hosts, hostOf(v, &all[i]))
			}
		}
		for i, q := range v.Queues("", attention.CatalogMost) {
			line := queueLine(v, q.Name, domain.TimeOf(now))
			x.Sums.Placements += line.Placements
			if i < overviewMost {
				x.Queues = append(x.Queues, line)
			}
		}
		for i, c := range v.Configurations("", "", attention.CatalogMost) {
			line := ConfigurationLine{c.Name, v.TicketCounts(c.Name).Active}
			x.Sums.Tickets += line.Tickets
			if i < overviewMost {
				x.Matchmaking = append(x.Matchmaking, line)
			}
		}
		return nil
	})
	if d.config.Cluster != nil {
		x.Cluster = d.config.Cluster(ctx)
	}
	return x, err
}

func secretOf(v *cell.View) Secret {
	s := v.SecretSummary()
	x := Secret{Generations: s.Generations, AccessKeys: s.Keys}
	if s.Since != 0 {
		x.Since = s.Since.Std()
	}
	if s.NextEnds != 0 {
		x.NextEnds = s.NextEnds.Std()
	}
	return x
}

// sum adds the counts that the state maintains.
func (x *Overview) sum(v *cell.View) {
	_, all, _ := v.PlaceCounts(0)
	var line FleetLine
	line.add(&all.Hosts, &all.Sessions)
	x.Sums = Sums{
		Fleets: v.Totals().Fleets, Computes: line.Computes, Processes: line.Processes, FreeProcesses: line.FreeProcesses, GameSessions: line.GameSessions,
		FreeSeats: line.FreeSeats, PlayersConnected: line.PlayersConnected, PlayersReserved: line.PlayersReserved,
	}
	if v.FlowEnabled() {
		flow := v.FlowTotals()
		x.Sums.LoggedIn, x.Sums.Parties = flow.LoggedIn, flow.Parties
	}
}

func (x *FleetLine) add(hosts *fleet.SiteCounts, games *session.Counts) {
	x.Computes += hosts.Computes
	x.Processes += hosts.Running()
	x.FreeProcesses += hosts.Idle
	x.GameSessions += games.GameSessions
	x.FreeSeats += games.SeatsFree
	x.PlayersConnected += games.PlayersActive
	x.PlayersReserved += games.PlayersReserved
}

func fleetLine(v *cell.View, f *fleet.Fleet) FleetLine {
	x := FleetLine{ID: f.ID, Name: f.Name, Status: f.Status.String()}
	for _, p := range v.Places(f.ID) {
		x.add(&p.Hosts, &p.Sessions)
	}
	return x
}

func queueLine(v *cell.View, name string, now domain.Time) QueueLine {
	depth := v.QueueDepth(name)
	return QueueLine{Name: name, Placements: depth.Placements, WaitSeconds: depth.AverageWait(now).Seconds()}
}

// QueuePage is a queue with its oldest waiting placements.
type QueuePage struct {
	QueueLine
	Destinations []string        `json:"destinations"`
	Waiting      []PlacementLine `json:"waiting"`
}

// PlacementLine is a waiting placement.
type PlacementLine struct {
	ID      string    `json:"id"`
	Since   time.Time `json:"since"`
	Players int       `json:"players"`
}

func (d *Door) queuePage(ctx context.Context, name string) (x *QueuePage, err error) {
	err = d.engine.Read(ctx, func(v *cell.View) error {
		q, ok := v.Queue(name)
		if !ok {
			return domain.Refuse(domain.NotFound, "queue %.100q not found", name)
		}
		x = &QueuePage{QueueLine: queueLine(v, name, domain.TimeOf(d.engine.Now())), Destinations: append([]string{}, q.Destinations...), Waiting: []PlacementLine{}}
		for _, p := range v.PendingIn(name, overviewMost) {
			x.Waiting = append(x.Waiting, placementLine(&p))
		}
		return nil
	})
	return x, err
}

func placementLine(p *placement.Placement) PlacementLine {
	return PlacementLine{p.ID, p.Start.Std(), len(p.Players)}
}
