package cell

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/capacity"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/gameservers"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/hosts"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/matchmaking"
	"github.com/musterhq/muster/internal/domain/placement"
	"github.com/musterhq/muster/internal/domain/playerflow"
	"github.com/musterhq/muster/internal/domain/quota"
	"github.com/musterhq/muster/internal/domain/ruleset"
	"github.com/musterhq/muster/internal/domain/session"
)

const runaway, tidy quota.Holder = 100, 200

// by returns a command on behalf of a holder.
func by(h quota.Holder, cmd kernel.Command) kernel.Command {
	cmd.(quota.Taker).Hold(h)
	return cmd
}

// quotaWorld makes a world with one place for each kind of record, and quotas of three for each holder.
func quotaWorld(t *testing.T) *flowWorld {
	w := newFlowWorld(t, nil)
	quotas := &quota.Quotas{}
	var each quota.Numbers
	for k := range each {
		each[k] = 3
	}
	quotas.Set(&quota.Table{Each: each})
	w.cell.Quotas, w.cell.config.Quotas = quotas, quotas
	w.must(&kernel.RaiseLevel{To: kernel.Level})
	w.must(&hosting.CreateQueue{Queue: placement.Queue{Name: "bare", Region: "us-east-1", Timeout: time.Minute}})
	w.matchmaker(func(c *matchmaking.Configuration) { c.Standalone = true })
	w.registry("group")
	w.game("open", 100)
	for _, h := range []quota.Holder{runaway, tidy, 0} {
		w.must(by(h, &hosts.IssueToken{ID: tokenOf(h), Hash: "h", Location: testLocation, Uses: 9, Valid: time.Hour}))
	}
	for i := range 6 {
		w.server(fmt.Sprint("spare-", i))
	}
	return w
}

func tokenOf(h quota.Holder) string { return fmt.Sprint("token-", h) }

// joinFor joins a host with the token of a holder: the machine itself has none.
type joinFor struct{ hosts.Join }

func (cmd *joinFor) Hold(h quota.Holder) { cmd.Token = tokenOf(h) }

// makers returns, for each kind that callers can create, a function whose command makes a record with a name.
func makers(w *flowWorld) map[quota.Kind]func(name string) kernel.Command {
	rules, _ := ruleset.Parse(duoRules)
	return map[quota.Kind]func(name string) kernel.Command{
		quota.GameSessions: func(name string) kernel.Command {
			return &hosting.CreateGameSession{Fleet: testFleet, Location: testLocation, Name: name, PlayersMax: 2}
		},
		quota.PlayerSessions: func(name string) kernel.Command {
			return &hosting.ReservePlayers{Game: session.MakeID(testFleet, testLocation, "open"), Players: []hosting.NewPlayer{{ID: domain.PlayerSessionID(w.id()), Player: name}}}
		},
		quota.Placements: func(name string) kernel.Command {
			return &hosting.StartPlacement{Placement: placement.Placement{ID: name, Queue: "bare", PlayersMax: 2}}
		},
		quota.Tickets: func(name string) kernel.Command {
			return &matchmaking.StartMatchmaking{Configuration: "ranked", ID: name, Players: []matchmaking.Player{{ID: name}}}
		},
		quota.Fleets: func(name string) kernel.Command {
			return &hosting.CreateFleet{Fleet: fleet.Fleet{ID: "fleet-" + name, Region: "us-east-1", Name: name}, Locations: []string{testLocation}}
		},
		quota.Locations: func(name string) kernel.Command {
			return &hosting.CreateLocation{Name: "custom-" + name, Region: "us-east-1"}
		},
		quota.Computes: func(name string) kernel.Command {
			return &hosting.RegisterCompute{Compute: fleet.Compute{FleetID: testFleet, Name: name, Location: testLocation, IPAddress: "127.0.0.1"}}
		},
		quota.Hosts: func(name string) kernel.Command {
			return &joinFor{hosts.Join{Hash: "h", Name: name, Key: fmt.Appendf(nil, "%32s", name)}}
		},
		quota.Builds: func(name string) kernel.Command {
			return &hosting.CreateBuild{Build: fleet.Build{ID: "build-" + name, Name: name}}
		},
		quota.Aliases: func(name string) kernel.Command {
			return &hosting.CreateAlias{Alias: fleet.Alias{ID: "alias-" + name, Name: name, Fleet: testFleet}}
		},
		quota.Queues: func(name string) kernel.Command {
			return &hosting.CreateQueue{Queue: placement.Queue{Name: name, Region: "us-east-1", Timeout: time.Minute}}
		},
		quota.RuleSets: func(name string) kernel.Command {
			return &matchmaking.CreateRuleSet{RuleSet: matchmaking.RuleSet{Name: name, Region: "us-east-1", Body: duoRules}, Compiled: rules}
		},
		quota.Configurations: func(name string) kernel.Command {
			return &matchmaking.CreateConfiguration{Configuration: matchmaking.Configuration{Name: name, Region: "us-east-1", Account: "1", RuleSet: "duo", RequestTimeout: time.Minute, Standalone: true}}
		},
		quota.GameServerGroups: func(name string) kernel.Command {
			return &gameservers.CreateGameServerGroup{Group: gameservers.Group{
				Name: name, SizeMax: 1, Template: gameservers.LaunchTemplate{Name: "arena"}, Instances: []gameservers.InstanceType{{Name: "c5.large", Weight: "2"}},
			}}
		},
		quota.GameServers: func(name string) kernel.Command {
			return &gameservers.RegisterGameServer{Server: gameservers.Server{ID: name, Group: "group", Instance: "i-" + name}}
		},
		quota.Subscriptions: func(string) kernel.Command {
			return &playerflow.SubscribeEvents{Subscription: flow.Subscription{ID: flow.SubscriptionID(w.id())}}
		},
	}
}

// A holder that creates records without end is refused at its quota. The refusal names its count and the limit. Another holder and a caller without a
// holder are not affected. A restart changes nothing.
func TestQuotaOfEachKind(t *testing.T) {
	for _, kind := range quota.Kinds() {
		t.Run(kind.String(), func(t *testing.T) {
			w := quotaWorld(t)
			make, ok := makers(w)[kind]
			if !ok {
				t.Fatal("no command makes records of this kind")
			}
			for i := range 3 {
				w.must(by(runaway, make(fmt.Sprint("mine", i))))
			}
			refused := func(name string) {
				t.Helper()
				err := w.do(by(runaway, make(name)))
				refusal, ok := errors.AsType[*domain.Refusal](err)
				if !ok || refusal.Quota != kind.String() || !strings.Contains(refusal.Detail, "of this holder: 3; its quota "+kind.String()+" is 3") {
					t.Errorf("one more: %v", err)
				}
			}
			refused("more")
			w.must(by(tidy, make("yours")))
			w.restart()
			refused("again")
			if held, _ := w.cell.held(kind); held.Of(runaway).Count != 3 || held.Of(tidy).Count != 1 {
				t.Errorf("held after a restart: %+v", held)
			}
			var four quota.Numbers
			four[kind] = 4
			w.cell.Quotas.Set(&quota.Table{Of: map[quota.Holder]quota.Numbers{runaway: four}})
			w.must(by(runaway, make("raised")))
			if err := w.do(by(runaway, make("above"))); err == nil {
				t.Error("above a quota of its own")
			}
			w.must(by(0, make("unheld")))
			if err := errors.Join(w.cell.checkHeld()...); err != nil {
				t.Error(err)
			}
		})
	}
}

// Records that end make room in the quota.
func TestWhatEndsIsCountedDown(t *testing.T) {
	w := quotaWorld(t)
	all := makers(w)
	for kind, make := range all {
		for i := range 2 {
			if kind != quota.Subscriptions {
				w.must(by(runaway, make(fmt.Sprint("x", i))))
			}
		}
	}
	subscription := &playerflow.SubscribeEvents{Subscription: flow.Subscription{ID: flow.SubscriptionID(w.id())}}
	w.must(by(runaway, subscription))
	w.must(&playerflow.UnsubscribeEvents{ID: subscription.Subscription.ID})
	for i := range 2 {
		w.must(&hosting.StopPlacement{ID: fmt.Sprint("x", i)})
		w.must(&matchmaking.StopMatchmaking{ID: fmt.Sprint("x", i)})
	}
	for i := range 2 {
		name := fmt.Sprint("x", i)
		for _, cmd := range []kernel.Command{
			&matchmaking.DeleteConfiguration{Name: name}, &matchmaking.DeleteRuleSet{Name: name}, &hosting.DeleteQueue{Name: name}, &hosting.DeleteAlias{ID: "alias-" + name},
			&hosting.DeleteBuild{ID: "build-" + name}, &hosting.DeregisterCompute{Fleet: testFleet, Name: name}, &hosts.Revoke{Host: name}, &hosting.DeleteFleet{ID: "fleet-" + name},
			&gameservers.DeregisterGameServer{Group: "group", ID: name}, &gameservers.DeleteGameServerGroup{Name: name},
		} {
			if err := w.do(cmd); err != nil {
				t.Errorf("%T: %v", cmd, err)
			}
		}
		w.pass(time.Minute)
		w.must(&hosting.DeleteLocation{Name: "custom-" + name})
	}
	w.must(&hosting.DeregisterCompute{Fleet: testFleet, Name: testCompute}) // ends all game sessions, with their player sessions
	w.must(&kernel.Forget{Count: 100})
	for _, kind := range quota.Kinds() {
		if held, _ := w.cell.held(kind); held.Of(runaway) != (quota.Amount{}) {
			t.Errorf("%s: %+v is left", kind, held.Of(runaway))
		}
	}
	if err := errors.Join(w.cell.checkHeld()...); err != nil {
		t.Error(err)
	}
}

// While the cluster has nodes of an earlier release, records get no holder, so that all nodes count alike. Client keys are counted as before.
func TestHoldersBelowTheirLevel(t *testing.T) {
	w := newWorld(t, DefaultConfig())
	w.hall()
	w.matchmaker(func(c *matchmaking.Configuration) { c.Standalone = true })
	w.must(by(runaway, &hosting.CreateLocation{Name: "custom-old", Region: "us-east-1"}))
	w.must(by(runaway, &matchmaking.StartMatchmaking{Configuration: "ranked", ID: "old", Players: []matchmaking.Player{{ID: "ann"}}, By: 7}))
	w.must(&kernel.RaiseLevel{To: kernel.Level})
	w.must(by(runaway, &hosting.CreateLocation{Name: "custom-new", Region: "us-east-1"}))
	w.must(by(7, &matchmaking.StartMatchmaking{Configuration: "ranked", ID: "new", Players: []matchmaking.Player{{ID: "bob"}}, By: 7}))
	w.must(by(runaway, &matchmaking.StartMatchmaking{Configuration: "ranked", ID: "session", Players: []matchmaking.Player{{ID: "cyd"}}, By: 8}))
	for range 2 {
		locations, _ := w.cell.held(quota.Locations)
		tickets, _ := w.cell.held(quota.Tickets)
		if locations.Of(runaway).Count != 1 || locations.Total().Count != 3 {
			t.Errorf("locations: %+v", locations)
		}
		if tickets.Of(7).Count != 2 || tickets.Of(8).Count != 0 || tickets.Of(runaway).Count != 1 {
			t.Errorf("tickets: %+v", tickets)
		}
		w.restart()
	}
}

// A placement's game session counts for the placement's holder. Changes of a record's tags or of a compute's address do not change its holder.
func TestHoldersStay(t *testing.T) {
	w := quotaWorld(t)
	w.must(by(runaway, &hosting.CreateQueue{Queue: placement.Queue{Name: "mine", Region: "us-east-1", Timeout: time.Minute, Destinations: []string{"arn:aws:gamelift:us-east-1::fleet/" + testFleet}}}))
	w.must(by(runaway, &hosting.StartPlacement{Placement: placement.Placement{ID: "p", Queue: "mine", PlayersMax: 2}}))
	w.must(by(runaway, &hosting.RegisterCompute{Compute: fleet.Compute{FleetID: testFleet, Name: "rack", Location: testLocation, IPAddress: "127.0.0.1"}}))
	w.must(by(tidy, &hosting.RegisterCompute{Compute: fleet.Compute{FleetID: testFleet, Name: "rack", Location: testLocation, IPAddress: "127.0.0.2"}}))
	w.must(&TagResource{Resource: Resource{Kind: QueueResource, ID: "mine"}, Tags: []fleet.Tag{{Key: "a", Value: "b"}}})
	for kind, want := range map[quota.Kind]int{quota.GameSessions: 1, quota.Queues: 1, quota.Computes: 1} {
		if held, _ := w.cell.held(kind); held.Of(runaway).Count != want || held.Of(tidy).Count != 0 {
			t.Errorf("%s: %+v", kind, held)
		}
	}
	if err := errors.Join(w.cell.checkHeld()...); err != nil {
		t.Error(err)
	}
}

// Until it is revoked, a host counts for the holder that issued its join token. So does its compute, whichever fleet it serves.
func TestHostsCountForTheIssuerOfTheirToken(t *testing.T) {
	w := hostHall(t, 2)
	w.must(&hosting.CreateFleet{Locations: []string{testLocation}, Fleet: fleet.Fleet{ID: "fleet-any", Region: "us-east-1"}})
	w.must(by(runaway, &hosts.IssueToken{ID: "any", Hash: "h", Fleet: "fleet-any", Uses: 9, Valid: time.Hour}))
	w.must(by(runaway, &hosts.IssueToken{ID: "built", Hash: "h", Location: testLocation, Uses: 9, Valid: time.Hour}))
	held := func(kind quota.Kind, want int) {
		t.Helper()
		if held, _ := w.cell.held(kind); held.Of(runaway).Count != want {
			t.Errorf("%s: %+v, want %d", kind, held, want)
		}
		if err := errors.Join(w.cell.checkHeld()...); err != nil {
			t.Error(err)
		}
	}
	var ids []string
	for i, token := range []string{"any", "built", "any"} {
		join := &hosts.Join{Token: token, Hash: "h", Name: fmt.Sprint("rack-", i), Location: testLocation, Key: hostKey(i)}
		w.must(join)
		ids = append(ids, join.Host.ID)
	}
	held(quota.Hosts, 3)
	held(quota.Computes, 0) // until their agents connect

	w.attach(ids[0])
	w.attach(ids[1])
	w.must(&capacity.Plan{})
	held(quota.Computes, 2)
	var one quota.Numbers
	one[quota.Computes] = 2
	w.cell.Quotas = &quota.Quotas{}
	w.cell.Quotas.Set(&quota.Table{Each: one})
	why := w.refusedFor(domain.LimitExceeded, &hosts.Attach{Host: ids[2], Signed: w.now, IP: "10.0.0.1"})
	if !strings.Contains(why, "computes of this holder: 2; its quota computes is 2") {
		t.Errorf("one more is refused with %q", why)
	}
	w.now++
	w.attach(ids[0]) // what is there goes on
	w.must(&hosts.Revoke{Host: ids[0]})
	held(quota.Hosts, 2)
	held(quota.Computes, 1)
	w.attach(ids[2])
	w.restart()
	held(quota.Hosts, 2)
	held(quota.Computes, 2)
}

// One administrator cannot take the room of others for join tokens. Tokens that are used up, expired or revoked do not count.
func TestJoinTokensOfOneHolder(t *testing.T) {
	w := hostHall(t, 0)
	issue := func(h quota.Holder, id string, valid time.Duration) kernel.Command {
		return by(h, &hosts.IssueToken{ID: id, Hash: "h", Location: testLocation, Uses: 1, Valid: valid})
	}
	w.must(issue(runaway, "short", time.Second))
	w.now = w.now.Add(time.Second)
	for n := range hosts.TokensOfHolderMax {
		w.must(issue(runaway, fmt.Sprint("n", n), time.Hour))
	}
	w.refusedFor(domain.LimitExceeded, issue(runaway, "more", time.Hour))
	w.must(issue(runaway, "n0", time.Hour)) // a repeat
	w.must(issue(tidy, "other", time.Hour))
	w.must(issue(0, "of-none", time.Hour))
	w.restart()
	w.refusedFor(domain.LimitExceeded, issue(runaway, "more", time.Hour))
	w.must(&hosts.RevokeToken{ID: "n1"})
	w.must(issue(runaway, "more", time.Hour))
	w.must(&hosts.Join{Token: "n2", Hash: "h", Name: "rack", Key: hostKey(1)})
	w.must(issue(runaway, "and-more", time.Hour))
}

// A backend that describes endless players leaves room for players who log in. One that issues endless login tickets leaves room for players with signed tokens.
func TestDescribedPlayersLeaveRoom(t *testing.T) {
	w := newFlowWorld(t, nil)
	w.cell.config.PlayerFlow.PlayersMax, w.cell.config.PlayerFlow.LoginTicketsMax = 1000, 1000
	for i := range 750 {
		w.must(&playerflow.SetPlayerAttributes{Player: fmt.Sprint("described", i), Attributes: `{}`})
		w.must(&playerflow.IssueLoginTicket{Hash: w.id(), Player: "ann", Life: time.Minute})
	}
	w.refused(&playerflow.SetPlayerAttributes{Player: "late", Attributes: `{}`}, flow.RateLimited)
	w.refused(&playerflow.SetBlocks{Player: "late", Blocked: []string{"eve"}}, flow.RateLimited)
	w.refused(&playerflow.IssueLoginTicket{Hash: w.id(), Player: "ann", Life: time.Minute}, flow.RateLimited)
	w.login("late")
	w.must(&playerflow.Login{Player: "bob", Once: w.id(), Until: w.now.Add(time.Minute), LoginSessionID: flow.LoginSessionID(w.id()), Token: w.id()})
}
