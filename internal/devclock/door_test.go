package devclock

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

type hand struct {
	now   time.Time
	links time.Duration
	fail  error
}

func (h *hand) Now() time.Time { return h.now }

func (h *hand) Advance(_ context.Context, d time.Duration) error {
	if h.fail == nil {
		h.now = h.now.Add(d)
	}
	return h.fail
}

func (h *hand) AdvanceLinks(_ context.Context, d time.Duration) error { h.links += d; return h.fail }

func TestDoor(t *testing.T) {
	clock := &hand{now: time.Date(2030, 1, 2, 3, 4, 5, 6_000_000, time.UTC)}
	door := NewDoor(clock, slog.New(slog.DiscardHandler))
	ask := func(method, path, body string, header ...string) *httptest.ResponseRecorder {
		t.Helper()
		r := httptest.NewRequest(method, path, strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		for i := 0; i+1 < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		w := httptest.NewRecorder()
		door.ServeHTTP(w, r)
		return w
	}
	const advance = Prefix + "/advance"
	for _, c := range []struct {
		method, path, body string
		header             []string
		status             int
		want               string
	}{
		{"GET", Prefix, "", nil, 200, `{"now":"2030-01-02T03:04:05.006Z","unixMilliseconds":1893553445006}`},
		{"POST", advance, `{"seconds":60}`, nil, 200, `"2030-01-02T03:05:05.006Z"`},
		{"POST", advance, `{"seconds":0.0005,"links":false}`, []string{"Content-Type", "application/json; charset=utf-8"}, 200, `05.007Z"`},
		{"POST", advance, `{"seconds":130,"links":true}`, nil, 200, `05.007Z"`},
		{"POST", advance, `{"seconds":0}`, nil, 200, `05.007Z"`},
		{"POST", advance, ``, nil, 400, "body: want"},
		{"POST", advance, `{}`, nil, 400, "seconds: required"},
		{"POST", advance, `{"seconds":-1}`, nil, 400, "seconds: -1; want 0 to"},
		{"POST", advance, `{"seconds":86401,"links":true}`, nil, 400, "seconds: 86401; want 0 to 86400"},
		{"POST", advance, `{"seconds":1e300}`, nil, 400, "seconds: 1e+300; want 0 to"},
		{"POST", advance, `{"seconds":1e999}`, nil, 400, "body: want"},
		{"POST", advance, `{"seconds":"60"}`, nil, 400, "body: want"},
		{"POST", advance, `{"minutes":1}`, nil, 400, `unknown field \"minutes\"`},
		{"POST", advance, `{"seconds":1}{}`, nil, 400, "nothing after"},
		{"POST", advance, `{"seconds":1` + strings.Repeat(" ", bodyMax) + `}`, nil, 400, "too large"},
		{"POST", advance, `{"seconds":1}`, []string{"Content-Type", ""}, 400, `want application/json`},
		{"POST", advance, `{"seconds":1}`, []string{"Content-Type", "text/plain"}, 400, `Content-Type \"text/plain\": want application/json`},
		{"GET", advance, "", nil, 405, ""},
		{"GET", Prefix + "/other", "", nil, 404, ""},
	} {
		w := ask(c.method, c.path, c.body, c.header...)
		if w.Code != c.status || !strings.Contains(w.Body.String(), c.want) {
			t.Errorf("%s %s %.60s: got %d %s, want %d with %s", c.method, c.path, c.body, w.Code, w.Body, c.status, c.want)
		}
	}
	if clock.links != 130*time.Second {
		t.Errorf("the connections' clock was moved by %s, want 2m10s", clock.links)
	}
	clock.fail = errors.New("the engine has stopped")
	if w := ask("POST", advance, `{"seconds":1}`); w.Code != http.StatusInternalServerError || !strings.Contains(w.Body.String(), "stopped") {
		t.Errorf("got %d %s", w.Code, w.Body)
	}
}
