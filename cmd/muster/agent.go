package main

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/musterhq/muster/internal/agent"
	"github.com/musterhq/muster/internal/agent/agones"
	"github.com/musterhq/muster/internal/agent/link"
	"github.com/musterhq/muster/internal/agent/output"
	"github.com/musterhq/muster/internal/agent/ports"
	"github.com/musterhq/muster/internal/agent/process"
	"github.com/musterhq/muster/internal/agent/resident"
	"github.com/musterhq/muster/internal/agent/restart"
	"github.com/musterhq/muster/internal/settings"
)

// agentCommand runs the host agent, which starts server processes. Each flag is also a variable. Flags that the official agent has too
// also take its variables, so that a host can change agents.
type agentCommand struct {
	agentConnection `embed:""`

	RuntimeConfig string `name:"runtime-config" env:"MUSTER_AGENT_RUNTIME_CONFIG" placeholder:"FILE" help:"Use the runtime configuration in this file instead of the service's. The agent reads it again when it changes. Without --server, the agent only runs processes."`
	Root          string `env:"MUSTER_AGENT_ROOT" placeholder:"DIR" help:"Directory of the game. Launch paths lie in it; /local/game/ and C:\\Game\\ stand for it. (default /local/game, C:\\Game on Windows)"`
	BuildsDir     string `name:"builds-dir" env:"MUSTER_AGENT_BUILDS_DIR" placeholder:"DIR" help:"Where the agent keeps the builds that it fetches. (default builds in the state directory)"`
	StateDir      string `name:"state-dir" env:"MUSTER_AGENT_STATE_DIR" placeholder:"DIR" help:"Where the agent records its server processes, so that the next agent finds them. (default /var/lib/muster-agent)"`
	LogDir        string `name:"log-dir" env:"MUSTER_AGENT_LOG_DIR" placeholder:"DIR" help:"Where the output of server processes is kept. (default logs in the state directory)"`

	Ports     string         `env:"MUSTER_AGENT_PORTS" default:"7000-7999" placeholder:"RANGE" help:"Ports for server processes: {port} and {port:NAME} in Parameters, MUSTER_PORT in their environment."`
	QuoteArgs bool           `name:"quote-args" env:"MUSTER_AGENT_QUOTE_ARGS" help:"Split Parameters as a shell does, with quotes. Otherwise: at each space, as GameLift does."`
	RunAs     string         `name:"run-as" env:"MUSTER_AGENT_RUN_AS" placeholder:"USER" help:"Run server processes as this user. The agent must run as root."`
	Cgroup    string         `env:"MUSTER_AGENT_CGROUP" placeholder:"DIR" help:"Directory of a cgroup2 file system in which the agent makes a group for each server process, or none. (default: the agent's own cgroup, if it may)"`
	MemoryMax settings.Bytes `name:"memory-max" env:"MUSTER_AGENT_MEMORY_MAX" placeholder:"BYTES" help:"Memory limit of each server process, such as 2GiB. Needs a cgroup with the memory controller; on Windows, a job object."`

	KillTimeout      time.Duration `name:"kill-timeout" env:"MUSTER_AGENT_KILL_TIMEOUT" default:"30s" help:"Time between SIGTERM and SIGKILL."`
	StartTimeout     time.Duration `name:"start-timeout" env:"MUSTER_AGENT_START_TIMEOUT" default:"5m" help:"Time within which a server process must call ProcessReady."`
	MaxCrashes       int           `name:"max-crashes" env:"MUSTER_AGENT_MAX_CRASHES" default:"5" help:"An entry of the runtime configuration with more crashes than this in --crash-window has failed: one process starts every five minutes, until one of them works."`
	CrashWindow      time.Duration `name:"crash-window" env:"MUSTER_AGENT_CRASH_WINDOW" default:"10m" help:"See --max-crashes."`
	Agones           bool          `env:"MUSTER_AGENT_AGONES" help:"Serve the interface of the Agones SDK to each server process, on loopback ports of --ports that AGONES_SDK_GRPC_PORT and AGONES_SDK_HTTP_PORT name."`
	AgonesGameServer string        `name:"agones-gameserver" env:"MUSTER_AGENT_AGONES_GAMESERVER" placeholder:"FILE" help:"Manifest of an Agones GameServer or Fleet, in JSON: its labels, annotations, health, counters, lists and players are those of each server process. Needs --agones."`

	EndProcesses bool `name:"end-processes" env:"MUSTER_AGENT_END_PROCESSES" help:"End the server processes when the agent stops. Otherwise they keep running, and the next agent adopts them."`

	InterruptionFile string `name:"interruption-file" env:"MUSTER_AGENT_INTERRUPTION_FILE" placeholder:"FILE" help:"File with the time at which this machine is reclaimed, such as 2015-01-05T18:02:00Z. Once the file exists, the host is drained; 30 seconds before that time it ends what still runs."`

	MetricsListen string `name:"metrics-listen" env:"MUSTER_AGENT_METRICS_LISTEN" placeholder:"ADDRESS" help:"Serve /metrics in the Prometheus format on this address, such as :9102. Without a host it is 127.0.0.1. (default: not at all)"`

	LogLevel  string `name:"log-level" default:"info" enum:"debug,info,warn,error" help:"debug, info, warn or error."`
	LogFormat string `name:"log-format" default:"text" enum:"text,json" help:"text or json."`
}

// Run runs the agent until ctx ends.
func (c *agentCommand) Run(ctx context.Context, env environment) error {
	sink := openLog(env)
	defer sink.Close()
	log := newLogger(sink, settings.Settings{LogLevel: c.LogLevel, LogFormat: c.LogFormat})
	tellOfLostLines(sink, log)
	config, err := c.config(env, log)
	if err != nil {
		return err
	}
	// Memory on a host is for game servers: frequent garbage collection costs the agent little.
	debug.SetGCPercent(50)
	supervised, err := supervise(env, log)
	if err != nil {
		return err
	}
	defer supervised.end()
	return runAsService(ctx, func(ctx context.Context) error {
		if config.Metrics, err = c.listenForMetrics(); err != nil {
			return err
		}
		a, err := agent.New(config)
		if err != nil {
			if config.Metrics != nil {
				config.Metrics.Close()
			}
			return err
		}
		ctx, stop := context.WithCancel(ctx)
		var keeping sync.WaitGroup
		defer keeping.Wait()
		defer stop()
		keeping.Go(func() { resident.Keep(ctx, log) })
		keeping.Go(func() {
			<-ctx.Done()
			supervised.stops()
		})
		log.Info("agent starts", "version", config.Version, "root", config.Root, "ports", config.Ports, "cgroups", config.Groups.Describe())
		supervised.runs(a)
		return a.Run(ctx)
	})
}

// listenForMetrics opens the port for metrics, or returns nil for none.
func (c *agentCommand) listenForMetrics() (net.Listener, error) {
	if c.MetricsListen == "" {
		return nil, nil
	}
	host, port, err := net.SplitHostPort(c.MetricsListen)
	if err != nil {
		return nil, fmt.Errorf("metrics-listen %q: %w; want an address such as :9102", c.MetricsListen, err)
	}
	l, err := net.Listen("tcp", net.JoinHostPort(cmp.Or(host, "127.0.0.1"), port))
	if err != nil {
		return nil, fmt.Errorf("metrics-listen %q: %w", c.MetricsListen, err)
	}
	return l, nil
}

// config checks the flags and returns the agent's configuration.
func (c *agentCommand) config(env environment, log *slog.Logger) (config agent.Config, err error) {
	config = agent.Config{
		Version: versionText(), File: c.RuntimeConfig, Quote: c.QuoteArgs, KillTimeout: c.KillTimeout, StartTimeout: c.StartTimeout, EndProcesses: c.EndProcesses, InterruptionFile: c.InterruptionFile,
		Restart: restart.Default(), MemoryMax: int64(c.MemoryMax), Output: output.Default(), Keep: output.DefaultKeep(), Log: log,
	}
	if config.Root, err = filepath.Abs(cmp.Or(c.Root, onSystem("/local/game", `C:\Game`))); err != nil {
		return config, err
	}
	needed := c.Root != "" || c.RuntimeConfig != "" || c.Server == "" // builds have directories of their own
	if info, err := os.Stat(config.Root); needed && (err != nil || !info.IsDir()) {
		return config, fmt.Errorf("root %s: there is no such directory; name the game's directory with --root", config.Root)
	}
	if config.StateDir, err = filepath.Abs(cmp.Or(c.StateDir, onSystem("/var/lib/muster-agent", `C:\ProgramData\muster-agent`))); err != nil {
		return config, err
	}
	if config.LogDir, err = filepath.Abs(cmp.Or(c.LogDir, filepath.Join(config.StateDir, "logs"))); err != nil {
		return config, err
	}
	if config.Builds, err = filepath.Abs(cmp.Or(c.BuildsDir, filepath.Join(config.StateDir, "builds"))); err != nil {
		return config, err
	}
	if config.Ports, err = ports.ParseRange(c.Ports); err != nil {
		return config, err
	}
	if err := ports.CheckEphemeral(config.Ports); err != nil {
		return config, err
	}
	if c.MaxCrashes < 1 || c.CrashWindow <= 0 || c.KillTimeout < 0 || c.StartTimeout <= 0 {
		return config, fmt.Errorf("max-crashes %d, crash-window %v, kill-timeout %v, start-timeout %v: want positive values", c.MaxCrashes, c.CrashWindow, c.KillTimeout, c.StartTimeout)
	}
	config.Restart.CrashesMax, config.Restart.Window = c.MaxCrashes, c.CrashWindow
	if c.RunAs != "" {
		if config.User, err = process.FindUser(c.RunAs); err != nil {
			return config, fmt.Errorf("run-as %q: %w", c.RunAs, err)
		}
		if os.Geteuid() != 0 {
			return config, fmt.Errorf("run-as %q: the agent must run as root for that", c.RunAs)
		}
	}
	config.Agones = c.Agones
	if c.AgonesGameServer != "" {
		if !c.Agones {
			return config, fmt.Errorf("agones-gameserver %s: want --agones as well", c.AgonesGameServer)
		}
		if config.GameServer, err = agones.ReadGameServer(c.AgonesGameServer); err != nil {
			return config, fmt.Errorf("agones-gameserver %w", err)
		}
	}
	if config.Groups, err = process.NewGroups(c.Cgroup); err != nil {
		return config, err
	}
	if c.Server == "" {
		if c.RuntimeConfig == "" {
			return config, fmt.Errorf("server: want the URL of the service, or --runtime-config for an agent without one")
		}
		return config, nil
	}
	if config.Trust, err = link.Trust(c.CA); err != nil {
		return config, fmt.Errorf("ca: %w", err)
	}
	config.Target, err = c.agentConnection.target(env, config.StateDir, link.Client(config.Trust))
	return config, err
}

func onSystem(other, windows string) string {
	if runtime.GOOS == "windows" {
		return windows
	}
	return other
}

// ofAgent reports whether the agent reads this variable or sets it for server processes, which may also run this program.
func ofAgent(variable string) bool {
	if variable == "MUSTER_PORT" || strings.HasPrefix(variable, "MUSTER_PORT_") || variable == "MUSTER_LOG_DIR" {
		return true
	}
	for _, flags := range []reflect.Type{reflect.TypeFor[agentCommand](), reflect.TypeFor[agentConnection]()} {
		for field := range flags.Fields() {
			if slices.Contains(strings.Split(field.Tag.Get("env"), ","), variable) {
				return true
			}
		}
	}
	return false
}
