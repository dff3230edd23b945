package agones

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/musterhq/muster/internal/agent/agones/sdk"
	"github.com/musterhq/muster/internal/porttest"
	"github.com/musterhq/muster/internal/steady"
)

const patience = time.Minute

// game is a server process of a test, with a connection to the agent's SDK server.
type game struct {
	*testing.T
	*Process
	conn   *grpc.ClientConn
	ended  chan string
	config Config
}

// open serves a process without a service. The file in dir has its state.
func open(t *testing.T, dir, manifest string) *game {
	t.Helper()
	g := &game{T: t, ended: make(chan string, 2)}
	g.config = Config{
		ID: "p", Started: time.Unix(1_800_000_000, 0), File: filepath.Join(dir, "p.json"), GRPCPort: freePort(t), HTTPPort: freePort(t), Ports: map[string]int{"": 7000, "query": 7001},
		End: func() { g.ended <- "end" }, Unhealthy: func() { g.ended <- "unhealthy" }, Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
	}
	if manifest != "" {
		var err error
		if g.config.GameServer, err = parse([]byte(manifest)); err != nil {
			t.Fatal(err)
		}
	}
	g.reopen()
	return g
}

// reopen does what the next agent does.
func (g *game) reopen() {
	g.Helper()
	var err error
	if g.Process, err = Open(g.config); err != nil {
		g.Fatal(err)
	}
	process := g.Process
	g.Cleanup(process.Close)
	g.conn, err = grpc.NewClient(net.JoinHostPort("127.0.0.1", strconv.Itoa(g.config.GRPCPort)), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		g.Fatal(err)
	}
	g.Cleanup(func() { g.conn.Close() })
}

func freePort(t *testing.T) int {
	t.Helper()
	_, text, _ := net.SplitHostPort(porttest.Free(t))
	port, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// call calls a method of the stable service, unless the name has another service before a slash.
func (g *game) call(name string, in, out proto.Message) error {
	g.Helper()
	service := stable
	if before, after, ok := strings.Cut(name, "/"); ok {
		service, name = map[string]string{"beta": beta, "alpha": alpha}[before], after
	}
	ctx, cancel := context.WithTimeout(g.Context(), patience)
	defer cancel()
	return g.conn.Invoke(ctx, "/"+service+"/"+name, in, out, grpc.WaitForReady(true))
}

func (g *game) must(name string, in, out proto.Message) {
	g.Helper()
	if err := g.call(name, in, out); err != nil {
		g.Fatalf("%s(%v): %v", name, in, err)
	}
}

func (g *game) fails(code codes.Code, name string, in proto.Message) {
	g.Helper()
	if err := g.call(name, in, new(sdk.Empty)); status.Code(err) != code {
		g.Errorf("%s(%.100q): %v, want %v", name, fmt.Sprint(in), err, code)
	}
}

func (g *game) gameServer() *sdk.GameServer {
	g.Helper()
	gs := new(sdk.GameServer)
	g.must("GetGameServer", new(sdk.Empty), gs)
	return gs
}

func (g *game) inState(want State) {
	g.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		got := g.gameServer().Status.State
		if got == string(want) {
			return
		}
		if time.Now().After(end) {
			g.Fatalf("state %s, want %s", got, want)
		}
	}
}

func (g *game) end(want string) {
	g.Helper()
	select {
	case got := <-g.ended:
		if got != want {
			g.Errorf("the agent is told %s, want %s", got, want)
		}
	case <-time.After(patience):
		g.Fatalf("the agent is not told %s", want)
	}
}

// A process without a service becomes ready when it says so, and passes through the other states on its own.
func TestLifeWithoutAService(t *testing.T) {
	g := open(t, t.TempDir(), "")
	g.inState(Scheduled)
	if busy, known := g.Busy(); busy || !known {
		t.Errorf("scheduled: busy %v, known %v", busy, known)
	}
	g.must("Ready", new(sdk.Empty), new(sdk.Empty))
	g.inState(Ready)
	g.must("Reserve", &sdk.Duration{}, new(sdk.Empty))
	g.inState(Reserved)
	g.must("Reserve", &sdk.Duration{Seconds: 1}, new(sdk.Empty))
	g.inState(Ready) // when the second is over
	g.must("Allocate", new(sdk.Empty), new(sdk.Empty))
	g.inState(Allocated)
	if busy, _ := g.Busy(); !busy {
		t.Error("allocated by itself, and not busy")
	}
	if g.gameServer().ObjectMeta.Annotations[lastAllocated] == "" {
		t.Error("no annotation says when it was allocated")
	}
	g.fails(codes.InvalidArgument, "Reserve", &sdk.Duration{Seconds: -1})
	g.must("Shutdown", new(sdk.Empty), new(sdk.Empty))
	g.end("end")
	g.fails(codes.FailedPrecondition, "Ready", new(sdk.Empty))
	if gs := g.gameServer(); gs.Status.State != string(Shutdown) || gs.ObjectMeta.DeletionTimestamp == 0 {
		t.Errorf("%v", gs)
	}
}

// The next agent has the state, and ends the process that the previous agent was ending.
func TestStateOutlivesTheAgent(t *testing.T) {
	g := open(t, t.TempDir(), `{"kind":"GameServer","metadata":{"labels":{"mode":"duel"}},"spec":{"counters":{"rounds":{"count":1,"capacity":5}},"lists":{"maps":{"capacity":3}}}}`)
	g.must("Ready", new(sdk.Empty), new(sdk.Empty))
	g.must("SetLabel", &sdk.KeyValue{Key: "a", Value: "b"}, new(sdk.Empty))
	g.must("SetAnnotation", &sdk.KeyValue{Key: "a", Value: "any text: ü"}, new(sdk.Empty))
	g.must("beta/UpdateCounter", &sdk.UpdateCounterRequest{CounterUpdateRequest: &sdk.CounterUpdateRequest{Name: "rounds", CountDiff: 2}}, new(sdk.Counter))
	g.must("beta/AddListValue", &sdk.AddListValueRequest{Name: "maps", Value: "desert"}, new(sdk.List))
	g.must("alpha/SetPlayerCapacity", &sdk.Count{Count: 1}, new(sdk.Empty))
	g.must("alpha/PlayerConnect", &sdk.PlayerID{PlayerID: "Ann"}, new(sdk.Bool))
	before := g.gameServer()
	g.Close()
	g.reopen()
	if after := g.gameServer(); !proto.Equal(after, before) {
		t.Errorf("got  %v\nwant %v", after, before)
	}
	g.fails(codes.OutOfRange, "alpha/PlayerConnect", &sdk.PlayerID{PlayerID: "Bob"})
	g.must("Shutdown", new(sdk.Empty), new(sdk.Empty))
	g.end("end")
	g.Close()
	g.reopen()
	g.end("end")
	g.Remove()
	if _, err := os.Stat(g.config.File); !os.IsNotExist(err) {
		t.Errorf("the file of a process that has ended: %v", err)
	}
}

// Health is monitored from the first call on, and for an adopted process from its first health message on.
func TestHealth(t *testing.T) {
	const manifest = `{"kind":"GameServer","spec":{"health":{"periodSeconds":1,"failureThreshold":1,"initialDelaySeconds":0}}}`
	g := open(t, t.TempDir(), manifest)
	g.must("Ready", new(sdk.Empty), new(sdk.Empty))
	g.end("unhealthy")
	g.inState(Unhealthy)
	g.fails(codes.FailedPrecondition, "Ready", new(sdk.Empty))

	g = open(t, t.TempDir(), manifest)
	g.must("SetLabel", &sdk.KeyValue{Key: "a"}, new(sdk.Empty))
	g.Close()
	g.reopen()
	g.gameServer()
	g.mu.Lock()
	judged := !g.begun.IsZero()
	g.mu.Unlock()
	if judged {
		t.Error("the health of an adopted process is judged before it has sent a sign")
	}
	stream, err := g.conn.NewStream(t.Context(), &grpc.StreamDesc{ClientStreams: true}, "/"+stable+"/Health", grpc.WaitForReady(true))
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.SendMsg(new(sdk.Empty)); err != nil {
		t.Fatal(err)
	}
	g.end("unhealthy")
}

// A watch gets the state at once, and then each change, or several combined.
func TestWatch(t *testing.T) {
	g := open(t, t.TempDir(), "")
	watch := func() grpc.ClientStream {
		t.Helper()
		stream, err := g.conn.NewStream(t.Context(), &grpc.StreamDesc{ServerStreams: true}, "/"+stable+"/WatchGameServer", grpc.WaitForReady(true))
		if err != nil {
			t.Fatal(err)
		}
		if err := stream.SendMsg(new(sdk.Empty)); err != nil {
			t.Fatal(err)
		}
		if err := stream.CloseSend(); err != nil {
			t.Fatal(err)
		}
		return stream
	}
	stream := watch()
	gs := new(sdk.GameServer)
	if err := stream.RecvMsg(gs); err != nil || gs.Status.State != string(Scheduled) {
		t.Fatalf("%v, %v", gs, err)
	}
	if ports := gs.Status.Ports; len(ports) != 2 || ports[0].Name != "default" || ports[0].Port != 7000 || ports[1].Name != "query" {
		t.Errorf("ports %v", ports)
	}
	g.must("Ready", new(sdk.Empty), new(sdk.Empty))
	for gs.Status.State != string(Ready) {
		if err := stream.RecvMsg(gs); err != nil {
			t.Fatal(err)
		}
	}
	for range watchesMax - 1 {
		if err := watch().RecvMsg(gs); err != nil {
			t.Fatal(err)
		}
	}
	if err := watch().RecvMsg(gs); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("one watch too many: %v", err)
	}
}

func TestBadInput(t *testing.T) {
	g := open(t, t.TempDir(), `{"kind":"GameServer","spec":{"counters":{"c":{"count":1,"capacity":5}},"lists":{"l":{"capacity":3,"values":["a"]}}}}`)
	for _, key := range []string{"", "a b", "-a", strings.Repeat("a", 60), "ü", "a/b"} {
		g.fails(codes.InvalidArgument, "SetLabel", &sdk.KeyValue{Key: key})
		g.fails(codes.InvalidArgument, "SetAnnotation", &sdk.KeyValue{Key: key})
	}
	g.fails(codes.InvalidArgument, "SetLabel", &sdk.KeyValue{Key: "a", Value: "a b"})
	g.fails(codes.InvalidArgument, "beta/UpdateCounter", &sdk.UpdateCounterRequest{})
	g.fails(codes.OutOfRange, "beta/UpdateCounter", &sdk.UpdateCounterRequest{CounterUpdateRequest: &sdk.CounterUpdateRequest{Name: "c", CountDiff: 1 << 62}})
	g.fails(codes.OutOfRange, "beta/UpdateCounter", &sdk.UpdateCounterRequest{CounterUpdateRequest: &sdk.CounterUpdateRequest{Name: "c", CountDiff: -1 << 63}})
	g.fails(codes.InvalidArgument, "beta/UpdateList", &sdk.UpdateListRequest{})
	g.fails(codes.OutOfRange, "beta/UpdateList", &sdk.UpdateListRequest{List: &sdk.List{Name: "l", Capacity: listMax + 1}})
	g.fails(codes.NotFound, "beta/UpdateList", &sdk.UpdateListRequest{List: &sdk.List{Name: "none"}})
	g.fails(codes.AlreadyExists, "beta/AddListValue", &sdk.AddListValueRequest{Name: "l", Value: "a"})
	g.fails(codes.NotFound, "beta/RemoveListValue", &sdk.RemoveListValueRequest{Name: "l", Value: "b"})
	g.fails(codes.InvalidArgument, "beta/AddListValue", &sdk.AddListValueRequest{Name: "l", Value: strings.Repeat("a", valueMax+1)})
	g.fails(codes.InvalidArgument, "alpha/PlayerConnect", &sdk.PlayerID{})
	g.fails(codes.Unimplemented, "None", new(sdk.Empty))

	for _, c := range []struct {
		verb, path, body string
		status           int
	}{
		{"POST", "/ready", "{", 400}, {"POST", "/health", "", 400}, {"PUT", "/metadata/label", `{"key":7}`, 400}, {"POST", "/reserve", `{"seconds":"x"}`, 400},
		{"GET", "/v1beta1/counters/none", "", 404}, {"POST", "/v1beta1/lists/l:none", "{}", 404}, {"POST", "/v1beta1/lists/l", "{}", 404}, {"POST", "/none", "", 404},
		{"PATCH", "/v1beta1/lists/l", `{"values":["a","a"]}`, 400}, {"PATCH", "/v1beta1/lists/l?update_mask=name", `{}`, 400}, {"DELETE", "/ready", "", 405},
		{"PUT", "/metadata/annotation", `{"key":"a","value":"` + strings.Repeat("a", messageMax) + `"}`, 400},
	} {
		if got, text := g.rest(c.verb, c.path, c.body); got != c.status {
			t.Errorf("%s %s %.60s: %d %s, want %d", c.verb, c.path, c.body, got, text, c.status)
		}
	}
	if got, text := g.rest("PATCH", "/v1beta1/lists/l", `{"values":["b","c"]}`); got != 200 || !strings.Contains(text, `"c"`) {
		t.Errorf("the values of a list: %d %s", got, text)
	}
}

func (g *game) rest(verb, path, body string) (int, string) {
	g.Helper()
	request, err := http.NewRequestWithContext(g.Context(), verb, fmt.Sprintf("http://127.0.0.1:%d%s", g.config.HTTPPort, path), strings.NewReader(body))
	if err != nil {
		g.Fatal(err)
	}
	res, err := http.DefaultClient.Do(request)
	if err != nil {
		g.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		g.Fatal(err)
	}
	return res.StatusCode, string(text)
}

// A hostile game gets no more than its share, and its agent keeps working.
func TestHostileGame(t *testing.T) {
	g := open(t, t.TempDir(), "")
	g.must("SetAnnotation", &sdk.KeyValue{Key: "first"}, new(sdk.Empty))
	if err := g.call("SetAnnotation", &sdk.KeyValue{Key: "a", Value: strings.Repeat("a", messageMax)}, new(sdk.Empty)); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("a message that is too long: %v", err)
	}
	fill := func(what string, set func(i int) error) {
		t.Helper()
		var err error
		for i := 0; err == nil && i < 10_000; i++ {
			err = set(i)
		}
		if status.Code(err) != codes.ResourceExhausted || !strings.Contains(err.Error(), what) {
			t.Errorf("it may set as many as it likes, or gets another error: %v, want %s", err, what)
		}
	}
	fill("200", func(i int) error {
		_, err := g.setLabel(&sdk.KeyValue{Key: strconv.Itoa(i)})
		return err
	})
	fill("bytes", func(i int) error {
		_, err := g.setAnnotation(&sdk.KeyValue{Key: strconv.Itoa(i), Value: strings.Repeat("a", 60_000)})
		return err
	})
	raw, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(g.config.GRPCPort)))
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	raw.Write(bytes.Repeat([]byte("no HTTP/2 at all\n"), 1000))
	g.gameServer()

	later := steady.Nanos(time.Now().Add(time.Hour)) // until when the buckets stay empty, however slow this machine is
	for g.turns.Take(turnRate, later) {
	}
	g.fails(codes.ResourceExhausted, "Ready", new(sdk.Empty))
	for g.calls.Take(callRate, later) {
	}
	g.fails(codes.ResourceExhausted, "alpha/GetPlayerCount", new(sdk.Empty))
	if got, text := g.rest("GET", "/gameserver", ""); got != 429 {
		t.Errorf("over REST: %d %s", got, text)
	}

	request := func() (answered bool) {
		t.Helper()
		c, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(g.config.HTTPPort)))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() }) // they are held until then
		c.SetDeadline(time.Now().Add(patience))
		io.WriteString(c, "GET /none HTTP/1.1\r\nHost: localhost\r\n\r\n") // one that is closed already shows below
		_, err = c.Read(make([]byte, 1))
		if os.IsTimeout(err) {
			t.Fatal("a connection is neither served nor closed")
		}
		return err == nil
	}
	answered := 0
	for range connectionsMax + 3 {
		if request() {
			answered++
		}
	}
	if answered > connectionsMax || answered < connectionsMax/2 { // those above may not have gone yet
		t.Errorf("%d connections are served at a time, want %d", answered, connectionsMax)
	}
}

func TestManifests(t *testing.T) {
	for text, want := range map[string]string{
		"apiVersion: agones.dev/v1": "JSON",
		`{"kind":"Pod"}`:            `kind: "Pod"`,
		`{"kind":"GameServer","spec":{"health":{"periodSeconds":-1}}}`:             "spec.health.periodSeconds: -1",
		`{"kind":"GameServer","spec":{"counters":{"c":{"count":2,"capacity":1}}}}`: "spec.counters.c",
		`{"kind":"GameServer","spec":{"lists":{"l":{"capacity":1001}}}}`:           "spec.lists.l",
		`{"kind":"GameServer","metadata":{"labels":{"muster/x":"y"}}}`:             "muster/",
	} {
		if _, err := parse([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
	gs, err := parse([]byte(`{"kind":"GameServer","spec":{"health":{"disabled":true,"periodSeconds":7,"failureThreshold":2,"initialDelaySeconds":0},"players":{"initialCapacity":9}}}`))
	if err != nil {
		t.Fatal(err)
	}
	m := gs.begin()
	if m.Health != (Health{Disabled: true, Period: 7 * time.Second, Failures: 2}) || m.Players.Capacity != 9 {
		t.Errorf("%+v", m)
	}
	var none *GameServer
	if m := none.begin(); m.Health != defaultHealth {
		t.Errorf("%+v", m)
	}
}
