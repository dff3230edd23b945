package cell

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/playerflow"
)

func (w *flowWorld) setConfig(document string) {
	w.t.Helper()
	w.must(&playerflow.SetFlowConfig{Document: document, By: "op", Reason: "test"})
}

// Operators' settings take precedence over those that the service was started with, survive both kinds of restart, and can be
// removed.
func TestSetFlowConfig(t *testing.T) {
	w := newFlowWorld(t, func(c *flow.Config) { c.Parties.MembersMax = 3 })
	w.online("a", "b")
	w.setConfig(`{"PartyServiceConfig": {"maxMembers": 2, "changeInGame": false}, "PenaltyServiceConfig": {"mode": "ENFORCE"}}`)
	w.setConfig(`{"PartyServiceConfig": {"changeInGame": null}, "queues": [{"name": "duel", "reconnect": "OFF"}]}`)
	inForce := func() (string, int) {
		v := w.cell.View()
		c, set := v.FlowConfig(), len(w.cell.playerflow.Flow.Overrides.Changes)
		rules := c.RulesOf("duel")
		return fmt.Sprint(c.Parties.MembersMax, c.Parties.NoChangeInGame, c.Penalties.Mode == flow.PenaltiesEnforced, rules.Reconnect), set
	}
	for _, how := range []string{"live", "restarted"} {
		if got, changes := inForce(); got != "2 false true OFF" || changes != 2 {
			t.Errorf("%s: in force is %s after %d changes", how, got, changes)
		}
		w.restart()
	}
	party := w.party("a", "b")
	if r, _ := w.cell.playerflow.Flow.Party(party); w.cell.playerflow.Flow.Parties.Get(r).MembersMax != 2 {
		t.Error("a new party does not have the new maximum")
	}
	v := w.cell.View()
	set, ignored := v.FlowOverrides()
	if set.Document != `{"PartyServiceConfig":{"maxMembers":2},"PenaltyServiceConfig":{"mode":"ENFORCE"},"queues":[{"name":"duel","reconnect":"OFF"}]}` || len(ignored) > 0 {
		t.Errorf("set: %s, ignored: %v", set.Document, ignored)
	}
	if x := set.Changes[1]; x.By != "op" || x.Reason != "test" || x.At != w.now || !strings.Contains(x.Document, "null") {
		t.Errorf("change: %+v", x)
	}
	w.setConfig(`{"PartyServiceConfig": null, "PenaltyServiceConfig": null, "queues": null}`)
	if got, _ := inForce(); got != "3 false false OPTIONAL" {
		t.Errorf("taken back: in force is %s", got)
	}
}

// Operators' settings have at most overridesMax bytes in total. A change that would exceed that has no effect.
func TestSizeOfOverrides(t *testing.T) {
	w := newFlowWorld(t, nil)
	queues := func(n int) string {
		var list []string
		for i := range n {
			list = append(list, fmt.Sprintf(`{"name":"queue-%04d-%s","reconnect":"OFF"}`, i, strings.Repeat("x", 80)))
		}
		return `{"queues":[` + strings.Join(list, ",") + `]}`
	}
	most := 1
	for len(queues(most+1)) <= playerflow.OverridesMax {
		most++
	}
	w.setConfig(queues(most))
	before := w.cell.playerflow.Flow.Overrides.Document
	w.refused(&playerflow.SetFlowConfig{Document: queues(most + 1), By: "op", Reason: "test"}, flow.InvalidArgument)
	if w.cell.playerflow.Flow.Overrides.Document != before {
		t.Error("a refused change left something behind")
	}
}

// A change is accepted as a whole or not at all, and the refusal names all errors.
func TestSetFlowConfigRefusals(t *testing.T) {
	w := newFlowWorld(t, nil)
	refusal := w.refused(&playerflow.SetFlowConfig{Document: `{"PartyServiceConfig": {"maxMembers": 2, "leaderGrace": "2h", "x": 1}, "y": {}}`}, flow.InvalidArgument)
	if len(refusal.Faults) != 3 {
		t.Errorf("%d faults, want 3: %v", len(refusal.Faults), refusal.Faults)
	}
	for _, document := range []string{
		``, `[]`, `{"PartyServiceConfig": {"x": null}}`, `{"x": null}`, `{"x": {"y": null}}`, `{"SessionServiceConfig": {"pingInterval": "30s"}}`,
		`{"PartyServiceConfig": {"maxMembers": 2, "maxMembers": 3}}`,
	} {
		w.refused(&playerflow.SetFlowConfig{Document: document}, flow.InvalidArgument)
	}
	w.setConfig(`{"SessionServiceConfig": {"pingInterval": "30s", "deadAfter": "60s"}}`)
	w.refused(&playerflow.SetFlowConfig{Document: `{"SessionServiceConfig": {"deadAfter": null}}`}, flow.InvalidArgument)
	w.cell.config.PlayerFlow.Flow = nil
	w.refused(&playerflow.SetFlowConfig{Document: `{}`}, flow.Unavailable)
	w.cell.config.PlayerFlow.Flow = w.config
}

// After a restart, operators' settings and those that the service is started with may contradict each other. Then the latter
// apply to the options concerned only.
func TestOverridesThatDoNotFit(t *testing.T) {
	w := newFlowWorld(t, nil)
	w.setConfig(`{"SessionServiceConfig": {"deadAfter": "20s"}, "PartyServiceConfig": {"maxMembers": 2}}`)
	w.config.Sessions.PingInterval, w.config.Sessions.DeadAfter = 30*time.Second, 90*time.Second
	w.restart()
	v := w.cell.View()
	if c := v.FlowConfig(); c.Sessions.DeadAfter != 90*time.Second || c.Parties.MembersMax != 2 {
		t.Errorf("in force: %s, %d members", c.Sessions.DeadAfter, c.Parties.MembersMax)
	}
	if _, ignored := v.FlowOverrides(); len(ignored) != 1 || ignored[0].Path != "SessionServiceConfig.deadAfter" {
		t.Errorf("ignored: %v", ignored)
	}
}

// A game instance keeps the rules with which it began.
func TestRulesOfGamesThatRun(t *testing.T) {
	w, g := race(t)
	w.setConfig(`{"GameInstanceServiceConfig": {"reconnect": "OFF"}}`)
	w.lose(g, w.member("me").Session)
	w.wantPhase("me", flow.InGame)
	w.online("other")
	if r, _ := w.cell.playerflow.Flow.Instance(w.play(false, 0, "other")); w.cell.playerflow.Flow.Instances.Get(r).Rules.Reconnect != flow.ReconnectOff {
		t.Error("a new game instance does not have the new rule")
	}
}

// The history of changes is bounded.
func TestConfigChangesKept(t *testing.T) {
	w := newFlowWorld(t, nil)
	for i := range 60 {
		w.setConfig(fmt.Sprintf(`{"PartyServiceConfig": {"maxMembers": %d}}`, i+1))
	}
	all := w.cell.playerflow.Flow.Overrides.Changes
	if len(all) != 50 || !strings.Contains(all[49].Document, "60") || !strings.Contains(all[0].Document, "11") {
		t.Errorf("%d changes, from %s", len(all), all[0].Document)
	}
}

// acceptanceTimeout applies only to tickets of player flow, and a queue's own value takes precedence over the service's.
func TestAcceptanceTimeout(t *testing.T) {
	for document, want := range map[string]time.Duration{
		`{}`: 20 * time.Second,
		`{"MatchmakingServiceConfig": {"acceptanceTimeout": "7s"}}`:                                                               7 * time.Second,
		`{"MatchmakingServiceConfig": {"acceptanceTimeout": "7s"}, "queues": [{"name": "ranked", "acceptanceTimeout": "9s"}]}`:    9 * time.Second,
		`{"MatchmakingServiceConfig": {"acceptanceTimeout": "7s"}, "queues": [{"name": "duel"}, {"name": "ranked"}]}`:             7 * time.Second,
		`{"queues": [{"name": "duel", "acceptanceTimeout": "9s"}, {"name": "ranked", "acceptanceTimeout": "0s"}, {"name": "b"}]}`: 20 * time.Second,
	} {
		w := newFlowWorld(t, nil)
		w.online("a", "b")
		w.setConfig(document)
		red, blue := w.searchIn(acceptQueue, "a"), w.searchIn(acceptQueue, "b")
		if refused := w.propose(acceptQueue, red, blue); refused != nil {
			t.Fatal(refused)
		}
		party, _ := w.cell.playerflow.Flow.PartyByTicket(red)
		if got := w.cell.playerflow.Flow.Parties.Get(party).Search.AcceptBy; got != w.now.Add(want) {
			t.Errorf("%s: %s to accept, want %s", document, got.Sub(w.now), want)
		}
	}
}

// While the service keeps clients away, no player loses a key or is matched. Afterwards all players have time to return.
func TestAwaitPlayers(t *testing.T) {
	w := newFlowWorld(t, nil)
	w.online("a", "b", "c")
	red, blue := w.search("a", "b"), w.search("c")
	before := w.seq("a")
	w.must(&playerflow.AwaitPlayers{For: time.Hour})
	w.pass(3 * time.Minute)
	w.wantPhase("b", flow.Matchmaking)
	w.wantTold("a", before, "")
	if refused := w.propose(testQueue, red, blue); refused == nil {
		t.Error("players who are away were matched")
	}
	w.must(&playerflow.AwaitPlayers{})
	w.attach("c")
	w.pass(59 * time.Second)
	w.attach("a")
	w.attach("b")
	w.pass(time.Second)
	if refused := w.propose(testQueue, red, blue); refused != nil {
		t.Error(refused)
	}
	w.must(&playerflow.AwaitPlayers{})
	w.attach("a")
	w.pass(time.Minute)
	if got := w.player("b").Presence; got != flow.Offline {
		t.Errorf("who did not come back is %s", got)
	}
	if got := w.player("a").Presence; got != flow.Online {
		t.Errorf("who came back is %s", got)
	}
}

// Every online player gets the event once, a few players in each transaction.
func TestAnnounceMaintenance(t *testing.T) {
	w := newFlowWorld(t, nil)
	var here []string
	for i := range 7 {
		here = append(here, fmt.Sprintf("p%d", i))
	}
	w.online(here...)
	w.offline("p3")
	at := w.now.Add(time.Hour)
	total, calls := 0, 0
	for cmd := (&playerflow.AnnounceMaintenance{StartsAt: at, Text: "new season", Limit: 2}); ; cmd.After = cmd.Next {
		w.must(cmd)
		total, calls = total+cmd.Told, calls+1
		if cmd.Told > 2 {
			t.Errorf("%d players in one transaction", cmd.Told)
		}
		if cmd.Next == 0 {
			break
		}
	}
	if total != 6 || calls > 4 {
		t.Errorf("%d players were told in %d calls, want 6 in at most 4", total, calls)
	}
	for _, id := range here {
		want := "Maintenance"
		if id == "p3" {
			want = ""
		}
		w.wantTold(id, 0, want)
	}
	told := w.player("p0").Outbox()
	m, err := flow.DecodeMessage(told[len(told)-1].Body)
	if err != nil || m.Deadline != at || m.Text != "new season" {
		t.Errorf("%+v, %v", m, err)
	}
}

// Parties with several leaders keep them when only one is allowed: a change of the configuration breaks no invariant.
func TestLeaderModeChanges(t *testing.T) {
	w := newFlowWorld(t, func(c *flow.Config) { c.Parties.MultipleLeaders = true })
	w.party("a", "b", "c")
	w.must(&playerflow.PromoteLeader{Caller: w.as("a"), Target: "b"})
	w.setConfig(`{"PartyServiceConfig": {"leaderMode": "SINGLE"}}`)
	w.check()
	w.must(&playerflow.PromoteLeader{Caller: w.as("b"), Target: "c"})
	r, _ := w.cell.playerflow.Flow.Party(w.keys("a").Party)
	for _, m := range w.cell.playerflow.Flow.Parties.Get(r).Members {
		if m.Leader != (m.Player == "c") {
			t.Errorf("%s leads: %t", m.Player, m.Leader)
		}
	}
}

// Absent players are skipped, a bounded number of them in one transaction.
func TestAnnounceMaintenanceToFew(t *testing.T) {
	w := newFlowWorld(t, nil)
	const away = 100
	for i := range away {
		w.login(fmt.Sprint("away", i))
	}
	w.online("here")
	cmd := &playerflow.AnnounceMaintenance{StartsAt: w.now.Add(time.Hour), Limit: 1}
	calls := 1
	for w.must(cmd); cmd.Next != 0; calls++ {
		if cmd.Told != 0 && cmd.Next != 0 && calls == 1 {
			t.Error("the first transaction went through all players")
		}
		cmd.After = cmd.Next
		w.must(cmd)
	}
	if calls < 3 || calls > 20 {
		t.Errorf("%d players were looked at in %d transactions", away+1, calls)
	}
	w.wantTold("here", 0, "Maintenance")
}
