package serverlink

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/musterhq/muster/internal/archive"
	archivepebble "github.com/musterhq/muster/internal/archive/pebble"
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/session"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/journal"
	"github.com/musterhq/muster/internal/journal/journaltest"
	"github.com/musterhq/muster/internal/linkclient"
	"github.com/musterhq/muster/internal/listen"
	"github.com/musterhq/muster/internal/listen/devca"
	"github.com/musterhq/muster/internal/logtest"
	"github.com/musterhq/muster/internal/waittest"
)

const (
	testFleet    = "fleet-2222bbbb-33cc-44dd-55ee-6666ffff77aa"
	testCompute  = "DesktopPC"
	testLocation = "custom-home"
	testRegion   = "us-east-1"
)

// world is a whole service on a port, without the API: commands go to the engine directly. Its clock is the real one
// plus an offset that tests set, and it can be stopped and started again.
type world struct {
	testing.TB
	config  Config
	cell    cell.Config
	disk    *journaltest.Memory
	archive archive.Archive
	secret  identity.CellSecret
	keys    *testKeys
	ca      *devca.Authority
	moved   atomic.Int64 // the clock is ahead by so much
	hold    atomic.Pointer[chan struct{}]
	logged  *logtest.Log // nil: no log
	queue   int          // commands that may wait; 0: the engine's default
	full    atomic.Bool  // the disk has no room

	engine  *engine.Engine
	journal journal.Journal
	door    *Server
	port    *listen.Server
	addr    string
	stop    func()
}

// quick returns periods for tests that wait for them to pass.
func quick() Periods {
	p := DefaultPeriods()
	p.Settle, p.Superseded, p.Watch = 50*time.Millisecond, 50*time.Millisecond, 5*time.Millisecond
	return p
}

func newWorld(t testing.TB, change ...func(*world)) *world {
	t.Helper()
	keys := newTestKeys(t)
	ca, err := devca.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	arc, err := archivepebble.Open(archivepebble.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = arc.Close() })
	w := &world{TB: t, cell: cell.DefaultConfig(), disk: journaltest.NewMemory(1), archive: arc, secret: keys.CellSecret(), keys: keys, ca: ca}
	w.config.Periods = quick()
	for _, f := range change {
		f(w)
	}
	w.start()
	t.Cleanup(func() { w.stop() })
	w.must(&hosting.CreateLocation{Name: testLocation, Region: testRegion})
	w.must(&hosting.CreateFleet{Fleet: fleet.Fleet{ID: testFleet, Region: testRegion, Name: "dev"}, Locations: []string{testLocation}})
	w.must(&hosting.RegisterCompute{Compute: fleet.Compute{FleetID: testFleet, Name: testCompute, Location: testLocation, IPAddress: "127.0.0.1", CertificatePath: "/tls/cert.pem"}})
	return w
}

// heldJournal lets a test delay appends.
type heldJournal struct {
	journal.Journal
	w *world
}

func (j heldJournal) Append(ctx context.Context, next uint64, batch []byte) error {
	if gate := j.w.hold.Load(); gate != nil {
		<-*gate
	}
	return j.Journal.Append(ctx, next, batch)
}

func (w *world) start() {
	w.Helper()
	j, err := w.disk.Open()
	if err != nil {
		w.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	if w.logged != nil {
		log = slog.New(slog.NewTextHandler(w.logged, nil))
	}
	if os.Getenv("MUSTER_TEST_LOG") != "" {
		log = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	e, err := engine.Open(context.Background(), engine.Config{Journal: heldJournal{j, w}, Archive: w.archive, Cell: w.cell, Now: w.now, Log: log, QueueMax: w.queue, Short: w.short})
	if err != nil {
		w.Fatal(err)
	}
	w.engine, w.journal = e, j
	ctx, cancel := context.WithCancel(context.Background())
	cfg := w.config
	cfg.Engine, cfg.Secret, cfg.Log = e, w.secret, log
	cfg.Keys = w.keys
	w.door = New(ctx, cfg)
	waittest.Until(w, "a port to listen on", func() bool { // after a restart another client may hold the address for a moment
		w.port, err = listen.Open(listen.Config{Addr: cmp.Or(w.addr, "127.0.0.1:0"), Certificate: w.ca.Certificate, Log: log, Handler: http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			if !IsUpgrade(r) {
				http.NotFound(rw, r)
				return
			}
			w.door.ServeHTTP(rw, r)
		})})
		return err == nil
	})
	w.addr = w.port.Addr().String()
	served := make(chan error, 1)
	go func() { served <- w.port.Serve() }()
	w.stop = func() {
		cancel()
		if err := w.port.Stop(context.Background()); err != nil {
			w.Error(err)
		}
		if err := <-served; err != nil {
			w.Error(err)
		}
		w.door.Close()
		_ = e.Close() // its failure, if any, is what the test is about
		_ = j.Close()
	}
}

// restart stops the service normally, lets time pass and starts it again at the same address.
func (w *world) restart(down time.Duration) {
	w.Helper()
	w.stop()
	w.moved.Add(int64(down))
	w.start()
}

func (w *world) short() error {
	if w.full.Load() {
		return errors.New("no space left on the disk")
	}
	return nil
}

func (w *world) now() time.Time { return time.Now().Add(time.Duration(w.moved.Load())) }

// pass moves the clock.
func (w *world) pass(d time.Duration) {
	w.moved.Add(int64(d))
	w.engine.Poke()
}

func (w *world) must(cmd kernel.Command) {
	w.Helper()
	if err := w.engine.Do(context.Background(), cmd); err != nil {
		w.Fatalf("%T: %v", cmd, err)
	}
}

func (w *world) token() string {
	w.Helper()
	cmd := &hosting.IssueToken{Fleet: testFleet, Compute: testCompute}
	w.must(cmd)
	return w.secret.ProcessToken(testFleet, testCompute, cmd.Registered.Registration, cmd.Generation)
}

func (w *world) process(id string) fleet.Process {
	w.Helper()
	var p fleet.Process
	err := w.engine.Read(context.Background(), func(v *cell.View) error {
		p, _ = v.Process(fleet.Key{Fleet: testFleet, Compute: testCompute, Process: id})
		return nil
	})
	if err != nil {
		w.Fatal(err)
	}
	return p
}

func (w *world) eligible(id string) bool { p := w.process(id); return p.Eligible() }

func (w *world) game(id session.ID) session.GameSession {
	w.Helper()
	g, err := w.engine.GameSession(context.Background(), id)
	if err != nil {
		w.Fatal(err)
	}
	return g
}

// create makes a game session once a process is free.
func (w *world) create(players int32) session.GameSession {
	w.Helper()
	cmd := hosting.CreateGameSession{Fleet: testFleet, Location: testLocation, Name: "gsess-" + uuid.NewString(), Title: "Debug", PlayersMax: players}
	waittest.Until(w, "a process for a game session", func() bool { return w.engine.Do(context.Background(), &cmd) == nil })
	return cmd.Game
}

// reserve takes a seat and returns the player session's id.
func (w *world) reserve(game session.ID, player string) string {
	w.Helper()
	id := domain.UUID(uuid.New())
	w.must(&hosting.ReservePlayers{Game: game, Players: []hosting.NewPlayer{{ID: domain.PlayerSessionID(id), Player: player, Data: "data of " + player}}})
	return "psess-" + id.String()
}

func (w *world) playerStatus(id string) string {
	w.Helper()
	u, _ := domain.ParseUUID(id[len("psess-"):])
	p, err := w.engine.PlayerSession(context.Background(), domain.PlayerSessionID(u))
	if err != nil {
		w.Fatal(err)
	}
	return p.Status.String()
}

func (w *world) fleetEvents() []string {
	w.Helper()
	var codes []string
	err := w.engine.Read(context.Background(), func(v *cell.View) error {
		for _, e := range v.FleetEvents(testFleet, 0, 0, 0, 1000) {
			codes = append(codes, e.Code)
		}
		return nil
	})
	if err != nil {
		w.Fatal(err)
	}
	return codes
}

// server is a game server at the other end.
type server struct {
	*linkclient.Client
	w      *world
	opt    linkclient.Options
	pushes chan pushed
	closed chan error
}

type pushed struct {
	action string
	game   linkclient.GameSession
	fresh  linkclient.Refresh
	until  int64
}

// connect opens a connection for a process; change alters its options first.
func (w *world) connect(process string, change ...func(*linkclient.Options)) *server {
	w.Helper()
	s, err := w.tryConnect(process, change...)
	if err != nil {
		w.Fatal(err)
	}
	return s
}

func (w *world) tryConnect(process string, change ...func(*linkclient.Options)) (*server, error) {
	s := &server{w: w, pushes: make(chan pushed, 1000), closed: make(chan error, 1)}
	s.opt = linkclient.Options{
		URL: "ws://" + w.addr + "/", Process: process, Compute: testCompute, Fleet: testFleet, Token: w.token(), TLS: &tls.Config{RootCAs: w.ca.Pool()},
		OnPush: func(_ *linkclient.Client, p linkclient.Push) {
			x := pushed{action: p.Action}
			var err error
			switch p.Action {
			case "CreateGameSession":
				x.game, err = p.GameSession()
			case "RefreshConnection":
				x.fresh, err = p.Refresh()
			case "TerminateProcess":
				x.until, err = p.TerminationTime()
			}
			if err != nil {
				w.Errorf("push %s: %v", p.Raw, err)
			}
			s.pushes <- x
		},
		OnClose: func(_ *linkclient.Client, err error) { s.closed <- err },
	}
	for _, f := range change {
		f(&s.opt)
	}
	c, err := linkclient.Dial(context.Background(), s.opt)
	if err != nil {
		return nil, err
	}
	s.Client = c
	w.Cleanup(c.Drop)
	return s, nil
}

// ready connects a process and makes it eligible for game sessions.
func (w *world) ready(process string, change ...func(*linkclient.Options)) *server {
	w.Helper()
	s := w.connect(process, change...)
	s.ok(s.Activate(context.Background(), 7777))
	s.ok(s.Heartbeat(context.Background(), true))
	waittest.Until(w, process+" to be eligible", func() bool { return w.eligible(process) })
	return s
}

// again opens another connection of the same process.
func (s *server) again(change ...func(*linkclient.Options)) *server {
	s.w.Helper()
	return s.w.connect(s.opt.Process, change...)
}

func (s *server) ok(err error) {
	s.w.Helper()
	if err != nil {
		s.w.Fatal(err)
	}
}

// fails checks that a request got this status.
func (s *server) fails(err error, status int) string {
	s.w.Helper()
	e, ok := errors.AsType[*linkclient.StatusError](err)
	if !ok || e.Status != status {
		s.w.Errorf("got %v, want status %d", err, status)
		return ""
	}
	return e.Message
}

// push waits for the next push, which must be this one.
func (s *server) push(action string) pushed {
	s.w.Helper()
	select {
	case p := <-s.pushes:
		if p.action != action {
			s.w.Fatalf("got push %s, want %s", p.action, action)
		}
		return p
	case <-time.After(time.Minute):
		s.w.Fatalf("gave up waiting for push %s", action)
	}
	return pushed{}
}

// noPush checks that nothing was pushed before the answer to a request that is sent now.
func (s *server) noPush() {
	s.w.Helper()
	s.ok(s.Heartbeat(context.Background(), true))
	select {
	case p := <-s.pushes:
		s.w.Errorf("unexpected push %s", p.action)
	default:
	}
}

// ended waits for the end of the connection and returns the close code, or 0 if there was no close frame.
func (s *server) ended() int {
	s.w.Helper()
	select {
	case err := <-s.closed:
		if e, ok := errors.AsType[*linkclient.CloseError](err); ok {
			return e.Code
		}
		return 0
	case <-time.After(time.Minute):
		s.w.Fatal("gave up waiting for the end of the connection")
	}
	return -1
}

// host gives the only free process a game session and activates it.
func (s *server) host(players int32) session.GameSession {
	s.w.Helper()
	return s.w.hostOn(map[string]*server{s.opt.Process: s}, players)
}

// hostOn makes a game session, and activates it on the process that got it.
func (w *world) hostOn(servers map[string]*server, players int32) session.GameSession {
	w.Helper()
	g := w.create(players)
	s := servers[g.ProcessID]
	if s == nil {
		w.Fatalf("process %s got the game session", g.ProcessID)
	}
	p := s.push("CreateGameSession")
	if want := g.ID.ARN(testRegion); p.game.GameSessionId != want {
		w.Fatalf("pushed %s, want %s", p.game.GameSessionId, want)
	}
	s.ok(s.ActivateGameSession(context.Background(), p.game.GameSessionId))
	return w.game(g.ID)
}

func secure(o *linkclient.Options) { o.URL = "wss" + o.URL[len("ws"):] }

func path(p string) func(*linkclient.Options) {
	return func(o *linkclient.Options) { o.URL = o.URL[:len(o.URL)-1] + p }
}

func named(i int) string { return fmt.Sprintf("process-%d", i) }
