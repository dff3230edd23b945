package console

import (
	"bufio"
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/musterhq/muster/internal/audit"
	"github.com/musterhq/muster/internal/cluster/node"
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/membership"
	"github.com/musterhq/muster/internal/engine"
)

// three is a cluster of three nodes from the leader's view. It accepts changes and makes none.
type three struct {
	mu      sync.Mutex
	status  node.Status
	away    bool // no leader answers
	changes []node.Change
	asked   func() // before a change is answered; nil: nothing happens
}

func newThree() *three {
	return &three{status: node.Status{Cluster: "c", By: "n2", Leader: "n1", Term: 4, Entry: 1234, Level: 2, Outlook: "3 nodes vote: the service survives the loss of 1 of them", Members: []node.Member{
		{ID: "n1", Address: "10.0.0.1:8090", Role: "leader"},
		{ID: "n2", Address: "10.0.0.2:8090", Role: "voter", Version: "v2", Behind: 17, Silent: 420, Clock: -3},
		{ID: "n3", Address: "10.0.0.3:8090", Role: "voter", Version: "v2", Silent: 9000, Missing: true},
		{ID: "n4", Address: "10.0.0.4:8090", Role: "observer", Version: "v2", NoVote: "it is started with --observer"},
	}}}
}

func (c *three) Change(ctx context.Context, change node.Change) (node.Status, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.away:
		return node.Status{}, engine.ErrNotLeading
	case change.Do == node.Promote && change.Node == "n4":
		return node.Status{}, domain.Refuse(domain.Conflict, "node n3 is missing: start it, or remove it from the cluster")
	case change.Do != node.Look:
		if _, recorded := audit.From(ctx); recorded {
			return node.Status{}, domain.Refuse(domain.Invalid, "commands of the change would be recorded beside it")
		}
		c.changes = append(c.changes, change)
		if c.asked != nil {
			c.asked()
		}
		if err := ctx.Err(); err != nil { // the leader makes the change, and its answer is lost
			return node.Status{}, err
		}
	}
	answer := c.status
	answer.By = answer.Leader
	return answer, nil
}

func (c *three) Status() node.Status {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.status
}

// clustered returns a desk at a node of a cluster.
func clustered(t *testing.T) (*desk, *three) {
	t.Helper()
	x, c := newDesk(t), newThree()
	x.config.Cluster = c
	return x, c
}

func TestClusterPage(t *testing.T) {
	x, c := clustered(t)
	look := x.signedInAs("LOOK")
	x.do(&membership.BeginNode{Node: domain.UUID{1}, Name: "n2"})
	x.do(&hosting.CreateLocation{Name: testLocation})
	x.do(&hosting.CreateFleet{Fleet: fleet.Fleet{ID: testFleet, Name: "dev", CertificateType: "DISABLED"}, Locations: []string{testLocation}})
	x.do(&hosting.RegisterCompute{Compute: fleet.Compute{FleetID: testFleet, Name: testCompute, Location: testLocation, IPAddress: "127.0.0.1"}})
	x.do(&hosting.ConnectProcess{Process: fleet.Key{Fleet: testFleet, Compute: testCompute, Process: "p"}, Link: 1, Node: domain.UUID{1}, SDK: "Go 5.5.0"})
	r := x.get(Prefix+"/cluster", look)
	x.wantPage(r, http.StatusOK, "the service survives the loss of 1 of them", "1234", `id="node-n2"`, "420 ms ago", "9.0 s ago", "-3 ms", `<td class="n">17</td>`, `<span class="state missing">missing</span>`,
		"n4 has no vote: it is started with --observer", "Make it the leader: needs the role admin", "muster cluster status", "&tick", `class="attends"`, `<span class="state present">present</span>`)
	if rows := text(t, x.get(Prefix+"/cluster?format=csv&column=node&column=state&column=game-servers", look)); rows != "node,state,game-servers\nn1,not taking connections,0\nn2,present,1\nn3,missing,0\nn4,not taking connections,0\n" {
		t.Errorf("the export is %s", rows)
	}
	c.mu.Lock()
	c.away = true
	c.mu.Unlock()
	x.wantPage(x.get(Prefix+"/cluster", look), http.StatusOK, "This node has no contact with a leader.", "As node n2 knows it.")
}

func TestClusterOfOneMachine(t *testing.T) {
	x := newDesk(t)
	x.wantPage(x.get(Prefix+"/cluster", x.signedInAs("LOOK")), http.StatusOK, "This service is a single machine", "muster serve --cluster-listen HOST:PORT", "muster cluster join-token", "muster demo --cluster")
	x.wantPage(x.get(Prefix+"/do/remove-node/n1", x.signedInAs("ADMIN")), http.StatusNotFound, "it has no nodes")
}

func TestClusterActions(t *testing.T) {
	x, c := clustered(t)
	admin := x.signedInAs("ADMIN")
	x.wantPage(x.send(x.signedInAs("RUN"), "remove-node/n3", "confirm", "n3", "reason", "x"), http.StatusForbidden, "needs the role admin")
	x.wantPage(x.get(Prefix+"/do/remove-node/n9", admin), http.StatusNotFound, "no member")
	x.wantPage(x.get(Prefix+"/do/hand-over/n1", admin), http.StatusBadRequest, "leads the cluster already")
	x.wantPage(x.get(Prefix+"/do/remove-node/n2", admin), http.StatusBadRequest, "remove it at another node")
	x.wantPage(x.get(Prefix+"/do/remove-node/n3", admin), http.StatusOK, "muster cluster remove n3", "3 nodes vote")
	x.wantPage(x.get(Prefix+"/cluster", admin), http.StatusOK, "Node n2 made this page")
	form := func(action string) string { return x.seen(x.get(Prefix+"/do/"+action, admin)) }
	send := func(action, name, reason string) *http.Response {
		return x.send(admin, action, "seen", form(action), "confirm", name, "reason", reason)
	}
	x.wantPage(send("remove-node/n3", "n2", "lost"), http.StatusUnprocessableEntity, "want n3")
	x.wantPage(send("remove-node/n3", "n3", ""), http.StatusUnprocessableEntity, "Reason is empty")
	x.wantPage(send("promote-node/n4", "n4", "more votes"), http.StatusUnprocessableEntity, "node n3 is missing: start it")
	seen := form("remove-node/n3")
	c.mu.Lock()
	c.status.Members[2].Role = "observer"
	c.mu.Unlock()
	x.wantPage(x.send(admin, "remove-node/n3", "seen", seen, "confirm", "n3", "reason", "lost"), http.StatusUnprocessableEntity, "It had the role voter. It now has the role observer.")
	if len(c.changes) > 0 {
		t.Fatalf("refused forms had %+v done", c.changes)
	}
	x.done(send("remove-node/n3", "n3", "its disk is gone"), "cluster?done=remove-node")
	x.done(send("hand-over/n2", "n2", "a new kernel"), "cluster?done=hand-over")
	x.done(send("demote-node/n2", "n2", "it is slow"), "cluster?done=demote-node")
	want := []node.Change{{Do: node.Remove, Node: "n3"}, {Do: node.HandOver, Node: "n2"}, {Do: node.Demote, Node: "n2"}}
	if len(c.changes) != len(want) || c.changes[0] != want[0] || c.changes[1] != want[1] || c.changes[2] != want[2] {
		t.Errorf("got %+v, want %+v", c.changes, want)
	}
	c.mu.Lock()
	c.away = true
	c.mu.Unlock()
	x.wantPage(send("hand-over/n2", "n2", "again"), http.StatusServiceUnavailable, "cannot answer for the cluster")
}

// A change is in the audit log even if the browser does not wait for the answer.
func TestClusterChangeOfABrowserThatLeaves(t *testing.T) {
	x, c := clustered(t)
	x.config.Audit = audit.NewLog(x.engine, t.TempDir(), x.engine.Now, x.log)
	t.Cleanup(x.config.Audit.Close)
	admin := x.signedInAs("ADMIN")
	form := url.Values{"seen": {x.seen(x.get(Prefix+"/do/remove-node/n3", admin))}, "confirm": {"n3"}, "reason": {"its disk is gone"}}
	ctx, leave := context.WithCancel(t.Context())
	c.asked = leave
	r := httptest.NewRequestWithContext(ctx, "POST", Prefix+"/do/remove-node/n3", strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	r.AddCookie(admin)
	x.ServeHTTP(httptest.NewRecorder(), r)
	if len(c.changes) != 1 || ctx.Err() == nil {
		t.Fatalf("the changes are %+v", c.changes)
	}
	x.wantAudit(0, audit.Document{Who: "ADMIN", Door: audit.DoorConsole, Address: "192.0.2.1", What: "remove-node", Reason: "its disk is gone", Outcome: "done"})
}

// A page that ticks is told to fetch itself again although nothing has changed, and the answer is not a cached one.
func TestPagesThatTick(t *testing.T) {
	x, c := clustered(t)
	s := httptest.NewServer(x)
	t.Cleanup(s.Close)
	r, err := http.NewRequestWithContext(t.Context(), "GET", s.URL+Prefix+"/live?since=999999&tick", nil)
	if err != nil {
		t.Fatal(err)
	}
	look := x.signedInAs("LOOK")
	r.AddCookie(look)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	lines := bufio.NewScanner(answer.Body)
	awaitChange(t, lines)
	awaitChange(t, lines)
	refresh := func() string {
		r := httptest.NewRequest("GET", Prefix+"/cluster", nil)
		r.Header.Set("HX-Request", "true")
		r.Header.Set("HX-Target", "main")
		r.AddCookie(look)
		w := httptest.NewRecorder()
		x.ServeHTTP(w, r)
		return w.Body.String()
	}
	if page := refresh(); !strings.Contains(page, "420 ms ago") {
		t.Errorf("got %s", page)
	}
	c.mu.Lock()
	c.status.Members[1].Silent = 77
	c.mu.Unlock()
	if page := refresh(); !strings.Contains(page, "77 ms ago") {
		t.Errorf("got %s", page)
	}
}
