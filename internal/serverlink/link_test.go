package serverlink

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/session"
	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/linkclient"
	"github.com/musterhq/muster/internal/sigv4"
	"github.com/musterhq/muster/internal/waittest"
)

func refusedWith(t *testing.T, err error, status int) {
	t.Helper()
	if r, ok := errors.AsType[*linkclient.RefusedError](err); !ok || r.Status != status {
		t.Errorf("got %v, want HTTP %d", err, status)
	}
}

func TestRefusedConnections(t *testing.T) {
	w := newWorld(t)
	for name, tc := range map[string]struct {
		change func(*linkclient.Options)
		status int
	}{
		"wrong token":     {func(o *linkclient.Options) { o.Token = "nonsense" }, http.StatusForbidden},
		"no token":        {func(o *linkclient.Options) { o.Token = "" }, http.StatusForbidden},
		"unknown compute": {func(o *linkclient.Options) { o.Compute = "Other" }, http.StatusForbidden},
		"unknown fleet":   {func(o *linkclient.Options) { o.Fleet = "fleet-x" }, http.StatusForbidden},
		"no process":      {func(o *linkclient.Options) { o.Process = "" }, http.StatusBadRequest},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := w.tryConnect("p", tc.change)
			refusedWith(t, err, tc.status)
		})
	}
	if p := w.process("p"); p.State != 0 {
		t.Errorf("a refused connection made a process: %+v", p)
	}
}

// The token of the previous generation is valid until it expires. With an expired one a live process that has lost its connection may
// reconnect. It cannot start a process or take one over.
func TestTokensExpire(t *testing.T) {
	w := newWorld(t)
	first := w.token()
	old := func(o *linkclient.Options) { o.Token = first }
	w.connect("early", old)
	w.pass(w.cell.Hosting.TokenLife - w.cell.Hosting.TokenOverlap + time.Minute)
	w.token() // the next one is issued
	later := w.ready("later", old)
	w.pass(w.cell.Hosting.TokenOverlap)
	_, err := w.tryConnect("too late", old)
	refusedWith(t, err, http.StatusForbidden)
	_, err = w.tryConnect("later", old) // the real one is connected
	refusedWith(t, err, http.StatusForbidden)
	later.Drop()
	waittest.Until(w, "the connection to be lost", func() bool { return !w.process("later").Linked })
	w.connect("later", old)
	w.connect("new")
}

// Server SDKs never correct their clock, so it may be further off than the clock of an API client.
func TestGameServersClockMayBeFifteenMinutesOff(t *testing.T) {
	w := newWorld(t)
	key, err := w.keys.Create(identity.Backend, "game servers")
	if err != nil {
		t.Fatal(err)
	}
	for _, skew := range []time.Duration{sigv4.ServerSkew, 2 * sigv4.ServerSkew} { // the second one by a reload
		w.door.SetClockSkew(skew)
		for off, accepted := range map[time.Duration]bool{-skew - time.Minute: false, -skew + time.Minute: true, 0: true, skew - time.Minute: true, skew + time.Minute: false} {
			_, err := w.tryConnect(fmt.Sprintf("p%v%v", skew, off), func(o *linkclient.Options) {
				o.Query = linkclient.SigV4Query(*o, key.ID, key.Secret, testRegion, time.Now().UTC().Add(off))
			})
			if accepted && err != nil {
				t.Errorf("a clock that is off by %s: %v", off, err)
			}
			if !accepted {
				refusedWith(t, err, http.StatusForbidden)
			}
		}
	}
}

func TestSignedConnections(t *testing.T) {
	w := newWorld(t)
	key, err := w.keys.Create(identity.Backend, "game servers")
	if err != nil {
		t.Fatal(err)
	}
	reader, err := w.keys.Create(identity.ReadOnly, "looks only")
	if err != nil {
		t.Fatal(err)
	}
	signed := func(k identity.AccessKey, secret, language string, at time.Time) func(*linkclient.Options) {
		return func(o *linkclient.Options) {
			o.SDKLanguage = language
			o.Query = linkclient.SigV4Query(*o, k.ID, secret, testRegion, at)
		}
	}
	_, err = w.tryConnect("p", signed(key, "another secret", "Go", w.now().UTC()))
	refusedWith(t, err, http.StatusForbidden)
	_, err = w.tryConnect("p", signed(reader, reader.Secret, "Go", w.now().UTC()))
	refusedWith(t, err, http.StatusForbidden)
	_, err = w.tryConnect("p", signed(key, key.Secret, "Go", w.now().UTC().Add(-time.Hour)))
	refusedWith(t, err, http.StatusForbidden)
	eastern := w.now().In(time.FixedZone("far east", 14*3600)) // the C# SDK signs with local time but writes Z
	_, err = w.tryConnect("p", signed(key, key.Secret, "CSharp", eastern))
	refusedWith(t, err, http.StatusForbidden)

	at := w.now().UTC()
	s := w.connect("p", signed(key, key.Secret, "Cpp", at))
	s.ok(s.Activate(background, 7777))
	s.ok(s.Heartbeat(background, true))
	p := s.push("RefreshConnection") // a token replaces the signature as soon as the process is ready
	if !strings.HasPrefix(p.fresh.RefreshConnectionEndpoint, "ws://"+w.addr) {
		t.Errorf("refresh leads to %s, want to where it came from", p.fresh.RefreshConnectionEndpoint)
	}
	s.Drop()
	s = s.again(signed(key, key.Secret, "Cpp", at.Add(-20*time.Minute))) // a live process may repeat its signature for a while
	_, err = w.tryConnect("p", signed(key, key.Secret, "Cpp", at.Add(-26*time.Minute)))
	refusedWith(t, err, http.StatusForbidden)
	_, err = w.tryConnect("p", signed(key, key.Secret, "Cpp", at.Add(16*time.Minute)))
	refusedWith(t, err, http.StatusForbidden)
	_, err = w.tryConnect("other", signed(key, key.Secret, "Cpp", at.Add(-20*time.Minute)))
	refusedWith(t, err, http.StatusForbidden)
	token := s.again(func(o *linkclient.Options) { o.Token = p.fresh.AuthToken; o.SDKLanguage = "Cpp" })
	token.ok(token.Heartbeat(background, true))
}

// A C++ server that reconnects because its requests timed out sends no credentials. Neither does an attacker, so both are
// refused, and the connection of the real process stays the current one.
func TestNoReturnWithoutCredentials(t *testing.T) {
	w := newWorld(t)
	key, err := w.keys.Create(identity.Backend, "game servers")
	if err != nil {
		t.Fatal(err)
	}
	signed := func(o *linkclient.Options) {
		o.SDKLanguage = "Cpp"
		o.Query = linkclient.SigV4Query(*o, key.ID, key.Secret, testRegion, time.Now().UTC())
	}
	bare := func(o *linkclient.Options) {
		o.Query = "ComputeId=" + o.Compute + "&FleetId=" + o.Fleet + "&pID=" + o.Process + "&sdkLanguage=Cpp"
	}
	s := w.connect("p", signed)
	_, err = w.tryConnect("p", bare)
	refusedWith(t, err, http.StatusForbidden)
	s.ok(s.Activate(background, 7777))
	_, err = w.tryConnect("p", bare)
	refusedWith(t, err, http.StatusForbidden)
	s.ok(s.Heartbeat(background, true))
	s.push("RefreshConnection")
	s.Drop()
	waittest.Until(w, "the connection to be lost", func() bool { return !w.process("p").Linked })
	_, err = w.tryConnect("p", bare)
	refusedWith(t, err, http.StatusForbidden)
}

// A link knows the credential that authorised it, so that it can end together with it.
func TestLinksKnowTheirCredential(t *testing.T) {
	w := newWorld(t)
	key, err := w.keys.Create(identity.Backend, "game servers")
	if err != nil {
		t.Fatal(err)
	}
	w.connect("signed", func(o *linkclient.Options) {
		o.Query = linkclient.SigV4Query(*o, key.ID, key.Secret, testRegion, time.Now().UTC())
	})
	w.connect("token")
	shown := func(process string) (c credential) {
		waittest.Until(w, process+" to be let in", func() bool {
			p := w.door.known(fleet.Key{Fleet: testFleet, Compute: testCompute, Process: process})
			if p == nil || p.currentLink() == nil {
				return false
			}
			c = p.currentLink().shown
			return true
		})
		return c
	}
	if got := shown("signed"); got.accessKey != key.ID || got.generation != 0 {
		t.Errorf("signed: %+v", got)
	}
	if got := shown("token"); got.accessKey != "" || got.generation != 1 || got.expires == 0 {
		t.Errorf("token: %+v", got)
	}
}

// A token of an earlier registration is refused, and connections that used one are closed.
func TestTokensOfAnEarlierRegistration(t *testing.T) {
	w := newWorld(t)
	register := func(id byte) {
		w.must(&hosting.RegisterCompute{Compute: fleet.Compute{
			FleetID: testFleet, Name: "host", Location: testLocation, IPAddress: "127.0.0.1", Registration: domain.UUID{id},
		}})
	}
	token := func() string {
		cmd := &hosting.IssueToken{Fleet: testFleet, Compute: "host"}
		w.must(cmd)
		return w.secret.ProcessToken(testFleet, "host", cmd.Registered.Registration, cmd.Generation)
	}
	with := func(token string) func(*linkclient.Options) {
		return func(o *linkclient.Options) { o.Compute, o.Token = "host", token }
	}
	register(1)
	leaked := token()
	s := w.connect("p", with(leaked))
	w.must(&hosting.DeregisterCompute{Fleet: testFleet, Name: "host"})
	_, err := w.tryConnect("p", with(leaked))
	refusedWith(t, err, http.StatusForbidden)
	register(2)
	if code := s.ended(); code != 0 {
		t.Errorf("ended with close code %d, want none", code)
	}
	fresh := token()
	if fresh == leaked {
		t.Fatal("a new registration gave out the old token")
	}
	_, err = w.tryConnect("p", with(leaked))
	refusedWith(t, err, http.StatusForbidden)
	w.connect("p", with(fresh))
}

// A token that an operator has replaced is void at once, and connections that used it are closed. A connection that used
// a signature stays.
func TestRotatedToken(t *testing.T) {
	w := newWorld(t)
	key, err := w.keys.Create(identity.Backend, "game servers")
	if err != nil {
		t.Fatal(err)
	}
	signed := w.connect("signed", func(o *linkclient.Options) {
		o.Query = linkclient.SigV4Query(*o, key.ID, key.Secret, testRegion, time.Now().UTC())
	})
	leaked := w.token()
	old := func(o *linkclient.Options) { o.Token = leaked }
	intruder := w.ready("p", old)
	w.must(&hosting.RotateToken{Fleet: testFleet, Compute: testCompute})
	if code := intruder.ended(); code != 0 {
		t.Errorf("ended with close code %d, want none", code)
	}
	_, err = w.tryConnect("p", old)
	refusedWith(t, err, http.StatusForbidden)
	signed.ok(signed.Activate(background, 7777)) // it proved something else
	w.restart(0)
	_, err = w.tryConnect("p", old)
	refusedWith(t, err, http.StatusForbidden)
	w.connect("p")
}

// On request the connections stay, and their processes get the new token.
func TestRotatedTokenKeepsLinks(t *testing.T) {
	w := newWorld(t)
	before := w.token()
	s := w.ready("p")
	w.must(&hosting.RotateToken{Fleet: testFleet, Compute: testCompute, KeepLinks: true})
	p := s.push("RefreshConnection")
	if p.fresh.AuthToken == before || p.fresh.AuthToken != w.token() {
		t.Errorf("told token %s, the one before was %s, the one in force is %s", p.fresh.AuthToken, before, w.token())
	}
	_, err := w.tryConnect("p", func(o *linkclient.Options) { o.Token = before })
	refusedWith(t, err, http.StatusForbidden)
	s.ok(s.Heartbeat(background, true)) // the old connection works on
	s.again(func(o *linkclient.Options) { o.Token = p.fresh.AuthToken })
}

// Of simultaneous connections the one that the core knows as the latest gets the pushes, whichever was accepted last.
func TestConnectionsAtOnce(t *testing.T) {
	w := newWorld(t, func(w *world) {
		w.config.Periods.Superseded = time.Hour
		w.config.Rates = DefaultRates()
		w.config.Rates.Heartbeats.Burst = 1000
	})
	s := w.ready("p")
	for range 50 {
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				one, err := w.tryConnect("p")
				if err == nil {
					err = one.Heartbeat(background, true) // so it has been let in
				}
				if err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if current, last := s.known().currentLink(), w.process("p").Link; current == nil || current.id != last {
			t.Fatalf("pushes do not go to the last of them: %v", current)
		}
	}
}

// docs/spec/server-sdk.md#accept-9: both connections work, requests on the old one are answered, and then the old one is closed.
func TestRefreshConnection(t *testing.T) {
	w := newWorld(t, func(w *world) { w.config.Periods.Superseded, w.config.Periods.Repeat = time.Hour, 20*time.Millisecond })
	s := w.ready("p", secure, path("/game"))
	g := s.host(1)
	w.pass(w.cell.Hosting.TokenLife - time.Minute)
	first := s.push("RefreshConnection")
	again := s.push("RefreshConnection") // repeated, because no new connection came
	if first.fresh != again.fresh || first.fresh.RefreshConnectionEndpoint != "wss://"+w.addr+"/game" || first.fresh.AuthToken == s.opt.Token {
		t.Errorf("got %+v and %+v", first.fresh, again.fresh)
	}
	next := s.again(secure, func(o *linkclient.Options) { o.Token = again.fresh.AuthToken })
	s.ok(s.SetPolicy(background, g.ID.ARN(testRegion), "DENY_ALL"))
	next.ok(next.SetPolicy(background, g.ID.ARN(testRegion), "ACCEPT_ALL"))
	w.must(&hosting.TerminateGameSession{ID: g.ID})
	next.push("TerminateProcess") // pushes go to the new one
	next.noPush()
	if p := w.process("p"); !p.Linked {
		t.Error("process counts as disconnected")
	}
}

func TestConfiguredEndpoint(t *testing.T) {
	w := newWorld(t, func(w *world) { w.config.Endpoint = "https://games.example/muster" })
	s := w.ready("p")
	w.pass(w.cell.Hosting.TokenLife - time.Minute)
	if got, want := s.push("RefreshConnection").fresh.RefreshConnectionEndpoint, "wss://games.example/muster"; got != want {
		t.Errorf("refresh leads to %s, want %s: Go blocks all its calls while the endpoint fails", got, want)
	}
}

func TestSupersededConnectionIsClosed(t *testing.T) {
	w := newWorld(t)
	s := w.ready("p")
	next := s.again()
	if code := s.ended(); code != 1000 {
		t.Errorf("old connection ended with %d, want close code 1000", code)
	}
	next.ok(next.Heartbeat(background, true))
	if p := w.process("p"); !p.Linked {
		t.Error("process counts as disconnected")
	}
}

// docs/spec/server-sdk.md#accept-6: the process still has the same game session, with no second push and no second activation.
func TestReconnect(t *testing.T) {
	w := newWorld(t)
	s := w.ready("p")
	g := s.host(4)
	s.Reset()
	waittest.Until(w, "the loss to be noticed", func() bool { return !w.process("p").Linked })
	w.pass(w.cell.Hosting.LinkGrace / 2)
	next := s.again()
	next.noPush()
	next.ok(next.AcceptPlayer(background, g.ID.ARN(testRegion), w.reserve(g.ID, "ann")))
	w.pass(time.Minute)
	if got := w.game(g.ID).Status; got != session.Active {
		t.Errorf("game session is %s", got)
	}
}

// Pushes that were due while the process was disconnected are sent when it is back.
func TestOwedPushes(t *testing.T) {
	w := newWorld(t)
	s := w.ready("p")
	g := s.host(1)
	s.Drop()
	waittest.Until(w, "the loss to be noticed", func() bool { return !w.process("p").Linked })
	w.must(&hosting.TerminateGameSession{ID: g.ID})
	next := s.again()
	p := next.push("TerminateProcess")
	if left := time.UnixMilli(p.until).Sub(w.now()); left < w.cell.Hosting.TerminateGrace-time.Minute || left > w.cell.Hosting.TerminateGrace {
		t.Errorf("%s to end, want almost %s", left, w.cell.Hosting.TerminateGrace)
	}
	next.noPush()
}

// docs/spec/server-sdk.md#accept-8: a repeated RequestId gets the same answer and has no second effect, on the same connection, on another one and
// after a restart of the service.
func TestRepeatedRequests(t *testing.T) {
	w := newWorld(t)
	s := w.ready("p")
	g := s.host(4)
	arn := g.ID.ARN(testRegion)
	ann, bob := w.reserve(g.ID, "ann"), w.reserve(g.ID, "bob")
	accept := func(s *server, id, player string) error {
		_, err := s.DoWithID(background, id, "AcceptPlayerSession", linkclient.PlayerMembers(arn, player))
		return err
	}
	s.ok(accept(s, "r1", ann))
	s.ok(accept(s, "r1", ann))
	s.fails(accept(s, "r2", ann), 400)
	next := s.again()
	next.ok(accept(next, "r1", ann))

	// The request is committed, but its answer is lost with the connection, and the service restarts before the repeat.
	next.Go("AcceptPlayerSession", linkclient.PlayerMembers(arn, bob), func(linkclient.Answer, error) {})
	_ = next.Text(`{"Action":"RemovePlayerSession","RequestId":"r4","GameSessionId":"` + arn + `","PlayerSessionId":"` + ann + `"}`)
	waittest.Until(w, "bob and ann", func() bool { return w.playerStatus(bob) == "ACTIVE" && w.playerStatus(ann) == "COMPLETED" })
	w.restart(10 * time.Second)
	last := s.again()
	last.ok(accept(last, "r1", ann)) // accepted then, removed since: the answer is still the one to this request
	_, err := last.DoWithID(background, "r4", "RemovePlayerSession", linkclient.PlayerMembers(arn, ann))
	last.ok(err)
	last.fails(accept(last, "r5", bob), 400)

	_, err = last.DoWithID(background, "end", "TerminateServerProcess", "")
	last.ok(err)
	_, err = last.DoWithID(background, "end", "TerminateServerProcess", "")
	last.ok(err)
}

// docs/spec/server-sdk.md#accept-7 and #accept-18: the service shuts down normally. It sends no close frame, every game server returns, and none counts as crashed.
func TestRestart(t *testing.T) {
	w := newWorld(t)
	servers := map[string]*server{}
	for i := range 50 {
		servers[named(i)] = w.ready(named(i))
	}
	var games []session.GameSession
	for range 25 {
		games = append(games, w.hostOn(servers, 2))
	}
	w.restart(10 * time.Minute) // longer than any grace: time in which the service was down does not count
	var all sync.WaitGroup
	returned := make(chan *server, len(servers))
	for _, s := range servers {
		if code := s.ended(); code != 0 {
			t.Errorf("connection ended with close code %d, want none", code)
		}
		all.Go(func() {
			next := s.again()
			next.noPush()
			returned <- next
		})
	}
	all.Wait()
	close(returned)
	back := map[string]*server{}
	for s := range returned {
		back[s.opt.Process] = s
	}
	for _, g := range games {
		if got := w.game(g.ID).Status; got != session.Active {
			t.Errorf("game session is %s", got)
		}
	}
	for name := range servers {
		if p := w.process(name); p.State != fleet.ProcessReady || !p.Linked {
			t.Errorf("%s is %s, linked=%v", name, p.State, p.Linked)
		}
	}
	if events := w.fleetEvents(); slices.Contains(events, "SERVER_PROCESS_CRASHED") {
		t.Errorf("fleet events %v", events)
	}
	w.hostOn(back, 1) // those without a game session still take one
}

// docs/spec/server-sdk.md#accept-12.
func TestDeath(t *testing.T) {
	w := newWorld(t)
	servers := map[string]*server{"one": w.ready("one"), "two": w.ready("two")}
	g := w.hostOn(servers, 2)
	ann, bob := w.reserve(g.ID, "ann"), w.reserve(g.ID, "bob")
	host := servers[g.ProcessID]
	host.ok(host.AcceptPlayer(background, g.ID.ARN(testRegion), ann))
	for _, s := range servers {
		s.Reset()
	}
	waittest.Until(w, "the losses to be noticed", func() bool { return !w.process("one").Linked && !w.process("two").Linked })
	if got := w.game(g.ID).Status; got != session.Active {
		t.Errorf("game session is %s at once, before the grace is over", got)
	}
	w.pass(w.cell.Hosting.LinkGrace + time.Second)
	waittest.Until(w, "both to count as crashed", func() bool {
		return w.process("one").EndReason == fleet.EndedCrashed && w.process("two").EndReason == fleet.EndedCrashed
	})
	if got := w.game(g.ID).Status; got != session.Terminated {
		t.Errorf("game session is %s", got)
	}
	if a, b := w.playerStatus(ann), w.playerStatus(bob); a != "COMPLETED" || b != "TIMEDOUT" {
		t.Errorf("players are %s and %s", a, b)
	}
}

// A game session that is created just before the service has no room for changes is pushed when it has room again.
func TestPushWhileOverloaded(t *testing.T) {
	w := newWorld(t)
	s := w.ready("p")
	waittest.Until(w, "the process to be free", func() bool { return w.eligible("p") })
	gate := make(chan struct{})
	w.hold.Store(&gate)
	created := make(chan error, 1)
	cmd := hosting.CreateGameSession{Fleet: testFleet, Location: testLocation, Name: "gsess-1", Title: "Debug", PlayersMax: 4}
	go func() { created <- w.engine.Do(background, &cmd) }()
	waittest.Until(w, "the game session to be decided", func() bool {
		now, cancel := context.WithCancel(background)
		cancel() // the read does not wait
		taken := false
		_ = w.engine.ReadHere(now, func(v *cell.View) error {
			_, taken = v.Hosting(fleet.Key{Fleet: testFleet, Compute: testCompute, Process: "p"})
			return nil
		})
		return taken
	})
	w.full.Store(true)
	w.hold.Store(nil)
	close(gate)
	s.ok(<-created)
	time.Sleep(50 * time.Millisecond) // the push is refused
	w.full.Store(false)
	s.push("CreateGameSession")
}

// The loss of a connection while the engine takes no more commands is recorded soon after it takes them again.
func TestLossWhileOverloaded(t *testing.T) {
	w := newWorld(t, func(w *world) { w.queue = 2 })
	s := w.ready("p")
	release, reading := make(chan struct{}), make(chan struct{})
	go func() {
		_ = w.engine.ReadHere(background, func(*cell.View) error { close(reading); <-release; return nil })
	}()
	<-reading // the engine decides nothing
	for now, most := w.engine.Waiting(); now < most; now, most = w.engine.Waiting() {
		go func() { _ = w.engine.Do(background, &hosting.DeleteLocation{Name: "none"}) }()
		time.Sleep(time.Millisecond)
	}
	s.Reset()
	waittest.Until(w, "the connection to end", func() bool { return w.door.Stats().Links == 0 })
	time.Sleep(50 * time.Millisecond) // the report is refused
	close(release)
	waittest.Until(w, "the loss to be recorded", func() bool { return !w.process("p").Linked })
}

// Heartbeats are answered while the door's own record of the process's readiness waits for the journal, and the last one counts.
func TestHeartbeatsBesideTheDoorsOwnTask(t *testing.T) {
	w := newWorld(t)
	s := w.connect("p")
	s.ok(s.Activate(background, 7777))
	gate := make(chan struct{})
	w.hold.Store(&gate)
	l := w.door.known(fleet.Key{Fleet: testFleet, Compute: testCompute, Process: "p"}).currentLink()
	waittest.Until(w, "the door's task to begin", l.busy)
	soon, cancel := context.WithTimeout(background, 5*time.Second)
	defer cancel()
	for n := range 20 {
		s.ok(s.Heartbeat(soon, n%2 == 0))
	}
	s.ok(s.Heartbeat(soon, true))
	l.work.Lock()
	queued := len(l.work.tasks)
	l.work.Unlock()
	if queued > 1 {
		t.Errorf("%d tasks wait after heartbeats, want one for all of them", queued)
	}
	w.hold.Store(nil)
	close(gate)
	waittest.Until(w, "the health to be recorded", func() bool { return w.process("p").Health == fleet.Healthy && !l.busy() })
	if got := w.process("p").Health; got != fleet.Healthy {
		t.Errorf("after the last heartbeat the process is %v", got)
	}
}

// docs/spec/server-sdk.md#accept-15: while requests wait for the journal, pings and heartbeats of all processes are answered.
func TestSlowServiceAnswersPings(t *testing.T) {
	w := newWorld(t)
	s, other := w.ready("p"), w.ready("other")
	gate := make(chan struct{})
	w.hold.Store(&gate)
	waiting := make(chan error, 1)
	go func() { waiting <- s.Terminate(background) }()
	waittest.Until(w, "the request to be decided", func() bool {
		var ended bool
		done := make(chan struct{})
		go func() { // a read of it waits until it is durable
			_ = w.engine.Read(context.Background(), func(v *cell.View) error {
				p, _ := v.Process(fleet.Key{Fleet: testFleet, Compute: testCompute, Process: "p"})
				ended = p.State == fleet.Ended
				close(done)
				return nil
			})
		}()
		<-done
		return ended
	})
	for _, c := range []*server{s, other} {
		c.ok(c.Ping())
	}
	waittest.Until(w, "two pongs", func() bool { return s.Pongs() == 1 && other.Pongs() == 1 })
	other.ok(other.Heartbeat(background, true))
	select {
	case err := <-waiting:
		t.Errorf("answered before it was durable: %v", err)
	default:
	}
	w.hold.Store(nil)
	close(gate)
	s.ok(<-waiting)
}
