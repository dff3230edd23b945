package attention

import (
	"fmt"
	"slices"

	"github.com/musterhq/muster/internal/agentproto"
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/plural"
)

// computesLooked is how many computes of a location are looked at for a reason.
const computesLooked = 200

// fleetPlaces are the locations of a fleet that can start no game session, and hosts in others on which server processes do not run.
func fleetPlaces(v *cell.View, f *fleet.Fleet, agents Agents, now domain.Time) (all []Item) {
	for _, p := range v.Places(f.ID) {
		if p.Hosts.Computes == 0 && wantedElsewhere(f, p.Location) {
			continue
		}
		if why, next := Place(v, f, &p, agents, now); why != "" {
			all = append(all, Item{fmt.Sprintf("Fleet %s can start no game session in %s: %s.", f.Name, p.Location, why), next, "fleet", f.ID})
		}
		if p.Hosts.Running() == 0 {
			continue // that was the reason
		}
		if on, l, more := agents.stuckIn(v, f.ID, p.Location); l != nil {
			what := fmt.Sprintf("Fleet %s, compute %s: %s.", f.Name, on, Launch(l))
			if more > 0 {
				what += " " + plural.Of(more, "more compute in "+p.Location+" has", "more computes in "+p.Location+" have") + " such a trouble."
			}
			all = append(all, Item{what, launchStep(l), "compute", f.ID + "/" + on})
		}
	}
	return all
}

// wantedElsewhere reports whether a fleet of a build is to have hosts, and none in a location. Every such fleet has its home region as a location and wants a host
// there when it is new. A service with machines of its own usually has none there, so one missing host is not reported if other locations want hosts.
func wantedElsewhere(f *fleet.Fleet, location string) bool {
	wants := func(l fleet.FleetLocation) bool {
		return l.Capacity.Desired > 1 || l.Capacity.Desired == 1 && l.Name != f.Home()
	}
	return f.Managed != nil && slices.ContainsFunc(f.Locations, wants) &&
		!slices.ContainsFunc(f.Locations, func(l fleet.FleetLocation) bool { return l.Name == location && wants(l) })
}

func desired(f *fleet.Fleet, location string) int32 {
	for _, l := range f.Locations {
		if l.Name == location {
			return l.Capacity.Desired
		}
	}
	return 0
}

// Place says why no server process of a fleet is free in a location, and what to do; empty if one is free.
func Place(v *cell.View, f *fleet.Fleet, p *hosting.PlaceCounts, agents Agents, now domain.Time) (why, next string) {
	why = hosting.NoneFree(&p.Hosts, "in "+p.Location)
	switch {
	case why == "":
		return "", ""
	case p.Hosts.Computes == 0 && f.Managed != nil && desired(f, p.Location) > 0:
		return why, "Let a host join the location with muster hosts join-token --location " + p.Location + "; muster hosts shows those that have joined, and which fleets they serve."
	case p.Hosts.Computes == 0 && f.Managed != nil:
		return why, "Raise the capacity with aws gamelift update-fleet-capacity --fleet-id " + f.ID + " --location " + p.Location + " --desired-instances 1, and let a host of this location join with muster hosts join-token."
	case p.Hosts.Computes == 0:
		return why, "aws gamelift register-compute --fleet-id " + f.ID + " --compute-name NAME --ip-address ADDRESS --location " + p.Location + " registers one; muster agent does so by itself."
	case p.Hosts.Running() > 0:
		return why, standingStep(&p.Hosts)
	}
	if on, l, _ := agents.stuckIn(v, f.ID, p.Location); l != nil {
		return why + ". " + agentSays(on, l), launchStep(l)
	}
	if text := agents.notInitialized(v, f.ID, p.Location); text != "" {
		return why + ", and " + text, initStep
	}
	if text, step := tokens(v, f.ID, p.Location, agents, now); text != "" {
		return why + ", and " + text, step
	}
	if f.Managed != nil {
		return why, hostStep
	}
	return why, startStep
}

// Compute says why no server process on a compute is free, and what to do; empty if one is free. n has its counts.
func Compute(c *fleet.Compute, n *fleet.SiteCounts, agents Agents, now domain.Time) (why, next string) {
	why = hosting.NoneFree(n, "on it")
	switch {
	case why == "":
		return "", ""
	case n.Running() > 0:
		return why, standingStep(n)
	}
	for _, r := range agents[c.FleetID] {
		if r.Compute != c.Name {
			continue
		}
		if l := stuck(r); l != nil {
			return why + ". " + agentSays(c.Name, l), launchStep(l)
		}
		if n := running(r); n > 0 {
			return why + ", and " + notInitialized(n, c.Name, 0), initStep
		}
		return why, startStep
	}
	if text := Token(c, now); text != "" {
		return why + ", and " + text, TokenStep(c)
	}
	return why, startStep
}

func agentSays(on string, l *agentproto.LaunchState) string {
	return "The agent on compute " + on + " says: " + Launch(l)
}

const (
	initStep = "The game server must call InitSDK, with the address and the token from its environment, and then ProcessReady, within five minutes of its start: check whether it does, and its output " +
		"with muster logs. An Agones server must call Ready, and is not connected while it is Reserved or has allocated itself."
	hostStep = "The agents of its hosts start the game servers: muster hosts shows which are connected; read the log of muster agent on the others."

	startStep = "Start a game server there with the fleet's id, the compute's name and the token of aws gamelift get-compute-auth-token: it must call InitSDK and then ProcessReady. " +
		"If it is running, its own log says why it cannot connect, and the log of this service whether it was refused."
)

// stuckIn is the first entry of a runtime configuration that does not run in a location, and how many more computes there have one.
func (a Agents) stuckIn(v *cell.View, fleetID, location string) (on string, first *agentproto.LaunchState, more int) {
	for _, r := range a[fleetID] {
		l := stuck(r)
		if l == nil {
			continue
		}
		if c, ok := v.Compute(fleetID, r.Compute); !ok || c.Location != location {
			continue
		}
		if first != nil {
			more++
			continue
		}
		on, first = r.Compute, l
	}
	return on, first, more
}

// notInitialized says that agents run server processes in a location where none is connected; empty if they run none.
func (a Agents) notInitialized(v *cell.View, fleetID, location string) string {
	processes, on := 0, []string{}
	for _, r := range a[fleetID] {
		n := running(r)
		if n == 0 {
			continue
		}
		if c, ok := v.Compute(fleetID, r.Compute); ok && c.Location == location && c.Processes == 0 {
			processes, on = processes+n, append(on, r.Compute)
		}
	}
	if len(on) == 0 {
		return ""
	}
	return notInitialized(processes, on[0], len(on)-1)
}

func notInitialized(processes int, on string, more int) string {
	switch {
	case processes == 1:
		return "the server process that runs on compute " + on + " has not called InitSDK"
	case more == 0:
		return fmt.Sprintf("the %d server processes that run on compute %s have not called InitSDK", processes, on)
	}
	return fmt.Sprintf("the %d server processes that run on compute %s and %d more have not called InitSDK", processes, on, more)
}

// tokens says that the computes of a location without a server process have no auth token that is good, so that no game server can connect; empty if one has one, or an agent, which gets its own.
func tokens(v *cell.View, fleetID, location string, agents Agents, now domain.Time) (why, next string) {
	all := v.Computes(fleetID, location, 0, "", computesLooked+1)
	more := len(all) > computesLooked
	all = all[:min(len(all), computesLooked)]
	for i := range all {
		agent := slices.ContainsFunc(agents[fleetID], func(r *agentproto.Report) bool { return r.Compute == all[i].Name })
		if agent || Token(&all[i], now) == "" {
			return "", ""
		}
	}
	if len(all) == 0 {
		return "", ""
	}
	why = Token(&all[0], now)
	switch {
	case more:
		why += fmt.Sprintf("; those of %d others that were checked are no better", len(all)-1)
	case len(all) > 1:
		why += fmt.Sprintf("; those of the other %d are no better", len(all)-1)
	}
	return why, TokenStep(&all[0])
}

// Token says why no game server can connect with the newest auth token of a compute; empty if one can.
func Token(c *fleet.Compute, now domain.Time) string {
	switch {
	case c.TokenGeneration == 0:
		return "no auth token was ever issued for compute " + c.Name
	case c.TokenExpires <= now:
		return "the newest auth token of compute " + c.Name + " has expired, at " + clock(c.TokenExpires)
	}
	return ""
}

// TokenStep is how to get an auth token for a compute.
func TokenStep(c *fleet.Compute) string {
	return "Get a new one with aws gamelift get-compute-auth-token --fleet-id " + c.FleetID + " --compute-name " + c.Name + ", and start a game server with it."
}

// ReadyStep is the next step for server processes that have connected and are not ready.
const ReadyStep = "Make sure that the game servers call ProcessReady: after five minutes without it they count as crashed."

// standingSteps are the next steps when most processes have this standing.
var standingSteps = map[fleet.Standing]string{
	fleet.Ending:       "Wait until they have ended, and start new ones.",
	fleet.Starting:     ReadyStep,
	fleet.Hosting:      "All are in use. Start more server processes, or add computes: a process hosts one game session in its life.",
	fleet.Disconnected: "Check the network between the computes and this service; a process that does not reconnect in time counts as crashed.",
	fleet.ChangingOver: "Wait some seconds: they are opening another connection.",
	fleet.Spent:        "Make sure that the game servers call ProcessEnding and exit after their game session, and start new ones.",
	fleet.Sick:         "Check the game servers' own logs: their health callback OnHealthCheck returns false, or they no longer answer.",
	fleet.Unproven:     "Wait for the first health report, which comes within a minute.",
	fleet.Drained:      "muster drain COMPUTE --undo allows new game sessions again.",
	fleet.Free:         "Wait for the activations in progress, or raise MaxConcurrentGameSessionActivations of the fleet's runtime configuration.",
}

// standingStep is the next step where processes run and none is free.
func standingStep(n *fleet.SiteCounts) string {
	return standingSteps[slices.MaxFunc(fleet.Standings(), func(a, b fleet.Standing) int { return int(n.Of(a) - n.Of(b)) })]
}

func clock(t domain.Time) string { return t.Std().UTC().Format("2006-01-02 15:04:05 MST") }
