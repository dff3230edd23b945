package export

import (
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	collectorlogs "go.opentelemetry.io/proto/otlp/collector/logs/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	"google.golang.org/protobuf/proto"

	"github.com/musterhq/muster/internal/tracing/otlp"
	"github.com/musterhq/muster/internal/waittest"
)

// Whatever the collector answers, it eventually has each entry, in order. An entry that it rejects permanently is counted.
func TestCollector(t *testing.T) {
	t.Parallel()
	b := newBook(300)
	r := &strict{t: t} // notes the numbers
	var calls atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if q.Header.Get("Authorization") != "Bearer a=b" || q.Header.Get("Content-Encoding") != "gzip" || q.URL.Path != "/v1/logs" {
			t.Errorf("%s %v", q.URL, q.Header)
		}
		unzipped, err := gzip.NewReader(q.Body)
		if err != nil {
			t.Error(err)
			return
		}
		body, _ := io.ReadAll(unzipped)
		var x collectorlogs.ExportLogsServiceRequest
		if err := proto.Unmarshal(body, &x); err != nil {
			t.Error(err)
		}
		for _, record := range x.ResourceLogs[0].ScopeLogs[0].LogRecords {
			var no uint64
			for _, a := range record.Attributes {
				if a.Key == "muster.audit.no" {
					no = uint64(a.Value.GetIntValue())
				}
			}
			if record.EventName != "muster.audit" || !strings.Contains(record.Body.GetStringValue(), fmt.Sprintf(`{"no":%d,`, no)) || record.TimeUnixNano != uint64(b.start.UnixNano()) {
				t.Errorf("%v", record)
			}
			r.mu.Lock()
			r.numbers = append(r.numbers, no)
			r.mu.Unlock()
		}
		if !slices.ContainsFunc(x.ResourceLogs[0].Resource.Attributes, func(a *common.KeyValue) bool { return a.Key == "service.instance.id" }) {
			t.Errorf("%v", x.ResourceLogs[0].Resource)
		}
		switch calls.Add(1) {
		case 1:
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusServiceUnavailable)
		case 2:
			panic(http.ErrAbortHandler)
		case 3:
			w.Write([]byte("what is that"))
		case 4:
			answer, _ := proto.Marshal(&collectorlogs.ExportLogsServiceResponse{PartialSuccess: &collectorlogs.ExportLogsPartialSuccess{RejectedLogRecords: 2, ErrorMessage: "too old"}})
			w.Header().Set("Content-Type", "application/x-protobuf")
			w.Write(answer)
		}
	}))
	defer server.Close()
	env := map[string]string{"OTEL_EXPORTER_OTLP_LOGS_HEADERS": "Authorization=Bearer%20a=b", "OTEL_EXPORTER_OTLP_COMPRESSION": "gzip"}
	logs, err := otlp.OpenLogs(t.Context(), otlp.Config{Endpoint: server.URL, Getenv: func(name string) string { return env[name] }})
	if err != nil {
		t.Fatal(err)
	}
	x, log := begin(t, b, OTLP, func(c *Config) { c.Logs = logs })
	waittest.Until(t, "the position is recorded", func() bool { return b.position() == 300 })
	r.check(300, 1500)
	if s := x.workers[0].status(); s.rejected != 2 || s.failures != 2 || s.sent != 300 || !strings.Contains(log.String(), "permanently rejects entries") {
		t.Errorf("%+v\n%s", s, log)
	}
	if x.workers[0].name != "otlp+"+server.URL {
		t.Error(x.workers[0].name)
	}
}
