// Package agent is the program on a host that starts and watches server processes. It compares the running processes with those that the service or a
// file requires, and reports to the service what happens to them.
//
// One goroutine owns the state (Agent.Run). Others measure, wait for processes and talk to the service; they pass functions for it to call. Server
// processes outlive the agent: the next agent finds them by the state file. Without the service they keep running, no new ones are started, and ends
// are reported later.
package agent

import (
	"context"
	"crypto/x509"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/musterhq/muster/internal/agent/agones"
	"github.com/musterhq/muster/internal/agent/link"
	"github.com/musterhq/muster/internal/agent/output"
	"github.com/musterhq/muster/internal/agent/ports"
	"github.com/musterhq/muster/internal/agent/process"
	"github.com/musterhq/muster/internal/agent/restart"
	"github.com/musterhq/muster/internal/agent/state"
	"github.com/musterhq/muster/internal/agent/usage"
	"github.com/musterhq/muster/internal/agentproto"
	"github.com/musterhq/muster/internal/atomicfile"
	"github.com/musterhq/muster/internal/buildfetch"
)

// Config configures an agent.
type Config struct {
	Version string
	// Target returns the service's address and the agent's identity; it is called before each connection.
	Target func(ctx context.Context) (link.Target, error)
	Trust  *x509.CertPool // authorities for the service's certificate; nil: the system's

	Root     string // root of the game's files; launch paths are below it, unless the service names a build
	Builds   string // directory for the builds that the service names
	StateDir string
	LogDir   string
	// File contains a runtime configuration that replaces the service's; it is read again when it changes. Empty: the service's applies.
	File string

	Ports     ports.Range
	Groups    *process.Groups
	User      *process.User // user of the server processes; nil: the agent's user
	MemoryMax int64         // bytes per server process; 0: no limit
	Quote     bool          // split Parameters as a shell does

	KillTimeout  time.Duration // between SIGTERM and SIGKILL
	StartTimeout time.Duration // time until ProcessReady, counted from the start
	Restart      restart.Policy
	Output       output.Policy
	Keep         output.Keep

	Agones     bool               // provide the Agones SDK's interface to each server process
	GameServer *agones.GameServer // initial state of Agones servers; nil: Agones' defaults

	// InterruptionFile, when it exists, contains the time at which the host is taken away, such as 2015-01-05T18:02:00Z. Empty: the host stays.
	InterruptionFile string

	// EndProcesses ends the server processes when the agent stops; otherwise they keep running for the next agent.
	EndProcesses bool

	// Metrics is where the agent serves /metrics; nil: it does not. Run closes it.
	Metrics net.Listener

	Log *slog.Logger
}

// Agent is one agent with its server processes.
type Agent struct {
	config  Config
	file    *state.File
	unlock  func()
	link    *link.Link
	client  *http.Client // for uploads and builds
	pool    *ports.Pool
	began   time.Time
	work    chan func()
	stopped chan struct{} // closed when the agent accepts no more work
	agones  agones.Service

	// All fields below are owned by the goroutine of Run.
	context context.Context
	entries []*entry // as wanted, in order
	running map[string]*server
	unsent  []state.Ended
	sending bool

	connected bool
	since     time.Time // when the connection was opened
	hello     agentproto.HelloAnswer
	token     *agentproto.ServerToken
	asking    bool // a request for the token or the runtime configuration is in progress
	wanted    *agentproto.RuntimeConfiguration
	problem   string // why the wanted set is not applied
	asked     time.Time
	told      int // how often the service has pushed what the host should run
	greeted   int // how often it has said what the host is
	fileTime  time.Time
	order     agentproto.Order
	builds    *buildfetch.Builds
	build     *build // the build that the service wants on this host; nil: the files are below Root
	pruning   bool
	leftovers bool // unused builds may exist

	draining    bool
	deadline    time.Time // of the drain; zero: none
	interrupted bool      // the host is about to be taken away
	looked      time.Time // when the interruption file was last checked

	counts  counts
	host    usage.Host
	beat    time.Time
	pruned  time.Time
	streams map[string]context.CancelFunc
	uploads uploads
	pace    pacer // shared by all streams; for any goroutine
}

// entry is one line of the wanted set.
type entry struct {
	spec   agentproto.ServerProcess
	build  string // digest; empty: the files are below Config.Root
	crash  *restart.Entry
	slots  []*server
	cause  string // of the latest failure
	reason string // the same, for people
}

// server is a server process.
type server struct {
	id      string
	entry   *entry // nil: no entry wants it any more
	spec    agentproto.ServerProcess
	build   string // digest of the build from which it runs; empty: none
	slot    int
	dir     string // working directory
	process *process.Process
	log     *output.Log
	agones  *agones.Process // nil: none
	ports   map[string]int
	started time.Time

	registered   bool
	unregistered int // consecutive heartbeats in which the service did not know it
	session      string
	logPaths     []string // paths that it passed to ProcessReady
	// doubtful: the connection was lost while no session of the process was known, so it may have one.
	doubtful bool
	retiring time.Time // since when no entry wants it; zero: wanted
	stopping bool
	reason   agentproto.TerminationReason

	used    usage.Process
	usedAt  time.Time
	percent float64
}

// New opens the state and adopts the server processes that a previous agent left running.
func New(config Config) (*Agent, error) {
	if config.File == "" && config.Target == nil {
		return nil, fmt.Errorf("neither a service nor a file with a runtime configuration is given")
	}
	if err := atomicfile.MakeDir(config.LogDir, 0o755); err != nil {
		return nil, err
	}
	file, before, unlock, err := state.Open(config.StateDir)
	if err != nil {
		return nil, err
	}
	if err := config.admitUser(); err != nil {
		unlock()
		return nil, err
	}
	client := link.Client(config.Trust)
	a := &Agent{
		client: client, config: config, file: file, unlock: unlock, pool: ports.NewPool(config.Ports, nil), began: time.Now(),
		work: make(chan func(), 64), stopped: make(chan struct{}), running: map[string]*server{}, streams: map[string]context.CancelFunc{},
		unsent: before.Ended, uploads: uploads{queue: before.Uploads}, order: agentproto.OrderPending, builds: &buildfetch.Builds{Dir: config.Builds, Client: client},
	}
	a.link = link.New(link.Config{
		Target: config.Target, Hello: a.sayHello, Trust: config.Trust, Log: config.Log, Chance: rand.Float64,
		Connected: func(hello agentproto.HelloAnswer) { a.do(func() { a.counts.connections++; a.connect(hello) }) },
		Lost:      func() { a.do(a.disconnect) },
		Revoked:   func() { a.do(a.revoked) },
		Push:      func(p agentproto.Push) { a.do(func() { a.take(p) }) },
	})
	if config.Target == nil { // only the file determines what runs
		a.order = agentproto.OrderActive
	}
	a.removeArchives()
	a.adopt(before)
	a.tidyAgones()
	if err := a.save(); err != nil {
		unlock()
		return nil, err
	}
	return a, nil
}

// admitUser gives the user of the server processes access through the agent's directories to their builds and logs. The files in the state directory
// itself are readable only by the agent's user.
func (c *Config) admitUser() error {
	if c.User == nil {
		return nil
	}
	for _, dir := range []string{c.StateDir, c.LogDir, c.Builds} {
		if dir == "" {
			continue // an agent without builds
		}
		if err := atomicfile.MakeDir(dir, 0o755); err != nil {
			return err
		}
		info, err := os.Stat(dir)
		if err == nil {
			err = os.Chmod(dir, info.Mode().Perm()|0o011)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// do makes the goroutine of Run call f.
func (a *Agent) do(f func()) {
	select {
	case a.work <- f:
	case <-a.stopped:
	}
}

// Run runs the agent until the context ends. The server processes keep running unless EndProcesses is set.
func (a *Agent) Run(ctx context.Context) error {
	defer a.unlock()
	inner, cancel := context.WithCancel(context.WithoutCancel(ctx)) // the connection outlives ctx until the last message is sent
	defer cancel()
	a.context = inner
	if a.config.Metrics != nil {
		defer a.serveMetrics(a.config.Metrics)()
	}
	linked := make(chan struct{})
	go func() {
		defer close(linked)
		if a.config.Target != nil {
			a.link.Run(inner)
		}
	}()
	trimmed := make(chan struct{})
	go func() {
		defer close(trimmed)
		a.trim(inner)
	}()
	for _, s := range a.running {
		a.await(s)
	}
	timer := time.NewTicker(tick)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			a.stop()
			close(a.stopped)
			cancel()
			<-linked
			<-trimmed
			a.closeAgones()
			return nil
		case f := <-a.work:
			f()
		case <-timer.C:
		}
		a.step(time.Now())
	}
}

// tick is how often the agent checks what is due. Incoming messages are handled at once.
const tick = 200 * time.Millisecond

// step does what is due.
func (a *Agent) step(now time.Time) {
	a.readFile()
	a.lookForInterruption(now)
	a.ask(now)
	a.fetch(now)
	a.removeBuilds()
	a.reconcile(now)
	a.retire(now)
	a.heartbeat(now)
	a.send()
	a.upload(now)
	if now.Sub(a.pruned) > 10*time.Minute {
		a.pruned = now
		a.prune(now)
	}
}

// stop leaves the server processes to the next agent, or ends them.
func (a *Agent) stop() {
	if !a.config.EndProcesses {
		if len(a.running) > 0 {
			a.config.Log.Info("agent stops: its server processes keep running for the next agent", "processes", len(a.running))
		}
		return
	}
	for _, s := range a.running {
		a.end(s, agentproto.ComputeShuttingDown)
	}
	for limit := time.After(a.config.KillTimeout + 10*time.Second); len(a.running) > 0 || a.connected && len(a.unsent) > 0; {
		a.send()
		select {
		case f := <-a.work:
			f()
		case <-limit:
			a.config.Log.Error("agent stops: not all server processes ended, or not all ends were reported to the service", "processes", len(a.running), "unreported", len(a.unsent))
			return
		}
	}
	if !a.connected {
		return
	}
	ctx, cancel := context.WithTimeout(a.context, 5*time.Second)
	defer cancel()
	last := a.describe(time.Now())
	last.Status = agentproto.Terminated
	if err := a.link.Call(ctx, last, nil); err != nil {
		a.config.Log.Warn("last heartbeat failed", "error", err)
	}
}

// save writes the state file.
func (a *Agent) save() error {
	s := state.State{BootID: process.BootID(), Ended: a.unsent, Uploads: a.uploads.queue}
	for _, p := range a.sorted() {
		one := state.Process{
			ID: p.id, LaunchPath: p.spec.LaunchPath, Parameters: p.spec.Parameters, Slot: p.slot, Ports: p.ports, Dir: p.dir, Build: p.build, Started: p.started,
			Registered: p.registered, Session: p.session, LogPaths: p.logPaths, Reason: p.reason,
		}
		if p.process != nil {
			one.Record = p.process.Record()
		}
		s.Processes = append(s.Processes, one)
	}
	if err := a.file.Write(s); err != nil {
		a.config.Log.Error("state file cannot be written: after a restart the agent will not find its server processes", "error", err)
		return err
	}
	return nil
}

// trim keeps the output of the running processes within bounds.
func (a *Agent) trim(ctx context.Context) {
	for wait := time.Second; ; {
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		logs := make(chan map[string]*output.Log, 1)
		a.do(func() {
			all := map[string]*output.Log{}
			for id, s := range a.running {
				all[id] = s.log
			}
			logs <- all
		})
		wait = time.Second
		select {
		case <-a.stopped:
			return
		case all := <-logs:
			for id, log := range all {
				floods, err := log.Trim(time.Now())
				if err != nil && !os.IsNotExist(err) {
					a.config.Log.Error("output of a server process cannot be rotated: what does not fit is dropped", "process", id, "error", err)
				}
				if floods {
					wait = 100 * time.Millisecond
				}
			}
		}
	}
}

func (a *Agent) prune(now time.Time) {
	running := map[string]bool{}
	for id := range a.running {
		running[id] = true
	}
	for _, e := range a.unsent {
		running[e.ID] = true
	}
	for _, u := range a.uploads.queue {
		running[u.ID] = true
	}
	go func() {
		if err := output.Prune(a.config.LogDir, a.config.Keep, func(dir string) bool { return running[dir] }, now); err != nil {
			a.config.Log.Warn("output of ended server processes cannot be removed", "error", err)
		}
	}()
}

func (a *Agent) logDir(id string) string { return filepath.Join(a.config.LogDir, id) }

// ownDir returns the directory for a process's own logs.
func (a *Agent) ownDir(id string) string { return filepath.Join(a.logDir(id), "files") }

func (a *Agent) sayHello() *agentproto.AgentHello {
	name, _ := os.Hostname()
	return &agentproto.AgentHello{
		Version: a.config.Version, OS: runtime.GOOS, Arch: runtime.GOARCH, HostName: name, CPUs: runtime.NumCPU(), MemoryMB: usage.OfHost(a.config.LogDir).Memory >> 20,
		Ports: a.config.Ports.String(), BootID: process.BootID(), StartedMillis: a.began.UnixMilli(),
	}
}
