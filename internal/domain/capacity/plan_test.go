package capacity

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func ready(names ...string) (all []Host) {
	for _, n := range names {
		all = append(all, Host{ID: n, Name: n, Ports: 10, MemoryMB: 4096})
	}
	return all
}

func noneTaken(_, _ string) bool { return false }

// moves returns the moves of a plan in short: "+a" is assigned, "-a" released, "=a" reclaimed.
func moves(o Outcome) string {
	var all []string
	for _, m := range o.Moves {
		all = append(all, string(" +-="[m.Step])+m.Host.ID+">"+m.Fleet)
	}
	return strings.Join(all, " ")
}

func TestPlan(t *testing.T) {
	drained, silent, bound, small := Host{ID: "d", Name: "d", Standing: Drained}, Host{ID: "s", Name: "s", Standing: Silent}, Host{ID: "z", Name: "z", Fleet: "f"}, Host{ID: "m", Name: "m", MemoryMB: 512, Ports: 1}
	for _, each := range []struct {
		name    string
		hosts   []Host
		demands []Demand
		want    string
		short   string
	}{
		{"as many as wanted, in the order of the pool", ready("a", "b", "c"), []Demand{{Fleet: "f", Desired: 2}}, "+a>f +b>f", ""},
		{"a fleet keeps its hosts", ready("a", "b", "c"), []Demand{{Fleet: "f", Desired: 2, Has: []Held{{Host: "c"}}}}, "+a>f", ""},
		{"its own host comes first", append(ready("a"), bound), []Demand{{Fleet: "f", Desired: 1}}, "+z>f", ""},
		{"another fleet's own host is never taken", []Host{bound}, []Demand{{Fleet: "g", Desired: 1}}, "", "needs 1 host, has 0: the location has no other host"},
		{"the emptiest goes first", ready("a", "b"), []Demand{{Fleet: "f", Desired: 1, Has: []Held{{Host: "a", Sessions: 2}, {Host: "b", Sessions: 1}}}}, "-b>f", ""},
		{"one on its way out returns, the fullest first", ready("a", "b", "c"), []Demand{{Fleet: "f", Desired: 1, Has: []Held{{Host: "a", Releasing: true, Sessions: 1}, {Host: "b", Releasing: true, Sessions: 2}}}}, "=b>f", ""},
		{"minimum first, then who has the fewest", ready("a", "b", "c", "d"), []Demand{{Fleet: "f", Desired: 4}, {Fleet: "g", Desired: 3, Min: 2}}, "+a>g +b>g +c>f +d>f", "needs 4 hosts, has 2: a serves g, b serves g; needs 3 hosts, has 2: c serves f, d serves f"},
		{"a drained host is replaced", append(ready("a"), drained), []Demand{{Fleet: "f", Desired: 1, Has: []Held{{Host: "d", Sessions: 1}}}}, "-d>f +a>f", ""},
		{"a drained host is not taken", append(ready("a"), drained), []Demand{{Fleet: "f", Desired: 2}}, "+a>f", "needs 2 hosts, has 1: d is drained"},
		{"a silent host is kept while no other one is there", []Host{silent}, []Demand{{Fleet: "f", Desired: 1, Has: []Held{{Host: "s"}}}}, "", "needs 1 host, has 0: s is not connected"},
		{"a silent host is replaced", append(ready("a"), silent), []Demand{{Fleet: "f", Desired: 1, Has: []Held{{Host: "s"}}}}, "+a>f -s>f", ""},
		{"a silent host goes once it is not missed", append(ready("a"), silent), []Demand{{Fleet: "f", Desired: 1, Has: []Held{{Host: "a"}, {Host: "s"}}}}, "-s>f", ""},
		{"ports", []Host{small}, []Demand{{Fleet: "f", Desired: 1, Needs: Needs{Ports: 2}}}, "", "needs 1 host, has 0: m has 1 ports, and the runtime configuration needs 2"},
		{"memory", []Host{small}, []Demand{{Fleet: "f", Desired: 1, Needs: Needs{MemoryMB: 1024}}}, "", "needs 1 host, has 0: m has 512 MiB of memory, and the runtime configuration needs 1024"},
		{"a host that is gone", nil, []Demand{{Fleet: "f", Desired: 1, Has: []Held{{Host: "x"}}}}, "", "needs 1 host, has 0: the location has no other host"},
		{"nothing is wanted", ready("a"), []Demand{{Fleet: "f"}}, "", ""},
		{"many reasons", []Host{{ID: "1", Name: "1", Standing: Silent}, {ID: "2", Name: "2", Standing: Silent}, {ID: "3", Name: "3", Standing: Silent}, {ID: "4", Name: "4", Standing: Silent}, {ID: "5", Name: "5", Standing: Silent}, {ID: "6", Name: "6", Standing: Silent}},
			[]Demand{{Fleet: "f", Desired: 1}}, "", "needs 1 host, has 0: 1 is not connected, 2 is not connected, 3 is not connected, 4 is not connected, 5 is not connected, and 1 more"},
	} {
		out := Decide(each.hosts, each.demands, noneTaken)
		var short []string
		for _, d := range each.demands {
			if s, ok := out.Shortage(d.Fleet); ok {
				short = append(short, s.String())
			}
		}
		if got := moves(out); got != each.want || strings.Join(short, "; ") != each.short {
			t.Errorf("%s: got %q, short %q; want %q, short %q", each.name, got, short, each.want, each.short)
		}
	}
	named := Decide(ready("a"), []Demand{{Fleet: "f", Desired: 1}}, func(fleet, name string) bool { return fleet == "f" && name == "a" })
	lack, _ := named.Shortage("f")
	if len(named.Moves) != 0 || !strings.Contains(lack.Why, "another compute named a") {
		t.Errorf("a name that is taken: got %+v", named)
	}
}

// TestPlanOfAnything: whatever the pool and the demands, no host has two fleets, no fleet gets more hosts than desired, only suitable hosts are taken, no host is
// moved twice, and a second plan moves nothing.
func TestPlanOfAnything(t *testing.T) {
	for seed := range uint64(3000) {
		chance := rand.New(rand.NewPCG(seed, 1))
		var hosts []Host
		for i := range chance.IntN(8) {
			h := Host{ID: fmt.Sprint("h", i), Name: fmt.Sprint("n", chance.IntN(8)), Standing: Standing(max(0, chance.IntN(6)-3)), Ports: int32(chance.IntN(4))}
			if chance.IntN(4) == 0 {
				h.Fleet = fmt.Sprint("f", chance.IntN(3))
			}
			hosts = append(hosts, h)
		}
		demands := make([]Demand, chance.IntN(4))
		for i := range demands {
			demands[i] = Demand{Fleet: fmt.Sprint("f", i), Desired: int32(chance.IntN(5)), Needs: Needs{Ports: int32(chance.IntN(3))}}
			demands[i].Min = int32(chance.IntN(int(demands[i].Desired) + 1))
		}
		names := map[[2]string]bool{}
		for _, h := range hosts {
			if len(demands) > 0 && chance.IntN(2) == 0 {
				d := &demands[chance.IntN(len(demands))]
				if (h.Fleet == "" || h.Fleet == d.Fleet) && !names[[2]string{d.Fleet, h.Name}] {
					d.Has = append(d.Has, Held{h.ID, chance.IntN(3) == 0, int32(chance.IntN(3))})
					names[[2]string{d.Fleet, h.Name}] = true
				}
			}
		}
		taken := func(fleet, name string) bool { return names[[2]string{fleet, name}] }
		out := Decide(hosts, demands, taken)
		if again := Decide(hosts, demands, taken); !reflect.DeepEqual(again.Moves, out.Moves) {
			t.Fatalf("seed %d: two plans of one situation differ", seed)
		}
		moved := map[string]bool{}
		for _, m := range out.Moves {
			d := &demands[slices.IndexFunc(demands, func(d Demand) bool { return d.Fleet == m.Fleet })]
			h := m.Host
			at := slices.IndexFunc(d.Has, func(x Held) bool { return x.Host == h.ID })
			if moved[h.ID] {
				t.Fatalf("seed %d: %s is moved twice", seed, h.ID)
			}
			moved[h.ID] = true
			switch m.Step {
			case Assign:
				for i := range demands {
					if slices.ContainsFunc(demands[i].Has, func(x Held) bool { return x.Host == h.ID }) {
						t.Fatalf("seed %d: %s has two fleets", seed, h.ID)
					}
				}
				if h.Standing != Ready || h.Ports < d.Needs.Ports || h.Fleet != "" && h.Fleet != d.Fleet || taken(d.Fleet, h.Name) {
					t.Fatalf("seed %d: %+v does not suit %+v", seed, h, d)
				}
				d.Has = append(d.Has, Held{Host: h.ID})
				names[[2]string{d.Fleet, h.Name}] = true
			case Release:
				d.Has[at].Releasing = true
			case Reclaim:
				if d.Has[at].Releasing = false; h.Standing != Ready {
					t.Fatalf("seed %d: %s is reclaimed, and is %d", seed, h.ID, h.Standing)
				}
			}
		}
		for i := range demands {
			n := int32(0)
			for _, x := range demands[i].Has {
				h := hosts[slices.IndexFunc(hosts, func(h Host) bool { return h.ID == x.Host })]
				if !x.Releasing && h.Standing == Ready {
					n++
				}
			}
			lack, short := out.Shortage(demands[i].Fleet)
			if n > demands[i].Desired || (n < demands[i].Desired) != short || short && lack.Has != n {
				t.Fatalf("seed %d: %s has %d hosts of %d, and short is %v: %+v", seed, demands[i].Fleet, n, demands[i].Desired, short, lack)
			}
		}
		if next := Decide(hosts, demands, taken); len(next.Moves) > 0 {
			t.Fatalf("seed %d: after %s the next plan moves %s", seed, moves(out), moves(next))
		}
	}
}

// manyHosts is as many hosts as a cell may have.
func manyHosts() []Host {
	var names []string
	for i := range 10_000 {
		names = append(names, fmt.Sprint("h", i))
	}
	return ready(names...)
}

// wanted is a demand of each of some fleets.
func wanted(fleets int, each int32) (demands []Demand) {
	for i := range fleets {
		demands = append(demands, Demand{Fleet: fmt.Sprint("f", i), Desired: each})
	}
	return demands
}

func TestPlanOfManyHosts(t *testing.T) {
	hosts := manyHosts()
	for _, demands := range [][]Demand{wanted(1, 10_000), wanted(500, 40), wanted(10_000, 1)} {
		if out := Decide(hosts, demands, noneTaken); len(out.Moves) != len(hosts) {
			t.Errorf("%d fleets: got %d moves, want %d", len(demands), len(out.Moves), len(hosts))
		}
	}
}

// BenchmarkPlan: there is a plan for each location every second, in the goroutine of all commands.
func BenchmarkPlan(b *testing.B) {
	for name, x := range map[string]struct {
		hosts   []Host
		demands []Demand
	}{
		"one fleet wants 10000 hosts":            {manyHosts(), wanted(1, 10_000)},
		"500 fleets want twice as many":          {manyHosts(), wanted(500, 40)},
		"10000 fleets want one host each, of 10": {manyHosts()[:10], wanted(10_000, 1)},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				Decide(x.hosts, x.demands, noneTaken)
			}
		})
	}
}
