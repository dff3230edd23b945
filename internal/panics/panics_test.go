package panics_test

import (
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/musterhq/muster/internal/logtest"
	"github.com/musterhq/muster/internal/panics"
)

// count returns the value of muster_panics_total for a door.
func count(t *testing.T, g *panics.Guard, door string) float64 {
	t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(g.Collector())
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			if m.GetLabel()[0].GetValue() == door && family.GetType() == dto.MetricType_COUNTER {
				return m.GetCounter().GetValue()
			}
		}
	}
	return 0
}

func goesWrong(s []int) int { return s[len(s)] }

func TestConfine(t *testing.T) {
	var log logtest.Log
	g := panics.New(slog.New(slog.NewTextHandler(&log, nil)))
	ended := 0
	serve := func(f func()) {
		defer g.Confine("link", func() { ended++ })
		f()
	}
	serve(func() {})
	if ended != 0 || count(t, g, "link") != 0 {
		t.Errorf("without a panic: ended %d times, counted %v", ended, count(t, g, "link"))
	}
	serve(func() { goesWrong(nil) })
	if ended != 1 || count(t, g, "link") != 1 {
		t.Errorf("after a panic: ended %d times, counted %v, want 1 and 1", ended, count(t, g, "link"))
	}
	if text := log.String(); !strings.Contains(text, "index out of range") || !strings.Contains(text, "goesWrong") {
		t.Errorf("the log shows no cause and place:\n%s", text)
	}
	func() {
		defer g.Confine("link", func() { goesWrong(nil) }) // a panic while the connection is ended
		goesWrong(nil)
	}()
	if got := count(t, g, "link"); got != 3 {
		t.Errorf("counted %v, want 3", got)
	}
}

func TestCatch(t *testing.T) {
	g := panics.New(slog.New(slog.DiscardHandler))
	call := func() (err error) {
		defer g.Catch("webhook", &err)
		goesWrong(nil)
		return nil
	}
	if e, ok := errors.AsType[*panics.Error](call()); !ok || e.Value == nil {
		t.Errorf("got %v, want a *panics.Error", e)
	}
}

func TestLogIsRateLimited(t *testing.T) {
	var log logtest.Log
	g := panics.New(slog.New(slog.NewTextHandler(&log, nil)))
	for range 1000 {
		func() {
			defer g.Confine("link", nil)
			goesWrong(nil)
		}()
	}
	if n := strings.Count(log.String(), "level=ERROR"); n != 10 {
		t.Errorf("1000 panics at once wrote %d lines, want 10", n)
	}
	if got := count(t, g, "link"); got != 1000 {
		t.Errorf("counted %v, want 1000", got)
	}
}

func TestNilGuardConfinesNothing(t *testing.T) {
	var g *panics.Guard
	defer func() {
		if recover() == nil {
			t.Error("a nil Guard stopped a panic")
		}
	}()
	defer g.Confine("link", nil)
	goesWrong(nil)
}

// A handler that panics ends its own connection; the next request is served.
func TestHandler(t *testing.T) {
	g := panics.New(slog.New(slog.DiscardHandler))
	server := httptest.NewServer(g.Handler("api", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/panic":
			goesWrong(nil)
		case "/abort":
			panic(http.ErrAbortHandler)
		}
	})))
	defer server.Close()
	for _, path := range []string{"/panic", "/abort"} {
		if resp, err := http.Get(server.URL + path); err == nil {
			resp.Body.Close()
			t.Errorf("%s: got status %d, want a closed connection", path, resp.StatusCode)
		} else if !errors.Is(err, io.EOF) {
			t.Errorf("%s: got %v, want EOF", path, err)
		}
	}
	resp, err := http.Get(server.URL + "/")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if got := count(t, g, "api"); got != 1 {
		t.Errorf("counted %v, want 1: an aborted handler is no panic", got)
	}
}
