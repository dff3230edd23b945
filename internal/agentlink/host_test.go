package agentlink

import (
	"crypto/ed25519"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/capacity"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/hosts"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/hostproof"
	"github.com/musterhq/muster/internal/waittest"
)

const builtFleet = "fleet-built"

// machine is a host with its key.
type machine struct {
	*world
	id   string
	key  ed25519.PrivateKey
	last int64
}

// rack makes a fleet of a build with a desired number of hosts, and joins machines.
func (w *world) rack(desired int32, names ...string) []*machine {
	w.Helper()
	w.must(&kernel.RaiseLevel{To: kernel.Level})
	w.must(&hosting.CreateBuild{Build: fleet.Build{ID: "build-1", Region: "us-east-1", Storage: fleet.Storage{Bucket: "b", Key: "k"}}})
	w.must(&hosting.CreateFleet{Locations: []string{testLocation}, Fleet: fleet.Fleet{ID: builtFleet, Region: "us-east-1",
		Managed: &fleet.Managed{Build: "build-1"}, Runtime: &fleet.Runtime{Launches: []fleet.Launch{{Path: "/local/game/server", Copies: 2}}}}})
	w.want(desired)
	return w.joined(hosts.IssueToken{Location: testLocation}, names...)
}

// joined makes machines join, each with its own token.
func (w *world) joined(token hosts.IssueToken, names ...string) (all []*machine) {
	w.Helper()
	for _, name := range names {
		_, id, hash := hostproof.NewToken()
		issue := token
		issue.ID, issue.Hash, issue.Uses, issue.Valid = id, hash, 1, time.Hour
		w.must(&issue)
		public, private, _ := ed25519.GenerateKey(nil)
		join := &hosts.Join{Token: id, Hash: hash, Name: name, Key: public}
		w.must(join)
		all = append(all, &machine{world: w, id: join.Host.ID, key: private})
	}
	return all
}

// bound connects a host that is bound to a fleet without a build.
func (w *world) bound() *agent {
	w.Helper()
	w.must(&kernel.RaiseLevel{To: kernel.Level})
	return w.joined(hosts.IssueToken{Fleet: testFleet, Location: testLocation}, "rack-1")[0].join()
}

// registerBound makes that host a compute again.
func (w *world) registerBound() {
	w.Helper()
	w.must(&hosting.RegisterCompute{Compute: fleet.Compute{FleetID: testFleet, Name: "rack-1", Location: testLocation, IPAddress: "10.0.0.1", Registration: domain.UUID{4}}})
}

func (w *world) want(desired int32) {
	w.must(&hosting.SetCapacity{Fleet: builtFleet, Location: testLocation, Desired: &desired, Max: new(int32(9))})
}

// claim returns the machine's next valid claim.
func (m *machine) claim() hostproof.Claim {
	m.last = max(time.Now().UnixMilli(), m.last+1)
	return hostproof.Claim{Host: m.id, At: m.last, Method: http.MethodGet, Path: "/agent", Server: strings.TrimPrefix(m.port.URL, "http://"), IP: "10.0.0.1"}
}

func (m *machine) proven(header string) (*websocket.Conn, *http.Response, error) {
	return websocket.DefaultDialer.Dial("ws"+strings.TrimPrefix(m.port.URL, "http")+"/agent?AgentKind=native&AgentProto=1", http.Header{"Authorization": {header}})
}

func (m *machine) join() *agent {
	m.Helper()
	conn, _, err := m.proven(hostproof.Sign(m.key, m.claim()))
	if err != nil {
		m.Fatal(err)
	}
	return m.keep(conn)
}

// refuse connects with a proof that must be refused, and returns why.
func (m *machine) refuse(header string, want int) string {
	m.Helper()
	_, r, err := m.proven(header)
	if err == nil || r == nil || r.StatusCode != want {
		m.Fatalf("%v, %v; want status %d", r, err, want)
	}
	text, _ := io.ReadAll(r.Body)
	return string(text)
}

// A proof that the host itself has not signed now and for this request opens no connection. Neither does a copy of a valid one.
func TestProofsThatAreRefused(t *testing.T) {
	w := newWorld(t)
	all := w.rack(0, "rack-1", "rack-2")
	m, other := all[0], all[1]
	change := func(f func(*hostproof.Claim)) string {
		c := m.claim()
		f(&c)
		return hostproof.Sign(m.key, c)
	}
	for what, x := range map[string]struct{ header, want string }{
		"no signature":                {"Muster-Host x", "want Muster-Host"},
		"the claim of another host":   {change(func(c *hostproof.Claim) { c.Host = other.id }), "not its own"},
		"an unknown host":             {change(func(c *hostproof.Claim) { c.Host = "none" }), "no host"},
		"another method":              {change(func(c *hostproof.Claim) { c.Method = http.MethodPost }), "not for this request"},
		"another path":                {change(func(c *hostproof.Claim) { c.Path = "/agent/join" }), "not for this request"},
		"another service":             {change(func(c *hostproof.Claim) { c.Server = "muster.example.com" }), "not for this request"},
		"an hour ago":                 {change(func(c *hostproof.Claim) { c.At -= 3_600_000 }), "clock"},
		"in an hour":                  {change(func(c *hostproof.Claim) { c.At += 3_600_000 }), "clock"},
		"the key of another for this": {hostproof.Sign(other.key, m.claim()), "not its own"},
	} {
		if why := m.refuse(x.header, http.StatusForbidden); !strings.Contains(why, x.want) {
			t.Errorf("%s: %s; want %q", what, why, x.want)
		}
	}
	m.refuse(change(func(c *hostproof.Claim) { c.IP = "" }), http.StatusBadRequest)

	good := hostproof.Sign(m.key, m.claim())
	conn, _, err := m.proven(good)
	if err != nil {
		t.Fatal(err)
	}
	a := m.keep(conn)
	if why := m.refuse(good, http.StatusForbidden); !strings.Contains(why, "copy") {
		t.Errorf("a copy: %s", why)
	}
	// Behind a proxy the claim has the service's public name and path.
	proxied := m.claim()
	proxied.Server, proxied.Path = "service", "/agent"
	if conn, _, err = m.proven(hostproof.Sign(m.key, proxied)); err != nil {
		t.Fatal(err)
	}
	b, c := m.keep(conn), other.join()
	// A connection that is being established when the host is revoked is closed without a message.
	waittest.Until(w, "all connections to be made", func() bool { return w.door.Stats().Links == 3 })
	w.must(&hosts.Revoke{Host: m.id})
	for _, x := range []*agent{a, b} {
		x.wait(`{"Action":"DrainCompute","DeadlineMillis":1,"Reason":"the host was revoked"}`)
	}
	waittest.Until(w, "the connections of the revoked host to end", func() bool { return a.ended() && b.ended() && w.door.Stats().Links == 1 })
	if c.ended() {
		t.Error("the connection of another host has ended, too")
	}
	if why := m.refuse(hostproof.Sign(m.key, m.claim()), hostproof.StatusRevoked); !strings.Contains(why, "revoked") {
		t.Errorf("after the revocation: %s", why)
	}
}

// A host that has joined waits for a fleet, gets its runtime configuration and tokens, and is free again.
func TestHostServesFleets(t *testing.T) {
	w := newWorld(t)
	m := w.rack(0, "rack-1")[0]
	a := m.join()
	a.wait(`"DrainCompute"`, `"Cancel":true`)
	a.send(`{"Action":"AgentHello","RequestId":"1","Version":"1","OS":"linux","Arch":"amd64","CPUs":2,"MemoryMB":1000,"Ports":"7000-7099"}`)
	a.wait(`"RequestId":"1"`, `"FleetId":""`, `"HostId":"`+m.id+`"`, `"ComputeName":"rack-1"`)
	a.send(`{"Action":"SendHeartbeat","RequestId":"2","Status":"Active","ProcessList":["p"],"HeartbeatTimeMillis":1,"Metrics":{"CPUPercent":1,"MemoryTotalBytes":7,"MemoryUsedBytes":1}}`)
	a.wait(`"RequestId":"2"`, `"Status":"PENDING"`)
	if x := w.door.Reports(); len(x) != 1 || x[0].Host != m.id || x[0].Metrics.MemoryTotalBytes != 7 {
		t.Errorf("measured %+v", x)
	}
	a.send(`{"Action":"GetServerToken","RequestId":"3"}`)
	a.wait(`"RequestId":"3"`, `"StatusCode":412`)

	w.want(1)
	w.must(&capacity.Plan{})
	a.wait(`"DrainCompute"`, `"Cancel":true`) // taken here, so that the next one is that of the next change
	a.wait(`"UpdateHost"`, builtFleet)
	a.wait(`"UpdateRuntimeConfiguration"`, "/local/game/server")
	a.send(`{"Action":"GetServerToken","RequestId":"4"}`)
	a.wait(`"RequestId":"4"`, `"StatusCode":200`, builtFleet)
	a.send(`{"Action":"SendHeartbeat","RequestId":"5","Status":"Active","ProcessList":[],"HeartbeatTimeMillis":1}`)
	a.wait(`"RequestId":"5"`, `"Status":"ACTIVE"`)
	w.must(&hosting.RotateToken{Fleet: builtFleet, Compute: "rack-1"}) // the agent fetches another one
	a.wait(`"UpdateHost"`, builtFleet)
	process := fleet.Key{Fleet: builtFleet, Compute: "rack-1", Process: "p-1"}
	w.must(&hosting.ConnectProcess{Process: process, Link: 7, SDK: "Go 5.5.0"})

	w.want(0)
	w.must(&capacity.Plan{})
	a.wait(`"DrainCompute"`, "leaves the fleet")
	w.want(1)
	w.must(&capacity.Plan{})
	a.wait(`"DrainCompute"`, `"Cancel":true`)
	w.want(0)
	w.must(&capacity.Plan{})
	a.wait(`"DrainCompute"`, "leaves the fleet")
	w.must(&hosting.EndProcess{Process: process, Request: 9})
	w.must(&capacity.Plan{})
	a.wait(`"DrainCompute"`, `"Cancel":true`)
	a.wait(`"UpdateHost"`, `"FleetId":""`)

	// A new connection of a host that serves a fleet starts in that fleet.
	w.want(1)
	w.must(&capacity.Plan{})
	a.wait(`"UpdateHost"`, builtFleet)
	b := m.join()
	b.wait(`"UpdateRuntimeConfiguration"`, "/local/game/server")
	b.send(`{"Action":"AgentHello","RequestId":"1","Version":"1","OS":"linux","Arch":"amd64","CPUs":2,"MemoryMB":1000,"Ports":"7000-7099"}`)
	b.wait(`"RequestId":"1"`, builtFleet)
}

// A host that is bound to a fleet learns that it is a compute of it, even after it has connected, because a follower may lag behind the leader.
func TestBoundHostIsRegisteredLater(t *testing.T) {
	w := newWorld(t)
	a := w.bound()
	w.must(&hosting.DeregisterCompute{Fleet: testFleet, Name: "rack-1"})
	a.wait(`"UpdateHost"`, `"FleetId":""`)
	w.registerBound()
	a.wait(`"UpdateHost"`, `"FleetId":"`+testFleet+`"`)
	a.wait(`"UpdateRuntimeConfiguration"`)
}

// The door records which hosts are connected. A host whose agent announces its end counts as silent at once.
func TestHostsThatAreConnected(t *testing.T) {
	w := newWorld(t)
	m := w.rack(0, "rack-1")[0]
	a := m.join()
	host := func() (h hosts.Host) {
		_ = w.engine.Read(t.Context(), func(v *cell.View) error { h, _ = v.Host(m.id); return nil })
		return h
	}
	before := host().SilentBy
	waittest.Until(w, "a later sign of the host", func() bool { w.door.keepHosts(time.Now()); return host().SilentBy > before })
	a.send(`{"Action":"SendHeartbeat","RequestId":"1","Status":"Terminated","ProcessList":[],"HeartbeatTimeMillis":1}`)
	a.wait(`"RequestId":"1"`)
	_ = a.conn.Close()
	waittest.Until(w, "the host to be silent", func() bool { h := host(); return h.Silent() })
}

// A late report that the former agent of a host has ended does not silence a host that has connected again, which may be to another node.
func TestLateReportOfTheFormerAgent(t *testing.T) {
	w := newWorld(t)
	m := w.rack(0, "rack-1")[0]
	a := m.join()
	a.send(`{"Action":"SendHeartbeat","RequestId":"1","Status":"Terminated","ProcessList":[],"HeartbeatTimeMillis":1}`)
	a.wait(`"RequestId":"1"`)
	w.must(&hosts.Attach{Host: m.id, Signed: domain.Time(m.claim().At), IP: "10.0.0.1"}) // at another node
	_ = a.conn.Close()
	waittest.Until(w, "the connection to end", func() bool { return w.door.Stats().Links == 0 })
	time.Sleep(50 * time.Millisecond) // the report is made
	var h hosts.Host
	_ = w.engine.Read(t.Context(), func(v *cell.View) error { h, _ = v.Host(m.id); return nil })
	if h.Silent() {
		t.Error("a host that is connected counts as silent")
	}
}

// The cause that keeps an entry of the runtime configuration from running is in the fleet's events when it begins and when it changes, not with each heartbeat.
func TestTroublesBecomeEvents(t *testing.T) {
	w := newWorld(t)
	w.must(&kernel.RaiseLevel{To: kernel.Level})
	a := w.native()
	beats := 0
	beat := func(launches string) {
		t.Helper()
		beats++
		id := fmt.Sprint("beat-", beats)
		a.send(`{"Action":"SendHeartbeat","RequestId":"` + id + `","Status":"Active","ProcessList":[],"HeartbeatTimeMillis":1,"Launches":[` + launches + `]}`)
		a.wait(`"RequestId":"`+id+`"`, `"StatusCode":200`)
	}
	events := func() (all []string) {
		_ = w.engine.Read(t.Context(), func(v *cell.View) error {
			for _, e := range v.FleetEvents(testFleet, 0, 0, 0, 100) {
				if strings.Contains(e.Message, "on compute host in") {
					all = append(all, fmt.Sprint(e.Code, " ", e.Times(), " ", e.Message))
				}
			}
			return nil
		})
		return all
	}
	const fetching = `{"LaunchPath":"server","Wanted":2,"State":"BackingOff","Cause":"BuildNotFetched","Reason":"connection refused"}`
	for range 3 {
		beat(fetching)
	}
	if got := events(); len(got) != 1 || got[0] != "FLEET_BINARY_DOWNLOAD_FAILED 1 The build cannot be fetched on compute host in custom-home: connection refused" {
		t.Fatalf("%q", got)
	}
	if r := w.door.Reports(); len(r) != 1 || r[0].Fleet != testFleet || r[0].Compute != testCompute || len(r[0].Launches) != 1 {
		t.Errorf("%+v", r)
	}
	beat(`{"LaunchPath":"server","Wanted":2,"State":"BackingOff","Cause":"Crashed","Crashes":2,"Reason":"exit code 1"}`) // it is a trouble when it fails
	beat(`{"LaunchPath":"server","Wanted":2,"State":"Failed","Cause":"Crashed","Crashes":6,"Reason":"exit code 1"}`)
	beat(`{"LaunchPath":"server","Wanted":2,"State":"Failed","Cause":"something new","Reason":"x"}`)
	if got := events(); len(got) != 2 || !strings.Contains(got[0], "crash too often") {
		t.Errorf("%q", got)
	}
	beat(fetching) // again
	if got := events(); len(got) != 2 || !strings.HasPrefix(got[0], "FLEET_BINARY_DOWNLOAD_FAILED 2 ") {
		t.Errorf("%q", got)
	}
	for i := range 100 { // an agent that invents troubles does not write as it likes
		beat(fmt.Sprintf(`{"LaunchPath":"server-%d","Wanted":2,"State":"Failed","Cause":"Crashed","Reason":"x"}`, i))
	}
	if got := len(events()); got >= 100 { // the rest waits for tokens, which come every five seconds
		t.Errorf("%d events", got)
	}
}

func TestPortsIn(t *testing.T) {
	for text, want := range map[string]int32{"7000-7999": 1000, "7000-7000": 1, "": 0, "7000": 0, "7001-7000": 0, "1-99999": 0, "x": 0} {
		if got := portsIn(text); got != want {
			t.Errorf("%q: %d ports, want %d", text, got, want)
		}
	}
}
