package agent

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/netutil"

	"github.com/musterhq/muster/internal/agent/usage"
	"github.com/musterhq/muster/internal/agentproto"
)

// This file implements the agent's /metrics in Prometheus' text format. It reveals no players and no secrets.

// counts counts events since the agent started. It is owned by the goroutine of Run.
type counts struct {
	connections, starts, startFailures, fetches, fetchFailures, uploads, uploadFailures uint64

	exits map[agentproto.TerminationReason]uint64
}

// Bounds of the metrics endpoint, which requires no key.
const (
	metricsConnections = 16
	metricsHeader      = 8 << 10
	metricsTime        = 10 * time.Second
)

// serveMetrics serves /metrics on a listener until the returned function is called.
func (a *Agent) serveMetrics(l net.Listener) (stop func()) {
	server := &http.Server{
		Handler: http.HandlerFunc(a.answerMetrics), ReadTimeout: metricsTime, WriteTimeout: metricsTime, IdleTimeout: time.Minute, MaxHeaderBytes: metricsHeader,
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := server.Serve(netutil.LimitListener(l, metricsConnections)); err != http.ErrServerClosed {
			a.config.Log.Error("metrics are no longer served", "address", l.Addr(), "error", err)
		}
	}()
	return func() {
		_ = server.Close()
		<-ended
	}
}

func (a *Agent) answerMetrics(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/metrics" || r.Method != http.MethodGet && r.Method != http.MethodHead {
		http.Error(w, "want GET /metrics", http.StatusNotFound)
		return
	}
	written := make(chan []byte, 1)
	a.do(func() { written <- a.metrics(time.Now()) })
	select {
	case text := <-written:
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		_, _ = w.Write(text) // the reader may have gone
	case <-a.stopped:
		http.Error(w, "the agent stops", http.StatusServiceUnavailable)
	}
}

// exposition is text in Prometheus' format.
type exposition struct{ bytes.Buffer }

// family starts a metric.
func (x *exposition) family(name, kind, help string) {
	fmt.Fprintf(x, "# HELP muster_agent_%s %s\n# TYPE muster_agent_%s %s\n", name, help, name, kind)
}

// value adds a value; labels are pairs of name and value.
func (x *exposition) value(name string, value float64, labels ...string) {
	x.WriteString("muster_agent_" + name)
	for i := 0; i < len(labels); i += 2 {
		x.WriteByte("{,"[min(i, 1)])
		x.WriteString(labels[i] + `="` + labelText.Replace(strings.ToValidUTF8(labels[i+1], "\uFFFD")) + `"`)
	}
	if len(labels) > 0 {
		x.WriteByte('}')
	}
	x.WriteString(" " + strconv.FormatFloat(value, 'g', -1, 64) + "\n")
}

// one adds a metric with one value.
func (x *exposition) one(name, kind, help string, value float64) {
	x.family(name, kind, help)
	x.value(name, value)
}

var labelText = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

func truth(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

// metrics writes all metrics.
func (a *Agent) metrics(now time.Time) []byte {
	x := new(exposition)
	x.family("info", "gauge", "Always 1. The labels say what the agent is.")
	x.value("info", 1, "version", a.config.Version, "fleet", a.hello.FleetID, "compute", a.hello.ComputeName, "location", a.hello.Location)
	x.one("connected", "gauge", "Whether the agent is connected to the service.", truth(a.connected))
	x.one("connections_total", "counter", "Connections opened to the service.", float64(a.counts.connections))
	x.one("draining", "gauge", "Whether the host is drained, so that no server process starts.", truth(a.draining))
	a.processMetrics(x)
	a.launchMetrics(x, now)
	x.family("build_fetches_total", "counter", "Finished fetches of builds.")
	x.value("build_fetches_total", float64(a.counts.fetches), "outcome", "complete")
	x.value("build_fetches_total", float64(a.counts.fetchFailures), "outcome", "failed")
	x.one("build_fetching", "gauge", "Whether a build is being fetched.", truth(a.build != nil && a.build.cancel != nil))
	x.family("log_uploads_total", "counter", "Uploads of the logs of game sessions.")
	x.value("log_uploads_total", float64(a.counts.uploads), "outcome", "complete")
	x.value("log_uploads_total", float64(a.counts.uploadFailures), "outcome", "failed")
	x.one("log_uploads_waiting", "gauge", "Game sessions whose logs are waiting to be uploaded.", float64(len(a.uploads.queue)))
	x.one("exits_untold", "gauge", "Ended server processes that have not been reported to the service yet.", float64(len(a.unsent)))
	a.hostMetrics(x)
	return x.Bytes()
}

func (a *Agent) processMetrics(x *exposition) {
	states := map[string]int{}
	sessions := 0
	all := a.sorted()
	for _, s := range all {
		states[a.stateOf(s)]++
		if s.session != "" {
			sessions++
		}
	}
	x.family("processes", "gauge", "Server processes, by their state at the agent.")
	for _, state := range []string{agentproto.ProcessStarting, agentproto.ProcessRunning, processRetiring, agentproto.ProcessStopping} {
		x.value("processes", float64(states[state]), "state", strings.ToLower(state))
	}
	x.one("processes_wanted", "gauge", "Server processes that the runtime configuration asks for.", float64(a.total()))
	x.one("game_sessions", "gauge", "Server processes that host a game session.", float64(sessions))
	x.one("process_starts_total", "counter", "Server processes that were started.", float64(a.counts.starts))
	x.one("process_start_failures_total", "counter", "Server processes that could not be started.", float64(a.counts.startFailures))
	x.family("process_exits_total", "counter", "Server processes that have ended, by the reason reported to the service.")
	for _, reason := range agentproto.Reasons {
		x.value("process_exits_total", float64(a.counts.exits[reason]), "reason", string(reason))
	}
	used := make([]usage.Process, len(all))
	for i, s := range all {
		if s.process != nil {
			used[i] = usage.OfProcesses(s.process.Record().PIDs())
		}
	}
	each := func(name, kind, help string, value func(i int) float64) {
		x.family(name, kind, help)
		for i, s := range all {
			x.value(name, value(i), "process", s.id, "path", s.spec.LaunchPath, "port", strconv.Itoa(s.ports[""]))
		}
	}
	each("process_memory_bytes", "gauge", "Memory of a server process and its child processes.", func(i int) float64 { return float64(used[i].Memory) })
	each("process_cpu_seconds_total", "counter", "Processor time of a server process and its running child processes.", func(i int) float64 { return used[i].CPU.Seconds() })
	each("process_start_time_seconds", "gauge", "Unix time at which a server process started.", func(i int) float64 { return float64(all[i].started.UnixMilli()) / 1000 })
}

func (a *Agent) launchMetrics(x *exposition, now time.Time) {
	states := map[string]int{}
	crashes := 0
	for _, e := range a.entries {
		states[a.describeLaunch(e, now).State]++
		crashes += e.crash.Recent(now)
	}
	x.family("launches", "gauge", "Entries of the runtime configuration, by their state.")
	for _, state := range []string{agentproto.LaunchRunning, agentproto.LaunchBackingOff, agentproto.LaunchFailed, agentproto.LaunchFetching} {
		x.value("launches", float64(states[state]), "state", strings.ToLower(state))
	}
	x.one("crashes_recent", "gauge", "Crashes within the crash window.", float64(crashes))
}

func (a *Agent) hostMetrics(x *exposition) {
	h := usage.OfHost(a.config.LogDir)
	x.family("host_cpu_seconds_total", "counter", "Processor time of all processors of the host, by mode.")
	x.value("host_cpu_seconds_total", h.Busy.Seconds(), "mode", "busy")
	x.value("host_cpu_seconds_total", h.Idle.Seconds(), "mode", "idle")
	x.one("host_load1", "gauge", "Load of the host over a minute.", h.Load1)
	x.one("host_memory_bytes", "gauge", "Memory of the host.", float64(h.Memory))
	x.one("host_memory_used_bytes", "gauge", "Memory of the host that is in use.", float64(h.MemoryUsed))
	x.one("host_disk_bytes", "gauge", "Size of the file system with the output of server processes.", float64(h.Disk))
	x.one("host_disk_free_bytes", "gauge", "Free space of the file system with the output of server processes.", float64(h.DiskFree))
	x.one("host_network_received_bytes_total", "counter", "Bytes that the host has received, without loopback.", float64(h.NetworkIn))
	x.one("host_network_sent_bytes_total", "counter", "Bytes that the host has sent, without loopback.", float64(h.NetworkOut))
	x.one("host_open_files", "gauge", "Open files of the host.", float64(h.OpenFiles))
	x.one("ports_used", "gauge", "Ports of the pool that server processes use.", float64(a.pool.Taken()))
	x.one("ports", "gauge", "Ports of the pool.", float64(a.pool.Range().Len()))
	x.one("memory_bytes", "gauge", "Memory of the agent itself.", float64(h.AgentMemory))
}
