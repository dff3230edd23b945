package console

import (
	"context"
	"errors"
	"fmt"
	"html"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/aws/smithy-go"

	"github.com/musterhq/muster/internal/audit"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/hosts"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/placement"
	"github.com/musterhq/muster/internal/domain/session"
	"github.com/musterhq/muster/internal/identity"
)

const (
	testFleet    = "fleet-1"
	testLocation = "custom-home"
	testCompute  = "rack"
)

func (x *desk) do(cmd kernel.Command) {
	x.t.Helper()
	if err := x.engine.Do(x.t.Context(), cmd); err != nil {
		x.t.Fatalf("%T: %v", cmd, err)
	}
}

func (x *desk) read(look func(v *cell.View)) {
	x.t.Helper()
	if err := x.engine.Read(x.t.Context(), func(v *cell.View) error { look(v); return nil }); err != nil {
		x.t.Fatal(err)
	}
}

// furnished returns a desk with a fleet that has a compute, an alias and a queue.
func furnished(t *testing.T) *desk {
	t.Helper()
	x := newDesk(t)
	x.do(&hosting.CreateLocation{Name: testLocation})
	x.do(&hosting.CreateFleet{Fleet: fleet.Fleet{ID: testFleet, Name: "dev", CertificateType: "DISABLED", Region: "eu", Account: "1"}, Locations: []string{testLocation}})
	x.do(&hosting.RegisterCompute{Compute: fleet.Compute{FleetID: testFleet, Name: testCompute, Location: testLocation, IPAddress: "127.0.0.1"}})
	x.do(&hosting.CreateAlias{Alias: fleet.Alias{ID: "alias-1", Name: "live", Fleet: testFleet}})
	x.do(&hosting.CreateQueue{Queue: placement.Queue{Name: "global", Destinations: []string{"arn:aws:gamelift:eu::fleet/" + testFleet}}})
	return x
}

// game starts a game session on a new server process.
func (x *desk) game(title string, changes ...func(*hosting.CreateGameSession)) session.ID {
	x.t.Helper()
	x.links++
	key := fleet.Key{Fleet: testFleet, Compute: testCompute, Process: "p-" + title}
	x.do(&hosting.ConnectProcess{Process: key, Link: x.links, SDK: "Go 5.5.0"})
	x.do(&hosting.ActivateProcess{Process: key, Link: x.links, Port: 7777, Request: x.links})
	x.do(&hosting.ReportHealth{Process: key, Healthy: true})
	made := &hosting.CreateGameSession{Fleet: testFleet, Location: testLocation, Name: "gsess-" + title, Title: "<script>alert(1)</script>", PlayersMax: 2}
	for _, change := range changes {
		change(made)
	}
	x.do(made)
	x.do(&hosting.ActivateGameSession{Process: key, Game: made.Game.ID})
	return made.Game.ID
}

func (x *desk) status(id session.ID) (s session.Status) {
	x.t.Helper()
	x.read(func(v *cell.View) {
		if g, ok := v.GameSession(id); ok {
			s = g.Status
		}
	})
	return s
}

// send sends the form of an action with fields in pairs.
func (x *desk) send(as *http.Cookie, path string, pairs ...string) *http.Response {
	return x.sendWith(as, path, nil, pairs...)
}

func (x *desk) sendWith(as *http.Cookie, path string, headers http.Header, pairs ...string) *http.Response {
	var fields []string
	for i := 0; i < len(pairs); i += 2 {
		fields = append(fields, url.QueryEscape(pairs[i])+"="+url.QueryEscape(pairs[i+1]))
	}
	r := httptest.NewRequest("POST", Prefix+"/do/"+path, strings.NewReader(strings.Join(fields, "&")))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	for name, values := range headers {
		r.Header[name] = values
	}
	if as != nil {
		r.AddCookie(as)
	}
	w := httptest.NewRecorder()
	x.ServeHTTP(w, r)
	return w.Result()
}

// done checks that an action led to a page that confirms it.
func (x *desk) done(r *http.Response, to string) (at string) {
	x.t.Helper()
	at = r.Header.Get("Location")
	if r.StatusCode != http.StatusSeeOther || unsigned(at) != Prefix+"/"+to {
		x.t.Fatalf("%d, to %s, want %s: %s", r.StatusCode, at, to, text(x.t, r))
	}
	return at
}

// unsigned returns the path of a page that confirms an action, without the statement's expiry and signature.
func unsigned(path string) string {
	return regexp.MustCompile(`(done=[a-z-]+)\.[\w.-]+`).ReplaceAllString(path, "$1")
}

// A page confirms an action only to the person who did it, and for a limited time. A link cannot forge such a statement.
func TestWhatWasDoneIsSigned(t *testing.T) {
	x := furnished(t)
	admin, said := x.signedInAs("ADMIN"), "The queue is gone."
	at := x.done(x.send(admin, "delete-queue/global", "confirm", "global", "reason", "unused"), "queues?done=delete-queue")
	x.wantPage(x.get(at, admin), http.StatusOK, said)
	until := time.Now().Add(-time.Second).Unix()
	for name, r := range map[string]*http.Response{
		"another person":      x.get(at, x.signedInAs("RUN")),
		"a link":              x.get(Prefix+"/queues?done=delete-queue", admin),
		"another action":      x.get(strings.Replace(at, "delete-queue", "change-queue", 1), admin),
		"a longer time":       x.get(strings.Replace(at, "delete-queue.", "delete-queue.9", 1), admin),
		"one that is over":    x.get(fmt.Sprintf("%s/queues?done=delete-queue.%d.%s", Prefix, until, doneSignature(x.secret, "delete-queue", fmt.Sprint(until), "ADMIN")), admin),
		"the ticket as proof": x.get(Prefix+"/queues?done="+admin.Value, admin),
	} {
		if page := text(t, r); strings.Contains(page, said) || strings.Contains(page, `class="done"`) {
			t.Errorf("%s: the page says that something was done", name)
		}
	}
}

func (x *desk) wantPage(r *http.Response, status int, says ...string) {
	x.t.Helper()
	page := html.UnescapeString(text(x.t, r))
	if r.StatusCode != status {
		x.t.Errorf("%d, want %d", r.StatusCode, status)
	}
	for _, want := range says {
		if !strings.Contains(page, want) {
			x.t.Errorf("the page does not say %q:\n%s", want, page)
		}
	}
}

// wantAudit checks an entry of the audit log, counted from the newest.
func (x *desk) wantAudit(back int, want audit.Document) {
	x.t.Helper()
	page, err := audit.Read(x.t.Context(), x.engine, audit.Filter{}, 0, back+1)
	if err != nil || len(page.Entries) <= back {
		x.t.Fatalf("%v, %d entries", err, len(page.Entries))
	}
	got := page.Entries[back]
	if got := (audit.Document{Who: got.Who, Door: got.Door, Address: got.Address, What: got.What, Reason: got.Reason, Outcome: got.Outcome}); !reflect.DeepEqual(got, want) {
		x.t.Errorf("the audit log has %+v, want %+v", got, want)
	}
}

func TestEndGameSession(t *testing.T) {
	x := furnished(t)
	id := x.game("one")
	run := x.signedInAs("RUN")
	path := "end-game-session/" + string(id)
	x.wantPage(x.get(Prefix+"/do/"+path, run), http.StatusOK, `<form class="act" method="post" action="/console/do/`+path+`">`, "to confirm, type gsess-one",
		"aws gamelift terminate-game-session --game-session-id arn:aws:gamelift:eu::gamesession/"+string(id)+" --termination-mode TRIGGER_ON_PROCESS_TERMINATE")
	if page := text(t, x.get(Prefix+"/do/"+path+"?confirm=gsess-one&reason=stuck", run)); strings.Contains(page, `value="gsess-one"`) || !strings.Contains(page, `value="stuck"`) {
		t.Errorf("a link fills in the name that a person must type: %s", page)
	}
	for name, pairs := range map[string][]string{
		`Name is "gsess-two"; want gsess-one.`:                                  {"confirm", "gsess-two", "reason", "stuck", "mode", endByServer},
		"Name is empty; it is required.":                                        {"reason", "stuck", "mode", endByServer},
		"Reason is empty; it is required.":                                      {"confirm", "gsess-one", "mode", endByServer},
		"want at most 200 characters.":                                          {"confirm", "gsess-one", "reason", strings.Repeat("é", 201), "mode", endByServer},
		"want text without control characters.":                                 {"confirm", "gsess-one", "reason", "a\nb", "mode", endByServer},
		`How is "LATER"; want one of those that the form offers.`:               {"confirm", "gsess-one", "reason", "stuck", "mode", "LATER"},
		"needs a host agent, and none is connected from compute " + testCompute: {"confirm", "gsess-one", "reason", "stuck", "mode", endByForce},
	} {
		x.wantPage(x.send(run, path, pairs...), http.StatusUnprocessableEntity, name)
	}
	for name, pairs := range map[string][]string{
		`The form has no field "force"`:           {"confirm", "gsess-one", "reason", "stuck", "mode", endByServer, "force", "1"},
		`The form has the field "reason" 2 times`: {"confirm", "gsess-one", "reason", "stuck", "reason", "other", "mode", endByServer},
		"or has more than 65536 bytes":            {"confirm", "gsess-one", "reason", strings.Repeat("x", formBytesMax), "mode", endByServer},
	} {
		x.wantPage(x.send(run, path, pairs...), http.StatusBadRequest, name)
	}
	if x.status(id) != session.Active {
		t.Fatalf("a refused form left the game session %s", x.status(id))
	}
	good := []string{"confirm", " gsess-one ", "reason", "<b>stuck</b>", "mode", endByServer}
	x.done(x.send(run, path, good...), "game-session/"+string(id)+"?done=end-game-session")
	if x.status(id) != session.Terminating {
		t.Fatalf("the game session is %s", x.status(id))
	}
	x.done(x.send(run, path, good...), "game-session/"+string(id)+"?done=end-game-session") // sent twice: the second one changes nothing
	x.wantAudit(0, audit.Document{Who: "RUN", Door: audit.DoorConsole, Address: "192.0.2.1", What: "TerminateGameSession", Reason: "<b>stuck</b>", Outcome: "done"})
}

// Changes require a role that permits them, a page of the console, and a connection that others cannot tamper with.
func TestWhoMayAct(t *testing.T) {
	x := furnished(t)
	id := x.game("one")
	path := "end-game-session/" + string(id)
	form := []string{"confirm", "gsess-one", "reason", "stuck", "mode", endByServer}
	look, run := x.signedInAs("LOOK"), x.signedInAs("RUN")
	x.wantPage(x.send(look, path, form...), http.StatusForbidden, "Access key LOOK has the role readonly. “End game session” needs the role backend or admin. Nothing was changed.")
	x.wantPage(x.get(Prefix+"/do/"+path, look), http.StatusOK, "End game session: needs the role backend or admin", "disabled>End game session</button>")
	x.wantPage(x.send(run, "pause-alias/alias-1", "message", "back soon"), http.StatusForbidden, "needs the role admin.")
	x.wantPage(x.send(run, "start-rollout/alias-1", "fleet", "fleet-2"), http.StatusForbidden, "needs the role admin.")
	for name, headers := range map[string]http.Header{
		"another site":          {"Sec-Fetch-Site": {"cross-site"}},
		"a sibling of the site": {"Sec-Fetch-Site": {"same-site"}},
		"no page":               {"Sec-Fetch-Site": {"none"}},
		"an old browser":        {"Sec-Fetch-Site": {""}, "Origin": {"https://evil.example"}},
		"neither header":        {"Sec-Fetch-Site": {""}},
		"an open connection":    {"Open": {"1"}},
	} {
		if r := x.sendWith(run, path, headers, form...); r.StatusCode != http.StatusForbidden {
			t.Errorf("%s: %d", name, r.StatusCode)
		}
	}
	x.wantPage(x.send(nil, path, form...), http.StatusUnauthorized, "You are no longer signed in. Nothing was changed.", "reload this page")
	if r := x.sendWith(nil, path, http.Header{"Sec-Fetch-Site": {"cross-site"}}, form...); r.StatusCode != http.StatusSeeOther || !strings.HasPrefix(r.Header.Get("Location"), Prefix+"/sign-in?") {
		t.Errorf("of another site and without a sign-in: %d, %s", r.StatusCode, r.Header.Get("Location"))
	}
	x.keys.Publish(nil)
	x.wantPage(x.send(run, path, form...), http.StatusUnauthorized, "You are no longer signed in. Nothing was changed.")
	if x.status(id) != session.Active {
		t.Errorf("the game session is %s", x.status(id))
	}
}

func TestActionsOnWhatIsNotThere(t *testing.T) {
	x := furnished(t)
	admin := x.signedInAs("ADMIN")
	for _, path := range []string{
		"end-game-session/fleet-1/custom-home/none", "end-game-session/x", "drain-host/none", "undo-drain-host/none", "register-compute/fleet-none", "deregister-compute/fleet-1/none",
		"drain-compute/fleet-none/rack", "pause-alias/none", "route-alias/none", "start-rollout/none", "undo-rollout/none", "change-queue/none", "delete-queue/none", "nothing", "end-game-session/",
	} {
		if r := x.get(Prefix+"/do/"+path, admin); r.StatusCode != http.StatusNotFound {
			t.Errorf("%s: %d", path, r.StatusCode)
		}
		if r := x.send(admin, path, "reason", "x"); r.StatusCode != http.StatusNotFound && r.StatusCode != http.StatusMethodNotAllowed {
			t.Errorf("POST %s: %d", path, r.StatusCode)
		}
	}
}

// This checks the actions of each kind of object: their effects, and the command that does the same.
func TestDrains(t *testing.T) {
	x := furnished(t)
	admin := x.signedInAs("ADMIN")
	x.do(&hosts.IssueToken{ID: "t", Hash: "h", Location: testLocation, Uses: 1, Valid: time.Hour})
	join := &hosts.Join{Token: "t", Hash: "h", Name: "metal", Key: make([]byte, 32)}
	x.do(join)
	id := join.Host.ID
	drained := func() (is bool) {
		x.read(func(v *cell.View) { h, _ := v.Host(id); is = h.Drained })
		return is
	}
	x.wantPage(x.get(Prefix+"/hosts", admin), http.StatusOK, `href="/console/do/drain-host/`+id)
	x.wantPage(x.get(Prefix+"/hosts", x.signedInAs("RUN")), http.StatusOK, "Drain: needs the role admin")
	x.wantPage(x.get(Prefix+"/do/drain-host/"+id, admin), http.StatusOK, "Drain host metal", "muster hosts drain "+id)
	at := x.done(x.send(admin, "drain-host/"+id), "hosts?done=drain-host")
	x.wantPage(x.get(at, admin), http.StatusOK, "The host is drained", `href="/console/do/undo-drain-host/`+id)
	x.wantPage(x.send(admin, "drain-host/"+id), http.StatusBadRequest, "Host metal is drained already.")
	if !drained() {
		t.Error("the host is not drained")
	}
	x.done(x.send(admin, "undo-drain-host/"+id, "reason", "it is repaired"), "hosts?done=undo-drain-host")
	if drained() {
		t.Error("the host is still drained")
	}

	compute := testFleet + "/" + testCompute
	draining := func() (is bool) {
		x.read(func(v *cell.View) { c, _ := v.Compute(testFleet, testCompute); is = c.Draining() })
		return is
	}
	x.wantPage(x.get(Prefix+"/do/drain-compute/"+compute, admin), http.StatusOK, "muster drain rack --fleet fleet-1")
	x.done(x.send(admin, "drain-compute/"+compute), "compute/"+compute+"?done=drain-compute")
	if !draining() {
		t.Error("the compute is not drained")
	}
	x.done(x.send(admin, "undo-drain-compute/"+compute), "compute/"+compute+"?done=undo-drain-compute")
	if draining() {
		t.Error("the compute is still drained")
	}
	x.wantAudit(2, audit.Document{Who: "ADMIN", Door: audit.DoorConsole, Address: "192.0.2.1", What: "undo-drain-host", Reason: "it is repaired", Outcome: "done"})
	x.done(x.send(admin, "deregister-compute/"+compute, "confirm", testCompute, "reason", "sold"), "fleets/"+testFleet+"?done=deregister-compute")
	x.read(func(v *cell.View) {
		if _, ok := v.Compute(testFleet, testCompute); ok {
			t.Error("the compute is there")
		}
	})
}

// A new operator creates a location, a fleet there, and a compute in it.
func TestCreatingByForm(t *testing.T) {
	x := newDesk(t)
	admin := x.signedInAs("ADMIN")
	x.wantPage(x.get(Prefix+"/", admin), http.StatusOK, "/console/do/create-location", "/console/do/create-fleet")
	x.wantPage(x.send(admin, "create-location", "name", "home"), http.StatusUnprocessableEntity, "'home'", "LocationName", "custom-", `value="home"`)
	at := x.done(x.send(admin, "create-location", "name", "custom-berlin"), "do/create-fleet?done=create-location&locations=custom-berlin")
	x.wantPage(x.send(admin, "create-location", "name", "custom-berlin"), http.StatusUnprocessableEntity, "location custom-berlin exists already")
	x.wantPage(x.get(at+"&name=a%26b", admin), http.StatusOK, `value="custom-berlin" checked`, "The location exists.",
		"aws gamelift create-fleet --compute-type ANYWHERE --name 'a&b' --locations Location=custom-berlin")
	x.wantPage(x.send(admin, "create-fleet", "name", "arena"), http.StatusUnprocessableEntity, "Locations: choose at least one.")
	x.wantPage(x.send(admin, "create-fleet", "name", "arena", "locations", "custom-none"), http.StatusUnprocessableEntity, `Locations is "custom-none"; want one of those`)
	r := x.send(admin, "create-fleet", "name", "arena", "locations", "custom-berlin")
	to := r.Header.Get("Location")
	if !strings.HasPrefix(to, Prefix+"/fleets/fleet-") {
		t.Fatalf("%d, %s, %s", r.StatusCode, to, text(t, r))
	}
	x.wantPage(x.send(admin, "create-fleet", "name", "arena", "locations", "custom-berlin"), http.StatusUnprocessableEntity, "which fleet fleet-")
	x.read(func(v *cell.View) {
		if n := v.Totals().Fleets; n != 1 {
			t.Errorf("there are %d fleets", n)
		}
	})
	id := strings.TrimSuffix(strings.TrimPrefix(unsigned(to), Prefix+"/fleets/"), "?done=create-fleet")
	x.wantPage(x.get(to, admin), http.StatusOK, "/console/do/register-compute/"+id, "The fleet exists.")
	register := "register-compute/" + id
	x.wantPage(x.get(Prefix+"/do/"+register+"?name=rack&ip=10.0.0.1", admin), http.StatusOK, "aws gamelift register-compute --fleet-id "+id+" --compute-name rack --ip-address 10.0.0.1 --location custom-berlin")
	x.wantPage(x.send(admin, register, "name", "rack", "location", "custom-berlin"), http.StatusUnprocessableEntity, `IP address is ""; want an address, or a DNS name below.`)
	x.wantPage(x.send(admin, register, "name", "rack one", "location", "custom-berlin", "ip", "10.0.0.1"), http.StatusUnprocessableEntity, "'rack one' at 'ComputeName'")
	x.done(x.send(admin, register, "name", "rack", "location", "custom-berlin", "ip", "10.0.0.1"), "compute/"+id+"/rack?done=register-compute")
}

func TestAliasActions(t *testing.T) {
	x := furnished(t)
	admin := x.signedInAs("ADMIN")
	alias := func() (a fleet.Alias) {
		x.read(func(v *cell.View) { a, _ = v.Alias("alias-1") })
		return a
	}
	x.wantPage(x.send(admin, "pause-alias/alias-1"), http.StatusUnprocessableEntity, "Message is empty; it is required.")
	x.done(x.send(admin, "pause-alias/alias-1", "message", "<i>back soon", "reason", "maintenance"), "aliases?done=pause-alias")
	if a := alias(); !a.Terminal || a.Message != "<i>back soon" {
		t.Errorf("the alias is %+v", a)
	}
	r := x.get(Prefix+"/aliases", admin)
	if page := text(t, r); !strings.Contains(page, "&lt;i&gt;back soon") || strings.Contains(page, "<i>") {
		t.Errorf("the page is %s", page)
	}
	x.wantPage(x.send(admin, "route-alias/alias-1", "fleet", "fleet-none"), http.StatusUnprocessableEntity, "fleet fleet-none not found")
	x.done(x.send(admin, "route-alias/alias-1", "fleet", testFleet), "aliases?done=route-alias")
	if a := alias(); a.Terminal || a.Fleet != testFleet {
		t.Errorf("the alias is %+v", a)
	}

	x.do(&hosting.CreateFleet{Fleet: fleet.Fleet{ID: "fleet-2", Name: "next", CertificateType: "DISABLED"}, Locations: []string{testLocation}})
	rollout := func(pairs ...string) *http.Response {
		return x.send(admin, "start-rollout/alias-1", append(pairs, "fleet", "fleet-2", "failures", "3")...)
	}
	x.wantPage(rollout("steps", "10, 5", "time", "10m", "percent", "20"), http.StatusUnprocessableEntity, `Steps is "10, 5"; want rising whole numbers from 1 to 100`)
	x.wantPage(rollout("steps", "10", "time", "1.5s", "percent", "200"), http.StatusUnprocessableEntity, `Steps is "10"; want 100 as the last step.`, `Time of each step is "1.5s"; want whole seconds`, `Failure percent is "200"; want a whole number from 0 to 100.`)
	good := []string{"steps", "10, 100", "time", "10m", "percent", "20"}
	x.wantPage(rollout(good...), http.StatusUnprocessableEntity, "no server process of fleet fleet-2 is ready")
	x.do(&hosting.RegisterCompute{Compute: fleet.Compute{FleetID: "fleet-2", Name: testCompute, Location: testLocation, IPAddress: "127.0.0.1"}})
	key := fleet.Key{Fleet: "fleet-2", Compute: testCompute, Process: "new"}
	x.do(&hosting.ConnectProcess{Process: key, Link: 99, SDK: "Go 5.5.0"})
	x.do(&hosting.ActivateProcess{Process: key, Link: 99, Port: 7777, Request: 99})
	x.do(&hosting.ReportHealth{Process: key, Healthy: true})
	x.done(rollout(good...), "aliases?done=start-rollout")
	x.wantPage(rollout(good...), http.StatusUnprocessableEntity, "alias alias-1 is in a rollout")
	x.wantPage(x.get(Prefix+"/aliases", admin), http.StatusOK, "MOVING", "/console/do/undo-rollout/alias-1")
	x.done(x.send(admin, "undo-rollout/alias-1", "reason", "too slow"), "aliases?done=undo-rollout")
	x.wantPage(x.send(admin, "undo-rollout/alias-1"), http.StatusBadRequest, "Alias live has no rollout to undo.")
}

// seen returns the state of the object that its form recorded.
func (x *desk) seen(r *http.Response) string { return seenIn(text(x.t, r)) }

func seenIn(page string) string {
	m := regexp.MustCompile(`name="seen" value="([^"]*)"`).FindStringSubmatch(page)
	if m == nil {
		return ""
	}
	return html.UnescapeString(m[1])
}

func TestQueueActions(t *testing.T) {
	x := furnished(t)
	admin := x.signedInAs("ADMIN")
	queue := func() (q placement.Queue, ok bool) {
		x.read(func(v *cell.View) { q, ok = v.Queue("global") })
		return q, ok
	}
	arn := "arn:aws:gamelift:eu::fleet/" + testFleet
	x.wantPage(x.get(Prefix+"/do/change-queue/global", admin), http.StatusOK, arn+"</textarea>", "aws gamelift update-game-session-queue --name global --timeout-in-seconds 600 --destinations DestinationArn="+arn)
	change := func(seen, timeout, destinations string) *http.Response {
		return x.send(admin, "change-queue/global", "seen", seen, "timeout", timeout, "destinations", destinations)
	}
	seen := x.seen(x.get(Prefix+"/do/change-queue/global?seen=something", admin))
	x.wantPage(change(seen, "5", arn), http.StatusUnprocessableEntity, `Time-out is "5"; want a whole number from 10 to 600.`)
	x.wantPage(change(seen, "60", arn+"\r\narn:aws:gamelift:eu::fleet/fleet-none"), http.StatusUnprocessableEntity, "Destinations[1].DestinationArn")
	// Two people have the same form open: the second one is shown the first one's change, and decides again.
	x.done(change(strings.ReplaceAll(seen, "\n", "\r\n"), "120", arn), "queues?done=change-queue")
	late := change(seen, "60", "")
	if q, _ := queue(); q.Timeout != 2*time.Minute || len(q.Destinations) != 1 {
		t.Errorf("the late form has changed the queue: %+v", q)
	}
	page := text(t, late)
	if plain := html.UnescapeString(page); late.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(plain, "It had a time-out of 10m0s and the destinations "+arn+". It now has a time-out of 2m0s and the destinations "+arn) {
		t.Errorf("%d: the late form says %s", late.StatusCode, plain)
	}
	x.wantPage(change("", "60", ""), http.StatusUnprocessableEntity, "It had something that this form does not say.")
	x.done(change(seenIn(page), "60", ""), "queues?done=change-queue")
	if q, _ := queue(); q.Timeout != time.Minute || len(q.Destinations) != 0 {
		t.Errorf("the queue is %+v", q)
	}
	x.wantPage(x.send(admin, "delete-queue/global", "confirm", "global"), http.StatusUnprocessableEntity, "Reason is empty; it is required.")
	x.done(x.send(admin, "delete-queue/global", "confirm", "global", "reason", "unused"), "queues?done=delete-queue")
	if _, ok := queue(); ok {
		t.Error("the queue is there")
	}
}

// refusing is a service API that refuses everything.
type refusing struct {
	API
	with error
}

func (r refusing) Perform(context.Context, *identity.Principal, string, []byte) ([]byte, error) {
	return nil, r.with
}

// A refusal is never shown as success, and its text refers only to things that the page shows.
func TestRefusalsOfTheAPI(t *testing.T) {
	for _, x := range []struct {
		with   error
		status int
		says   string
	}{
		{&smithy.GenericAPIError{Code: "InvalidRequestException"}, http.StatusUnprocessableEntity, "The service refused it: InvalidRequestException."},
		{&smithy.GenericAPIError{Code: "InvalidRequestException", Message: "no such thing"}, http.StatusUnprocessableEntity, "no such thing"},
		{&smithy.GenericAPIError{Code: codeInternal, Message: "The log has the cause under this request id."}, http.StatusServiceUnavailable, "The request failed inside the service; the log has the cause."},
		{&smithy.GenericAPIError{Code: codeThrottling, Message: "Rate exceeded"}, http.StatusTooManyRequests, "Too many requests with this access key"},
		{errors.New("secret cause"), http.StatusInternalServerError, "the log has the cause"},
	} {
		desk := furnished(t)
		desk.config.API = refusing{desk.config.API, x.with}
		r := desk.send(desk.signedInAs("ADMIN"), "pause-alias/alias-1", "message", "back soon")
		page := html.UnescapeString(text(t, r))
		if r.StatusCode != x.status || !strings.Contains(page, x.says) || strings.Contains(page, "request id") || strings.Contains(page, "secret cause") {
			t.Errorf("%v: %d, to %q, want %d and %q: %s", x.with, r.StatusCode, r.Header.Get("Location"), x.status, x.says, page)
		}
	}
}
