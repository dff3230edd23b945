package sim

import (
	"fmt"
	"time"

	"github.com/musterhq/muster/internal/domain/capacity"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/session"
)

// pool has the hosts of a world. Some of their names are also those of computes that register themselves.
type pool struct {
	hosts []capacity.Host
	seen  map[string]int
}

// EachHost leaves out the hosts that are gone, which have no location.
func (p *pool) EachHost(yield func(capacity.Host) bool) {
	for _, h := range p.hosts {
		if h.Location != "" && !yield(h) {
			return
		}
	}
}

// NewHosts makes the world of a seed with hosts, which come and go, fall silent and are drained, while fleets of builds ask for more or fewer of them.
func NewHosts(seed uint64) *World {
	w := New(seed)
	p := &pool{seen: map[string]int{}}
	for i := range 5 {
		p.hosts = append(p.hosts, capacity.Host{ID: fmt.Sprint("id-", i), Name: fmt.Sprint("host-", i), Location: w.wishes.locationName(), IP: "10.1.0.1"})
	}
	w.cell.Pool = p
	w.history.cell = w.newCell()
	w.wishes.add([]maker{
		{60, func(*Wishes, *cell.View) kernel.Command { return &plan{world: w, pool: p} }},
		{6, func(x *Wishes, _ *cell.View) kernel.Command { x.changeHost(p); return nil }},
		{10, setCapacityAt}, {4, scaleFleet}, {4, createBuild}, {6, createManagedFleet},
		{5, deleteManagedFleet},
		{4, func(*Wishes, *cell.View) kernel.Command { return &kernel.RaiseLevel{To: kernel.Level} }},
		agentReports(w, p), {3, reportLaunch}, {20, recorded}, {2, noteRefusals}, {2, noteExported},
	})
	w.wishes.add(ofHosts)
	w.wishes.add(ofSignIns)
	w.wishes.AddRollouts()
	return w
}

// changeHost drains a host, silences it, returns it, moves it to another location or removes it.
func (w *Wishes) changeHost(p *pool) {
	h := &p.hosts[w.chance.IntN(len(p.hosts))]
	switch w.chance.IntN(8) {
	case 0:
		h.Location = ""
	case 1:
		h.Standing = capacity.Drained
	case 2:
		h.Standing = capacity.Silent
	default:
		h.Standing = capacity.Ready
		if h.Location == "" {
			h.Location = w.locationName()
		}
	}
}

func (w *Wishes) managed(v *cell.View) (f fleet.Fleet, location string) {
	for _, f = range v.Fleets(0, "", 100) {
		if f.Managed != nil && w.oneIn(2) {
			return f, f.Locations[w.chance.IntN(len(f.Locations))].Name
		}
	}
	return fleet.Fleet{}, ""
}

func setCapacityAt(w *Wishes, v *cell.View) kernel.Command {
	f, location := w.managed(v)
	desired, least, most := int32(w.chance.IntN(4)), int32(0), int32(5)
	if desired > 0 && w.oneIn(3) {
		least = 1
	}
	return &hosting.SetCapacity{Fleet: f.ID, Location: location, Desired: &desired, Min: &least, Max: &most}
}

func deleteManagedFleet(w *Wishes, v *cell.View) kernel.Command {
	f, _ := w.managed(v)
	return &hosting.DeleteFleet{ID: f.ID}
}

// scaleFleet evaluates policies over samples of which only the last one was measured.
func scaleFleet(w *Wishes, v *cell.View) kernel.Command {
	for _, m := range v.Measure(w.now) {
		if w.oneIn(2) {
			cmd := &capacity.ScaleFleet{Fleet: m.Fleet, Location: m.Location}
			for i := range m.Remember {
				x := m.Sample
				x.At = w.now.Add(-time.Duration(m.Remember-1-i) * capacity.SampleEvery)
				cmd.Samples = append(cmd.Samples, x)
			}
			return cmd
		}
	}
	return nil
}

// plan is capacity.Plan, and compares the state before and after.
type plan struct {
	capacity.Plan
	world *World
	pool  *pool
}

// host finds a host in the pool.
func (p *plan) host(id string) (found capacity.Host, ok bool) {
	p.pool.EachHost(func(h capacity.Host) bool {
		if h.ID == id {
			found, ok = h, true
		}
		return !ok
	})
	return found, ok
}

// Decide plans. A plan ends no game session and asks no process with one to end, protected or not, unless the host itself is gone. It gives no fleet more hosts than
// desired, and no host to two fleets. A second plan has nothing to do.
func (p *plan) Decide(k *kernel.Tx) error {
	w, c := p.world, p.world.node.seq.Cell()
	v := c.View()
	playing := map[session.ID]fleet.Key{}
	gone := map[[2]string]bool{} // computes whose hosts have left the pool or moved
	for _, f := range v.Fleets(0, "", 1000) {
		games, _, _ := v.GameSessions(f.ID, hosting.GameFilter{}, 0, "", 1<<20)
		for _, g := range games {
			key := fleet.Key{Fleet: f.ID, Compute: g.ComputeName, Process: g.ProcessID}
			if x, _ := v.Process(key); g.Live() && x.TerminateBy == 0 {
				playing[g.ID] = key
			}
		}
		for _, a := range v.Assignments(f.ID, "") {
			if h, ok := p.host(a.Host); !ok || h.Location != a.Location {
				gone[[2]string{a.Fleet, a.Compute}] = true
			}
		}
	}
	if err := p.Plan.Decide(k); err != nil {
		w.violated("a plan was refused: %v", err)
	}
	if k.Level() < kernel.Level {
		return nil
	}
	v = c.View()
	for id, key := range playing {
		g, _ := v.GameSession(id)
		if x, _ := v.Process(key); (!g.Live() || x.TerminateBy != 0) && !gone[[2]string{key.Fleet, key.Compute}] {
			w.violated("a plan ended game session %s, or asked its process to end", id)
		}
	}
	for _, h := range v.Hosts() {
		switch {
		case h.Revoked != 0:
			p.pool.seen["a joined host revoked"]++
		case h.Seen != 0 && h.Silent():
			p.pool.seen["a joined host silent"]++
		case !h.Silent():
			p.pool.seen["a joined host connected"]++
		}
	}
	serves := map[string]string{}
	for _, f := range v.Fleets(0, "", 1000) {
		for _, l := range f.Locations {
			stay := int32(0)
			for _, a := range v.Assignments(f.ID, l.Name) {
				if other, twice := serves[a.Host]; twice {
					w.violated("host %s serves %s and %s", a.Host, other, f.ID)
				}
				serves[a.Host] = f.ID
				h, ok := p.host(a.Host)
				if _, joined := v.Compute(f.ID, a.Compute); !ok || !joined {
					w.violated("%s has the host %s, which is gone or no compute of it", f.ID, a.Host)
				}
				if !a.Releasing && h.Standing == capacity.Ready {
					stay++
				}
				p.pool.seen["a host assigned"]++
				if a.Releasing {
					p.pool.seen["a host on its way out"]++
				}
			}
			if f.Status != fleet.Deleting && stay > l.Capacity.Desired {
				w.violated("%s wants %d hosts in %s and has %d", f.ID, l.Capacity.Desired, l.Name, stay)
			}
		}
		if f.Managed != nil {
			p.pool.seen["a fleet of a build "+f.Status.String()]++
		}
	}
	return nil
}
