package capacity

import (
	"container/heap"
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
	Step     Step
	Host     *Host
	Fleet    string
	Replaced bool // it is released because it is disconnected and others have replaced it
}

// Outcome is the plan for a location.
type Outcome struct {
	Moves []Move
	p     *planner
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

// planner is the working state of Decide for one location. There may be thousands of hosts and fleets, so no step looks at all of them.
type planner struct {
	hosts   []Host
	byID    map[string]int // index into hosts
	holder  []string       // by host: its fleet, including while it is being released; empty: none
	joined  map[[2]string]bool
	taken   func(fleet, name string) bool
	demands []Demand
	has     []int32  // by demand: number of ready hosts that stay
	silent  [][]Held // by demand: disconnected hosts

	// The hosts that were ready and free at the start, in the pool's order. A demand has passed the first ones of each list: they do not suit it or
	// are assigned by now, and neither changes within a plan.
	bound  map[string][]int // may serve only this fleet
	open   []int
	passed []struct{ bound, open int } // by demand

	moves []Move
}

// Decide plans a location. taken reports whether a fleet already has a compute of a name.
func Decide(hosts []Host, demands []Demand, taken func(fleet, name string) bool) Outcome {
	p := planner{hosts: hosts, byID: map[string]int{}, holder: make([]string, len(hosts)), joined: map[[2]string]bool{}, taken: taken, demands: demands,
		has: make([]int32, len(demands)), silent: make([][]Held, len(demands)), bound: map[string][]int{}, passed: make([]struct{ bound, open int }, len(demands))}
	for i := range hosts {
		p.byID[hosts[i].ID] = i
	}
	for i := range demands {
		for _, h := range demands[i].Has {
			if at, ok := p.byID[h.Host]; ok {
				p.holder[at] = demands[i].Fleet
			}
		}
	}
	for i := range hosts {
		switch h := &hosts[i]; {
		case h.Standing != Ready || p.holder[i] != "":
		case h.Fleet != "":
			p.bound[h.Fleet] = append(p.bound[h.Fleet], i)
		default:
			p.open = append(p.open, i)
		}
	}
	for i := range demands {
		p.keep(i)
	}
	p.share(func(d *Demand) int32 { return min(d.Min, d.Desired) })
	p.share(func(d *Demand) int32 { return d.Desired })
	for i := range demands {
		p.dropSilent(i)
	}
	return Outcome{p.moves, &p}
}

// Shortage tells what a fleet lacks once the plan's moves are made; false if it has as many hosts as it wants.
func (o *Outcome) Shortage(fleet string) (Shortage, bool) {
	i := slices.IndexFunc(o.p.demands, func(d Demand) bool { return d.Fleet == fleet })
	if i < 0 || o.p.has[i] >= o.p.demands[i].Desired {
		return Shortage{}, false
	}
	d := &o.p.demands[i]
	return Shortage{d.Fleet, d.Desired, o.p.has[i], o.p.why(d)}, true
}

// keep decides what happens to a fleet's current hosts: drained ones leave, released ones are reclaimed while the fleet wants more, and if there are
// too many, the emptiest leave first.
func (p *planner) keep(i int) {
	d := &p.demands[i]
	var stay, back, silent []Held
	for _, h := range d.Has {
		at, there := p.byID[h.Host]
		if !there {
			continue // the host no longer exists; the room ends the assignment
		}
		switch standing := p.hosts[at].Standing; {
		case standing == Drained && !h.Releasing:
			p.move(Release, d, h.Host)
		case standing == Silent && !h.Releasing:
			silent = append(silent, h)
		case standing != Ready:
		case h.Releasing:
			back = append(back, h)
		default:
			stay = append(stay, h)
		}
	}
	slices.SortStableFunc(stay, func(a, b Held) int { return int(a.Sessions - b.Sessions) })
	for len(stay) > int(d.Desired) {
		p.move(Release, d, stay[0].Host)
		stay = stay[1:]
	}
	slices.SortStableFunc(back, func(a, b Held) int { return int(b.Sessions - a.Sessions) })
	for len(stay) < int(d.Desired) && len(back) > 0 {
		p.move(Reclaim, d, back[0].Host)
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
		p.move(Release, d, h.Host)
		p.moves[len(p.moves)-1].Replaced = true
	}
}

func (p *planner) move(s Step, d *Demand, host string) {
	p.moves = append(p.moves, Move{Step: s, Host: &p.hosts[p.byID[host]], Fleet: d.Fleet})
}

// share assigns free hosts one by one, always to the fleet with the fewest, until each fleet has as many as goal returns or no suitable host is left.
func (p *planner) share(goal func(*Demand) int32) {
	open := fewest{has: p.has}
	for i := range p.demands {
		if p.has[i] < goal(&p.demands[i]) {
			open.list = append(open.list, i)
		}
	}
	heap.Init(&open)
	for len(open.list) > 0 {
		next := open.list[0]
		d := &p.demands[next]
		at, ok := p.free(next)
		if ok {
			h := &p.hosts[at]
			p.move(Assign, d, h.ID)
			p.holder[at] = d.Fleet
			p.joined[[2]string{d.Fleet, h.Name}] = true
			p.has[next]++
		}
		if ok && p.has[next] < goal(d) {
			heap.Fix(&open, 0)
		} else {
			heap.Pop(&open)
		}
	}
}

// fewest is a heap of demands: first the one with the fewest hosts, and of equal ones the earliest.
type fewest struct {
	list []int
	has  []int32 // by demand
}

func (f *fewest) Len() int { return len(f.list) }

func (f *fewest) Less(i, j int) bool {
	a, b := f.list[i], f.list[j]
	return f.has[a] < f.has[b] || f.has[a] == f.has[b] && a < b
}

func (f *fewest) Swap(i, j int) { f.list[i], f.list[j] = f.list[j], f.list[i] }

func (f *fewest) Push(x any) { f.list = append(f.list, x.(int)) }

func (f *fewest) Pop() any {
	last := len(f.list) - 1
	x := f.list[last]
	f.list = f.list[:last]
	return x
}

// free returns the host to assign next to a demand: one that may serve no other fleet, else the first in the pool's order.
func (p *planner) free(demand int) (at int, ok bool) {
	d, passed := &p.demands[demand], &p.passed[demand]
	if at, ok = p.first(d, p.bound[d.Fleet], &passed.bound); !ok {
		at, ok = p.first(d, p.open, &passed.open)
	}
	return at, ok
}

// first passes the hosts of a list that cannot be assigned to d and returns the first one that can.
func (p *planner) first(d *Demand, list []int, passed *int) (at int, ok bool) {
	for ; *passed < len(list); *passed++ {
		at = list[*passed]
		if h := &p.hosts[at]; p.holder[at] == "" && h.suits(d.Fleet, d.Needs) && !p.named(d.Fleet, h.Name) {
			return at, true
		}
	}
	return 0, false
}

// named reports whether a fleet has a compute of a name.
func (p *planner) named(fleet, name string) bool {
	return p.joined[[2]string{fleet, name}] || p.taken(fleet, name)
}

// unfit explains why a host cannot be assigned to a demand. It returns "" for a host that need not be mentioned: one bound to another fleet, or one of
// the fleet's own.
func (p *planner) unfit(at int, d *Demand) string {
	h, holder := &p.hosts[at], p.holder[at]
	switch {
	case h.Fleet != "" && h.Fleet != d.Fleet:
		return ""
	case holder == d.Fleet && h.Standing == Ready:
		return "" // already one of the fleet's hosts, or counted as one being released
	case h.Standing == Drained:
		return h.Name + " is drained"
	case h.Standing == Silent:
		return h.Name + " is not connected"
	case holder != "":
		return h.Name + " serves " + holder
	case h.Ports < d.Needs.Ports:
		return fmt.Sprintf("%s has %d ports, and the runtime configuration needs %d", h.Name, h.Ports, d.Needs.Ports)
	case h.MemoryMB != 0 && h.MemoryMB < d.Needs.MemoryMB:
		return fmt.Sprintf("%s has %d MiB of memory, and the runtime configuration needs %d", h.Name, h.MemoryMB, d.Needs.MemoryMB)
	}
	return "the fleet has another compute named " + h.Name
}

// reasonsShown is the most hosts that a shortage names.
const reasonsShown = 5

// why explains why no further host is assigned.
func (p *planner) why(d *Demand) string {
	var all []string
	for i := range p.hosts {
		if reason := p.unfit(i, d); reason != "" {
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
