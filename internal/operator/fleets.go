package operator

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/musterhq/muster/internal/attention"
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/placement"
	"github.com/musterhq/muster/internal/plural"
)

// eventsShown is how many of the newest entries of a fleet's event log an explanation shows.
const eventsShown = 20

// freeProcess is the outcome of a location that has a free server process.
const freeProcess = "FREE_PROCESS"

// explainFleet explains a fleet, given its id or ARN.
func (d *Door) explainFleet(ctx context.Context, id string) (*Explanation, error) {
	id = id[strings.LastIndexByte(id, '/')+1:]
	var f fleet.Fleet
	var places []hosting.PlaceCounts
	var events []fleet.Event
	var short []string
	found := false
	var whys, steps []string // by place; empty where a process is free
	var rollouts Explanation // only its facts
	agents, now := d.config.Attention.Agents(), domain.TimeOf(d.engine.Now())
	err := d.engine.Read(ctx, func(v *cell.View) error {
		if f, found = v.Fleet(id); found {
			places, events = v.Places(id), v.FleetEvents(id, 0, 0, 0, eventsShown)
			for i := range places {
				why, next := attention.Place(v, &f, &places[i], agents, now)
				whys, steps = append(whys, why), append(steps, next)
			}
			for _, l := range f.Locations {
				if s, ok := v.Shortage(id, l.Name); ok {
					short = append(short, l.Name+" "+s.String())
				}
			}
			rollouts.rolloutsOf(v, id)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if !found {
		return nil, domain.Refuse(domain.NotFound, "fleet %s not found", id)
	}
	x := &Explanation{Kind: "fleet", ID: f.ID, Status: f.Status.String()}
	x.fact("name", f.Name)
	x.fact("created", clock(f.Created))
	var all fleet.SiteCounts
	games, players := int32(0), int32(0)
	for i := range places {
		p := &places[i]
		all.Add(&p.Hosts)
		games, players = games+p.Sessions.GameSessions, players+p.Sessions.PlayersActive+p.Sessions.PlayersReserved
		outcome := freeProcess
		if whys[i] != "" {
			outcome = placement.NoFreeProcess.String()
		}
		x.Places = append(x.Places, Place{Fleet: f.ID, Location: p.Location, Outcome: outcome, Free: int(p.Hosts.Idle), Detail: whys[i]})
	}
	x.fact("computes", fmt.Sprint(all.Computes))
	x.standings(&all)
	x.fact("game sessions", fmt.Sprint(games))
	x.fact("player sessions", fmt.Sprint(players))
	for _, e := range slices.Backward(events) { // the log is newest first
		x.moment(e.At, e.Code, timesOver(&e))
	}
	for _, s := range short {
		x.fact("hosts", s)
	}
	x.Facts = append(x.Facts, rollouts.Facts...)
	x.Why, x.Next = whyFleet(&f, places, whys, steps, &all)
	if trouble := d.launchFacts(x, f.ID, ""); trouble != "" && all.Idle == 0 && all.Running() > 0 {
		x.Why += " An agent says: " + trouble + "."
	}
	return x.sorted(), nil
}

// standings adds the number of server processes, and how many are available to game sessions or why not.
func (x *Explanation) standings(n *fleet.SiteCounts) {
	var parts []string
	for _, s := range fleet.Standings() {
		if some := n.Of(s); some > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", some, s))
		}
	}
	text := fmt.Sprint(n.Running())
	if len(parts) > 0 {
		text += ": " + strings.Join(parts, ", ")
	}
	x.fact("server processes", text)
}

// whyFleet tells whether the fleet accepts game sessions, why not, and what to do.
func whyFleet(f *fleet.Fleet, places []hosting.PlaceCounts, whys, steps []string, all *fleet.SiteCounts) (why, next string) {
	switch {
	case f.Status == fleet.Deleting:
		return "It takes no game sessions: it is being deleted.", "Nothing: its game sessions end, its hosts leave, and then it is gone."
	case f.Status == fleet.Unstarted:
		if !slices.ContainsFunc(f.Locations, func(l fleet.FleetLocation) bool { return l.Capacity.Desired > 0 }) {
			return "It takes no game sessions: it wants no host.", "aws gamelift update-fleet-capacity --fleet-id " + f.ID + " --location LOCATION --desired-instances 1"
		}
		return "It takes no game sessions: it has no host yet.", "Let a host join one of its locations with muster hosts join-token; muster hosts shows those that have joined, and which fleets they serve."
	case f.Status == fleet.Downloading:
		return "It takes no game sessions: its hosts fetch the build, and no server process has connected yet.", "Wait. If it lasts, muster hosts says what keeps them."
	case f.Status == fleet.Activating:
		return "It takes no game sessions: server processes have started, and none has called ProcessReady yet.", attention.ReadyStep
	case len(places) == 0:
		return "It takes no game sessions: it has no location.", "aws gamelift create-fleet-locations --fleet-id " + f.ID + " --locations Location=NAME"
	case all.Idle > 0:
		var at []string
		for i := range places {
			if free := places[i].Hosts.Idle; free > 0 {
				at = append(at, fmt.Sprintf("%d in %s", free, places[i].Location))
			}
		}
		return fmt.Sprintf("It takes game sessions: %s free, %s.", plural.Of(all.Idle, "server process is", "server processes are"), strings.Join(at, ", ")), ""
	case len(places) == 1:
		return "It takes no game sessions: " + whys[0] + ".", steps[0]
	}
	first := slices.IndexFunc(places, func(p hosting.PlaceCounts) bool { return p.Hosts.Computes > 0 }) // the others never had a host
	return "It takes no game sessions: " + hosting.NoneFree(all, fmt.Sprintf("in its %d locations", len(places))) + ".", steps[max(0, first)]
}

// timesOver returns the message of an event, with the number of events that it stands for.
func timesOver(e *fleet.Event) string {
	if n := e.Times(); n > 1 {
		return fmt.Sprintf("%s (and %d more like it before)", e.Message, n-1)
	}
	return e.Message
}

// explainCompute explains a compute, given FLEET/COMPUTE or only its name.
func (d *Door) explainCompute(ctx context.Context, id string) (*Explanation, error) {
	c, err := d.compute(ctx, id)
	if err != nil {
		return nil, err
	}
	var n fleet.SiteCounts
	silent, step := "", ""
	err = d.engine.Read(ctx, func(v *cell.View) error {
		n = v.ComputeCounts(c.FleetID, c.Name)
		silent, step = attention.SilentCompute(v, c.FleetID, c.Name)
		return nil
	})
	if err != nil {
		return nil, err
	}
	x := &Explanation{Kind: "compute", ID: c.FleetID + "/" + c.Name, Status: fleet.Active.String()}
	x.fact("location", c.Location)
	x.fact("IP address", c.IPAddress)
	x.fact("DNS name", c.DNSName)
	x.fact("registered", clock(c.Created))
	switch {
	case c.TokenGeneration == 0:
		x.fact("auth token", "none was issued")
	default:
		x.fact("auth token", "the newest is good until "+clock(c.TokenExpires))
	}
	if c.Draining() {
		x.fact("drain", "it gets no new game sessions")
	}
	x.standings(&n)
	x.fact("server processes ever", fmt.Sprint(c.ProcessesEver))
	if err := d.computeEvents(ctx, x, &c); err != nil {
		return nil, err
	}
	x.Why, x.Next = whyCompute(&c, &n, d.config.Attention.Agents(), domain.TimeOf(d.engine.Now()))
	if silent != "" {
		x.Why, x.Next = x.Why+" "+silent, step
	}
	if trouble := d.launchFacts(x, c.FleetID, c.Name); trouble != "" && n.Idle == 0 {
		x.Why += " Its agent says: " + trouble + "."
	}
	return x.sorted(), nil
}

// compute finds a compute. A compute's name may contain a slash; a fleet's id does not.
func (d *Door) compute(ctx context.Context, id string) (found fleet.Compute, err error) {
	fleetID, name, named := strings.Cut(id, "/")
	var in []string
	err = d.engine.Read(ctx, func(v *cell.View) error {
		if named {
			if c, ok := v.Compute(fleetID, name); ok {
				found, in = c, []string{fleetID}
			}
		}
		return nil
	})
	if err != nil || len(in) > 0 {
		return found, err
	}
	for created, after, done := domain.Time(0), "", false; !done && err == nil; {
		err = d.engine.Read(ctx, func(v *cell.View) error {
			fleets := v.Fleets(created, after, lookStep)
			for _, f := range fleets {
				if c, ok := v.Compute(f.ID, id); ok {
					found, in = c, append(in, f.ID)
				}
				created, after = f.Created, f.ID
			}
			done = len(fleets) < lookStep
			return nil
		})
	}
	switch {
	case err != nil:
		return found, err
	case len(in) == 0:
		return found, domain.Refuse(domain.NotFound, "compute %s not found; want FLEET/COMPUTE, or the name of a compute", id)
	case len(in) > 1:
		return found, domain.Refuse(domain.Conflict, "compute %s: fleets %s have a compute of that name; want FLEET/COMPUTE", id, strings.Join(in[:min(len(in), 5)], ", "))
	}
	return found, nil
}

// computeEvents adds the newest entries of the fleet's event log that name the compute.
func (d *Door) computeEvents(ctx context.Context, x *Explanation, c *fleet.Compute) error {
	on, shown := " on compute "+c.Name+" ", 0
	defer x.latestFirst(len(x.Timeline))
	for before, done := uint64(0), false; !done && shown < eventsShown; {
		var page []fleet.Event
		err := d.engine.Read(ctx, func(v *cell.View) error {
			page = v.FleetEvents(c.FleetID, c.Created, 0, before, lookStep)
			return nil
		})
		if err != nil {
			return err
		}
		for i := range page {
			if before = page[i].No; shown < eventsShown && strings.Contains(page[i].Message, on) {
				x.moment(page[i].At, page[i].Code, timesOver(&page[i]))
				shown++
			}
		}
		done = len(page) < lookStep
	}
	return nil
}

func whyCompute(c *fleet.Compute, n *fleet.SiteCounts, agents attention.Agents, now domain.Time) (why, next string) {
	switch {
	case n.Idle > 0:
		return fmt.Sprintf("It takes game sessions: %s free.", plural.Of(n.Idle, "server process is", "server processes are")), ""
	case c.Draining():
		why = "It takes no game sessions: it is being drained"
		if hosting := n.Of(fleet.Hosting); hosting > 0 {
			why += fmt.Sprintf(", and hosts %d", hosting)
		}
		return why + ".", "muster drain " + c.Name + " --fleet " + c.FleetID + " --undo lets new game sessions come again."
	}
	why, next = attention.Compute(c, n, agents, now)
	return "It takes no game sessions: " + why + ".", next
}
