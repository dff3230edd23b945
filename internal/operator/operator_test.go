package operator

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/attention"
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/placement"
	"github.com/musterhq/muster/internal/domain/session"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/engine/enginetest"
	"github.com/musterhq/muster/internal/identity"
)

// office is a cell with a fleet in two locations and a queue over it, and the door in front.
type office struct {
	*testing.T
	engine *engine.Engine
	door   *Door
	offset atomic.Int64
	links  uint64
}

func newOffice(t *testing.T) *office {
	o := &office{T: t}
	o.engine = enginetest.Open(t, engine.Config{
		Cell: cell.DefaultConfig(), EndedLinger: time.Millisecond,
		Now: func() time.Time { return time.Now().Add(time.Duration(o.offset.Load())) },
	})
	o.door = NewDoor(Config{Engine: o.engine, Attention: attention.New(attention.Config{Engine: o.engine}), Log: slog.New(slog.DiscardHandler), Authenticate: func(r *http.Request, _ []byte) (by identity.Principal, status int, refused error) {
		if r.Header.Get("Authorization") != "" {
			return by, http.StatusForbidden, errors.New("not you")
		}
		return identity.Principal{ID: "MUSTX", Role: identity.Admin}, http.StatusOK, nil
	}})
	for _, l := range []string{"custom-a", "custom-b"} {
		o.do(&hosting.CreateLocation{Name: l, Region: "us-east-1"})
	}
	o.do(&hosting.CreateFleet{Fleet: fleet.Fleet{ID: "fleet-1", Region: "us-east-1", Name: "f"}, Locations: []string{"custom-a", "custom-b"}})
	o.do(&hosting.RegisterCompute{Compute: fleet.Compute{FleetID: "fleet-1", Name: "rack/host", Location: "custom-a", IPAddress: "127.0.0.1"}})
	o.do(&hosting.CreateQueue{Queue: placement.Queue{
		Name: "q", Region: "us-east-1", Timeout: time.Minute, Destinations: []string{"arn:aws:gamelift:us-east-1::fleet/fleet-1"},
		LatencyPolicies: []placement.LatencyPolicy{{Cap: 50, Duration: 20 * time.Second}},
	}})
	return o
}

func (o *office) do(cmd kernel.Command) {
	o.Helper()
	if err := o.engine.Do(o.Context(), cmd); err != nil {
		o.Fatalf("%T: %v", cmd, err)
	}
}

func (o *office) connect(process string) fleet.Key {
	o.Helper()
	o.links++
	key := fleet.Key{Fleet: "fleet-1", Compute: "rack/host", Process: process}
	o.do(&hosting.ConnectProcess{Process: key, Link: o.links, SDK: "Go 5.5.0"})
	return key
}

func (o *office) ready(process string) fleet.Key {
	o.Helper()
	key := o.connect(process)
	o.do(&hosting.ActivateProcess{Process: key, Link: o.links, Port: 7777, Request: o.links})
	o.do(&hosting.ReportHealth{Process: key, Healthy: true})
	return key
}

func (o *office) start(id string) {
	o.Helper()
	o.do(&hosting.StartPlacement{Placement: placementOf(id)})
}

func placementOf(id string) placement.Placement {
	return placement.Placement{
		ID: id, Queue: "q", PlayersMax: 4, Players: []placement.Player{{Player: "ann", ID: domain.PlayerSessionID{1}}},
		Latencies: []placement.Latency{{Player: "ann", Location: "custom-a", Milliseconds: 10}, {Player: "ann", Location: "custom-b", Milliseconds: 99}},
	}
}

func (o *office) ask(path string) (int, string) {
	w := httptest.NewRecorder()
	o.door.ServeHTTP(w, httptest.NewRequest(http.MethodGet, Prefix+path, nil))
	return w.Code, w.Body.String()
}

func (o *office) explain(path string) Explanation {
	o.Helper()
	status, body := o.ask("explain/" + path)
	var x Explanation
	if err := json.Unmarshal([]byte(body), &x); status != http.StatusOK || err != nil {
		o.Fatalf("%s: got %d %s, %v", path, status, body, err)
	}
	return x
}

func (o *office) later(d time.Duration) {
	o.offset.Add(int64(d))
	o.engine.Poke()
}

// want checks the status, a part of the reason, and the timeline.
func (o *office) want(x Explanation, status, why string, timeline ...string) {
	o.Helper()
	var what []string
	for _, m := range x.Timeline {
		what = append(what, m.What)
	}
	if x.Status != status || !strings.Contains(x.Why, why) || !slices.Equal(what, timeline) {
		o.Errorf("%s %s:\n got %s, %q, %v\nwant %s, %q, %v", x.Kind, x.ID, x.Status, x.Why, what, status, why, timeline)
	}
}

func (x Explanation) known(name string) string {
	for _, f := range x.Facts {
		if f.Name == name {
			return f.Value
		}
	}
	return ""
}

func TestWhyAPlacementWaits(t *testing.T) {
	o := newOffice(t)
	o.start("p1")
	x := o.explain("placement/p1")
	o.want(x, "PENDING", "1 over the latency cap, 1 without a free server process", "STARTED")
	if len(x.Places) != 2 || x.Places[0].Outcome != "NO_FREE_PROCESS" || x.Places[1].Location != "custom-b" || !strings.Contains(x.Places[1].Detail, "99 ms") {
		t.Errorf("got %+v", x.Places)
	}
	if !strings.HasPrefix(x.known("latency cap"), "50 ms until ") {
		t.Errorf("got %+v", x.Facts)
	}
	o.later(21 * time.Second)
	if x := o.explain("placement/p1"); x.known("latency cap") != "none now" || x.Places[1].Outcome != "NO_FREE_PROCESS" {
		t.Errorf("after the cap: got %+v", x)
	}
}

func TestHowAPlacementWent(t *testing.T) {
	o := newOffice(t)
	bad := o.ready("bad")
	o.start("p1")
	o.want(o.explain("placement/p1"), "PENDING", "waits for process bad on compute rack/host to activate",
		"STARTED", "PROCESS_RESERVED", "GAME_SESSION_CREATED")
	o.do(&hosting.EndProcess{Process: bad, Request: 99})
	o.later(time.Second)
	good := o.ready("good")
	x := o.explain("placement/p1")
	o.do(&hosting.PromptGameSession{Process: good, Game: session.ID(x.known("game session"))})
	o.do(&hosting.ActivateGameSession{Process: good, Game: session.ID(x.known("game session"))})
	timeline := []string{"STARTED", "ACTIVATION_FAILED", "PROCESS_RESERVED", "GAME_SESSION_CREATED", "GAME_SESSION_PUSHED", "GAME_SESSION_ACTIVATED", "FULFILLED"}
	o.want(o.explain("placement/p1"), "FULFILLED", "at attempt 2", timeline...)
	o.later(time.Minute) // it lies in the archive now
	o.eventually("the placement leaves memory", func(v *cell.View) bool { _, live := v.Placement("p1"); return !live })
	o.want(o.explain("placement/p1"), "FULFILLED", "at attempt 2", timeline...)
}

func TestWhyAPlacementEnded(t *testing.T) {
	o := newOffice(t)
	o.start("late")
	o.later(time.Minute + time.Second)
	o.eventually("the placement times out", func(v *cell.View) bool {
		p, live := v.Placement("late")
		return !live || p.Status == placement.TimedOut
	})
	x := o.explain("placement/late")
	o.want(x, "TIMED_OUT", "2 without a free server process", "STARTED", "TIMED_OUT")
	if len(x.Places) != 2 {
		t.Errorf("got %+v", x.Places)
	}
	o.start("stopped")
	o.do(&hosting.StopPlacement{ID: "stopped"})
	o.want(o.explain("placement/stopped"), "CANCELLED", "StopGameSessionPlacement", "STARTED", "CANCELLED")

	key := o.ready("s1")
	o.start("failed")
	o.do(&hosting.TerminateGameSession{ID: session.ID(o.explain("placement/failed").known("game session"))})
	if x := o.explain("placement/failed"); x.Status != "FAILED" || !strings.Contains(x.Why, "ended before it was active") {
		t.Errorf("got %+v", x)
	}
	o.do(&hosting.EndProcess{Process: key, Request: 99})
	o.ready("s2")
	o.start("orphan")
	o.do(&hosting.DeleteQueue{Name: "q"})
	if x := o.explain("placement/orphan"); x.Status != "FAILED" || x.Why != "Its queue was deleted." {
		t.Errorf("got %+v", x)
	}
}

func TestLifeOfAGameSession(t *testing.T) {
	o := newOffice(t)
	key := o.ready("s1")
	cmd := &hosting.CreateGameSession{Fleet: "fleet-1", Location: "custom-a", Name: "gsess-1", PlayersMax: 4}
	o.do(cmd)
	arn := "game-session/arn:aws:gamelift:us-east-1::gamesession/fleet-1/custom-a/gsess-1"
	o.want(o.explain(arn), "ACTIVATING", "does not have it yet", "GAME_SESSION_CREATED")
	o.do(&hosting.PromptGameSession{Process: key, Game: cmd.ID()})
	o.do(&hosting.ActivateGameSession{Process: key, Game: cmd.ID()})
	o.do(&hosting.ReservePlayers{Game: cmd.ID(), Players: []hosting.NewPlayer{{ID: domain.PlayerSessionID{1}, Player: "ann"}}})
	o.later(time.Second)
	o.do(&hosting.AcceptPlayer{Process: key, Game: cmd.ID(), Player: domain.PlayerSessionID{1}, Request: 7})
	o.do(&hosting.LoseLink{Process: key, Link: o.links})
	o.later(2 * time.Minute)
	o.eventually("the process is given up", func(v *cell.View) bool { p, _ := v.Process(key); return p.State == fleet.Ended })
	life := []string{
		"GAME_SESSION_CREATED", "GAME_SESSION_PUSHED", "GAME_SESSION_ACTIVATED", "PLAYER_RESERVED", "PLAYER_CONNECTED",
		"GAME_SESSION_ENDED", "PLAYER_COMPLETED",
	}
	o.later(time.Minute)
	o.eventually("the game session leaves memory", func(v *cell.View) bool { _, live := v.GameSession(cmd.ID()); return !live })
	x := o.explain("game-session/fleet-1/custom-a/gsess-1")
	o.want(x, "TERMINATED", "lost its connection and did not come back", life...)
	if x.known("process") != key.String() {
		t.Errorf("got %+v", x.Facts)
	}

	process := []string{
		"CONNECTED", "READY", "HEALTHY", "GAME_SESSION_CREATED", "GAME_SESSION_PUSHED", "GAME_SESSION_ACTIVATED",
		"CONNECTION_LOST", "GAME_SESSION_ENDED", "ENDED", "SERVER_PROCESS_CRASHED",
	}
	x = o.explain("process/" + key.String())
	o.want(x, "ENDED", "its connection was lost", process...)
	o.later(time.Hour)
	o.eventually("the process is forgotten", func(v *cell.View) bool { _, known := v.Process(key); return !known })
	o.want(o.explain("process/"+key.String()), "ENDED", "event log of its fleet", "SERVER_PROCESS_CRASHED")
}

func TestWhyAProcessGetsNoGameSession(t *testing.T) {
	o := newOffice(t)
	key := o.connect("s1")
	look := func(why string) {
		t.Helper()
		if x := o.explain("process/s1"); !strings.Contains(x.Why, why) || x.ID != key.String() {
			t.Errorf("got %s: %s, want %s", x.ID, x.Why, why)
		}
	}
	look("not called ProcessReady")
	o.do(&hosting.ActivateProcess{Process: key, Link: o.links, Port: 7777, Request: 1})
	look("before its first good health report")
	o.do(&hosting.ReportHealth{Process: key, Healthy: true})
	look("free for a game session")
	o.do(&hosting.ReportHealth{Process: key, Healthy: false, LastHealthy: domain.TimeOf(o.engine.Now())})
	look("unhealthy")
	o.do(&hosting.LoseLink{Process: key, Link: o.links})
	look("connection is lost. Its SDK, Go 5.5.0, will try again at about ")
	look("It counts as crashed 1m40s after the loss (--link-grace)")
	o.connect("s1")
	o.do(&hosting.ReportHealth{Process: key, Healthy: true})
	o.start("p1")
	look("hosts game session fleet-1/custom-a/p1, which is ACTIVATING")
	o.do(&hosting.EndProcess{Process: key, Request: 99})
	look("it reported its own end")
}

// An ended process counts as not connected, even if its socket is still open. Reuses of a process id are counted.
func TestLivesOfAProcess(t *testing.T) {
	o := newOffice(t)
	key := o.ready("s1")
	if x := o.explain("process/s1"); x.known("connection") != "open" || x.known("life") != "" {
		t.Errorf("first life: got %+v", x.Facts)
	}
	o.do(&hosting.EndProcess{Process: key, Request: 99})
	if x := o.explain("process/s1"); x.Status != "ENDED" || x.known("connection") != "" {
		t.Errorf("ended: got %s, %+v", x.Status, x.Facts)
	}
	o.do(&hosting.ActivateProcess{Process: key, Link: o.links, Port: 7777, Request: 100})
	if x := o.explain("process/s1"); x.known("life") != "the 2nd under this id" || x.known("connection") != "open" {
		t.Errorf("second life: got %+v", x.Facts)
	}
	for n, want := range map[uint32]string{1: "1st", 2: "2nd", 3: "3rd", 4: "4th", 11: "11th", 12: "12th", 13: "13th", 21: "21st", 102: "102nd", 111: "111th"} {
		if got := ordinal(n); got != want {
			t.Errorf("ordinal(%d) = %s, want %s", n, got, want)
		}
	}
}

func TestWhatIsNotThere(t *testing.T) {
	o := newOffice(t)
	for path, status := range map[string]int{
		"explain/placement/none": 404, "explain/process/none": 404, "explain/process/fleet-1/host/none": 404,
		"explain/game-session/none": 404, "explain/weather/today": 404, "explain": 404,
	} {
		if got, body := o.ask(path); got != status {
			t.Errorf("%s: got %d %s, want %d", path, got, body, status)
		}
	}
	w := httptest.NewRecorder()
	r := httptest.NewRequest(http.MethodGet, Prefix+"explain/placement/p1", nil)
	r.Header.Set("Authorization", "x")
	o.door.ServeHTTP(w, r)
	if w.Code != http.StatusForbidden || !strings.Contains(w.Body.String(), "not you") {
		t.Errorf("a stranger got %d %s", w.Code, w.Body)
	}
	w = httptest.NewRecorder()
	o.door.ServeHTTP(w, httptest.NewRequest(http.MethodPost, Prefix+"explain/placement/p1", nil))
	if w.Code != http.StatusMethodNotAllowed {
		t.Errorf("POST got %d", w.Code)
	}
}

func (o *office) eventually(what string, done func(v *cell.View) bool) {
	o.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		ok := false
		if err := o.engine.Read(o.Context(), func(v *cell.View) error { ok = done(v); return nil }); err != nil {
			o.Fatal(err)
		}
		if ok {
			return
		}
		if time.Now().After(end) {
			o.Fatal("waited a minute in vain until " + what)
		}
	}
}

// Only an operator may replace a token, and errors name what is wrong with the request.
func TestRotateToken(t *testing.T) {
	o := newOffice(t)
	rotate := func(query string, header ...string) (int, string) {
		r := httptest.NewRequest(http.MethodPost, Prefix+RotateTokenPath+"?"+query, nil)
		for _, h := range header {
			r.Header.Set("Authorization", h)
		}
		w := httptest.NewRecorder()
		o.door.ServeHTTP(w, r)
		return w.Code, w.Body.String()
	}
	for _, c := range []struct {
		query  string
		header []string
		status int
		says   string
	}{
		{"fleet=fleet-1&compute=rack/host", []string{"x"}, http.StatusForbidden, "not you"},
		{"fleet=fleet-1&compute=nobody", nil, http.StatusNotFound, "nobody not found"},
		{"fleet=nowhere&compute=rack/host", nil, http.StatusNotFound, "nowhere not found"},
		{"fleet=fleet-1&compute=rack/host&keep-links=perhaps", nil, http.StatusBadRequest, `perhaps`},
		{"fleet=fleet-1&compute=rack/host", nil, http.StatusOK, `"compute":"rack/host"`},
		{"fleet=fleet-1&compute=rack/host&keep-links=true", nil, http.StatusOK, `"expires"`},
	} {
		if status, body := rotate(c.query, c.header...); status != c.status || !strings.Contains(body, c.says) {
			t.Errorf("%s: got %d %s, want %d with %q", c.query, status, body, c.status, c.says)
		}
	}
	issued := hosting.IssueToken{Fleet: "fleet-1", Compute: "rack/host"}
	o.do(&issued)
	if issued.Generation != 2 || issued.Registered.TokensVoid != 1 {
		t.Errorf("after two rotations: generation %d, void through %d; want 2 and 1", issued.Generation, issued.Registered.TokensVoid)
	}
}

// A client that leaves before it has its answer is not a failure of the service.
func TestClientThatLeaves(t *testing.T) {
	o := newOffice(t)
	var log strings.Builder
	o.door.log = slog.New(slog.NewTextHandler(&log, nil))
	ctx, leave := context.WithCancel(t.Context())
	leave()
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, Prefix+"rollouts/undo", strings.NewReader(`{"alias": "live"}`))
	r.Header.Set("Content-Type", "application/json")
	if o.door.ServeHTTP(httptest.NewRecorder(), r); log.Len() > 0 {
		t.Errorf("the log has %s", &log)
	}
}
