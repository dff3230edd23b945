package agent

import (
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/musterhq/muster/internal/agentproto"
)

// Prometheus' own parser reads the metrics of an agent, and each value matches its processes, entries and connection.
func TestMetrics(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	url := "http://" + l.Addr().String()
	get := func(path string) (int, string) {
		t.Helper()
		r, err := http.Get(url + path)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		text, err := io.ReadAll(r.Body)
		if err != nil {
			t.Fatal(err)
		}
		return r.StatusCode, string(text)
	}
	missing := play(1, "wait")
	missing.LaunchPath = `no"ne`
	s := newService(t, play(2, "wait"), missing)
	s.run(func(c *Config) { c.Metrics = l })
	list := s.some(agentproto.ProcessStarting, 2)
	s.push(&agentproto.NotifyGameSessionActivated{ProcessID: list[0].ProcessID, GameSessionID: "g"})
	s.some(agentproto.ProcessRunning, 1)
	s.push(&agentproto.ForceExitServerProcess{ProcessID: list[1].ProcessID, TerminationReason: agentproto.TerminatedUnhealthy})
	s.ended(list[1].ProcessID)

	values := map[string]float64{}
	read := func() {
		status, text := get("/metrics")
		parser := expfmt.NewTextParser(model.LegacyValidation)
		families, err := parser.TextToMetricFamilies(strings.NewReader(text))
		if status != http.StatusOK || err != nil {
			t.Fatalf("%d, %v:\n%s", status, err, text)
		}
		clear(values)
		for name, f := range families {
			for _, m := range f.Metric {
				key := strings.TrimPrefix(name, "muster_agent_")
				for _, label := range m.Label {
					if v := label.GetValue(); label.GetName() != "process" && label.GetName() != "port" && label.GetName() != "version" {
						key += " " + v
					}
				}
				values[key] += m.GetGauge().GetValue() + m.GetCounter().GetValue()
			}
		}
	}
	s.eventually("the metrics", func() bool {
		read()
		return values["processes starting"] == 1 && values["launches failed"] == 1 // the one that replaces the process that was killed; the path that is none
	})
	for name, want := range map[string]float64{
		"info fleet-1 host-1 custom-x": 1, "connected": 1, "connections_total": 1, "draining": 0, "processes running": 1, "processes stopping": 0,
		"processes_wanted": 3, "game_sessions": 1, "process_starts_total": 3, "process_exits_total " + string(agentproto.TerminatedUnhealthy): 1,
		"process_exits_total " + string(agentproto.Crashed): 0, "ports": 1000, "ports_used": 2, "build_fetching": 0,
	} {
		if got, ok := values[name]; !ok || got != want {
			t.Errorf("%s is %s; want %v\n%v", name, strconv.FormatFloat(got, 'g', -1, 64), want, values)
		}
	}
	for _, name := range []string{"process_start_failures_total", "host_memory_bytes", "memory_bytes", "process_memory_bytes game/server"} {
		if values[name] <= 0 {
			t.Errorf("%s is %v", name, values[name])
		}
	}
	for _, path := range []string{"/", "/metrics/x"} {
		if status, _ := get(path); status != http.StatusNotFound {
			t.Errorf("%s: %d", path, status)
		}
	}
	s.cut()
	s.eventually("a second connection", func() bool { read(); return values["connections_total"] == 2 && values["connected"] == 1 })
}
