package bench

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/url"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/musterhq/muster/internal/agent/joining"
	"github.com/musterhq/muster/internal/agent/link"
	"github.com/musterhq/muster/internal/agentproto"
	"github.com/musterhq/muster/internal/linkclient"
)

// hostCrowd has many hosts. They use the connection code of `muster agent`: they join, sign, and reconnect as it does. Their server processes are
// connections in this process.
type hostCrowd struct {
	fleet    string
	url      string
	all      []*benchHost
	servers  atomic.Bool // whether server processes connect; otherwise the agents only report them
	each     int         // processes of a host that are then reported
	connects atomic.Int64
	games    chan *hostedProcess // that activated a game session
	builds   chan builtHost

	ctx     context.Context
	stop    context.CancelFunc
	running sync.WaitGroup
	dialing chan struct{} // limits how many server processes connect concurrently
}

// builtHost is a host that was told to fetch a build.
type builtHost struct {
	host  *benchHost
	build agentproto.Build
}

// benchHost is one of them.
type benchHost struct {
	crowd *hostCrowd
	index int
	link  *link.Link

	mu        sync.Mutex
	hello     agentproto.HelloAnswer
	linked    bool
	token     string
	processes map[string]*hostedProcess
	wanted    int
	pushed    time.Time // when the latest runtime configuration came
	built     string    // digest of the build that was passed to the crowd
	serving   sync.Mutex
}

// newHosts starts n hosts of a fleet; without a fleet, they wait for one of a build.
func (b *bench) newHosts(ctx context.Context, s *server, fleet string, n int) (*hostCrowd, error) {
	token, err := b.joinToken(ctx, s, fleet, n)
	if err != nil {
		return nil, err
	}
	x := &hostCrowd{
		fleet: fleet, url: "http://" + s.addr, each: b.sizes.agentProcesses, games: make(chan *hostedProcess, 1), builds: make(chan builtHost, n), dialing: make(chan struct{}, connecting),
	}
	x.ctx, x.stop = context.WithCancel(context.Background())
	server := &url.URL{Scheme: "http", Host: s.addr}
	quiet := slog.New(slog.DiscardHandler)
	for i := range n {
		name := fmt.Sprintf("host-%d", i)
		h := &benchHost{crowd: x, index: i, processes: map[string]*hostedProcess{}}
		joined, err := joining.Open(joining.Config{
			Server: server, Client: http.DefaultClient, StateDir: filepath.Join(b.dir, filepath.Base(token)+"-"+name), TokenFile: token, Name: name,
			Address: func() (ip, dns string, err error) { return "127.0.0.1", "", nil },
		})
		if err != nil {
			x.close()
			return nil, err
		}
		h.link = link.New(link.Config{
			Target: joined.Target, Hello: h.say, Connected: h.connected, Lost: h.lost, Push: h.take, Log: quiet, Chance: rand.Float64,
		})
		x.all = append(x.all, h)
		x.running.Go(func() { h.link.Run(x.ctx) })
		x.running.Go(h.beat)
	}
	return x, nil
}

func (x *hostCrowd) close() {
	x.stop()
	x.running.Wait()
	for _, h := range x.all {
		h.mu.Lock()
		for _, p := range h.processes {
			p.connection().Drop()
		}
		h.mu.Unlock()
	}
}

// waitConnected waits until n agents are connected, and the service has answered a heartbeat of each.
func (x *hostCrowd) waitConnected(ctx context.Context, n int) error {
	return waitUntil(ctx, func() string {
		return fmt.Sprintf("%d of %d agents are connected, wanted %d", x.connects.Load(), len(x.all), n)
	},
		func() (bool, error) { return x.connects.Load() == int64(n), nil })
}

// waitProcesses makes the server processes connect, and waits until the service counts n ready ones.
func (x *hostCrowd) waitProcesses(ctx context.Context, c *conn, n int) error {
	x.servers.Store(true)
	for _, h := range x.all {
		x.running.Go(h.reconcile)
	}
	var have int
	return waitUntil(ctx, func() string { return fmt.Sprintf("%d server processes are ready, wanted %d", have, n) }, func() (ready bool, err error) {
		have, err = activeServers(c, x.fleet)
		return have == n, err
	})
}

// waitServers waits until each server process is connected again.
func (x *hostCrowd) waitServers(ctx context.Context) error {
	missing := 0
	return waitUntil(ctx, func() string { return fmt.Sprintf("%d server processes are not connected", missing) }, func() (bool, error) {
		missing = 0
		for _, h := range x.all {
			h.mu.Lock()
			missing += h.wanted - len(h.processes)
			for _, p := range h.processes {
				select {
				case <-p.connection().Closed():
					missing++
				default:
				}
			}
			h.mu.Unlock()
		}
		return missing == 0, nil
	})
}

// lastPush returns when the last host received the latest runtime configuration.
func (x *hostCrowd) lastPush() (last time.Time) {
	for _, h := range x.all {
		h.mu.Lock()
		if h.pushed.After(last) {
			last = h.pushed
		}
		h.mu.Unlock()
	}
	return last
}

func (h *benchHost) say() *agentproto.AgentHello {
	return &agentproto.AgentHello{Version: "bench", OS: "linux", Arch: "amd64", CPUs: 8, MemoryMB: 32 << 10, Ports: "7000-7999"}
}

func (h *benchHost) connected(hello agentproto.HelloAnswer) {
	h.mu.Lock()
	h.hello, h.token = hello, ""
	h.mu.Unlock()
	h.crowd.running.Go(func() {
		if h.heartbeat() != nil {
			return // the link is lost and will reconnect
		}
		h.mu.Lock()
		first := !h.linked
		h.linked = true
		h.mu.Unlock()
		if first {
			h.crowd.connects.Add(1)
		}
	})
}

func (h *benchHost) lost() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.linked {
		h.linked = false
		h.crowd.connects.Add(-1)
	}
}

func (h *benchHost) take(push agentproto.Push) {
	var conf agentproto.RuntimeConfiguration
	switch p := push.(type) {
	case *agentproto.UpdateHost:
		h.connected(p.HelloAnswer)
		return
	case *agentproto.UpdateRuntimeConfiguration:
		conf = p.RuntimeConfiguration
	default:
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.wanted = 0
	for _, p := range conf.ServerProcesses {
		h.wanted += p.ConcurrentExecutions
	}
	h.pushed = time.Now()
	if conf.Build != nil && conf.Build.URL != "" && h.built != conf.Build.Digest {
		h.built = conf.Build.Digest
		h.crowd.builds <- builtHost{h, *conf.Build} // it has room for each host
	}
	h.crowd.running.Go(h.reconcile)
}

// reconcile starts the wanted server processes that do not run.
func (h *benchHost) reconcile() {
	h.serving.Lock()
	defer h.serving.Unlock()
	for h.crowd.ctx.Err() == nil {
		h.mu.Lock()
		missing := h.crowd.servers.Load() && len(h.processes) < h.wanted && h.hello.FleetID != ""
		h.mu.Unlock()
		if !missing || h.startProcess() != nil {
			return
		}
	}
}

func (h *benchHost) startProcess() error {
	p := &hostedProcess{host: h, id: uuid.NewString()}
	if err := p.connect(h.crowd.ctx); err != nil {
		return err
	}
	if err := p.client.Activate(h.crowd.ctx, 7000+h.index); err != nil {
		return err
	}
	if err := p.client.Heartbeat(h.crowd.ctx, true); err != nil {
		return err
	}
	h.mu.Lock()
	h.processes[p.id] = p
	h.mu.Unlock()
	return nil
}

// connect connects a process. After losing its connection, it tries again every second with the same token, as the SDKs do.
func (p *hostedProcess) connect(ctx context.Context) error {
	h := p.host
	h.crowd.dialing <- struct{}{}
	defer func() { <-h.crowd.dialing }()
	h.mu.Lock()
	token, name, fleet := h.token, h.hello.ComputeName, h.hello.FleetID
	h.mu.Unlock()
	if token == "" {
		var answer agentproto.ServerToken
		if err := h.link.Call(ctx, new(agentproto.GetServerToken), &answer); err != nil {
			return err
		}
		token = answer.AuthToken
		h.mu.Lock()
		h.token = token
		h.mu.Unlock()
	}
	client, err := linkclient.Dial(ctx, linkclient.Options{
		URL: "ws" + h.crowd.url[len("http"):], Process: p.id, Compute: name, Fleet: fleet, Token: token,
		OnPush: func(c *linkclient.Client, push linkclient.Push) {
			if push.Action != "CreateGameSession" {
				return
			}
			c.Go("ActivateGameSession", linkclient.GameSessionMembers(push.GameSessionID()), func(a linkclient.Answer, err error) {
				if answered(a, err) == nil {
					h.crowd.games <- p
				}
			})
		},
		OnClose: func(*linkclient.Client, error) { h.crowd.running.Go(p.comeBack) },
	})
	if err != nil {
		return err
	}
	p.mu.Lock()
	p.client = client
	p.mu.Unlock()
	return nil
}

func (p *hostedProcess) connection() *linkclient.Client {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.client
}

func (p *hostedProcess) comeBack() {
	for ctx := p.host.crowd.ctx; ; {
		p.mu.Lock()
		dead := p.dead
		p.mu.Unlock()
		if dead || ctx.Err() != nil || p.connect(ctx) == nil {
			return
		}
		wait(ctx, tryAgain)
	}
}

// ended makes the agent report the end of a process and start another one.
func (h *benchHost) ended(p *hostedProcess, end *agentproto.NotifyServerProcessTermination) {
	h.mu.Lock()
	delete(h.processes, p.id)
	h.mu.Unlock()
	_ = h.link.Call(h.crowd.ctx, end, nil) // a failure shows in the measurement
	h.reconcile()
}

// beat sends heartbeats at the interval that the service requests.
func (h *benchHost) beat() {
	for {
		h.mu.Lock()
		every := max(time.Duration(h.hello.HeartbeatMillis)*time.Millisecond, time.Second)
		h.mu.Unlock()
		select {
		case <-h.crowd.ctx.Done():
			return
		case <-time.After(time.Duration(float64(every) * (0.75 + rand.Float64()/2))):
			_ = h.heartbeat() // fails without a connection; the next one may succeed
		}
	}
}

func (h *benchHost) heartbeat() error {
	now := time.Now().UnixMilli()
	m := &agentproto.SendHeartbeat{
		Status: agentproto.Active, ProcessList: []string{}, HeartbeatTimeMillis: now,
		Launches: []agentproto.LaunchState{{LaunchPath: "/local/game/server", Wanted: h.crowd.each, Running: h.crowd.each, State: agentproto.LaunchRunning}},
		Metrics:  &agentproto.HostMetrics{CPUPercent: 40, MemoryTotalBytes: 32 << 30, MemoryUsedBytes: 16 << 30, DiskTotalBytes: 1 << 40, DiskFreeBytes: 1 << 39},
	}
	h.mu.Lock()
	for id := range h.processes {
		m.ProcessList = append(m.ProcessList, id)
	}
	h.mu.Unlock()
	for i := len(m.ProcessList); !h.crowd.servers.Load() && i < h.crowd.each; i++ {
		m.ProcessList = append(m.ProcessList, fmt.Sprintf("00000000-0000-0000-0000-%06d%06d", h.index, i))
	}
	for i, id := range m.ProcessList {
		m.Processes = append(m.Processes, agentproto.ProcessState{
			ProcessID: id, PID: 1000 + i, Port: 7000 + i, State: agentproto.ProcessRunning, CPUPercent: 3, MemoryBytes: 200 << 20, StartedMillis: now,
		})
	}
	return h.link.Call(h.crowd.ctx, m, nil)
}
