package agentlink

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/musterhq/muster/internal/agentproto"
	archivepebble "github.com/musterhq/muster/internal/archive/pebble"
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/exit"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/session"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/journal/journaltest"
	"github.com/musterhq/muster/internal/logtest"
	"github.com/musterhq/muster/internal/waittest"
)

const testFleet, testCompute, testLocation = "fleet-1", "host", "custom-home"

// world is the door on a port, with an engine.
type world struct {
	testing.TB
	engine *engine.Engine
	secret identity.CellSecret
	door   *Server
	port   *httptest.Server
	keys   *identity.Keys
	log    logtest.Log
}

func newWorld(t testing.TB) *world {
	t.Helper()
	return newWorldOf(t, func(*engine.Config) {})
}

func newWorldOf(t testing.TB, change func(*engine.Config)) *world {
	t.Helper()
	archive, err := archivepebble.Open(archivepebble.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	journal, err := journaltest.NewMemory(1).Open()
	if err != nil {
		t.Fatal(err)
	}
	w := &world{TB: t}
	if w.secret, err = identity.OpenCellSecret(t.TempDir()); err != nil {
		t.Fatal(err)
	}
	config := engine.Config{Journal: journal, Archive: archive, Cell: cell.DefaultConfig()}
	change(&config)
	if w.engine, err = engine.Open(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	periods := DefaultPeriods()
	periods.Watch, periods.Rival = 5*time.Millisecond, time.Nanosecond
	periods.Ping = time.Hour // no connection is closed because it is silent
	w.keys = identity.NewKeys(w.secret, w.engine.Now)
	w.door = New(ctx, Config{Engine: w.engine, Secret: w.secret, Policies: w.keys, SDKEndpoint: "ws://service", Endpoint: "ws://service/agent", Periods: periods, Log: slog.New(slog.NewTextHandler(&w.log, nil))})
	w.port = httptest.NewServer(w.door)
	t.Cleanup(func() {
		stop()
		w.door.Close()
		w.port.Close()
		_ = w.engine.Close()
		_ = journal.Close()
		_ = archive.Close()
	})
	w.must(&hosting.CreateLocation{Name: testLocation, Region: "us-east-1"})
	w.must(&hosting.CreateFleet{
		Fleet:     fleet.Fleet{ID: testFleet, Region: "us-east-1", Name: "dev", Runtime: &fleet.Runtime{ActivationsMax: 2, ActivationTimeout: 300 * time.Second}},
		Locations: []string{testLocation},
	})
	w.register(testCompute)
	return w
}

func (w *world) register(name string) {
	w.Helper()
	w.must(&hosting.RegisterCompute{Compute: fleet.Compute{FleetID: testFleet, Name: name, Location: testLocation, IPAddress: "127.0.0.1", Registration: domain.UUID{1, 2, 3}}})
}

func (w *world) must(cmd kernel.Command) {
	w.Helper()
	if err := w.engine.Do(context.Background(), cmd); err != nil {
		w.Fatalf("%T: %v", cmd, err)
	}
}

func (w *world) token(compute string) string {
	w.Helper()
	cmd := &hosting.IssueToken{Fleet: testFleet, Compute: compute}
	w.must(cmd)
	return w.secret.ProcessToken(testFleet, compute, cmd.Registered.Registration, cmd.Generation)
}

func (w *world) query(compute string) url.Values {
	return url.Values{"FleetId": {testFleet}, "ComputeName": {compute}, "Authorization": {w.token(compute)}}
}

// agent is a client that records the messages that it receives.
type agent struct {
	*world
	conn *websocket.Conn
	mu   sync.Mutex
	got  []string
	over bool
}

func (w *world) dial(q url.Values) (*websocket.Conn, *http.Response, error) {
	return websocket.DefaultDialer.Dial("ws"+strings.TrimPrefix(w.port.URL, "http")+"/agent?"+q.Encode(), nil)
}

func (w *world) connect(q url.Values) *agent {
	w.Helper()
	before := w.door.Stats().Links
	conn, _, err := w.dial(q)
	if err != nil {
		w.Fatal(err)
	}
	waittest.Until(w, "the door to have the connection", func() bool { return w.door.Stats().Links > before }) // it answers the upgrade before that
	return w.keep(conn)
}

// keep records the messages of a connection.
func (w *world) keep(conn *websocket.Conn) *agent {
	a := &agent{world: w, conn: conn}
	w.Cleanup(func() { _ = conn.Close() })
	go func() {
		for {
			_, text, err := conn.ReadMessage()
			a.mu.Lock()
			a.over = err != nil
			if err == nil {
				a.got = append(a.got, string(text))
			}
			a.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	return a
}

// native connects as `muster agent`.
func (w *world) native() *agent {
	q := w.query(testCompute)
	q.Set("AgentKind", "native")
	q.Set("AgentProto", "1")
	return w.connect(q)
}

func (a *agent) send(text string) {
	a.Helper()
	if err := a.conn.WriteMessage(websocket.TextMessage, []byte(text)); err != nil {
		a.Fatal(err)
	}
}

// wait waits for a message that contains all of these parts, and removes it from the record.
func (a *agent) wait(parts ...string) (found string) {
	a.Helper()
	waittest.Until(a, fmt.Sprint("a message with ", parts), func() bool {
		a.mu.Lock()
		defer a.mu.Unlock()
	next:
		for i, text := range a.got {
			for _, part := range parts {
				if !strings.Contains(text, part) {
					continue next
				}
			}
			found = text
			a.got = append(a.got[:i], a.got[i+1:]...)
			return true
		}
		return false
	})
	return found
}

func (a *agent) ended() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.over
}

func key(process string) fleet.Key {
	return fleet.Key{Fleet: testFleet, Compute: testCompute, Process: process}
}

// server makes a process ready, as its server SDK does.
func (w *world) server(process string) {
	w.must(&hosting.ConnectProcess{Process: key(process), Link: 7})
	w.must(&hosting.ActivateProcess{Process: key(process), Link: 7, Port: 7777, Request: 1})
	w.must(&hosting.ReportHealth{Process: key(process), Healthy: true})
}

// game makes a process host an active game session.
func (w *world) game(process, name string) session.ID {
	w.server(process)
	cmd := &hosting.CreateGameSession{Fleet: testFleet, Location: testLocation, Name: name, PlayersMax: 4}
	w.must(cmd)
	w.must(&hosting.PromptGameSession{Process: key(process), Game: cmd.ID()})
	w.must(&hosting.ActivateGameSession{Process: key(process), Game: cmd.ID()})
	return cmd.ID()
}

func exitReport(reason string) exit.Report { return exit.Report{Reason: reason} }

// This replays the official agent's conversation with its own messages: the golden files of package agentproto.
func TestOfficialAgent(t *testing.T) {
	w := newWorld(t)
	a := w.connect(w.query(testCompute))
	golden := func(name string) string {
		text, err := os.ReadFile(filepath.Join("..", "agentproto", "testdata", "request", name+".json"))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	a.send(golden("SendHeartbeat"))
	a.wait(`{"Action":"SendHeartbeat","RequestId":"9b1deb4d-3b7d-4bad-9bdd-2b0d7b3dcb6d","StatusCode":200,"Status":"ACTIVE","UnhealthyProcesses":[],"UnregisteredProcesses":["0cf65f7e-5f0f-4d0c-8d3c-7a1a6f0c9a11"]}`)
	a.send(golden("DescribeRuntimeConfiguration"))
	a.wait(`"StatusCode":200,"GameSessionActivationTimeoutSeconds":300,"MaxConcurrentGameSessionActivations":2,"ServerProcesses":[]}`)
	a.send(golden("GetFleetRoleCredentials"))
	a.wait(`"Action":"GetFleetRoleCredentials","RequestId":"r","StatusCode":400`)
	a.send(golden("AgentHello"))
	a.wait(`"Action":"AgentHello","RequestId":"r","StatusCode":400`)
	a.send(`{"Action":"Dance","RequestId":"r"}`)
	a.wait(`"Action":"Dance","RequestId":"r","StatusCode":400,"ErrorMessage":"unknown action \"Dance\""`)

	id := w.game("p", "g")
	a.wait(`{"Action":"NotifyProcessRegistered","ProcessId":"p","LogPaths":["/nonexistent"]}`)
	a.wait(`{"Action":"NotifyGameSessionActivated","ProcessId":"p","GameSessionId":"arn:aws:gamelift:us-east-1::gamesession/` + string(id) + `"}`)
	b := w.connect(w.query(testCompute)) // a connection that is opened later is the current one, and gets what it should know
	b.wait("NotifyProcessRegistered", `"p"`)
	b.wait("NotifyGameSessionActivated", `"p"`)
	a.send(golden("NotifyServerProcessTermination"))
	a.wait(`{"Action":"NotifyServerProcessTermination","RequestId":"r","StatusCode":200}`)
	g, err := w.engine.GameSession(t.Context(), id)
	if err != nil || g.Status != session.Terminated || g.Exit == nil || g.Exit.Reason != "SERVER_PROCESS_CRASHED" {
		t.Errorf("%+v, %v", g, err)
	}
	b.send(golden("NotifyServerProcessTermination")) // a repeat, on another connection
	b.wait(`"StatusCode":200`)
}

func TestRuntimeOf(t *testing.T) {
	f := fleet.Fleet{Runtime: &fleet.Runtime{Launches: []fleet.Launch{{Path: "/local/game/server", Parameters: "--a 1", Copies: 2}}, ActivationsMax: 2, ActivationTimeout: 300 * time.Second}}
	got, err := agentproto.EncodeAnswer("DescribeRuntimeConfiguration", "r", runtimeOf(&f))
	want, _ := os.ReadFile(filepath.Join("..", "agentproto", "testdata", "answer", "DescribeRuntimeConfiguration.json"))
	if err != nil || string(got) != strings.TrimSpace(string(want)) {
		t.Errorf("%s, %v\nwant %s", got, err, want)
	}
}

// Agents that fetch builds get the build of a fleet with a URL, or no build if the service does not have the files.
func TestWorkOf(t *testing.T) {
	s := &Server{config: Config{BuildURL: func(manifest string) string { return "https://service/" + manifest }}}
	f := fleet.Fleet{Managed: &fleet.Managed{Build: "build-1", Manifest: "d"}, Runtime: &fleet.Runtime{}}
	if b := s.workOf(&f).Build; b == nil || *b != (agentproto.Build{BuildID: "build-1", Digest: "d", URL: "https://service/d"}) {
		t.Errorf("%+v", b)
	}
	if b := (&Server{}).workOf(&f).Build; b == nil || b.URL != "" {
		t.Errorf("without a store: %+v", b)
	}
	f.Managed.Manifest = "" // in a store of the operator
	if b := s.workOf(&f).Build; b != nil || runtimeOf(&f).Build != nil {
		t.Errorf("%+v", b)
	}
}

// This tests the messages that only `muster agent` gets.
func TestNativeAgent(t *testing.T) {
	w := newWorld(t)
	a := w.native()
	a.wait(`"Action":"UpdateRuntimeConfiguration"`, `"MaxConcurrentGameSessionActivations":2`)
	a.send(`{"Action":"AgentHello","RequestId":"1","Version":"1","OS":"linux","Arch":"amd64","CPUs":1,"MemoryMB":1,"Ports":""}`)
	a.wait(`"StatusCode":200`, `"FleetId":"fleet-1","ComputeName":"host","Location":"custom-home","GameLiftServiceSdkEndpoint":"ws://service"`)
	a.send(`{"Action":"GetServerToken","RequestId":"2"}`)
	a.wait(`"AuthToken":"` + w.token(testCompute) + `"`)
	a.send(`{"Action":"SendOutput","RequestId":"3","StreamId":"s","Output":"x"}`)
	a.wait(`"RequestId":"3","StatusCode":404`)
	w.must(&hosting.UpdateRuntime{Fleet: testFleet, Runtime: fleet.Runtime{ActivationsMax: 3}})
	a.wait(`"Action":"UpdateRuntimeConfiguration"`, `"MaxConcurrentGameSessionActivations":3`)
	w.must(&hosting.DeregisterCompute{Fleet: testFleet, Name: testCompute})
	a.wait(`{"Action":"DrainCompute","DeadlineMillis":0,"Reason":"the compute was deregistered"}`)
	a.send(`{"Action":"SendHeartbeat","RequestId":"4","Status":"Active","ProcessList":[]}`)
	a.wait(`"Status":"TERMINATING"`)
}

// A compute that is deregistered and registered again runs server processes again: its agent learns that the drain is over.
func TestComputeIsRegisteredAgain(t *testing.T) {
	w := newWorld(t)
	a := w.native()
	w.must(&hosting.DeregisterCompute{Fleet: testFleet, Name: testCompute})
	a.wait(`{"Action":"DrainCompute","DeadlineMillis":0,"Reason":"the compute was deregistered"}`)
	w.register(testCompute)
	w.native().wait(`{"Action":"DrainCompute","DeadlineMillis":0,"Cancel":true}`)
}

// A process that the service has given up, but that still runs, is ended by its agent.
func TestOutlived(t *testing.T) {
	w := newWorld(t)
	a := w.connect(w.query(testCompute))
	w.server("p")
	w.must(&hosting.ReportExit{Process: key("p"), Exit: exitReport("SERVER_PROCESS_TERMINATED_UNHEALTHY")})
	a.wait(`{"Action":"ForceExitServerProcess","ProcessId":"p","TerminationReason":"SERVER_PROCESS_TERMINATED_UNHEALTHY"}`)
	a.send(`{"Action":"SendHeartbeat","RequestId":"1","Status":"Active","ProcessList":["p"]}`)
	a.wait(`"UnhealthyProcesses":["p"],"UnregisteredProcesses":[]`)
}

// The compute of an agent whose last heartbeat announced its end is removed. That of an agent that only loses its connection stays.
func TestLastHeartbeat(t *testing.T) {
	w := newWorld(t)
	registered := func() (ok bool) {
		_ = w.engine.Read(t.Context(), func(v *cell.View) error { _, ok = v.Compute(testFleet, testCompute); return nil })
		return ok
	}
	a := w.connect(w.query(testCompute))
	_ = a.conn.Close()
	waittest.Until(w, "the connection to end", func() bool { return w.door.Stats().Links == 0 })
	a = w.connect(w.query(testCompute))
	if !registered() {
		t.Fatal("the compute of an agent that lost its connection is gone")
	}
	a.send(`{"Action":"SendHeartbeat","RequestId":"1","Status":"Terminated","ProcessList":[]}`)
	a.wait(`"StatusCode":200`)
	_ = a.conn.WriteMessage(websocket.CloseMessage, websocket.FormatCloseMessage(1000, "GameLift Agent requested WebSocket closure"))
	waittest.Until(w, "the compute to be deregistered", func() bool { return !registered() })
}

// The end of an agent while the engine takes no more commands is recorded soon after it takes them again.
func TestEndWhileOverloaded(t *testing.T) {
	w := newWorldOf(t, func(c *engine.Config) { c.QueueMax = 2 })
	a := w.connect(w.query(testCompute))
	a.send(`{"Action":"SendHeartbeat","RequestId":"1","Status":"Terminated","ProcessList":[]}`)
	a.wait(`"StatusCode":200`)
	release, reading := make(chan struct{}), make(chan struct{})
	go func() {
		_ = w.engine.ReadHere(context.WithoutCancel(t.Context()), func(*cell.View) error { close(reading); <-release; return nil })
	}()
	<-reading // the engine decides nothing
	for now, most := w.engine.Waiting(); now < most; now, most = w.engine.Waiting() {
		go func() { _ = w.engine.Do(context.WithoutCancel(t.Context()), &hosting.DeleteLocation{Name: "none"}) }()
		time.Sleep(time.Millisecond)
	}
	_ = a.conn.WriteMessage(websocket.CloseMessage, websocket.FormatCloseMessage(1000, "GameLift Agent requested WebSocket closure"))
	waittest.Until(w, "the connection to end", func() bool { return w.door.Stats().Links == 0 })
	time.Sleep(50 * time.Millisecond) // the report is refused
	close(release)
	waittest.Until(w, "the compute to be deregistered", func() bool {
		ok := true
		_ = w.engine.Read(t.Context(), func(v *cell.View) error { _, ok = v.Compute(testFleet, testCompute); return nil })
		return !ok
	})
}

// The compute is removed with its agent even when an older connection of that agent ends last. It stays if a new agent has connected meanwhile.
func TestOlderConnectionEndsLast(t *testing.T) {
	for _, succeeded := range []bool{false, true} {
		t.Run(fmt.Sprint("succeeded ", succeeded), func(t *testing.T) {
			w := newWorld(t)
			registered := func() (ok bool) {
				_ = w.engine.Read(t.Context(), func(v *cell.View) error { _, ok = v.Compute(testFleet, testCompute); return nil })
				return ok
			}
			links := func(n int) {
				t.Helper()
				waittest.Until(w, fmt.Sprint(n, " connections"), func() bool { return w.door.Stats().Links == n })
			}
			older := w.native()
			newer := w.native()
			newer.send(`{"Action":"SendHeartbeat","RequestId":"1","Status":"Terminated","ProcessList":[]}`)
			newer.wait(`"StatusCode":200`)
			_ = newer.conn.Close()
			links(1)
			if succeeded {
				other := w.native()
				_ = other.conn.Close() // it comes back
				links(1)
			}
			_ = older.conn.Close()
			links(0)
			if succeeded {
				w.native()
				if !registered() {
					t.Fatal("the compute of an agent that lost its connection is gone")
				}
				return
			}
			waittest.Until(w, "the compute to be deregistered", func() bool { return !registered() })
		})
	}
}

// Terminating a game session ends its process through the agent: at once if it is forced, otherwise if the process has not ended in time.
func TestTerminatedByTheAgent(t *testing.T) {
	w := newWorldOf(t, func(c *engine.Config) { c.Cell.Hosting.TerminateGrace = time.Millisecond })
	if w.door.Has(testFleet, testCompute) {
		t.Error("the compute has an agent before there is one")
	}
	a := w.connect(w.query(testCompute))
	if !w.door.Has(testFleet, testCompute) || w.door.Has(testFleet, "other") {
		t.Error("the agent is not known")
	}
	forced := w.game("p1", "g1")
	w.must(&hosting.TerminateGameSession{ID: forced, Force: true, Agent: true})
	a.wait(`{"Action":"ForceExitServerProcess","ProcessId":"p1"`)
	asked := w.game("p2", "g2")
	w.must(&hosting.TerminateGameSession{ID: asked})
	a.wait(`{"Action":"ForceExitServerProcess","ProcessId":"p2","TerminationReason":"SERVER_PROCESS_FORCE_TERMINATED"}`)
	for id, want := range map[session.ID]session.StatusReason{forced: session.ForceTerminated, asked: session.TriggeredOnProcessTerminate} {
		if g, err := w.engine.GameSession(t.Context(), id); err != nil || g.Status != session.Terminated || g.StatusReason != want {
			t.Errorf("%s: %+v, %v", id, g, err)
		}
	}
}

// A host that is about to be reclaimed gets no more game sessions, and its server processes are asked to end. That happens once, however many heartbeats announce it.
func TestInterruptedHost(t *testing.T) {
	w := newWorld(t)
	a := w.connect(w.query(testCompute))
	game := w.game("busy", "g")
	w.server("idle")
	for id := range 3 {
		a.send(fmt.Sprintf(`{"Action":"SendHeartbeat","RequestId":"beat-%d","Status":"Interrupted","ProcessList":["idle","busy"]}`, id))
		a.wait(fmt.Sprintf(`"RequestId":"beat-%d"`, id), `"StatusCode":200`)
	}
	_ = w.engine.Read(t.Context(), func(v *cell.View) error {
		x, _ := v.Compute(testFleet, testCompute)
		told := 0
		for _, e := range v.FleetEvents(testFleet, 0, 0, 0, 100) {
			if strings.Contains(e.Message, "is being reclaimed") {
				told++
			}
		}
		if !x.Draining() || told != 1 {
			t.Errorf("draining: %t, told %d times", x.Draining(), told)
		}
		for _, id := range []string{"idle", "busy"} {
			p, _ := v.Process(key(id))
			if left := p.TerminationTime.Sub(p.AskedAt); p.TerminateBy == 0 || left != 90*time.Second {
				t.Errorf("%s is asked to end by %v, in %v", id, p.TerminateBy, left)
			}
		}
		if g, _ := v.GameSession(game); !g.Live() {
			t.Error("the game session has ended already")
		}
		return nil
	})
	create := &hosting.CreateGameSession{Fleet: testFleet, Location: testLocation, Name: "g2", PlayersMax: 4}
	if err := w.engine.Do(t.Context(), create); err == nil {
		t.Error("the host got another game session")
	}
}

// A host that is about to be reclaimed is drained again if it has become another compute meanwhile.
func TestInterruptedHostMoves(t *testing.T) {
	w := newWorld(t)
	a := w.bound()
	for i := range 2 {
		a.send(fmt.Sprintf(`{"Action":"SendHeartbeat","RequestId":"beat-%d","Status":"Interrupted","ProcessList":[]}`, i))
		a.wait(fmt.Sprintf(`"RequestId":"beat-%d"`, i), `"StatusCode":200`)
		_ = w.engine.Read(t.Context(), func(v *cell.View) error {
			if x, _ := v.Compute(testFleet, "rack-1"); !x.Draining() {
				t.Errorf("compute %d of the host gets game sessions", i)
			}
			return nil
		})
		w.must(&hosting.DeregisterCompute{Fleet: testFleet, Name: "rack-1"})
		a.wait(`"UpdateHost"`, `"FleetId":""`)
		w.registerBound()
		a.wait(`"UpdateHost"`, `"FleetId":"`+testFleet+`"`)
	}
}

func TestRefused(t *testing.T) {
	w := newWorld(t)
	w.register("other")
	for name, x := range map[string]struct {
		set, value string
		want       int
	}{
		"no token":             {"Authorization", "", 403},
		"wrong token":          {"Authorization", "x", 403},
		"token of another":     {"ComputeName", "other", 403},
		"unknown compute":      {"ComputeName", "unknown", 403},
		"unknown fleet":        {"FleetId", "fleet-9", 403},
		"no fleet":             {"FleetId", "", 400},
		"compute of no form":   {"ComputeName", "a b", 400},
		"compute that is long": {"ComputeName", strings.Repeat("a", 300), 400},
		"query that is long":   {"X", strings.Repeat("a", 9000), 400},
	} {
		q := w.query(testCompute)
		q.Set(x.set, x.value)
		_, r, err := w.dial(q)
		if err == nil || r == nil || r.StatusCode != x.want {
			t.Errorf("%s: %v, %v; want status %d", name, r, err, x.want)
		}
	}
}

// An older connection is closed some time after its successor has come, even if its agent does not answer the close frame.
func TestSupersededConnectionThatStays(t *testing.T) {
	w := newWorld(t)
	silent, _, err := w.dial(w.query(testCompute)) // it reads nothing, and so does not answer the close frame
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	var older *link
	waittest.Until(t, "the connection is open", func() bool { older = w.door.current(compute{testFleet, testCompute}); return older != nil })
	w.connect(w.query(testCompute))
	waittest.Until(t, "its successor is open", func() bool { return w.door.current(older.compute()) != older })
	older.mu.Lock()
	older.superseded = time.Now().Add(-w.door.config.Periods.Superseded)
	older.mu.Unlock()
	waittest.Until(t, "the older connection is closed", func() bool { return len(w.door.links()) == 1 })
}

// Connections that used a replaced token are closed, or get the new token.
func TestTokenReplaced(t *testing.T) {
	w := newWorld(t)
	a := w.native()
	a.wait(`"Action":"UpdateRuntimeConfiguration"`) // from here on the connection is open: until then the door drops it if its token is replaced
	w.must(&hosting.RotateToken{Fleet: testFleet, Compute: testCompute, KeepLinks: true})
	a.wait(`{"Action":"RefreshConnection","RefreshConnectionEndpoint":"ws://service/agent","AuthToken":"` + w.token(testCompute) + `","ExpirationTime":"`)
	b := w.connect(w.query(testCompute))
	waittest.Until(w, "both connections", func() bool { return w.door.Stats().Links == 2 })
	w.must(&hosting.RotateToken{Fleet: testFleet, Compute: testCompute})
	waittest.Until(w, "both to end", func() bool { return a.ended() && b.ended() && w.door.Stats().Links == 0 })
}

// The memory of a connection is bounded while its agent is silent.
func TestMemoryOfAnAgent(t *testing.T) {
	const n, most = 200, 30 << 10
	w := newWorld(t)
	for i := range n {
		w.register(fmt.Sprint("host-", i))
	}
	connect := func(i int) {
		conn, _, err := w.dial(w.query(fmt.Sprint("host-", i)))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
	}
	connect(0)
	before := heap()
	for i := 1; i < n; i++ {
		connect(i)
	}
	waittest.Until(w, "all connections", func() bool { return w.door.Stats().Links == n })
	each := (heap() - before) / (n - 1)
	t.Logf("%d bytes for each agent, with the client's own part of the connection", each)
	if each > most {
		t.Errorf("%d bytes for each agent; want at most %d", each, most)
	}
}

func heap() int {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapInuse + m.StackInuse)
}

// BenchmarkDeathToPlayersFreed measures the time from the end of a process, reported over its agent's connection, until its players are free.
func BenchmarkDeathToPlayersFreed(b *testing.B) {
	w := newWorld(b)
	a := w.native()
	for i := range b.N {
		b.StopTimer()
		process := fmt.Sprint("p", i)
		w.game(process, fmt.Sprint("g", i))
		text, err := agentproto.EncodeRequest(process, &agentproto.NotifyServerProcessTermination{
			ProcessID: process, EventCode: "SERVER_PROCESS_CRASHED", TerminationReason: agentproto.Crashed,
		})
		if err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
		a.send(string(text))
		a.wait(`"NotifyServerProcessTermination"`, `"RequestId":"`+process+`"`)
	}
}

// A change of the runtime configuration while an agent connects is the last one that the agent learns of.
func TestConfigurationChangesDuringConnect(t *testing.T) {
	w := newWorld(t)
	for i := range 200 { // to list them takes the service a while
		w.server(fmt.Sprintf("p-%d", i))
	}
	for i := range int32(40) {
		a := w.native()
		w.must(&hosting.UpdateRuntime{Fleet: testFleet, Runtime: fleet.Runtime{ActivationsMax: 10 + i}})
		want := fmt.Sprintf(`"MaxConcurrentGameSessionActivations":%d`, 10+i)
		a.send(`{"Action":"DescribeRuntimeConfiguration","RequestId":"1"}`)
		a.wait(`"RequestId":"1"`) // after what the agent is told at first
		last := ""
		waittest.Until(t, "the changed configuration", func() (told bool) {
			a.mu.Lock()
			defer a.mu.Unlock()
			for _, text := range a.got {
				if strings.Contains(text, `"UpdateRuntimeConfiguration"`) {
					last, told = text, told || strings.Contains(text, want)
				}
			}
			return told
		})
		if !strings.Contains(last, want) {
			t.Fatalf("connection %d: the last configuration is %s, want %s", i, last, want)
		}
		_ = a.conn.Close()
		waittest.Until(t, "the connection to end", func() bool { return w.door.Stats().Links == 0 })
	}
}
