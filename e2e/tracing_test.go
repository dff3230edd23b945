package e2e

import (
	"compress/gzip"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/gamelift"
	"github.com/aws/aws-sdk-go-v2/service/gamelift/types"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	collectorlogs "go.opentelemetry.io/proto/otlp/collector/logs/v1"
	collectormetrics "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	collectortrace "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	"google.golang.org/protobuf/proto"

	"github.com/musterhq/muster/internal/porttest"
	"github.com/musterhq/muster/internal/waittest"
)

// collector receives a service's exports.
type collector struct {
	url string

	mu      sync.Mutex
	spans   []tracedSpan
	metrics map[string]bool
	logs    []string    // bodies of records
	headers http.Header // of the last export
}

type tracedSpan struct {
	name, trace, id, parent string
	service, instance       string
	attributes              map[string]string
}

func startCollector(t *testing.T) *collector {
	t.Helper()
	c := &collector{metrics: map[string]bool{}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body := io.Reader(r.Body)
		if r.Header.Get("Content-Encoding") == "gzip" {
			unzipped, err := gzip.NewReader(body)
			if err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest)
				return
			}
			body = unzipped
		}
		text, err := io.ReadAll(body)
		if err != nil {
			return // a closing exporter repeats its last request
		}
		if err := c.take(r, text); err != nil {
			t.Errorf("%s: %v", r.URL.Path, err)
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/x-protobuf")
	}))
	t.Cleanup(server.Close)
	c.url = server.URL
	return c
}

func (c *collector) take(r *http.Request, body []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.headers = r.Header
	if r.URL.Path == "/v1/metrics" {
		var m collectormetrics.ExportMetricsServiceRequest
		if err := proto.Unmarshal(body, &m); err != nil {
			return err
		}
		for _, resource := range m.ResourceMetrics {
			for _, scope := range resource.ScopeMetrics {
				for _, metric := range scope.Metrics {
					c.metrics[metric.Name] = true
				}
			}
		}
		return nil
	}
	if r.URL.Path == "/v1/logs" {
		var m collectorlogs.ExportLogsServiceRequest
		if err := proto.Unmarshal(body, &m); err != nil {
			return err
		}
		for _, record := range m.ResourceLogs[0].ScopeLogs[0].LogRecords {
			c.logs = append(c.logs, record.Body.GetStringValue())
		}
		return nil
	}
	var m collectortrace.ExportTraceServiceRequest
	if err := proto.Unmarshal(body, &m); err != nil {
		return err
	}
	for _, resource := range m.ResourceSpans {
		of := texts(resource.Resource.Attributes)
		for _, scope := range resource.ScopeSpans {
			for _, s := range scope.Spans {
				c.spans = append(c.spans, tracedSpan{
					s.Name, hex.EncodeToString(s.TraceId), hex.EncodeToString(s.SpanId), hex.EncodeToString(s.ParentSpanId),
					of["service.name"], of["service.instance.id"], texts(s.Attributes),
				})
			}
		}
	}
	return nil
}

func texts(all []*common.KeyValue) map[string]string {
	m := map[string]string{}
	for _, x := range all {
		m[x.Key] = x.Value.GetStringValue()
	}
	return m
}

func (c *collector) has(metric string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.metrics[metric]
}

// all returns the spans of a trace.
func (c *collector) all(trace string) []tracedSpan {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(c.spans), func(s tracedSpan) bool { return s.trace != trace })
}

// tree writes a span with all below it, a line for each: the node that made it, its name, and the command that it commits. The children of a span are in the
// order of their names.
func tree(spans []tracedSpan, nodes map[string]string, top tracedSpan) string {
	var b strings.Builder
	var write func(s tracedSpan, depth int)
	write = func(s tracedSpan, depth int) {
		b.WriteString(strings.Repeat("  ", depth))
		if node := nodes[s.instance]; node != "" {
			b.WriteString(node + ": ")
		}
		b.WriteString(strings.TrimSpace(s.name+" "+s.attributes["muster.command"]) + "\n")
		var below []tracedSpan
		for _, x := range spans {
			if x.parent == s.id {
				below = append(below, x)
			}
		}
		slices.SortFunc(below, func(x, y tracedSpan) int { return strings.Compare(x.name, y.name) })
		for _, x := range below {
			write(x, depth+1)
		}
	}
	write(top, 0)
	return b.String()
}

const (
	traceOfTest  = "0af7651916cd43dd8448eb211c80319c"
	parentOfTest = "b7ad6b7169203331"
)

// withTraceparent returns a client whose calls belong to the trace of the test.
func withTraceparent(c *gamelift.Client) *gamelift.Client {
	return gamelift.New(c.Options(), func(o *gamelift.Options) {
		o.APIOptions = append(slices.Clone(o.APIOptions), smithyhttp.AddHeaderValue("traceparent", "00-"+traceOfTest+"-"+parentOfTest+"-01"))
	})
}

// untilTraced waits until the trace of the test has a call of an operation with this tree, and returns the spans of the trace.
func (c *collector) untilTraced(t *testing.T, operation string, nodes map[string]string, want string) []tracedSpan {
	t.Helper()
	var spans []tracedSpan
	got := ""
	defer func() {
		if t.Failed() {
			t.Logf("got:\n%s\nwant:\n%s", got, want)
		}
	}()
	waittest.Until(t, "the trace of "+operation, func() bool {
		spans = c.all(traceOfTest)
		for _, s := range spans {
			if s.name == operation && s.parent == parentOfTest && s.attributes["muster.outcome"] == "ok" {
				got = tree(spans, nodes, s)
			}
		}
		return got == want
	})
	return spans
}

// A game session that the AWS SDK creates with a traceparent, on a game server with the real server SDK, is one trace up to the game server's answer. What is exported besides is what
// /metrics has.
func TestTraceOfAGameSession(t *testing.T) {
	t.Parallel()
	c := startCollector(t)
	s := newService(t, "--otlp-endpoint", c.url)
	s.wrap = []string{"env", "OTEL_TRACES_SAMPLER=parentbased_always_off", "OTEL_BSP_SCHEDULE_DELAY=100", "OTEL_METRIC_EXPORT_INTERVAL=200",
		"OTEL_EXPORTER_OTLP_HEADERS=x-collector-key=of-the-test", "OTEL_SERVICE_NAME=arena-muster"}
	s.start()
	p := s.prepare()
	plain := s.client
	s.client = withTraceparent(plain)
	_, id := p.hosting(sdkOptions{}, 2)
	s.client = plain
	spans := c.untilTraced(t, "CreateGameSession", nil, `CreateGameSession
  commit CreateGameSession
    append
    push CreateGameSession
      ActivateGameSession
        commit ActivateGameSession
          append
          queue
      commit PromptGameSession
        append
        queue
    queue
`)
	for _, x := range spans {
		if x.service != "arena-muster" {
			t.Errorf("span %s is of service %q", x.name, x.service)
		}
		if strings.HasPrefix(x.name, "push") && !strings.HasSuffix(id, x.attributes["muster.game_session.id"]) {
			t.Errorf("push of %q, want that of %q", x.attributes["muster.game_session.id"], id)
		}
	}
	for _, name := range []string{"muster_calls", "gamelift_active_game_sessions", "muster_telemetry_spans_waiting"} {
		waittest.Until(t, "metric "+name, func() bool { return c.has(name) || c.has(name+"_total") })
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if got := c.headers.Get("X-Collector-Key"); got != "of-the-test" {
		t.Errorf("the header of the collector is %q", got)
	}
	for _, x := range c.spans {
		if x.trace != traceOfTest {
			t.Errorf("span %s of another trace, although only callers decide", x.name)
		}
	}
}

// A placement that waits for a game server continues its trace when one connects, and its webhook carries the trace.
func TestTraceOfAPlacement(t *testing.T) {
	t.Parallel()
	c := startCollector(t)
	parents := make(chan string, 64)
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		parents <- r.Header.Get("Traceparent")
	}))
	t.Cleanup(receiver.Close)
	s := newService(t, "--notify-events", receiver.URL)
	s.wrap = []string{"env", "OTEL_EXPORTER_OTLP_ENDPOINT=" + c.url, "OTEL_TRACES_SAMPLER=parentbased_always_off", "OTEL_BSP_SCHEDULE_DELAY=100"}
	s.start()
	p := s.prepare()
	p.queue("queue")
	_, err := withTraceparent(s.client).StartGameSessionPlacement(t.Context(), &gamelift.StartGameSessionPlacementInput{
		PlacementId: aws.String("placement"), GameSessionQueueName: aws.String("queue"), MaximumPlayerSessionCount: aws.Int32(2),
	})
	must(t, err)
	server := p.ready(sdkOptions{})
	server.untilEvent("start", 1)
	server.must("activate")
	waittest.Until(t, "the placement to be fulfilled", func() bool { return s.placement("placement").Status == types.GameSessionPlacementStateFulfilled })
	spans := c.untilTraced(t, "StartGameSessionPlacement", nil, `StartGameSessionPlacement
  commit StartPlacement
    append
    notify
    push CreateGameSession
      ActivateGameSession
        commit ActivateGameSession
          append
          queue
      commit PromptGameSession
        append
        queue
    queue
`)
	at := slices.IndexFunc(spans, func(x tracedSpan) bool { return x.name == "notify" })
	if got, want := <-parents, "00-"+traceOfTest+"-"+spans[at].id+"-01"; got != want {
		t.Errorf("the webhook has traceparent %q, want %q", got, want)
	}
}

// A match continues the trace of its ticket, up to the game server's answer, and a player session continues the trace of the call that created it, up to the server's requests.
func TestTraceOfAMatch(t *testing.T) {
	t.Parallel()
	c := startCollector(t)
	s := newService(t)
	s.wrap = []string{"env", "OTEL_EXPORTER_OTLP_ENDPOINT=" + c.url, "OTEL_TRACES_SAMPLER=parentbased_always_off", "OTEL_BSP_SCHEDULE_DELAY=100"}
	s.start()
	p := s.prepare()
	p.queue("arena")
	_, err := s.client.CreateMatchmakingRuleSet(t.Context(), &gamelift.CreateMatchmakingRuleSetInput{
		Name: aws.String("solo"), RuleSetBody: aws.String(`{"ruleLanguageVersion":"1.0","teams":[{"name":"red","minPlayers":1,"maxPlayers":1}]}`),
	})
	must(t, err)
	_, err = s.client.CreateMatchmakingConfiguration(t.Context(), &gamelift.CreateMatchmakingConfigurationInput{
		Name: aws.String("casual"), RuleSetName: aws.String("solo"), AcceptanceRequired: aws.Bool(false), RequestTimeoutSeconds: aws.Int32(600),
		GameSessionQueueArns: []string{"arn:aws:gamelift:us-east-1::gamesessionqueue/arena"},
	})
	must(t, err)
	server := p.ready(sdkOptions{})
	_, err = withTraceparent(s.client).StartMatchmaking(t.Context(), &gamelift.StartMatchmakingInput{
		ConfigurationName: aws.String("casual"), TicketId: aws.String("ticket"), Players: []types.Player{{PlayerId: aws.String("ann")}},
	})
	must(t, err)
	server.untilEvent("start", 1)
	server.must("activate")
	c.untilTraced(t, "StartMatchmaking", nil, `StartMatchmaking
  commit StartMatchmaking
    append
    match
      push CreateGameSession
        ActivateGameSession
          commit ActivateGameSession
            append
            queue
        commit PromptGameSession
          append
          queue
    queue
`)
}

// In a cluster the call arrives at one node, another one leads, and the game server is connected to the third.
func TestTraceThroughACluster(t *testing.T) {
	t.Parallel()
	c := startCollector(t)
	telemetry := []string{"env", "OTEL_EXPORTER_OTLP_ENDPOINT=" + c.url, "OTEL_METRICS_EXPORTER=none", "OTEL_TRACES_SAMPLER=parentbased_always_off", "OTEL_BSP_SCHEDULE_DELAY=100"}
	nodes := startNodes(t, 3, func(cluster ...string) *service {
		n := newService(t, cluster...)
		n.wrap = telemetry
		return n
	})
	leader, door, host := nodes[0], nodes[1], nodes[2]
	names := map[string]string{}
	for _, m := range clusterStatus(t, leader).Members {
		switch nodeOf(t, nodes, m.ID) {
		case leader:
			names[m.ID] = "leader"
		case door:
			names[m.ID] = "door"
		case host:
			names[m.ID] = "host"
		}
	}
	p := door.prepare()
	server := p.dial("process", host.address)
	door.client = withTraceparent(door.client)
	server.host(t, 2)
	c.untilTraced(t, "CreateGameSession", names, `door: CreateGameSession
  door: commit CreateGameSession
    leader: commit CreateGameSession
      leader: append
      host: push CreateGameSession
        host: ActivateGameSession
          host: commit ActivateGameSession
            leader: commit ActivateGameSession
              leader: append
              leader: queue
        host: commit PromptGameSession
          leader: commit PromptGameSession
            leader: append
            leader: queue
      leader: queue
`)
}

// If there is no collector at the address, the service works as usual, counts what it cannot export, and stops in time.
func TestCollectorDown(t *testing.T) {
	t.Parallel()
	s := newService(t, "--otlp-endpoint", "http://"+porttest.Free(t))
	s.wrap = []string{"env", "OTEL_BSP_SCHEDULE_DELAY=50", "OTEL_BSP_EXPORT_TIMEOUT=200", "OTEL_METRIC_EXPORT_INTERVAL=100", "OTEL_METRIC_EXPORT_TIMEOUT=100"}
	s.start()
	p := s.prepare()
	p.hosting(sdkOptions{}, 2)
	waittest.Until(t, "dropped spans and failed exports", func() bool {
		e := s.exposition(t)
		dropped, _ := e.value("muster_telemetry_spans_dropped_total", "reason", "export_failed")
		failed, _ := e.value("muster_telemetry_exports_failed_total", "signal", "metrics")
		return dropped > 0 && failed > 0
	})
	s.stop()
}

// A reload sends traces, metrics and the audit log to another collector, to none, and to one again. A refused reload does not change the collector.
func TestReloadMovesTelemetry(t *testing.T) {
	t.Parallel()
	first, second, wrong := startCollector(t), startCollector(t), startCollector(t)
	file := filepath.Join(t.TempDir(), "muster.json")
	to := func(c *collector) string {
		return `{"audit-export": "otlp", "otlp-endpoint": "` + c.url + `"}`
	}
	replaceFile(t, file, to(first))
	s := newService(t, "--dev=false", "--config", file)
	s.wrap = []string{"env", "OTEL_BSP_SCHEDULE_DELAY=20", "OTEL_METRIC_EXPORT_INTERVAL=100"}
	id, secret := s.key("admin")
	s.start()
	api := s.apiWith(id, secret)
	fleets := func(c *collector) int {
		c.mu.Lock()
		defer c.mu.Unlock()
		n := 0
		for _, x := range c.spans {
			if x.name == "ListFleets" {
				n++
			}
		}
		return n
	}
	calls := func(c *collector) {
		t.Helper()
		before := fleets(c)
		_, err := api.ListFleets(t.Context(), &gamelift.ListFleetsInput{})
		must(t, err)
		waittest.Until(t, "the span of the call", func() bool { return fleets(c) == before+1 })
		waittest.Until(t, "metrics", func() bool { return c.has("muster_telemetry_spans_waiting") })
	}
	reload := func(text string) {
		t.Helper()
		replaceFile(t, file, text)
		if out := s.command("reload", "--data", s.data); !strings.Contains(out, "In force now:\n  ") || strings.Contains(out, "restart") {
			t.Errorf("the reload printed %s", out)
		}
	}
	logs := func(c *collector) int {
		c.mu.Lock()
		defer c.mu.Unlock()
		return len(c.logs)
	}
	calls(first)
	reload(to(second))
	calls(second)
	waittest.Until(t, "the entry of the reload in the log of the second collector", func() bool { return logs(second) > 0 })

	replaceFile(t, file, strings.Replace(to(wrong), "{", `{"people": "/no/such/file", `, 1))
	if out, err := s.commandFails("reload", "--data", s.data); err == nil || !strings.Contains(out, "/no/such/file") {
		t.Errorf("a reload with a mistake: %v\n%s", err, out)
	}
	replaceFile(t, file, strings.Replace(to(wrong), "http:", "ftp:", 1))
	if out, err := s.commandFails("reload", "--data", s.data); err == nil || !strings.Contains(out, "otlp-endpoint") {
		t.Errorf("a reload with an endpoint that is none: %v\n%s", err, out)
	}
	calls(second)

	reload(`{}`)
	if page := s.page(id, secret, "/metrics"); strings.Contains(page, "muster_telemetry_") {
		t.Error("/metrics has numbers of a collector, and there is none")
	}
	_, err := api.ListFleets(t.Context(), &gamelift.ListFleetsInput{})
	must(t, err)
	if n, m := fleets(first), fleets(second); n != 1 || m != 2 {
		t.Errorf("%d and %d spans of calls, want 1 and 2", n, m)
	}
	replaceFile(t, file, to(first))
	must(t, s.cmd.Process.Signal(syscall.SIGHUP))
	waittest.Until(t, "the signal to be carried out", func() bool { return strings.Count(s.logs.String(), "settings reloaded") == 3 })
	calls(first)
	if n := len(wrong.spans) + logs(wrong); n != 0 || wrong.has("muster_telemetry_spans_waiting") {
		t.Errorf("a collector of refused settings got %d spans and records", n)
	}
	s.stop()
}
