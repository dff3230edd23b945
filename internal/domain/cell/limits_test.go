package cell

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/gameservers"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/matchmaking"
	"github.com/musterhq/muster/internal/domain/placement"
	"github.com/musterhq/muster/internal/domain/playerflow"
	"github.com/musterhq/muster/internal/domain/ruleset"
	"github.com/musterhq/muster/internal/domain/session"
)

// wantCount checks the metrics of one kind of record.
func (w *world) wantCount(kind string, count, most int) {
	w.t.Helper()
	v := w.cell.View()
	for _, x := range v.RecordCounts() {
		if x.Kind == kind {
			if x.Count != count || x.Most != most {
				w.t.Errorf("%s: %d of %d, want %d of %d", kind, x.Count, x.Most, count, most)
			}
			return
		}
	}
	w.t.Errorf("%s is not counted", kind)
}

// TestLimitsOfRecords reaches the limit of each kind of record that has one: the next record is refused, and the metrics show the
// count and the limit.
func TestLimitsOfRecords(t *testing.T) {
	config := DefaultConfig()
	config.Hosting.FleetsMax, config.Hosting.LocationsMax, config.Hosting.LocationsInFleetMax, config.Hosting.ComputesInFleetMax, config.Hosting.ProcessesOnComputeMax = 3, 4, 3, 3, 3
	config.Hosting.AliasesMax, config.Hosting.BuildsMax, config.GameServers.GameServerGroupsMax, config.GameServers.GameServersInGroupMax = 3, 3, 3, 3
	config.Hosting.QueuesMax, config.Matchmaking.RuleSetsMax, config.Matchmaking.MatchmakersMax = 3, 3, 3
	rules, err := ruleset.Parse(duoRules)
	if err != nil {
		t.Fatal(err)
	}
	reason := map[string]domain.Reason{"builds": domain.Invalid} // the API declares no other
	for _, c := range []struct {
		kind string
		have int // made by hall
		most int
		make func(name string) kernel.Command
	}{
		{"locations", 1, 4, func(name string) kernel.Command {
			return &hosting.CreateLocation{Name: "custom-" + name, Region: "us-east-1"}
		}},
		{"fullest_fleet_locations", 1, 3, func(name string) kernel.Command {
			return &hosting.AddFleetLocations{ID: testFleet, Locations: []string{"custom-" + name}}
		}},
		{"fleets", 1, 3, func(name string) kernel.Command {
			return &hosting.CreateFleet{Fleet: fleet.Fleet{ID: "fleet-" + name, Region: "us-east-1", Name: name}, Locations: []string{testLocation}}
		}},
		{"fullest_fleet_computes", 1, 3, func(name string) kernel.Command {
			return &hosting.RegisterCompute{Compute: fleet.Compute{FleetID: testFleet, Name: name, Location: testLocation, IPAddress: "127.0.0.1"}}
		}},
		{"fullest_compute_server_processes", 0, 3, func(name string) kernel.Command {
			return &hosting.ConnectProcess{Process: processKey(name), Link: 7, SDK: "Go 5.5.0"}
		}},
		{"aliases", 0, 3, func(name string) kernel.Command {
			return &hosting.CreateAlias{Alias: fleet.Alias{ID: "alias-" + name, Name: name, Fleet: testFleet}}
		}},
		{"builds", 0, 3, func(name string) kernel.Command {
			return &hosting.CreateBuild{Build: fleet.Build{ID: "build-" + name, Name: name}}
		}},
		{"game_server_groups", 0, 3, func(name string) kernel.Command {
			return &gameservers.CreateGameServerGroup{Group: gameservers.Group{
				Name: name, SizeMax: 1, Template: gameservers.LaunchTemplate{Name: "arena"}, Instances: []gameservers.InstanceType{{Name: "c5.large", Weight: "2"}},
			}}
		}},
		{"fullest_group_game_servers", 0, 3, func(name string) kernel.Command {
			return &gameservers.RegisterGameServer{Server: gameservers.Server{ID: name, Group: "n0", Instance: "i-" + name}}
		}},
		{"queues", 0, 3, func(name string) kernel.Command {
			return &hosting.CreateQueue{Queue: placement.Queue{Name: name, Region: "us-east-1", Timeout: time.Minute}}
		}},
		{"rule_sets", 0, 3, func(name string) kernel.Command {
			return &matchmaking.CreateRuleSet{RuleSet: matchmaking.RuleSet{Name: name, Region: "us-east-1", Body: duoRules}, Compiled: rules}
		}},
		{"matchmaking_configurations", 0, 3, func(name string) kernel.Command {
			return &matchmaking.CreateConfiguration{Configuration: matchmaking.Configuration{
				Name: name, Region: "us-east-1", Account: "1", RuleSet: "n0", RequestTimeout: time.Minute, Standalone: true,
			}}
		}},
	} {
		t.Run(c.kind, func(t *testing.T) {
			w := newWorld(t, config)
			w.hall()
			switch c.kind {
			case "fullest_fleet_locations":
				w.must(&hosting.CreateLocation{Name: "custom-n0", Region: "us-east-1"})
				w.must(&hosting.CreateLocation{Name: "custom-n1", Region: "us-east-1"})
			case "fullest_group_game_servers":
				w.registry("n0")
			case "matchmaking_configurations":
				w.must(&matchmaking.CreateRuleSet{RuleSet: matchmaking.RuleSet{Name: "n0", Region: "us-east-1", Body: duoRules}, Compiled: rules})
			}
			for i := c.have; i < c.most; i++ {
				w.wantCount(c.kind, i, c.most)
				w.must(c.make(fmt.Sprint("n", i-c.have)))
			}
			w.wantCount(c.kind, c.most, c.most)
			want, ok := reason[c.kind]
			if !ok {
				want = domain.LimitExceeded
			}
			last := "n9"
			if c.kind == "fullest_fleet_locations" {
				last = "n2"
				w.must(&hosting.CreateLocation{Name: "custom-n2", Region: "us-east-1"})
			}
			err := w.do(c.make(last))
			if refusal, ok := errors.AsType[*domain.Refusal](err); !ok || refusal.Reason != want {
				t.Errorf("one more: got %v, want %s", err, want)
			}
			w.wantCount(c.kind, c.most, c.most)
		})
	}
}

// TestLimitOfScalingPolicies: a policy beyond ScalingPoliciesMax is refused, and an existing one can still be replaced.
func TestLimitOfScalingPolicies(t *testing.T) {
	config := DefaultConfig()
	config.Hosting.ScalingPoliciesMax = 3
	w := newWorld(t, config)
	w.hall()
	const managed = "fleet-managed"
	w.must(&hosting.CreateBuild{Build: fleet.Build{ID: "build-1", Region: "us-east-1", Storage: fleet.Storage{Bucket: "builds", Key: "game.zip"}}})
	w.must(&hosting.CreateFleet{Fleet: fleet.Fleet{ID: managed, Region: "us-east-1", Managed: &fleet.Managed{Build: "build-1", InstanceType: "c5.large"}, Runtime: &fleet.Runtime{
		Launches: []fleet.Launch{{Path: "/local/game/arena", Copies: 1}},
	}}, Locations: []string{testLocation}})
	put := func(i int) error {
		return w.do(&hosting.PutScalingPolicy{Fleet: managed, Policy: fleet.ScalingPolicy{Name: fmt.Sprint("policy ", i), TargetBased: true, Target: 20}})
	}
	for i := range 3 {
		if err := put(i); err != nil {
			t.Fatal(err)
		}
	}
	if refusal, ok := errors.AsType[*domain.Refusal](put(3)); !ok || refusal.Reason != domain.Invalid {
		t.Errorf("a fourth policy: got %v, want %s", refusal, domain.Invalid)
	}
	if err := put(2); err != nil {
		t.Errorf("a policy in place of itself: %v", err)
	}
}

// TestLimitsOfTickets reaches the limits of one ticket: its number of players, and the bytes of all of them.
func TestLimitsOfTickets(t *testing.T) {
	w := newWorld(t, DefaultConfig())
	w.matchmaker(func(c *matchmaking.Configuration) { c.Standalone = true })
	party := func(players, bytesEach int) []matchmaking.Player {
		list := make([]matchmaking.Player, players)
		for i := range list {
			list[i] = matchmaking.Player{ID: fmt.Sprint("player ", i), Attributes: []ruleset.NamedValue{
				{Name: "note", Value: ruleset.Value{Kind: ruleset.String, Text: strings.Repeat("x", bytesEach)}},
			}}
		}
		return list
	}
	for _, c := range []struct {
		name               string
		players, bytesEach int
		taken              bool
	}{
		{"players", matchmaking.PlayersInTicketMax, 100, true},
		{"one player more", matchmaking.PlayersInTicketMax + 1, 100, false},
		{"bytes", 8, matchmaking.TicketBytesMax/8 - 100, true},
		{"more bytes", 8, matchmaking.TicketBytesMax / 8, false},
	} {
		err := w.do(&matchmaking.StartMatchmaking{Configuration: "ranked", ID: "t-" + c.name, Players: party(c.players, c.bytesEach)})
		refusal, refused := errors.AsType[*domain.Refusal](err)
		if c.taken && err != nil || !c.taken && (!refused || refusal.Reason != domain.Invalid) {
			t.Errorf("%s: got %v, want it taken: %t", c.name, err, c.taken)
		}
	}
}

// TestEndedRecordsAreCounted: an ended record counts as awaiting the archive until the archive has it.
func TestEndedRecordsAreCounted(t *testing.T) {
	w := newWorld(t, DefaultConfig())
	w.hall()
	w.game("arena", 2)
	w.wantCount("awaiting_archive", 0, 0)
	w.must(&hosting.EndProcess{Process: processKey("p-arena"), Request: 9})
	w.wantCount("awaiting_archive", 1, 0)
	w.restart()
	w.wantCount("awaiting_archive", 1, 0)
	w.must(&kernel.Forget{Count: 1})
	w.wantCount("awaiting_archive", 0, 0)
}

// TestLimitOfPlayers: when the maximum of players is known, these can log in. New players cannot log in, and the studio cannot
// describe them.
func TestLimitOfPlayers(t *testing.T) {
	w := newFlowWorld(t, nil)
	w.cell.config.PlayerFlow.PlayersMax = 3
	w.must(&playerflow.SetPlayerAttributes{Player: "trusted", Attributes: `{"rank":1}`})
	w.must(&playerflow.SetBlocks{Player: "blocker", Blocked: []string{"eve"}})
	w.login("ann")
	w.wantCount("players", 3, 3)
	for _, cmd := range []kernel.Command{
		&playerflow.Login{Player: "late", LoginSessionID: flow.LoginSessionID(w.id()), Token: w.id()},
		&playerflow.SetPlayerAttributes{Player: "late", Attributes: `{}`},
		&playerflow.SetBlocks{Player: "late", Blocked: []string{"eve"}},
	} {
		w.refused(cmd, flow.RateLimited)
	}
	w.must(&playerflow.SetPlayerAttributes{Player: "trusted", Attributes: `{"rank":2}`})
	w.must(&playerflow.SetBlocks{Player: "blocker"})
	w.login("ann")
	w.login("trusted")
	w.wantCount("players", 3, 3)
}

// TestLimitOfLoginTickets: tickets and used signed tokens share one limit, and expired ones make room.
func TestLimitOfLoginTickets(t *testing.T) {
	w := newFlowWorld(t, nil)
	w.cell.config.PlayerFlow.LoginTicketsMax = 2
	ticket := &playerflow.IssueLoginTicket{Hash: w.id(), Player: "ann", Life: time.Minute}
	w.must(ticket)
	w.must(&playerflow.Login{Player: "bob", Once: w.id(), Until: w.now.Add(time.Minute), LoginSessionID: flow.LoginSessionID(w.id()), Token: w.id()})
	w.wantCount("login_tickets", 2, 2)
	w.refused(&playerflow.IssueLoginTicket{Hash: w.id(), Player: "cyd", Life: time.Minute}, flow.RateLimited)
	w.refused(&playerflow.Login{Player: "cyd", Once: w.id(), Until: w.now.Add(time.Minute), LoginSessionID: flow.LoginSessionID(w.id()), Token: w.id()}, flow.RateLimited)
	w.must(ticket) // a repeat takes no more room
	w.must(&playerflow.Login{Ticket: ticket.Hash, Player: "ann", LoginSessionID: flow.LoginSessionID(w.id()), Token: w.id()})
	w.pass(2 * time.Minute)
	w.wantCount("login_tickets", 0, 2)
	w.must(&playerflow.IssueLoginTicket{Hash: w.id(), Player: "cyd", Life: time.Minute})
}

// TestLimitOfRememberedRequests: the oldest answer makes room for the newest.
func TestLimitOfRememberedRequests(t *testing.T) {
	w := newFlowWorld(t, nil)
	w.party("ann")
	w.cell.config.PlayerFlow.RequestsMax = 3
	rotate := func(request string) uint64 {
		w.now++
		cmd := &playerflow.RotateInviteCode{Caller: w.as("ann")}
		cmd.Request = request
		before := w.number
		w.must(cmd)
		return w.number - before
	}
	for i := range 6 {
		rotate(fmt.Sprint("r", i))
	}
	w.wantCount("remembered_requests", 3, 3)
	if rotate("r5") != 0 || rotate("r3") != 0 {
		t.Error("a call that is remembered was carried out again")
	}
	if rotate("r2") == 0 {
		t.Error("the oldest calls are remembered, want room for three")
	}
	w.wantCount("remembered_requests", 3, 3)
}

// TestLimitOfInvites: an invite to a player who has the maximum of invites looks like one to an unknown player. It arrives when
// it is sent again once there is room.
func TestLimitOfInvites(t *testing.T) {
	w := newFlowWorld(t, nil)
	w.cell.config.PlayerFlow.InvitesToPlayerMax = 2
	w.online("idol")
	invites := map[string]*playerflow.SendInvite{}
	for _, fan := range []string{"a", "b", "c"} {
		w.party(fan)
		invites[fan] = &playerflow.SendInvite{Caller: w.as(fan), ID: flow.InviteID(w.id()), Target: "idol"}
		w.must(invites[fan])
	}
	if n := len(w.cell.playerflow.Flow.InvitesTo("idol")); n != 2 {
		t.Fatalf("%d invites, want 2", n)
	}
	w.refused(&playerflow.JoinParty{Caller: w.as("idol"), Invite: invites["c"].ID}, flow.InviteNotFound)
	w.must(&playerflow.DeclineInvite{Caller: w.as("idol"), Invite: invites["a"].ID})
	w.must(&playerflow.SendInvite{Caller: w.as("c"), ID: flow.InviteID(w.id()), Target: "idol"})
	w.must(&playerflow.JoinParty{Caller: w.as("idol"), Invite: invites["c"].ID})
}

// TestLimitOfSubscriptions: the metrics show the subscriptions of backends and their limit.
func TestLimitOfSubscriptions(t *testing.T) {
	w := newFlowWorld(t, nil)
	for range playerflow.SubscriptionsMax {
		w.must(&playerflow.SubscribeEvents{Subscription: flow.Subscription{ID: flow.SubscriptionID(w.id())}})
	}
	w.wantCount("event_subscriptions", playerflow.SubscriptionsMax, playerflow.SubscriptionsMax)
	w.refused(&playerflow.SubscribeEvents{Subscription: flow.Subscription{ID: flow.SubscriptionID(w.id())}}, flow.InvalidArgument)
}

// TestLimitOfBlocks: a player's list of blocked players is bounded.
func TestLimitOfBlocks(t *testing.T) {
	w := newFlowWorld(t, nil)
	blocked := make([]string, playerflow.BlockedMax+1)
	for i := range blocked {
		blocked[i] = fmt.Sprint("p", i)
	}
	w.must(&playerflow.SetBlocks{Player: "ann", Blocked: blocked[:playerflow.BlockedMax]})
	w.refused(&playerflow.SetBlocks{Player: "ann", Blocked: blocked}, flow.InvalidArgument)
}

// TestLimitsInsideRecords reaches the limits of the content of one record.
func TestLimitsInsideRecords(t *testing.T) {
	config := DefaultConfig()
	w := newWorld(t, config)
	w.hall()
	w.server("p")
	queue := func(n int) kernel.Command {
		q := placement.Queue{Name: "q", Region: "us-east-1", Timeout: time.Minute}
		for range n {
			q.Destinations = append(q.Destinations, "arn:aws:gamelift:us-east-1::fleet/"+testFleet)
		}
		return &hosting.CreateQueue{Queue: q}
	}
	alias := func(n int) kernel.Command {
		a := fleet.Alias{ID: "alias-1", Name: "live", Fleet: testFleet}
		for i := range n {
			a.Tags = append(a.Tags, fleet.Tag{Key: fmt.Sprint("k", i), Value: "v"})
		}
		return &hosting.CreateAlias{Alias: a}
	}
	game := func(n int) kernel.Command {
		cmd := &hosting.CreateGameSession{Fleet: testFleet, Location: testLocation, Name: "g", PlayersMax: 2}
		for i := range n {
			cmd.Properties = append(cmd.Properties, session.Property{Key: fmt.Sprint("k", i), Value: "v"})
		}
		return cmd
	}
	for _, c := range []struct {
		name   string
		most   int
		make   func(n int) kernel.Command
		reason domain.Reason
	}{
		{"destinations of a queue", config.Hosting.DestinationsInQueueMax, queue, domain.LimitExceeded},
		{"tags", config.Hosting.TagsMax, alias, domain.Invalid},
		{"game properties", config.Hosting.PropertiesInGameMax, game, domain.Invalid},
	} {
		err := w.do(c.make(c.most + 1))
		if refusal, ok := errors.AsType[*domain.Refusal](err); !ok || refusal.Reason != c.reason {
			t.Errorf("%s, %d: got %v, want %s", c.name, c.most+1, err, c.reason)
		}
		if err := w.do(c.make(c.most)); err != nil {
			t.Errorf("%s, %d: %v", c.name, c.most, err)
		}
	}
}

// TestLimitOfFleetEvents: the oldest events of a fleet make room for new ones.
func TestLimitOfFleetEvents(t *testing.T) {
	w := newWorld(t, DefaultConfig())
	w.hall()
	for i := range 5000 {
		w.cell.hosting.Fleets.AddEvent(fleet.Event{FleetID: testFleet, No: uint64(100 + i)})
	}
	events := w.cell.hosting.Fleets.EventsOf(testFleet)
	if newest := w.cell.hosting.Fleets.Events.Get(events[len(events)-1]).No; newest != 5099 {
		t.Errorf("the newest event is %d, want 5099", newest)
	}
	w.wantCount("fleet_events", 2000, 0)
}

// TestLimitOfKicked: a party remembers only the players whom it kicked last.
func TestLimitOfKicked(t *testing.T) {
	w := newFlowWorld(t, nil)
	id := w.party("ann")
	for i := range playerflow.KickedMax + 3 {
		player := fmt.Sprint("p", i)
		w.online(player)
		w.must(&playerflow.JoinParty{Caller: w.as(player), Party: id})
		w.must(&playerflow.KickPlayer{Caller: w.as("ann"), Target: player})
	}
	r, _ := w.cell.playerflow.Flow.Party(id)
	if kicked := w.cell.playerflow.Flow.Parties.Get(r).Kicked; len(kicked) != playerflow.KickedMax || kicked[0].Player != "p3" {
		t.Errorf("%d kicked players are remembered, from %s on; want %d from p3 on", len(kicked), kicked[0].Player, playerflow.KickedMax)
	}
}
