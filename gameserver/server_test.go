package gameserver

import (
	"context"
	"errors"
	"flag"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/amazon-gamelift/amazon-gamelift-servers-go-server-sdk/v5/common"
	"github.com/amazon-gamelift/amazon-gamelift-servers-go-server-sdk/v5/model"
	"github.com/amazon-gamelift/amazon-gamelift-servers-go-server-sdk/v5/model/request"
	"github.com/amazon-gamelift/amazon-gamelift-servers-go-server-sdk/v5/model/result"
	"github.com/amazon-gamelift/amazon-gamelift-servers-go-server-sdk/v5/server"
)

// ownProcess runs the test again in a process of its own and reports false here, since the SDK, and a Server, live
// once in a process.
func ownProcess(t *testing.T) bool {
	t.Helper()
	const mark = "GAMESERVER_TEST_IN_OWN_PROCESS"
	if os.Getenv(mark) == t.Name() {
		return true
	}
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.timeout=5m")
	// The SDK's intervals for tests: a heartbeat every 100 ms and no pause before an old connection is closed.
	cmd.Env = append(os.Environ(), mark+"="+t.Name(), "HEALTHCHECK_INTERVAL=100ms", "HEALTHCHECK_MAX_JITTER=1ms",
		"DISCONNECT_WEBSOCKET_TIMEOUT=1ms")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	return false
}

func testOptions(f *fakeService) Options {
	return Options{
		WebSocketURL: f.url(), AuthToken: "token-1", FleetID: "fleet-1", HostID: "DesktopPC", ProcessID: "p-1",
		Port: 7777, LogPaths: []string{"/var/log/game"},
		Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
	}
}

func start(t *testing.T, f *fakeService, c Callbacks) *Server {
	t.Helper()
	s := New(testOptions(f), c)
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.askEnd()
		<-s.Done()
	})
	return s
}

// sessionActive starts a server and brings it to a session that is ACTIVE.
func sessionActive(t *testing.T, f *fakeService, c Callbacks) *Server {
	t.Helper()
	active := make(chan struct{})
	c.OnCreateSessionEnd = func(context.Context) { close(active) }
	s := start(t, f, c)
	f.pushSession()
	<-active
	return s
}

func TestWholeLife(t *testing.T) {
	if !ownProcess(t) {
		return
	}
	f := newFakeService(t)
	var order []string // appended to by one callback after the other
	var got Session
	s := sessionActive(t, f, Callbacks{
		OnCreateSessionBegin: func(_ context.Context, gs Session) error {
			order, got = append(order, "create"), gs
			return nil
		},
		OnDestroySessionBegin: func(context.Context) error {
			order = append(order, "destroy")
			if f.count("TerminateServerProcess") != 0 {
				t.Error("the end was reported before the game had cleaned up")
			}
			return nil
		},
		OnDestroySessionEnd: func() { order = append(order, "gone") },
	})

	ready := f.untilHeard("ActivateServerProcess")
	if ready["Port"] != 7777.0 || ready["SdkLanguage"] != "Go" {
		t.Errorf("ActivateServerProcess: got %v, want port 7777 and language Go", ready)
	}
	query := f.queries[0]
	for key, want := range map[string]string{
		"Authorization": "token-1", "FleetId": "fleet-1", "ComputeId": "DesktopPC", "pID": "p-1"} {
		if query.Get(key) != want {
			t.Errorf("query %s: got %q, want %q", key, query.Get(key), want)
		}
	}
	if got.ID != testSession || got.Name != "Debug" || got.FleetID != "fleet-1" || got.MaxPlayers != 4 ||
		got.Port != 7777 || got.Properties["level"] != "arena" || got.Data != "data" {
		t.Errorf("session: got %+v", got)
	}
	if id := f.untilHeard("ActivateGameSession")["GameSessionId"]; id != testSession {
		t.Errorf("ActivateGameSession: got %v, want %s", id, testSession)
	}
	if hb := f.untilHeard("HeartbeatServerProcess"); hb["HealthStatus"] != true {
		t.Errorf("heartbeat without a callback: got %v, want true", hb["HealthStatus"])
	}

	if err := s.AcceptPlayer(t.Context(), "psess-1"); err != nil {
		t.Error(err)
	}
	if err := s.RemovePlayer(t.Context(), "psess-1"); err != nil {
		t.Error(err)
	}
	if err := s.AdmitPlayers(t.Context(), false); err != nil {
		t.Error(err)
	}
	if p := f.untilHeard("UpdatePlayerSessionCreationPolicy")["PlayerSessionPolicy"]; p != "DENY_ALL" {
		t.Errorf("policy: got %v, want DENY_ALL", p)
	}
	if err := s.End(t.Context()); err != nil {
		t.Errorf("end: %v", err)
	}
	if n := f.count("TerminateServerProcess"); n != 1 {
		t.Errorf("got %d reports of the end, want 1", n)
	}
	if want := "create destroy gone"; strings.Join(order, " ") != want {
		t.Errorf("callbacks: got %v, want %s", order, want)
	}
	if err := s.AcceptPlayer(t.Context(), "psess-2"); !errors.Is(err, ErrEnded) {
		t.Errorf("after the end: got %v, want ErrEnded", err)
	}
}

func TestServiceEndsTheProcess(t *testing.T) {
	if !ownProcess(t) {
		return
	}
	f := newFakeService(t)
	until := time.Now().Add(5 * time.Minute).Truncate(time.Second)
	deadlines := make(chan time.Time, 1)
	s := sessionActive(t, f, Callbacks{
		OnDestroySessionBegin: func(ctx context.Context) error {
			d, _ := ctx.Deadline()
			deadlines <- d
			return nil
		},
	})
	f.push(map[string]any{"Action": "TerminateProcess", "TerminationTime": until.UnixMilli()})
	if err := s.Wait(); err != nil {
		t.Errorf("wait: %v", err)
	}
	if got := <-deadlines; !got.Equal(until) {
		t.Errorf("deadline of the clean-up: got %v, want %v", got, until)
	}
	if at, ok := s.TerminationTime(); !ok || !at.Equal(until) {
		t.Errorf("termination time: got %v %v, want %v", at, ok, until)
	}
	f.untilHeard("TerminateServerProcess")
}

func TestCancelledContextEndsTheProcess(t *testing.T) {
	if !ownProcess(t) {
		return
	}
	f := newFakeService(t)
	ctx, cancel := context.WithCancel(t.Context())
	s := New(testOptions(f), Callbacks{})
	if err := s.Start(ctx); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := s.Wait(); err != nil {
		t.Errorf("wait: %v", err)
	}
	f.untilHeard("TerminateServerProcess")
	f.until("the connection to be closed", func() bool { return f.gone })
}

func TestLevelThatDoesNotLoad(t *testing.T) {
	if !ownProcess(t) {
		return
	}
	f := newFakeService(t)
	broken := errors.New("no such level")
	s := start(t, f, Callbacks{
		OnCreateSessionBegin: func(context.Context, Session) error { return broken },
	})
	f.pushSession()
	if err := s.Wait(); !errors.Is(err, broken) {
		t.Errorf("wait: got %v, want %v", err, broken)
	}
	f.untilHeard("TerminateServerProcess")
	if f.count("ActivateGameSession") != 0 {
		t.Error("a session whose level did not load was activated")
	}
}

func TestCleanUpThatHangsIsNotWaitedFor(t *testing.T) {
	if !ownProcess(t) {
		return
	}
	f := newFakeService(t)
	s := sessionActive(t, f, Callbacks{
		OnDestroySessionBegin: func(ctx context.Context) error { select {} },
	})
	f.push(map[string]any{"Action": "TerminateProcess", "TerminationTime": time.Now().UnixMilli()})
	if err := s.Wait(); err == nil || !strings.Contains(err.Error(), "did not return in time") {
		t.Errorf("wait: got %v, want the clean-up named", err)
	}
	f.untilHeard("TerminateServerProcess")
}

func TestAnswersOfTheService(t *testing.T) {
	if !ownProcess(t) {
		return
	}
	f := newFakeService(t)
	f.answer = func(fr frame) map[string]any {
		switch fr["PlayerSessionId"] {
		case "psess-used":
			return map[string]any{"StatusCode": 400,
				"ErrorMessage": "PlayerSession (psess-used) has a status of COMPLETED instead of RESERVED"}
		case "psess-unknown":
			return map[string]any{"StatusCode": 404, "ErrorMessage": "no such player session"}
		case "psess-foreign":
			return map[string]any{"StatusCode": 403, "ErrorMessage": "of another process"}
		case "psess-busy":
			return map[string]any{"StatusCode": 429, "ErrorMessage": "slow down"}
		case "psess-broken":
			return map[string]any{"StatusCode": 500, "ErrorMessage": "oops"}
		case "psess-token":
			return map[string]any{"StatusCode": 401, "ErrorMessage": "token expired"}
		}
		return nil
	}
	s := sessionActive(t, f, Callbacks{})
	for id, want := range map[string]error{
		"psess-1":       nil,
		"psess-used":    ErrRefused,
		"psess-unknown": ErrRefused,
		"psess-foreign": ErrRefused,
		"psess-busy":    ErrUnavailable,
		"psess-broken":  ErrUnavailable,
		"psess-token":   ErrUnauthorized,
		"not an id":     ErrRefused, // found by the SDK, never sent
	} {
		err := s.AcceptPlayer(t.Context(), id)
		if !errors.Is(err, want) || (want == nil) != (err == nil) {
			t.Errorf("%s: got %v, want %v", id, err, want)
		}
		if want != nil {
			if _, ok := errors.AsType[*common.GameLiftError](err); !ok {
				t.Errorf("%s: %v does not hold the SDK's error", id, err)
			}
		}
	}
	if err := s.AcceptPlayer(t.Context(), "psess-used"); !strings.Contains(err.Error(), "COMPLETED instead of RESERVED") {
		t.Errorf("the service's own words are missing from %q", err)
	}
}

// A client that was turned away because its server lost patience must not keep a place.
func TestAcceptThatComesTooLateIsUndone(t *testing.T) {
	if !ownProcess(t) {
		return
	}
	f := newFakeService(t)
	cancelled := make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	f.answer = func(fr frame) map[string]any {
		if fr.action() == "AcceptPlayerSession" {
			cancel()
			<-cancelled
		}
		return nil
	}
	s := sessionActive(t, f, Callbacks{})
	err := s.AcceptPlayer(ctx, "psess-1")
	close(cancelled)
	if !errors.Is(err, ErrUnavailable) || !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want ErrUnavailable and context.Canceled", err)
	}
	if removed := f.untilHeard("RemovePlayerSession"); removed["PlayerSessionId"] != "psess-1" {
		t.Errorf("removed: got %v, want psess-1", removed["PlayerSessionId"])
	}
}

func TestPlayerSessionsFollowsPages(t *testing.T) {
	if !ownProcess(t) {
		return
	}
	f := newFakeService(t)
	page := func(from, to int, next string) map[string]any {
		list := []any{}
		for i := from; i < to; i++ {
			list = append(list, map[string]any{"PlayerSessionId": "psess", "PlayerId": "p", "Status": "ACTIVE",
				"CreationTime": 1767628249123, "TerminationTime": nil, "Port": 7777})
		}
		return map[string]any{"StatusCode": 200, "PlayerSessions": list, "NextToken": next}
	}
	f.answer = func(fr frame) map[string]any {
		if fr.action() != "DescribePlayerSessions" {
			return nil
		}
		if fr["NextToken"] == "t1" {
			return page(50, 62, "")
		}
		return page(0, 50, "t1")
	}
	s := sessionActive(t, f, Callbacks{})
	n := 0
	for ps, err := range s.PlayerSessions(t.Context(), PlayerActive) {
		if err != nil {
			t.Fatal(err)
		}
		if ps.Status != PlayerActive || ps.Created.UnixMilli() != 1767628249123 || !ps.Ended.IsZero() {
			t.Fatalf("got %+v", ps)
		}
		n++
	}
	if n != 62 {
		t.Errorf("got %d player sessions, want 62", n)
	}
}

func TestHealthCallback(t *testing.T) {
	if !ownProcess(t) {
		return
	}
	f := newFakeService(t)
	start(t, f, Callbacks{OnSessionHealthCheck: func(context.Context) bool { return false }})
	if hb := f.untilHeard("HeartbeatServerProcess"); hb["HealthStatus"] != false {
		t.Errorf("got %v, want false", hb["HealthStatus"])
	}
}

func TestSecondServerIsRefused(t *testing.T) {
	if !ownProcess(t) {
		return
	}
	f := newFakeService(t)
	s := start(t, f, Callbacks{})
	if err := New(testOptions(f), Callbacks{}).Start(t.Context()); !errors.Is(err, ErrAlreadyStarted) {
		t.Errorf("second: got %v, want ErrAlreadyStarted", err)
	}
	if err := s.RemovePlayer(t.Context(), "psess-1"); !errors.Is(err, ErrNoSession) {
		t.Errorf("before a session: got %v, want ErrNoSession", err)
	}
	if err := s.End(t.Context()); err != nil {
		t.Error(err)
	}
	if err := New(testOptions(f), Callbacks{}).Start(t.Context()); !errors.Is(err, ErrAlreadyStarted) {
		t.Errorf("after the first ended: got %v, want ErrAlreadyStarted", err)
	}
}

func TestReadyThatIsRefused(t *testing.T) {
	if !ownProcess(t) {
		return
	}
	f := newFakeService(t)
	f.answer = func(fr frame) map[string]any {
		if fr.action() == "ActivateServerProcess" {
			return map[string]any{"StatusCode": 400, "ErrorMessage": "fleet is being deleted"}
		}
		return nil
	}
	for range 2 { // and may be tried again
		err := New(testOptions(f), Callbacks{}).Start(t.Context())
		if !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "fleet is being deleted") {
			t.Errorf("got %v, want ErrRefused with the service's words", err)
		}
	}
}

// The SDK cannot be stopped while it connects. When its caller gave up, what it reaches must not stay behind as a
// process that is ready but will never play.
func TestCancelledConnectionIsClosed(t *testing.T) {
	if !ownProcess(t) {
		return
	}
	f := newFakeService(t)
	f.admit = make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	f.knocked = cancel
	if err := New(testOptions(f), Callbacks{}).Start(ctx); !errors.Is(err, ErrUnavailable) || !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want ErrUnavailable and context.Canceled", err)
	}
	close(f.admit)
	f.untilHeard("TerminateServerProcess")
	f.until("the connection to be closed", func() bool { return f.gone })
}

func TestErrorKinds(t *testing.T) {
	for _, c := range []struct {
		err  error
		want error
	}{
		{common.NewGameLiftError(common.LocalConnectionFailed, "",
			common.NewGameLiftError(common.WebsocketConnectFailure, "", "connection error 403 Forbidden:bad handshake").Error()),
			ErrUnauthorized},
		{common.NewGameLiftError(common.LocalConnectionFailed, "", "connection error 503 Service Unavailable"), ErrUnavailable},
		{common.NewGameLiftError(common.ServiceCallFailed, "", ""), ErrUnavailable},
		{common.NewGameLiftError(common.GamesessionIDNotSet, "", ""), ErrNoSession},
		{common.NewGameLiftError(common.ProcessEndingFailed, "",
			common.NewGameLiftErrorFromStatusCode(404, "gone").Error()), ErrRefused},
		{common.NewGameLiftError(common.ProcessEndingFailed, "", ""), ErrUnavailable},
		{context.DeadlineExceeded, ErrUnavailable},
	} {
		if got := failed("Call", c.err); !errors.Is(got, c.want) || !errors.Is(got, c.err) {
			t.Errorf("%v: got %v, want %v", c.err, got, c.want)
		}
	}
}

func TestOptions(t *testing.T) {
	none := func(string) string { return "" }
	good := Options{WebSocketURL: "ws://127.0.0.1:8080", AuthToken: "t", FleetID: "fleet-1", HostID: "pc", Port: 7777}
	for name, c := range map[string]struct {
		change func(*Options)
		field  string
	}{
		"good":          {func(*Options) {}, ""},
		"http URL":      {func(o *Options) { o.WebSocketURL = "http://127.0.0.1:8080" }, "WebSocketURL"},
		"no URL":        {func(o *Options) { o.WebSocketURL = "" }, "WebSocketURL"},
		"fleet ARN":     {func(o *Options) { o.FleetID = "arn:aws:gamelift:us-east-1::fleet/fleet-1" }, "FleetID"},
		"no host":       {func(o *Options) { o.HostID = "" }, "HostID"},
		"no token":      {func(o *Options) { o.AuthToken = "" }, "AuthToken"},
		"half a key":    {func(o *Options) { o.AuthToken, o.Region, o.AccessKey = "", "us-east-1", "AKIA" }, "AuthToken"},
		"whole key":     {func(o *Options) { o.AuthToken, o.Region, o.AccessKey, o.SecretKey = "", "us-east-1", "AKIA", "s" }, ""},
		"port 0":        {func(o *Options) { o.Port = 0 }, "Port"},
		"port 60001":    {func(o *Options) { o.Port = 60001 }, "Port"},
		"negative time": {func(o *Options) { o.EndTimeout = -1 }, "EndTimeout"},
	} {
		o := good
		c.change(&o)
		err := o.inForce(none).check(false)
		var field string
		if oe, ok := errors.AsType[*OptionError](err); ok {
			field = oe.Field
		}
		if field != c.field || (err == nil) != (c.field == "") {
			t.Errorf("%s: got %v, want field %q", name, err, c.field)
		}
	}
}

func TestFlagsAndEnvironment(t *testing.T) {
	var o Options
	fs := flag.NewFlagSet("game", flag.ContinueOnError)
	o.AddFlags(fs)
	if err := fs.Parse([]string{"-authtoken=tok", "-hostid=DesktopPC", "-fleetid=fleet-1",
		"-websocketurl=ws://127.0.0.1:8080", "-port", "7777"}); err != nil {
		t.Fatal(err)
	}
	if o.AuthToken != "tok" || o.HostID != "DesktopPC" || o.FleetID != "fleet-1" || o.Port != 7777 ||
		o.WebSocketURL != "ws://127.0.0.1:8080" {
		t.Errorf("flags: got %+v", o)
	}
	o = o.inForce(func(key string) string {
		if key == "GAMELIFT_SDK_FLEET_ID" {
			return "fleet-env"
		}
		return ""
	})
	if o.FleetID != "fleet-env" || o.HostID != "DesktopPC" {
		t.Errorf("environment: got fleet %q host %q, want fleet-env and DesktopPC", o.FleetID, o.HostID)
	}
	if p := o.ProcessID; !strings.HasPrefix(p, "process-") || p == (Options{}).inForce(func(string) string { return "" }).ProcessID {
		t.Errorf("process id %q is not a new one", p)
	}
}

// slowSDK connects when the test says how that ends.
type slowSDK struct {
	SDK
	came   chan struct{}
	result chan error
}

func (x slowSDK) InitSDK(server.ServerParameters) error { close(x.came); return <-x.result }
func (slowSDK) ProcessEnding() error                    { return nil }
func (slowSDK) Destroy() error                          { return nil }

// End during Connect waits for it, and then ends the process or reports that it has never started.
func TestEndDuringConnect(t *testing.T) {
	for name, result := range map[string]error{"connected": nil, "failed": errors.New("no service")} {
		t.Run(name, func(t *testing.T) {
			sdk := slowSDK{came: make(chan struct{}), result: make(chan error)}
			s := New(Options{WebSocketURL: "ws://127.0.0.1:1", AuthToken: "t", FleetID: "fleet-1", HostID: "h", Port: 7777, SDK: sdk})
			go s.Connect(context.Background())
			<-sdk.came
			ended := make(chan error, 1)
			go func() { ended <- s.End(context.Background()) }()
			<-s.ask
			sdk.result <- result
			select {
			case err := <-ended:
				if result == nil && err != nil || result != nil && !errors.Is(err, ErrNotReady) {
					t.Errorf("got %v", err)
				}
			case <-time.After(time.Minute):
				t.Fatal("End does not return")
			}
		})
	}
}

// readySDK reports the process as ready when the test says so.
type readySDK struct {
	slowSDK
	ready chan server.ProcessParameters
}

func (x readySDK) InitSDK(server.ServerParameters) error { return nil }
func (x readySDK) ProcessReady(p server.ProcessParameters) error {
	x.ready <- p
	return <-x.result
}
func (readySDK) ActivateGameSession() error { return nil }

// A game session that arrives after Start was cancelled reaches no callback, and the context of an earlier one ends: the process is about to end.
func TestSessionAndCancelledStart(t *testing.T) {
	for name, early := range map[string]bool{"before": true, "after": false} {
		t.Run(name, func(t *testing.T) {
			sdk := readySDK{slowSDK{result: make(chan error)}, make(chan server.ProcessParameters, 1)}
			var session context.Context
			s := New(Options{WebSocketURL: "ws://127.0.0.1:1", AuthToken: "t", FleetID: "fleet-1", HostID: "h", Port: 7777, SDK: sdk}, Callbacks{
				OnCreateSessionBegin: func(ctx context.Context, _ Session) error { session = ctx; return nil },
			})
			ctx, cancel := context.WithCancel(t.Context())
			failed := make(chan error, 1)
			go func() { failed <- s.Start(ctx) }()
			ready := <-sdk.ready
			if early {
				ready.OnStartGameSession(model.GameSession{GameSessionID: "arn"})
			}
			cancel()
			if err := <-failed; !errors.Is(err, context.Canceled) {
				t.Fatalf("Start: %v", err)
			}
			if !early {
				ready.OnStartGameSession(model.GameSession{GameSessionID: "arn"})
			}
			if (session != nil) != early || early && !errors.Is(context.Cause(session), ErrEnded) {
				t.Errorf("OnCreateSessionBegin was called: %v; its context has ended: %v", session != nil, early && session.Err() != nil)
			}
			sdk.result <- nil
		})
	}
}

// joinSDK refuses a player session when the test says so.
type joinSDK struct {
	readySDK
	asked, refuse chan struct{}
}

func (x joinSDK) ProcessReady(p server.ProcessParameters) error { x.ready <- p; return nil }
func (x joinSDK) DescribePlayerSessions(request.DescribePlayerSessionsRequest) (result.DescribePlayerSessionsResult, error) {
	close(x.asked)
	<-x.refuse
	return result.DescribePlayerSessionsResult{}, nil
}
func (x joinSDK) AcceptPlayerSession(string) error {
	return common.NewGameLiftErrorFromStatusCode(400, "no such player session")
}

// EmptyTimeout passes while the service checks a player. When it refuses the player, the process ends.
func TestPlayerIsRefusedAfterEmptyTimeout(t *testing.T) {
	sdk := joinSDK{readySDK{ready: make(chan server.ProcessParameters, 1)}, make(chan struct{}), make(chan struct{})}
	joined := make(chan error, 1)
	s := New(Options{WebSocketURL: "ws://127.0.0.1:1", AuthToken: "t", FleetID: "fleet-1", HostID: "h", Port: 7777, SDK: sdk, EmptyTimeout: time.Millisecond}, Callbacks{
		OnCreateSessionBegin: func(ctx context.Context, _ Session) error {
			go func() {
				_, err := FromContext(ctx).ValidatePlayerJoin(t.Context(), 1, "psess-1")
				joined <- err
			}()
			<-sdk.asked
			return nil
		},
	})
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	(<-sdk.ready).OnStartGameSession(model.GameSession{GameSessionID: "arn"})
	time.Sleep(50 * time.Millisecond)
	close(sdk.refuse)
	if err := <-joined; !errors.Is(err, ErrRefused) {
		t.Errorf("the player: %v, want ErrRefused", err)
	}
	select {
	case <-s.Done():
	case <-time.After(10 * time.Second):
		t.Fatal("the process continues without a player")
	}
}
