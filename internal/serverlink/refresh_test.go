package serverlink

import (
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/linkclient"
	"github.com/musterhq/muster/internal/logtest"
	"github.com/musterhq/muster/internal/sigv4"
	"github.com/musterhq/muster/internal/waittest"
)

// look makes the door check all processes once. Due actions are executed before later requests.
func (w *world) look() {
	w.door.passing.Lock()
	defer w.door.passing.Unlock()
	w.door.watchAll()
}

// A Go server sends and reads nothing for five seconds while it changes its connection. So a server with a signature is not asked to do
// so when it becomes ready, and gets no game session while it changes to a token before its signature expires.
func TestSignedConnectionIsRefreshedBeforeTheSignatureEnds(t *testing.T) {
	w := newWorld(t, func(w *world) { w.config.Periods.Superseded = time.Hour })
	key, err := w.keys.Create(identity.Backend, "game servers")
	if err != nil {
		t.Fatal(err)
	}
	s := w.ready("p", func(o *linkclient.Options) {
		o.SDKLanguage = "Go"
		o.Query = linkclient.SigV4Query(*o, key.ID, key.Secret, testRegion, time.Now().UTC())
	})
	w.look()
	s.noPush()

	w.pass(sigv4.ServerSkew + signatureReturn - signatureReplaced + time.Second)
	told := s.push("RefreshConnection")
	create := hosting.CreateGameSession{Fleet: testFleet, Location: testLocation, Name: "gsess-1", PlayersMax: 1}
	if err := w.engine.Do(background, &create); err == nil {
		t.Error("a process that is changing over got a game session")
	}
	next := s.again(func(o *linkclient.Options) { o.Token = told.fresh.AuthToken })
	next.ok(next.Heartbeat(background, true))
	w.look()
	next.ok(next.Heartbeat(background, true))
	if w.eligible("p") {
		t.Error("eligible although its old connection is still open")
	}
	s.Drop()
	waittest.Until(w, "the process to be eligible", func() bool { return w.eligible("p") })
	next.host(1)
}

// A process that ignores RefreshConnection gets game sessions again after a while.
func TestRefreshThatLeadsToNothing(t *testing.T) {
	w := newWorld(t, func(w *world) { w.config.Periods.ChangeOver = 20 * time.Millisecond })
	s := w.ready("p")
	w.pass(w.cell.Hosting.TokenLife - time.Minute)
	s.push("RefreshConnection")
	waittest.Until(w, "the process to be eligible again", func() bool { return w.eligible("p") })
	s.host(1)
}

// A token whose life is shorter than the usual overlap is replaced once, near its end.
func TestShortTokensAreReplacedOnce(t *testing.T) {
	w := newWorld(t, func(w *world) { w.cell.Hosting.TokenLife = 10 * time.Minute })
	s := w.ready("p")
	w.look()
	s.noPush()
	w.pass(8*time.Minute + 30*time.Second)
	told := s.push("RefreshConnection")
	next := s.again(func(o *linkclient.Options) { o.Token = told.fresh.AuthToken })
	next.ok(next.Heartbeat(background, true))
	w.look()
	next.noPush()
}

func TestWarningOfSDKsThatCannotReconnect(t *testing.T) {
	for sdk, want := range map[string]bool{
		"Go 5.0.0": true, "Go 5.1.0": false, "Go 5.5.0": false, "CSharp 5.0.0": true, "CSharp 5.1.1": true, "CSharp 5.4.0": false,
		"Cpp 5.1.2": false, "Go ": false, " ": false,
	} {
		language, version, _ := strings.Cut(sdk, " ")
		if got := fleet.CannotReconnect(language + " " + version); got != want {
			t.Errorf("%s: got %v, want %v", sdk, got, want)
		}
	}
	w := newWorld(t, func(w *world) { w.logged = &logtest.Log{} })
	old := func(o *linkclient.Options) { o.SDKLanguage, o.SDKVersion = "CSharp", "5.1.1" }
	w.connect("p", old)
	w.connect("q", old)
	w.connect("r", func(o *linkclient.Options) { o.SDKLanguage, o.SDKVersion = "Go", "5.5.0" })
	if n := strings.Count(w.logged.String(), "cannot reconnect"); n != 1 {
		t.Errorf("%d warnings, want 1:\n%s", n, w.logged.String())
	}
}
