package serverlink

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/session"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/linkclient"
	"github.com/musterhq/muster/internal/rate"
	"github.com/musterhq/muster/internal/waittest"
)

// docs/spec/server-sdk.md#accept-11: after one unhealthy report a process gets no session. A healthy report in between prevents further
// steps. After too long without one the process is asked to end, and then ended.
func TestUnhealthy(t *testing.T) {
	w := newWorld(t)
	s := w.ready("p")
	s.ok(s.Heartbeat(background, false))
	waittest.Until(w, "the process to be unhealthy", func() bool { return w.process("p").Health == fleet.Unhealthy })
	if w.eligible("p") {
		t.Error("eligible although unhealthy")
	}
	w.pass(2 * time.Minute)
	s.ok(s.Heartbeat(background, true))
	waittest.Until(w, "the process to be healthy", func() bool { return w.eligible("p") })
	w.pass(2 * time.Minute)
	s.noPush()
	for range 3 {
		s.ok(s.Heartbeat(background, false))
		waittest.Until(w, "the process to be unhealthy", func() bool { return w.process("p").Health == fleet.Unhealthy })
		w.pass(time.Minute + time.Second)
	}
	s.push("TerminateProcess")
	if !slices.Contains(w.fleetEvents(), "SERVER_PROCESS_TERMINATED_UNHEALTHY") {
		t.Errorf("fleet events %v", w.fleetEvents())
	}
	w.pass(w.cell.Hosting.TerminateGrace)
	if code := s.ended(); code != 1000 {
		t.Errorf("connection ended with %d, want close code 1000", code)
	}
}

// A process that never reports healthy is asked to end, too.
func TestNeverHealthy(t *testing.T) {
	w := newWorld(t)
	s := w.connect("p")
	s.ok(s.Activate(background, 7777))
	s.ok(s.Heartbeat(background, false))
	waittest.Until(w, "the report", func() bool { return w.process("p").Health == fleet.Unhealthy })
	w.pass(w.cell.Hosting.UnhealthyAfter + time.Second)
	s.push("TerminateProcess")
}

func TestSilence(t *testing.T) {
	w := newWorld(t)
	s := w.ready("p")
	w.passLinks(w.config.Periods.Silence)
	waittest.Until(w, "the silence to be noticed", func() bool { return w.process("p").Health == fleet.Unhealthy })
	s.ok(s.Heartbeat(background, true))
	waittest.Until(w, "the process to be healthy again", func() bool { return w.process("p").Health == fleet.Healthy })
	w.passLinks(w.config.Periods.Silence)
	waittest.Until(w, "the silence to be noticed again", func() bool { return w.process("p").Health == fleet.Unhealthy })
	w.pass(w.cell.Hosting.UnhealthyAfter)
	s.push("TerminateProcess")
}

// docs/spec/server-sdk.md#accept-10: a process that is told to end ends normally. One that does not is ended by force, and its connection closed.
func TestTermination(t *testing.T) {
	w := newWorld(t)
	s := w.ready("p")
	g := s.host(1)
	w.must(&hosting.TerminateGameSession{ID: g.ID})
	p := s.push("TerminateProcess")
	if left := time.UnixMilli(p.until).Sub(w.now()); left < w.cell.Hosting.TerminateGrace-time.Minute || left > w.cell.Hosting.TerminateGrace {
		t.Errorf("%s to end, want about %s", left, w.cell.Hosting.TerminateGrace)
	}
	if got := w.game(g.ID).Status; got != session.Terminating {
		t.Errorf("game session is %s", got)
	}
	s.ok(s.Terminate(background))
	if got := w.game(g.ID).Status; got != session.Terminated {
		t.Errorf("game session is %s", got)
	}
	s.overstays()

	s = w.ready("stubborn")
	g = s.host(1)
	w.must(&hosting.TerminateGameSession{ID: g.ID})
	s.push("TerminateProcess")
	w.pass(w.cell.Hosting.TerminateGrace + time.Second)
	if code := s.ended(); code != 1000 {
		t.Errorf("connection ended with %d, want close code 1000", code)
	}
	if p := w.process("stubborn"); p.EndReason != fleet.EndedForced {
		t.Errorf("process ended for reason %d", p.EndReason)
	}
	s = s.again() // it still runs, and comes back: a survivor
	s.fails(s.SetPolicy(background, g.ID.ARN(testRegion), "DENY_ALL"), 400)
	s.push("TerminateProcess")
	s.ok(s.Heartbeat(background, true))
	s.noPush()
	if w.eligible("stubborn") {
		t.Error("a survivor is eligible")
	}
}

func TestNeverActivated(t *testing.T) {
	w := newWorld(t)
	s := w.ready("p")
	g := w.create(1)
	s.push("CreateGameSession")
	w.pass(w.cell.Hosting.Activation + time.Second)
	s.push("TerminateProcess")
	if got := w.game(g.ID).Status; got != session.Terminated {
		t.Errorf("game session is %s", got)
	}
	s.fails(s.ActivateGameSession(background, g.ID.ARN(testRegion)), 400)
}

func TestNeverReady(t *testing.T) {
	w := newWorld(t)
	s := w.connect("p")
	s.ok(s.Heartbeat(background, true)) // too early, but no harm
	w.pass(w.cell.Hosting.ReadyTimeout + time.Second)
	if code := s.ended(); code != 1000 {
		t.Errorf("connection ended with %d, want close code 1000", code)
	}
	if events := w.fleetEvents(); !slices.Contains(events, "SERVER_PROCESS_PROCESS_READY_TIMEOUT") {
		t.Errorf("fleet events %v", events)
	}
}

// docs/spec/server-sdk.md#lives: a process that comes back after the service gave it up is asked to end. If it does not, its connection is
// closed, and the process is refused for a while.
func TestSurvivor(t *testing.T) {
	w := newWorld(t)
	s := w.ready("p")
	g := s.host(1)
	s.Drop()
	waittest.Until(w, "the loss to be noticed", func() bool { return !w.process("p").Linked })
	w.pass(w.cell.Hosting.LinkGrace + time.Second)
	waittest.Until(w, "the process to count as crashed", func() bool { return w.process("p").State == fleet.Ended })

	s = s.again()
	s.ok(s.Heartbeat(background, true)) // heartbeats are answered with 200
	s.push("TerminateProcess")
	s.fails(s.ActivateGameSession(background, g.ID.ARN(testRegion)), 400)
	s.fails(describeError(s, linkclient.PlayerQuery{GameSessionId: g.ID.ARN(testRegion)}), 400)
	s.noPush() // once for a connection
	w.passLinks(w.config.Periods.Evict + time.Second)
	if code := s.ended(); code != 1000 {
		t.Errorf("connection ended with %d, want close code 1000", code)
	}
	_, err := w.tryConnect("p")
	refusedWith(t, err, 403)
	w.passLinks(w.config.Periods.Ban + time.Second)
	w.connect("p")
}

// A game session waits for a connection: an older one that is still open when the newer one is lost gets no pushes.
func TestNoPromptWithoutACurrentConnection(t *testing.T) {
	w := newWorld(t)
	s := w.ready("p")
	p := w.door.known(w.process("p").Key)
	older := p.currentLink()
	held := make(chan struct{})
	older.enqueueOwn(func(*link) { <-held })
	g := w.create(1)
	waittest.Until(t, "the push to be a task", func() bool {
		older.work.Lock()
		defer older.work.Unlock()
		return len(older.work.tasks) > 0
	})
	p.mu.Lock()
	p.current = nil // a newer one has come and gone
	p.mu.Unlock()
	close(held)
	waittest.Until(t, "the task to be done", func() bool { return !older.busy() })
	if w.game(g.ID).Prompted {
		t.Error("the game session counts as sent")
	}
	s.again().push("CreateGameSession")
}

// docs/spec/server-sdk.md#accept-17 and #lives: ids may be used again.
func TestSameProcessID(t *testing.T) {
	w := newWorld(t)
	s := w.ready("p")
	g := s.host(1)
	arn := g.ID.ARN(testRegion)

	second := w.connect("p") // a second process took the id while the first had a session
	second.ok(second.Activate(background, 7778))
	if got := w.game(g.ID).Status; got != session.Terminated {
		t.Errorf("game session of the first process is %s", got)
	}
	if events := w.fleetEvents(); !slices.Contains(events, "SERVER_PROCESS_CRASHED") {
		t.Errorf("fleet events %v", events)
	}
	second.ok(second.Heartbeat(background, true))
	waittest.Until(w, "the second process to be eligible", func() bool { return w.eligible("p") })
	if p := w.process("p"); p.Port != 7778 || p.Life != 2 {
		t.Errorf("got port %d in life %d", p.Port, p.Life)
	}
	second.fails(second.ActivateGameSession(background, arn), 400)

	second.ok(second.Terminate(background)) // and once more, after it has ended: on another connection …
	second.Drop()
	third := w.ready("p")
	third.host(1)
	third.ok(third.Terminate(background)) // … and on the same one, again and again
	for life := 4; life < 30; life++ {
		third.ok(third.Activate(background, 7000+life))
		third.ok(third.Heartbeat(background, true))
		g := third.host(1)
		third.noPush()
		third.ok(third.Terminate(background))
		if got := w.game(g.ID).Status; got != session.Terminated {
			t.Fatalf("game session of life %d is %s", life, got)
		}
	}
	if p := w.process("p"); p.Life != 29 {
		t.Errorf("the id is in life %d, want 29", p.Life)
	}
}

// A process that ended normally keeps its connection only briefly, unless a new process begins on it.
func TestReusedConnectionStays(t *testing.T) {
	w := newWorld(t)
	s := w.ready("p")
	s.ok(s.Terminate(background))
	s.ok(s.Activate(background, 7777))
	s.ok(s.Heartbeat(background, true))
	w.passLinks(3 * w.config.Periods.Exit)
	s.ok(s.Heartbeat(background, true))
	s.noPush()
	s.ok(s.Terminate(background))
	s.overstays()
}

// overstays checks that the connection of a process that has ended normally is closed when the process should have exited.
func (s *server) overstays() {
	s.w.Helper()
	p := s.known()
	waittest.Until(s.w, "its end to be noticed", func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return !p.exitBy.IsZero()
	})
	s.w.passLinks(s.w.config.Periods.Exit + time.Second)
	if code := s.ended(); code != 1000 {
		s.w.Errorf("connection ended with %d, want close code 1000", code)
	}
}

// known returns the door's record of the process.
func (s *server) known() *process {
	return s.w.door.known(fleet.Key{Fleet: testFleet, Compute: testCompute, Process: s.opt.Process})
}

// The report of a process's end may arrive after the next process has begun on its connection. The first heartbeat of the next process
// counts nevertheless.
func TestLateEndOfTheProcessBefore(t *testing.T) {
	w := newWorld(t, func(w *world) { w.config.Periods.Settle = time.Hour })
	s := w.ready("p")
	s.ok(s.Terminate(background))
	s.ok(s.Activate(background, 7777))
	w.door.processEnded(&hosting.ProcessEnded{Process: s.known().key, Reason: fleet.EndedNormally})
	s.ok(s.Heartbeat(background, true))
	waittest.Until(w, "the process to be eligible", func() bool { return w.eligible("p") })
}

// The state makes the service ask a connecting game server to end. A late event causes no second message.
func TestToldToEndOnce(t *testing.T) {
	w := newWorld(t)
	s := w.ready("p")
	g := s.host(1)
	w.must(&hosting.TerminateGameSession{ID: g.ID})
	s.push("TerminateProcess")
	asked := &hosting.ProcessTerminationAsked{Process: s.known().key, Time: w.process("p").TerminationTime}
	w.door.follow(engine.Committed{Events: []kernel.Emitted{{Event: asked}}})
	s.noPush()
	s = s.again()
	s.push("TerminateProcess") // the earlier message may not have arrived
	w.door.follow(engine.Committed{Events: []kernel.Emitted{{Event: asked}}})
	s.noPush()
}

func TestDeregisteredCompute(t *testing.T) {
	w := newWorld(t)
	s := w.ready("p")
	g := s.host(1)
	w.must(&hosting.DeregisterCompute{Fleet: testFleet, Name: testCompute})
	s.push("TerminateProcess")
	s.fails(s.ActivateGameSession(background, g.ID.ARN(testRegion)), 400)
	s.ok(s.Heartbeat(background, true))
}

// A broken or hostile game server, which sends messages that no SDK sends, harms only its own requests.
func TestLies(t *testing.T) {
	w := newWorld(t, func(w *world) {
		w.config.Rates = DefaultRates()
		w.config.Rates.Reads = rate.PerSecond(0.001, 5)
		w.config.Rates.Players = rate.PerSecond(0.001, 1000)
	})
	s, other := w.ready("p"), w.connect("other")
	g := s.host(2)
	arn := g.ID.ARN(testRegion)
	before := w.door.Stats().Garbage
	garbage := []string{"", "{", "null", `"text"`, "[]", `{"Action":"HeartbeatServerProcess"}`, `{"Action":"HeartbeatServerProcess","RequestId":""}`,
		strings.Repeat("[", 1000), "\x00\xff", `{"Action":"CreateGameSession","RequestId":"1"}`, `{"Action":"TerminateProcess","RequestId":"1"}`}
	for _, text := range garbage {
		s.ok(s.Text(text))
	}
	s.ok(s.Frame(2, []byte{1, 2, 3})) // a binary frame
	s.noPush()
	if got := w.door.Stats().Garbage - before; got != uint64(len(garbage)+1) {
		t.Errorf("%d messages counted as garbage, want %d", got, len(garbage)+1)
	}
	_, err := s.Do(background, "SetNothing", `"x":"`+strings.Repeat("y", 1<<20)+`"`) // a megabyte is taken
	s.fails(err, 400)
	for i := range 6 {
		_, err := s.DescribePlayers(background, linkclient.PlayerQuery{GameSessionId: arn})
		if i < 5 {
			s.ok(err)
		} else {
			s.fails(err, 429)
		}
	}
	ann := w.reserve(g.ID, "ann")
	other.fails(other.AcceptPlayer(background, arn, ann), 403)
	s.ok(s.AcceptPlayer(background, arn, ann))

	flood := make(chan int, 5000)
	for range cap(flood) {
		other.Go("RemovePlayerSession", linkclient.PlayerMembers(arn, ann), func(a linkclient.Answer, err error) {
			if err != nil {
				t.Errorf("flooding closed the connection: %v", err)
			}
			flood <- a.Status
		})
	}
	statuses := map[int]int{}
	for range cap(flood) {
		statuses[<-flood]++
	}
	if len(statuses) != 2 || statuses[403] == 0 || statuses[429] == 0 {
		t.Errorf("flood was answered with %v, want 403 and 429", statuses)
	}
	if got := w.playerStatus(ann); got != "ACTIVE" {
		t.Errorf("player is %s", got)
	}
	s.ok(other.Raw([]byte{0x81, 2, 'h', 'i'})) // a frame without a mask: against the rules of WebSocket itself
	other.ended()
	s.ok(s.Heartbeat(background, true))
}

// A game server that does not read is disconnected, and delays no other.
func TestStuckReader(t *testing.T) {
	w := newWorld(t, func(w *world) { w.config.Periods.Stuck = 2 * time.Second })
	s, other := w.ready("p"), w.connect("other")
	g := s.host(50)
	for i := range 50 {
		w.must(&hosting.ReservePlayers{Game: g.ID, Players: []hosting.NewPlayer{{ID: domain.PlayerSessionID(domain.UUID(uuid.New())), Player: named(i), Data: strings.Repeat("d", 2000)}}})
	}
	block := make(chan struct{})
	for i := range 250 { // 100 kB each; no socket buffers take all of them
		s.Go("DescribePlayerSessions", linkclient.GameSessionMembers(g.ID.ARN(testRegion)), func(linkclient.Answer, error) {
			if i == 0 {
				<-block
			}
		})
	}
	waittest.Until(w, "the stuck connection to be dropped", func() bool { return !w.process("p").Linked })
	other.ok(other.Heartbeat(background, true))
	close(block)
	s.ended()
}

// A connection with an ended process's id that sends nothing is closed at the time by which a new process would have to be
// ready.
func TestSilentSurvivor(t *testing.T) {
	w := newWorld(t)
	s := w.ready("p")
	s.ok(s.Terminate(background))
	s.Drop()
	s = s.again()
	p := s.known()
	waittest.Until(w, "the survivor to be noticed", func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return !p.evictBy.IsZero()
	})
	w.passLinks(w.cell.Hosting.ReadyTimeout + time.Second)
	if code := s.ended(); code != 1000 {
		t.Errorf("connection ended with %d, want close code 1000", code)
	}
	s.again() // it was never told to end, so it is not refused
}
