package capacity

import (
	"fmt"
	"slices"
	"strings"

	"github.com/musterhq/muster/internal/domain/quota"
)

// This file assigns hosts to fleets. It is a pure function of one location: its hosts, the fleets' demands there, and the hosts that the fleets have.
//
// A host serves one fleet at a time, like an instance of the cloud, so no fleet can take another one's memory or ports. A fleet keeps its hosts as
// long as it wants that many. When hosts are short, each fleet first gets its minimum, and each further host goes to the fleet with the fewest. A
// host that a fleet no longer wants is released: it drains, and is free once its last game session has ended. No game session is ended for that.

// Standing tells whether a host can serve a fleet.
type Standing uint8

// The standings of a host.
const (
	Ready   Standing = iota
	Silent           // its agent has been disconnected for a while; its game servers may still be running
	Drained          // its operator wants it empty
)

// Host is a host as the plan sees it.
type Host struct {
	ID       string // never changes
	Name     string // the name of the compute that represents it
	Location string
	Fleet    string // the only fleet that it may serve; empty: any fleet of a build in its location
	Standing Standing
	MemoryMB int64 // 0: unknown
	Ports    int32 // in its pool; 0: no pool
	IP, DNS  string
	Holder   quota.Holder // holder of that compute
}

// Needs is what a host must provide to run a fleet's processes.
type Needs struct {
	MemoryMB int64
	Ports    int32
}

// Demand is what a fleet wants and has in the location.
type Demand struct {
	Fleet        string
	Desired, Min int32
	Needs        Needs
	Has          []Held
}

// Held is a host that a fleet has.
type Held struct {
	Host      string
	Releasing bool
	Sessions  int32 // game sessions that it hosts
}

// Step is a change of a host.
type Step uint8

// The steps.
const (
	Assign  Step = iota + 1
	Release      // it starts to drain
	Reclaim      // it was being released and is wanted again
)

// Move is a step for one host of a fleet.
type Move struct {
	Step        Step
	Host, Fleet string
	Why         string // of Release
	Replaced    bool   // it is released because it is disconnected and others have replaced it
}

// Outcome is the plan for a location.
type Outcome struct {
	Moves []Move
	Short []Shortage // of the fleets that get fewer hosts than they want, in the order of the demands
}

// Shortage tells how many hosts a fleet lacks, and why no other host can be assigned.
type Shortage struct {
	Fleet        string
	Desired, Has int32
	Why          string
}

func (s *Shortage) String() string {
	hosts := "hosts"
	if s.Desired == 1 {
		hosts = "host"
	}
	return fmt.Sprintf("needs %d %s, has %d: %s", s.Desired, hosts, s.Has, s.Why)
}

// planner is the working state of Decide for one location.
type planner struct {
	hosts   []Host
	byID    map[string]*Host
	holder  map[string]string // by host: its fleet, including while it is being released
	taken   map[[2]string]bool
	demands []Demand
	has     []int32  // by demand: number of ready hosts that stay
	silent  [][]Held // by demand: disconnected hosts
	out     Outcome
}

// Decide plans a location. taken reports whether a fleet already has a compute of a name.
func Decide(hosts []Host, demands []Demand, taken func(fleet, name string) bool) Outcome {
	p := planner{hosts: hosts, byID: map[string]*Host{}, holder: map[string]string{}, taken: map[[2]string]bool{}, demands: demands, has: make([]int32, len(demands)), silent: make([][]Held, len(demands))}
	for i := range hosts {
		p.byID[hosts[i].ID] = &hosts[i]
	}
	for i := range demands {
		for _, h := range demands[i].Has {
			p.holder[h.Host] = demands[i].Fleet
		}
	}
	for i := range demands {
		p.keep(i)
	}
	p.share(taken, func(d *Demand) int32 { return min(d.Min, d.Desired) })
	p.share(taken, func(d *Demand) int32 { return d.Desired })
	for i := range demands {
		p.dropSilent(i)
		if d := &demands[i]; p.has[i] < d.Desired {
			p.out.Short = append(p.out.Short, Shortage{d.Fleet, d.Desired, p.has[i], p.why(d, taken)})
		}
	}
	return p.out
}

// keep decides what happens to a fleet's current hosts: drained ones leave, released ones are reclaimed while the fleet wants more, and if there are
// too many, the emptiest leave first.
func (p *planner) keep(i int) {
	d := &p.demands[i]
	var stay, back, silent []Held
	for _, h := range d.Has {
		host := p.byID[h.Host]
		switch {
		case host == nil: // the host no longer exists; the room ends the assignment
		case host.Standing == Drained && !h.Releasing:
			p.move(Release, d, h.Host, host.Name+" is drained")
		case host.Standing == Silent && !h.Releasing:
			silent = append(silent, h)
		case host.Standing != Ready:
		case h.Releasing:
			back = append(back, h)
		default:
			stay = append(stay, h)
		}
	}
	slices.SortStableFunc(stay, func(a, b Held) int { return int(a.Sessions - b.Sessions) })
	for len(stay) > int(d.Desired) {
		p.move(Release, d, stay[0].Host, fmt.Sprintf("the fleet wants %d hosts", d.Desired))
		stay = stay[1:]
	}
	slices.SortStableFunc(back, func(a, b Held) int { return int(b.Sessions - a.Sessions) })
	for len(stay) < int(d.Desired) && len(back) > 0 {
		p.move(Reclaim, d, back[0].Host, "")
		stay, back = append(stay, back[0]), back[1:]
	}
	p.has[i], p.silent[i] = int32(len(stay)), silent
}

// dropSilent releases disconnected hosts once others have replaced them. A disconnected host that is not replaced may return at any time.
func (p *planner) dropSilent(i int) {
	d := &p.demands[i]
	if p.has[i] < d.Desired {
		return
	}
	for _, h := range p.silent[i] {
		p.move(Release, d, h.Host, p.byID[h.Host].Name+" is not connected, and the fleet has as many hosts as it wants")
		p.out.Moves[len(p.out.Moves)-1].Replaced = true
	}
}

func (p *planner) move(s Step, d *Demand, host, why string) {
	p.out.Moves = append(p.out.Moves, Move{Step: s, Host: host, Fleet: d.Fleet, Why: why})
}

// share assigns free hosts one by one, always to the fleet with the fewest, until each fleet has as many as goal returns or no suitable host is left.
func (p *planner) share(taken func(fleet, name string) bool, goal func(*Demand) int32) {
	full := make([]bool, len(p.demands))
	for {
		next := -1
		for i := range p.demands {
			if !full[i] && p.has[i] < goal(&p.demands[i]) && (next < 0 || p.has[i] < p.has[next]) {
				next = i
			}
		}
		if next < 0 {
			return
		}
		d := &p.demands[next]
		h := p.free(d, taken)
		if h == nil {
			full[next] = true
			continue
		}
		p.move(Assign, d, h.ID, "")
		p.holder[h.ID] = d.Fleet
		p.taken[[2]string{d.Fleet, h.Name}] = true
		p.has[next]++
	}
}

// free returns the host to assign next: one that may serve no other fleet, else the first in the pool's order.
func (p *planner) free(d *Demand, taken func(fleet, name string) bool) (best *Host) {
	for i := range p.hosts {
		h := &p.hosts[i]
		if p.unfit(h, d, taken) != "" {
			continue
		}
		if h.Fleet != "" {
			return h
		}
		if best == nil {
			best = h
		}
	}
	return best
}

// unfit explains why a host cannot be assigned to a fleet; "" if it can. It returns "-" for a host that is bound to another fleet and need not be
// mentioned.
func (p *planner) unfit(h *Host, d *Demand, taken func(fleet, name string) bool) string {
	switch fleet, held := p.holder[h.ID]; {
	case h.Fleet != "" && h.Fleet != d.Fleet:
		return "-"
	case held && fleet == d.Fleet && h.Standing == Ready:
		return "-" // already one of the fleet's hosts, or counted as one being released
	case h.Standing == Drained:
		return h.Name + " is drained"
	case h.Standing == Silent:
		return h.Name + " is not connected"
	case held:
		return h.Name + " serves " + fleet
	case h.Ports < d.Needs.Ports:
		return fmt.Sprintf("%s has %d ports, and the runtime configuration needs %d", h.Name, h.Ports, d.Needs.Ports)
	case h.MemoryMB != 0 && h.MemoryMB < d.Needs.MemoryMB:
		return fmt.Sprintf("%s has %d MiB of memory, and the runtime configuration needs %d", h.Name, h.MemoryMB, d.Needs.MemoryMB)
	case p.taken[[2]string{d.Fleet, h.Name}] || taken(d.Fleet, h.Name):
		return "the fleet has another compute named " + h.Name
	}
	return ""
}

// reasonsShown is the most hosts that a shortage names.
const reasonsShown = 5

// why explains why no further host is assigned.
func (p *planner) why(d *Demand, taken func(fleet, name string) bool) string {
	var all []string
	for i := range p.hosts {
		if reason := p.unfit(&p.hosts[i], d, taken); reason != "" && reason != "-" {
			all = append(all, reason)
		}
	}
	switch n := len(all); {
	case n == 0:
		return "the location has no other host"
	case n > reasonsShown:
		return fmt.Sprintf("%s, and %d more", strings.Join(all[:reasonsShown], ", "), n-reasonsShown)
	}
	return strings.Join(all, ", ")
}
