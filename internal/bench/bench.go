package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/identity"
)

// Options has what to measure and for how long.
type Options struct {
	Binary      string        // a muster binary: it runs as `serve` and as `bench-bare`
	Scenarios   []string      // by name; empty: all
	Attack      string        // of the scenario siege, only attacks whose names contain this
	Part        string        // of the scenarios idle, cluster, console and agents, only parts whose names contain this
	Sessions    int           // live player sessions of that scenario; 0: 1,000,000
	Servers     int           // its connected game servers; 0: 5,000
	Repeats     int           // how often leaders are killed in it; 0: 5
	Measure     time.Duration // how long each throughput is measured; 0: 10 s
	Rounds      int           // how often the service and the bare one alternate; the best result of each counts; 0: 2
	Connections []int         // of the players' load; empty: 64 and 256
	Warm        time.Duration // before that load is measured; 0: until archiving keeps up
	Rate        float64       // of the loads of players, games and backups, which then run only at this rate; 0: at the highest rate and at half of it
	Build       int64         // bytes of the build of the scenario agents; 0: 1 GiB
	Soak        time.Duration // how long the scenario soak takes; 0: 20 min
	Quick       bool          // only tests that everything works, within seconds; the numbers are meaningless
	Dir         string        // for the data; empty: the system's directory for temporary files
	Profiles    string        // directory for profiles of the server; empty: none
	Progress    io.Writer     // for lines about the progress; nil: none
}

// scenario measures one part of the table.
type scenario struct {
	name, about string
	run         func(*bench, context.Context) error
	alone       bool // runs only if it is named
}

var scenarios = []scenario{
	{"players", "player sessions, created, accepted and removed, beside a bare service", (*bench).players, false},
	{"upkeep", "what metrics and the audit log cost: player sessions on the service and, side by side, on one without both", (*bench).upkeep, false},
	{"backups", "player sessions at a constant rate while backups are made, beside 200,000 others", (*bench).backups, false},
	{"games", "game sessions, created to ACTIVE, on game servers that start over", served("games", (*bench).games), false},
	{"placements", "placements of ten players through a queue of ten destinations", served("placements", (*bench).placements), false},
	{"search", "searches among 100,000 game sessions of a fleet, while they change", (*bench).search, false},
	{"matchmaking", "tickets from their request to the durable match", (*bench).matchmaking, false},
	{"idle", "idle game servers: memory of a connection, and their return after a crash", (*bench).idle, false},
	{"player-flow", "players' event streams: memory, frames, their return after a crash, fresh logins in a queue, a match of sixty", (*bench).flow, false},
	{"siege", "honest calls while the service is attacked: anonymous connections, malformed frames, worst bodies, wrong sign-ins", (*bench).siege, false},
	{"console", "open consoles while the state changes, a list over 100,000 game sessions, the overview of 1,000 hosts", (*bench).console, false},
	{"agents", "host agents: memory, their return after a crash, a runtime configuration, deaths of server processes, a build to many hosts", (*bench).agents, false},
	{"core", "the core alone in process: rules, journal, snapshots, reads", (*bench).core, false},
	{"restart", "start with 1,000,000 player sessions in 100,000 game sessions", (*bench).restart, false},
	{"flow-restart", "start with 1,000,000 players logged in, in parties", (*bench).flowRestart, false},
	{"cluster", "three nodes beside a single one: deaths and hand-overs of the leader, changes, reads, lag, connections, a node that joins", (*bench).cluster, false},
	{"soak", "a small constant load; fails when the service grows; only by name", served("soak", (*bench).soak, flowArguments(0)[1:]...), true},
}

// Scenarios lists the scenarios, with a name and a line about each.
func Scenarios() [][2]string {
	var list [][2]string
	for _, s := range scenarios {
		list = append(list, [2]string{s.name, s.about})
	}
	return list
}

// bench is one run.
type bench struct {
	options Options
	sizes   sizes
	dir     string
	table   Table
	keys    map[string]identity.AccessKey // by data directory
}

// Run measures and returns the table. If there is an error, the table has the results up to that point.
func Run(ctx context.Context, options Options) (_ *Table, err error) {
	options.Measure = cmp.Or(options.Measure, 10*time.Second)
	options.Rounds = cmp.Or(options.Rounds, 2)
	options.Soak = cmp.Or(options.Soak, 20*time.Minute)
	options.Progress = cmp.Or(options.Progress, io.Discard)
	b := &bench{options: options, sizes: fullSizes}
	if options.Quick {
		b.sizes = quickSizes
		b.options.Measure, b.options.Rounds, b.options.Soak = quickMeasure, 1, 20*quickMeasure
	}
	if len(options.Connections) > 0 {
		b.sizes.cycleConnections = options.Connections
	}
	b.sizes.cycleWarm = cmp.Or(options.Warm, b.sizes.cycleWarm)
	var chosen []scenario
	for _, name := range options.Scenarios {
		i := slices.IndexFunc(scenarios, func(s scenario) bool { return s.name == name })
		if i < 0 {
			return nil, fmt.Errorf("scenario %q is not one of %s", name, scenarioNames())
		}
		chosen = append(chosen, scenarios[i])
	}
	if options.Profiles != "" {
		if err := os.MkdirAll(options.Profiles, 0o777); err != nil {
			return nil, err
		}
	}
	if len(chosen) == 0 {
		chosen = slices.DeleteFunc(slices.Clone(scenarios), func(s scenario) bool { return s.alone })
	}
	if b.dir, err = os.MkdirTemp(options.Dir, "muster-bench-"); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(b.dir)) }()
	b.table.describeMachine(b.dir)
	for _, s := range chosen {
		b.progress("%s: %s", s.name, s.about)
		if err := s.run(b, ctx); err != nil {
			return &b.table, fmt.Errorf("scenario %s: %w", s.name, err)
		}
	}
	return &b.table, nil
}

func scenarioNames() string {
	var names []string
	for _, s := range scenarios {
		names = append(names, s.name)
	}
	return strings.Join(names, ", ")
}

func (b *bench) progress(format string, args ...any) {
	fmt.Fprintf(b.options.Progress, format+"\n", args...)
}

// freshDir makes a new data directory.
func (b *bench) freshDir(name string) (string, error) {
	return os.MkdirTemp(b.dir, filepath.Base(name)+"-")
}

// profileHeap saves a heap profile of the server.
func (b *bench) profileHeap(ctx context.Context, s *server, name string) error {
	if b.options.Profiles == "" {
		return nil
	}
	return b.saveProfile(ctx, s, "heap?gc=1", name+"-heap.pprof")
}

// runProfiled runs a load and takes a CPU profile of the server meanwhile.
func (b *bench) runProfiled(ctx context.Context, s *server, name string, l load, unit func(worker int) error) (m *measured, err error) {
	err = b.profileWhile(ctx, s, name, func() (err error) {
		m, err = l.run(ctx, s, unit)
		return err
	})
	return m, err
}

// profileWhile takes profiles of the server while f runs: of its CPU time and its allocations, and then a short execution trace, which slows the
// server down.
func (b *bench) profileWhile(ctx context.Context, s *server, name string, f func() error) error {
	if b.options.Profiles == "" {
		return f()
	}
	taken := make(chan error, 1)
	go func() {
		time.Sleep(b.options.Measure / 4) // skip the beginning
		seconds := max(1, int(b.options.Measure.Seconds()/2))
		allocated := make(chan error, 1)
		go func() {
			allocated <- b.saveProfile(ctx, s, fmt.Sprintf("allocs?seconds=%d", seconds), name+"-allocs.pprof")
		}()
		err := errors.Join(b.saveProfile(ctx, s, fmt.Sprintf("profile?seconds=%d", seconds), name+".pprof"), <-allocated)
		if err == nil {
			err = b.saveProfile(ctx, s, "trace?seconds=2", name+".trace")
		}
		taken <- err
	}()
	err := f()
	return errors.Join(err, <-taken)
}

func (b *bench) saveProfile(ctx context.Context, s *server, what, file string) error {
	text, err := s.profile(ctx, what)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(b.options.Profiles, file), text, 0o666)
}
