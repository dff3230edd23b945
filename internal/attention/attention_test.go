package attention

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/agentproto"
	"github.com/musterhq/muster/internal/audit/export"
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/hosting"
	records "github.com/musterhq/muster/internal/domain/hosts"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/matcher"
	"github.com/musterhq/muster/internal/domain/placement"
	"github.com/musterhq/muster/internal/domain/ruleset"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/engine/enginetest"
	"github.com/musterhq/muster/internal/matchmaker"
)

// patienceOfTest bounds every wait, so that a test that hangs ends.
const patienceOfTest = 30 * time.Second

// night is a cell with a fleet, one location and one compute, and a Finder.
type night struct {
	*testing.T
	engine *engine.Engine
	config Config
	offset atomic.Int64
	links  uint64
}

func newNight(t *testing.T) *night {
	n := &night{T: t}
	n.engine = enginetest.Open(t, engine.Config{Cell: cell.DefaultConfig(), Now: func() time.Time { return time.Now().Add(time.Duration(n.offset.Load())) }})
	n.config = Config{Engine: n.engine, Log: slog.New(slog.DiscardHandler)}
	n.do(&kernel.RaiseLevel{To: kernel.Level}) // as after the first start
	n.do(&hosting.CreateLocation{Name: "custom-a", Region: "us-east-1"})
	n.fleet("fleet-1", "arena")
	return n
}

func (n *night) do(cmd kernel.Command) {
	n.Helper()
	if err := n.engine.Do(n.Context(), cmd); err != nil {
		n.Fatalf("%T: %v", cmd, err)
	}
}

func (n *night) fleet(id, name string) {
	n.Helper()
	n.do(&hosting.CreateFleet{Fleet: fleet.Fleet{ID: id, Region: "us-east-1", Name: name}, Locations: []string{"custom-a"}})
}

func (n *night) compute() {
	n.Helper()
	n.do(&hosting.RegisterCompute{Compute: fleet.Compute{FleetID: "fleet-1", Name: "rack", Location: "custom-a", IPAddress: "127.0.0.1"}})
}

// process connects a server process, which is free if it is healthy.
func (n *night) process(id string, healthy bool) fleet.Key {
	n.Helper()
	n.links++
	key := fleet.Key{Fleet: "fleet-1", Compute: "rack", Process: id}
	n.do(&hosting.ConnectProcess{Process: key, Link: n.links, SDK: "Go 5.5.0"})
	n.do(&hosting.ActivateProcess{Process: key, Link: n.links, Port: 7777, Request: n.links})
	n.do(&hosting.ReportHealth{Process: key, Healthy: healthy})
	return key
}

// host makes a server process host a game session with a player.
func (n *night) host(key fleet.Key) {
	n.Helper()
	n.queue("games", "arn:aws:gamelift:us-east-1::fleet/fleet-1")
	n.do(&hosting.StartPlacement{Placement: placement.Placement{ID: "game", Queue: "games", PlayersMax: 4, Players: []placement.Player{{Player: "ann", ID: domain.PlayerSessionID{1}}}}})
	n.do(&hosting.ActivateGameSession{Process: key, Game: "fleet-1/custom-a/game"})
	n.do(&hosting.AcceptPlayer{Process: key, Game: "fleet-1/custom-a/game", Player: domain.PlayerSessionID{1}, Request: 1})
}

func (n *night) queue(name string, destinations ...string) {
	n.Helper()
	n.do(&hosting.CreateQueue{Queue: placement.Queue{Name: name, Region: "us-east-1", Timeout: 10 * time.Minute, Destinations: destinations}})
}

func (n *night) later(d time.Duration) {
	n.offset.Add(int64(d))
	n.engine.Poke()
}

func (n *night) find() *Found {
	n.Helper()
	x, err := New(n.config).Find(n.Context())
	if err != nil {
		n.Fatal(err)
	}
	return x
}

// finds waits until an item about an object has these texts. It waits because the engine handles deadlines a moment after its clock was moved.
func (n *night) finds(kind, id, what, next string) {
	n.Helper()
	var all []Item
	for end := time.Now().Add(patienceOfTest); time.Now().Before(end); time.Sleep(time.Millisecond) {
		all = n.find().Items
		for _, x := range all {
			if x.Kind == kind && x.ID == id && strings.Contains(x.What, what) && strings.Contains(x.Next, next) {
				return
			}
		}
	}
	n.Fatalf("no item about %s %q says %q and %q: %+v", kind, id, what, next, all)
}

func (n *night) says(launch agentproto.LaunchState) {
	n.config.Reports = func() []*agentproto.Report {
		return []*agentproto.Report{{Fleet: "fleet-1", Compute: "rack", Launches: []agentproto.LaunchState{launch}}}
	}
}

func TestService(t *testing.T) {
	n := newNight(t)
	n.config.Damage = func() []string { return []string{"block 7"} }
	n.finds("", "", "The archive is damaged at block 7", "muster archive")
	items := service(errors.New("the disk is full"), n.config.Damage, func() (uint64, error) { return 1, errors.New("broken pipe") })
	if len(items) != 3 || items[0].What != "The service refuses changes: the disk is full." || !strings.Contains(items[0].Next, "Free space") ||
		items[2].What != "The log of this node cannot be written: broken pipe. 1 line was lost since the start." {
		t.Errorf("got %+v", items)
	}
}

func TestFleetWithoutFreeProcess(t *testing.T) {
	n := newNight(t)
	n.finds("fleet", "fleet-1", "Fleet arena can start no game session in custom-a: no compute is registered", "register-compute --fleet-id fleet-1")
	n.compute()
	n.finds("fleet", "fleet-1", "no auth token was ever issued for compute rack", "get-compute-auth-token --fleet-id fleet-1 --compute-name rack")
	n.do(&hosting.IssueToken{Fleet: "fleet-1", Compute: "rack"})
	n.finds("fleet", "fleet-1", "no server process is connected in custom-a", "Start a game server there")
	n.host(n.process("busy", true))
	n.finds("fleet", "fleet-1", "the only server process in custom-a hosts a game session", "All are in use")
	n.process("p", true)
	if all := n.find().Items; len(all) != 0 {
		t.Errorf("with a free process: %+v", all)
	}
}

// A fleet of a build has its home region as a location. If hosts are required in only one of its locations, it lacks them only there.
func TestFleetThatWantsHostsInOneLocation(t *testing.T) {
	n := newNight(t)
	n.do(&hosting.CreateBuild{Build: fleet.Build{ID: "build-1", Region: "us-east-1", Storage: fleet.Storage{Bucket: "b", Key: "k"}}})
	n.do(&hosting.CreateFleet{Locations: []string{"custom-a"}, Fleet: fleet.Fleet{
		ID: "fleet-2", Region: "us-east-1", Name: "built", Managed: &fleet.Managed{Build: "build-1"}, Runtime: &fleet.Runtime{Launches: []fleet.Launch{{Path: "/local/game/server", Copies: 1}}},
	}})
	n.finds("fleet", "fleet-2", "Fleet built can start no game session in custom-a", "muster hosts join-token --location custom-a")
	n.do(&hosting.CreateAlias{Alias: fleet.Alias{ID: "alias-1", Region: "us-east-1", Name: "live", Fleet: "fleet-2"}})
	n.finds("alias", "alias-1", "no compute is registered in custom-a", "muster hosts join-token --location custom-a")
	for _, x := range n.find().Items {
		if strings.Contains(x.What, "in us-east-1") {
			t.Errorf("hosts are wanted elsewhere alone: %+v", x)
		}
	}
	n.do(&hosting.SetCapacity{Fleet: "fleet-2", Location: "us-east-1", Desired: new(int32(2)), Max: new(int32(2))})
	n.finds("fleet", "fleet-2", "Fleet built can start no game session in us-east-1", "muster hosts join-token --location us-east-1")
	for _, location := range []string{"custom-a", "us-east-1"} {
		n.do(&hosting.SetCapacity{Fleet: "fleet-2", Location: location, Desired: new(int32)})
	}
	n.finds("fleet", "fleet-2", "Fleet built can start no game session in custom-a", "--location custom-a --desired-instances 1")
}

// The agents of hosts start the server processes of a fleet of a build, not the operator.
func TestHostsWithoutServerProcesses(t *testing.T) {
	for managed, want := range map[bool]string{true: "muster hosts", false: "get-compute-auth-token"} {
		f := fleet.Fleet{ID: "fleet-2"}
		if managed {
			f.Managed = &fleet.Managed{Build: "build-1"}
		}
		n := newNight(t)
		err := n.engine.Read(t.Context(), func(v *cell.View) error {
			if _, next := Place(v, &f, &hosting.PlaceCounts{Location: "custom-a", Hosts: fleet.SiteCounts{Computes: 1}}, nil, 0); !strings.Contains(next, want) {
				t.Errorf("managed %t: %s", managed, next)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
}

func TestExpiredToken(t *testing.T) {
	n := newNight(t)
	n.compute()
	n.do(&hosting.IssueToken{Fleet: "fleet-1", Compute: "rack"})
	n.later(365 * 24 * time.Hour)
	n.finds("fleet", "fleet-1", "the newest auth token of compute rack has expired", "Get a new one")
}

// The overview reports only on the computes' tokens that it has examined.
func TestTokensOfManyComputes(t *testing.T) {
	n := newNight(t)
	register := func(i int) {
		n.do(&hosting.RegisterCompute{Compute: fleet.Compute{FleetID: "fleet-1", Name: fmt.Sprintf("rack-%03d", i), Location: "custom-a", IPAddress: "127.0.0.1"}})
	}
	for i := range computesLooked {
		register(i)
	}
	n.finds("fleet", "fleet-1", "compute rack-000; those of the other 199 are no better", "--compute-name rack-000")
	register(computesLooked)
	n.finds("fleet", "fleet-1", "compute rack-000; those of 199 others that were checked are no better", "--compute-name rack-000")
}

func TestAgents(t *testing.T) {
	n := newNight(t)
	n.compute()
	n.says(agentproto.LaunchState{LaunchPath: "server", Wanted: 2, Running: 2, State: agentproto.LaunchRunning})
	n.finds("fleet", "fleet-1", "the 2 server processes that run on compute rack have not called InitSDK", "InitSDK")
	n.says(agentproto.LaunchState{LaunchPath: "server", Wanted: 2, State: agentproto.LaunchFailed, Cause: agentproto.CauseCrash, Crashes: 3, Reason: "bind: address already in use"})
	n.finds("fleet", "fleet-1", "it has failed after 3 crashes: bind: address already in use", "Another program on the host is using the port")
	n.says(agentproto.LaunchState{LaunchPath: "server", Wanted: 2, State: agentproto.LaunchBackingOff, Cause: agentproto.CausePath, Reason: "no such file"})
	n.finds("fleet", "fleet-1", "server: 0 of 2 run, it waits after a failure: no such file", "Compare the launch path")
	n.process("p", true) // others run there
	n.says(agentproto.LaunchState{LaunchPath: "server", Wanted: 2, State: agentproto.LaunchBackingOff, Cause: agentproto.CauseBuild, Reason: "no route to host"})
	n.finds("compute", "fleet-1/rack", "Fleet arena, compute rack: server: 0 of 2 run", "Check the network")
	n.says(agentproto.LaunchState{LaunchPath: "server", Wanted: 2, State: agentproto.LaunchBackingOff, Cause: agentproto.CauseCrash, Reason: "exit status 1"}) // it is tried again
	if all := n.find().Items; len(all) != 0 {
		t.Errorf("a crash that is tried again needs no hand: %+v", all)
	}
}

func TestEvents(t *testing.T) {
	n := newNight(t)
	n.compute()
	n.host(n.process("lost", true))
	n.process("free", true)
	n.do(&hosting.LoseLink{Process: fleet.Key{Fleet: "fleet-1", Compute: "rack", Process: "lost"}, Link: 1})
	n.later(n.engine.CellConfig().Hosting.LinkGrace + time.Second)
	n.finds("fleet", "fleet-1", "1 player lost their game in fleet arena: server process crashed, 1 in the last 15 minutes", "Place the players in a new game session")
	n.later(lately + time.Second) // it may still be the millisecond of the event
	for _, x := range n.find().Items {
		if strings.Contains(x.What, "lost their game") {
			t.Errorf("after %s: %+v", lately, x)
		}
	}
}

func TestSilentHosts(t *testing.T) {
	n := newNight(t)
	n.do(&records.IssueToken{ID: "t", Hash: "h", Location: "custom-a", Uses: 2, Valid: records.ValidMax})
	join := &records.Join{Token: "t", Hash: "h", Name: "rack", Key: make([]byte, 32)}
	n.do(join)
	seen := records.Host{ID: join.Host.ID, Seen: domain.TimeOf(time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC))}
	for _, c := range []struct {
		host   records.Host
		silent bool
	}{{seen, true}, {records.Host{ID: "new"}, false}, {records.Host{ID: "here", Seen: seen.Seen, SilentBy: 1}, false}, {records.Host{ID: "revoked", Seen: seen.Seen, Revoked: 1}, false}} {
		if silent(&c.host) != c.silent {
			t.Errorf("%s: silent is %v", c.host.ID, !c.silent)
		}
	}
	if why, next := SilentHost(&seen); !strings.Contains(why, "silent since 2030-01-02 03:04:05 UTC") || !strings.Contains(next, "muster hosts revoke "+seen.ID) {
		t.Errorf("%s %s", why, next)
	}
	for _, x := range n.find().Items {
		if x.Kind == "host" {
			t.Errorf("a host that has never been connected is not silent: %+v", x)
		}
	}
}

func TestAliases(t *testing.T) {
	n := newNight(t)
	n.do(&hosting.CreateAlias{Alias: fleet.Alias{ID: "alias-1", Region: "us-east-1", Name: "live", Fleet: "fleet-1"}})
	n.finds("alias", "alias-1", "Alias live leads to fleet arena (fleet-1), which is empty", "update-alias --alias-id alias-1")
	n.compute()
	n.process("p", true)
	if all := n.find().Items; len(all) != 0 {
		t.Errorf("with a process: %+v", all)
	}
}

func TestQueues(t *testing.T) {
	n := newNight(t)
	n.queue("empty")
	n.finds("queue", "empty", "Queue empty has no destination", "update-game-session-queue --name empty")
	n.do(&hosting.CreateQueue{Queue: placement.Queue{Name: "near", Region: "us-east-1", Timeout: 10 * time.Minute, Destinations: []string{"arn:aws:gamelift:us-east-1::fleet/fleet-1"},
		LatencyPolicies: []placement.LatencyPolicy{{Cap: 50}}}})
	for i := range 2 {
		n.do(&hosting.StartPlacement{Placement: placement.Placement{ID: fmt.Sprintf("p%d", i), Queue: "near", PlayersMax: 4, Players: []placement.Player{{Player: "ann", ID: domain.PlayerSessionID{byte(i + 1)}}},
			Latencies: []placement.Latency{{Player: "ann", Location: "custom-a", Milliseconds: 99}}}})
	}
	n.finds("placement", "p0", "Queue near has no location for placement p0, one of 2 that wait: the latency cap of 50 ms excludes its only location", "Raise MaximumIndividualPlayerLatencyMilliseconds")
}

func TestImpossibleTickets(t *testing.T) {
	rules := &ruleset.RuleSet{Rules: []*ruleset.Rule{{Name: "Experts"}, {Name: "Near"}}}
	for name, c := range map[string]struct {
		why  matcher.Explanation
		want string
		rule string
	}{
		"unmatchable":           {matcher.Explanation{Unmatchable: "the party is too large"}, "the party is too large.", ""},
		"alone":                 {matcher.Explanation{Alone: []matcher.Objection{{Rule: 0, Reason: "skill 3"}}}, "rule Experts rejects it with any partner: skill 3.", "Experts"},
		"alone, until a step":   {matcher.Explanation{Alone: []matcher.Objection{{Rule: 0}}, Steps: []matcher.Step{{Rules: []int{0}}}}, "", ""},
		"with each of all":      {matcher.Explanation{Waited: patience, Others: 3, Now: matcher.Partners{Looked: 3, Rejected: []matcher.Rejection{{Rule: 1, Tickets: 3, Reason: "200 ms"}}}}, "rule Near rejects it with each of the 3 others", "Near"},
		"with each, but new":    {matcher.Explanation{Waited: patience - 1, Others: 3, Now: matcher.Partners{Looked: 3, Rejected: []matcher.Rejection{{Rule: 1, Tickets: 3}}}}, "", ""},
		"with some":             {matcher.Explanation{Waited: patience, Others: 3, Now: matcher.Partners{Looked: 3, Rejected: []matcher.Rejection{{Rule: 1, Tickets: 2}}}}, "", ""},
		"together":              {matcher.Explanation{Waited: patience, Others: 3, Now: matcher.Partners{Looked: 3, Possible: 3}, Together: []matcher.Objection{{Rule: 0, Reason: "too far"}}}, "a match that is large enough is rejected by rule Experts: too far.", "Experts"},
		"alone in the pool":     {matcher.Explanation{Waited: patience}, "", ""},
		"a step is still ahead": {matcher.Explanation{Waited: patience, Others: 3, Steps: []matcher.Step{{}}, Now: matcher.Partners{Looked: 3, Rejected: []matcher.Rejection{{Rule: 1, Tickets: 3}}}}, "", ""},
	} {
		why, rule := impossible(&matchmaker.Oldest{Why: c.why, Rules: rules})
		if !strings.HasPrefix(why, c.want) || c.want == "" && why != "" || rule != c.rule {
			t.Errorf("%s: got %q by %q, want %q by %q", name, why, rule, c.want, c.rule)
		}
	}
}

// The leader answers for the other nodes, and an invalid answer is left out.
func TestMatchmakingOfTheLeader(t *testing.T) {
	n := newNight(t)
	n.config.Oldest = func() ([]*matchmaker.Oldest, bool) { return nil, false }
	n.config.AskLeader = func(context.Context) ([]byte, error) {
		return []byte(`[{"what":"Matchmaking duel finds no match","next":"Relax it","kind":"ticket","id":"t1"}]`), nil
	}
	n.finds("ticket", "t1", "Matchmaking duel", "Relax it")
	for _, answer := range []func(context.Context) ([]byte, error){
		func(context.Context) ([]byte, error) { return nil, errors.New("no leader") },
		func(context.Context) ([]byte, error) { return []byte("{"), nil },
	} {
		n.config.AskLeader = answer
		for _, x := range n.find().Items {
			if x.Kind == "ticket" {
				t.Errorf("got %+v", x)
			}
		}
	}
}

// However many faults there are, one look is bounded and says what it left out.
func TestLookIsBounded(t *testing.T) {
	n := newNight(t)
	for i := range ItemsMost {
		n.fleet(fmt.Sprintf("fleet-x%d", i), "x")
	}
	if x := n.find(); len(x.Items) != ItemsMost || x.Others != 1 || x.More {
		t.Errorf("%d items, %d others, more %v", len(x.Items), x.Others, x.More)
	}
	for i := range FleetsMost - ItemsMost - 1 {
		n.fleet(fmt.Sprintf("fleet-y%d", i), "y")
	}
	if x := n.find(); x.More || x.Others != FleetsMost-ItemsMost {
		t.Errorf("with %d fleets: %d others, more %v", FleetsMost, x.Others, x.More)
	}
	n.fleet("fleet-z", "z")
	if x := n.find(); !x.More || x.Others != FleetsMost-ItemsMost {
		t.Errorf("with one more: %d others, more %v", x.Others, x.More)
	}
}

// An unreachable receiver of the audit log is an item about the service, also at followers, which ask the leader.
func TestLateReceivers(t *testing.T) {
	n := newNight(t)
	n.config.Exports = func() []export.Late {
		return []export.Late{{Receiver: "syslog+tls://log:6514", For: 7 * time.Minute, Waiting: 12, Why: "dial tcp: connection refused"}}
	}
	const want = "The audit log has not reached syslog+tls://log:6514 for 7 minutes: 12 entries wait. The last attempt failed: dial tcp: connection refused."
	found, err := New(n.config).Find(t.Context())
	if err != nil || len(found.Items) != 2 || found.Items[0].What != want {
		t.Errorf("%+v, %v", found, err)
	}
	answer := New(n.config).Answer
	n.config.Exports = func() []export.Late { return nil }
	n.config.Oldest = func() ([]*matchmaker.Oldest, bool) { return nil, false }
	n.config.AskLeader = func(ctx context.Context) ([]byte, error) { return answer(ctx, nil) }
	if found, err := New(n.config).Find(t.Context()); err != nil || len(found.Items) != 2 || found.Items[0].What != want {
		t.Errorf("%+v, %v", found, err)
	}
}
