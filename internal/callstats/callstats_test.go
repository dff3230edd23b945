package callstats

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

func TestCallsAreCounted(t *testing.T) {
	c := New()
	api := c.Door("api", "Create", "Never")
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			api.Done("Create", OK, time.Now())
			api.Done("Create", Throttled, time.Now())
			api.Done("whatever a stranger says", Refused, time.Now())
		})
	}
	all.Wait()
	scripts := c.Door("scripts", "find")
	for _, status := range []int{200, 404, 429, 503} {
		scripts.Handler("find", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) })(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/", nil))
	}
	scripts.Handler("find", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok")) })(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/", nil))
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(c)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			name := ""
			for _, l := range m.GetLabel() {
				name += " " + l.GetValue()
			}
			if f.GetName() == "muster_calls_total" {
				got[name[1:]] = m.GetCounter().GetValue()
			} else {
				got[name[1:]] = float64(m.GetHistogram().GetSampleCount())
			}
		}
	}
	want := map[string]float64{
		"api Create ok": 8, "api Create throttled": 8, "api Create refused": 0, "api Create failed": 0, "api Create": 16,
		"api unknown ok": 0, "api unknown throttled": 0, "api unknown refused": 8, "api unknown failed": 0, "api unknown": 8,
		"scripts find ok": 2, "scripts find throttled": 1, "scripts find refused": 1, "scripts find failed": 1, "scripts find": 5,
	}
	if !maps.Equal(got, want) {
		t.Errorf("got %v\nwant %v", got, want)
	}
	var none *Calls
	none.Door("api", "Create").Done("Create", OK, time.Now()) // counts nothing, and does not panic
}

func BenchmarkDone(b *testing.B) {
	d := New().Door("api", "CreatePlayerSession")
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			d.Done("CreatePlayerSession", OK, time.Now())
		}
	})
}
