package cell

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/matchmaking"
	"github.com/musterhq/muster/internal/domain/notice"
	"github.com/musterhq/muster/internal/domain/placement"
	"github.com/musterhq/muster/internal/domain/ruleset"
	"github.com/musterhq/muster/internal/domain/session"
)

const duoRules = `{"ruleLanguageVersion":"1.0","playerAttributes":[{"name":"skill","type":"number","default":10}],
"teams":[{"name":"red","minPlayers":1,"maxPlayers":2},{"name":"blue","minPlayers":1,"maxPlayers":2}]}`

// matchmaker makes a rule set and a configuration, which change modifies.
func (w *world) matchmaker(change func(*matchmaking.Configuration)) {
	w.t.Helper()
	rules, problems := ruleset.Parse(duoRules)
	if len(problems) > 0 {
		w.t.Fatal(problems)
	}
	w.must(&matchmaking.CreateRuleSet{RuleSet: matchmaking.RuleSet{Name: "duo", Region: "us-east-1", Body: duoRules}, Compiled: rules})
	c := matchmaking.Configuration{
		Name: "ranked", Region: "us-east-1", Account: "1", RuleSet: "duo", RequestTimeout: time.Minute, AcceptanceTimeout: 20 * time.Second, Queues: []string{"q"},
	}
	change(&c)
	if c.Standalone {
		c.Queues = nil
	}
	w.must(&matchmaking.CreateConfiguration{Configuration: c})
}

func matchPlayers(ids ...string) []matchmaking.Player {
	players := make([]matchmaking.Player, len(ids))
	for i, id := range ids {
		players[i].ID = id
	}
	return players
}

// search starts a ticket whose id is made from its players' ids.
func (w *world) search(ids ...string) string {
	w.t.Helper()
	id := "t-" + strings.Join(ids, "-")
	w.must(&matchmaking.StartMatchmaking{Configuration: "ranked", ID: id, Players: matchPlayers(ids...)})
	return id
}

func (w *world) ticket(id string) matchmaking.TicketView {
	w.t.Helper()
	v := w.cell.View()
	t, ok := v.Ticket(id)
	if !ok {
		w.t.Fatalf("ticket %s is gone", id)
	}
	return t
}

// wantStatus checks a ticket's status, and the reason if one is given.
func (w *world) wantStatus(id, status string, reason ...matchmaking.Reason) {
	w.t.Helper()
	t := w.ticket(id)
	if t.Status.String() != status || len(reason) > 0 && t.Reason != reason[0] {
		w.t.Fatalf("ticket %s is %s (%s), want %s", id, t.Status, t.Reason.Code(), status)
	}
}

// propose makes a match of tickets. The first is on team red, the others on blue, and a backfill ticket on neither.
func (w *world) propose(ids ...string) *domain.Refusal {
	w.t.Helper()
	p := matchmaking.Proposal{PlayersMax: 4}
	binary.BigEndian.PutUint64(p.ID[8:], w.seed+1)
	team := "red"
	for _, id := range ids {
		t := w.ticket(id)
		x := matchmaking.ProposedTicket{TicketKey: matchmaking.TicketKey{No: t.No, Generation: t.Generation}, Team: team}
		if t.Backfill {
			x.Team = ""
		} else {
			team = "blue"
		}
		p.Tickets = append(p.Tickets, x)
	}
	v := w.cell.View()
	c, _ := v.Configuration("ranked")
	cmd := &matchmaking.ProposeMatches{Configuration: "ranked", Version: c.Version, Proposals: []matchmaking.Proposal{p}}
	w.must(cmd)
	return cmd.Refused[0]
}

// arena makes a queue over one location, and a configuration.
func (w *world) arena(change func(*matchmaking.Configuration)) {
	w.grounds(placement.Queue{Timeout: 30 * time.Second})
	w.matchmaker(change)
}

// host starts a server process that takes the placement of a ticket's match, and activates its game session.
func (w *world) host(ticket string) (fleet.Key, session.ID) {
	w.t.Helper()
	match := w.ticket(ticket).Outcome.Match
	key := w.serverAt("custom-a", "server of "+match)
	game := session.MakeID(testFleet, "custom-a", match)
	w.must(&hosting.ActivateGameSession{Process: key, Game: game})
	return key, game
}

func (w *world) check() {
	w.t.Helper()
	if err := checkState(w.cell); err != nil {
		w.t.Error(err)
	}
	if err := w.checkRestarts(); err != nil {
		w.t.Error(err)
	}
}

func TestMatchIsPlaced(t *testing.T) {
	w := newWorld(t, DefaultConfig())
	w.arena(func(*matchmaking.Configuration) {})
	ann, bob := w.search("ann"), w.search("bob", "cyd")
	w.wantStatus(ann, "QUEUED")
	w.must(&matchmaking.BeginSearch{Tickets: []matchmaking.TicketKey{{No: w.ticket(ann).No, Generation: 1}}})
	w.wantStatus(ann, "SEARCHING")
	if refused := w.propose(ann, bob); refused != nil {
		t.Fatal(refused)
	}
	w.wantStatus(ann, "PLACING")
	if err := w.do(&matchmaking.StopMatchmaking{ID: ann}); err == nil || !strings.Contains(err.Error(), "PLACING") {
		t.Errorf("a ticket that is being placed was stopped: %v", err)
	}
	w.check()
	_, game := w.host(ann)
	w.wantStatus(bob, "COMPLETED")
	o := w.ticket(bob).Outcome
	v := w.cell.View()
	g, _ := v.GameSession(game)
	if o.Team != "blue" || len(o.Sessions) != 2 || o.Game != string(game) || o.Port != 7777 || g.Name != o.Match || g.PlayersMax != 4 || g.SeatsHeld != 3 {
		t.Errorf("outcome %+v, game session %+v", o, g)
	}
	if p, ok := v.PlayerSession(o.Sessions[1]); !ok || p.Player != "cyd" {
		t.Errorf("player session of cyd: %+v", p)
	}
	want := `{"matchId":"` + o.Match + `","matchmakingConfigurationArn":"arn:aws:gamelift:us-east-1:1:matchmakingconfiguration/ranked","teams":[` +
		`{"name":"red","players":[{"playerId":"ann","attributes":{"skill":{"attributeType":"DOUBLE","valueAttribute":10.0}}}]},` +
		`{"name":"blue","players":[{"playerId":"bob","attributes":{"skill":{"attributeType":"DOUBLE","valueAttribute":10.0}}},` +
		`{"playerId":"cyd","attributes":{"skill":{"attributeType":"DOUBLE","valueAttribute":10.0}}}]}],"autoBackfillMode":null,"autoBackfillTicketId":null}`
	if g.MatchmakerData != want {
		t.Errorf("match data\n%s, want\n%s", g.MatchmakerData, want)
	}
	w.check()
}

func TestStaleProposalIsRefused(t *testing.T) {
	w := newWorld(t, DefaultConfig())
	w.matchmaker(func(c *matchmaking.Configuration) { c.Standalone = true })
	ann, bob := w.search("ann"), w.search("bob")
	old := matchmaking.TicketKey{No: w.ticket(ann).No, Generation: 1}
	w.must(&matchmaking.StopMatchmaking{ID: ann})
	w.wantStatus(ann, "CANCELLED", matchmaking.StoppedByRequest)
	cmd := &matchmaking.ProposeMatches{Configuration: "ranked", Version: 1, Proposals: []matchmaking.Proposal{
		{ID: domain.UUID(playerID(1)), PlayersMax: 4, Tickets: []matchmaking.ProposedTicket{{TicketKey: old, Team: "red"}, {TicketKey: matchmaking.TicketKey{No: w.ticket(bob).No, Generation: 1}, Team: "blue"}}},
		{ID: domain.UUID(playerID(2)), PlayersMax: 4, Tickets: []matchmaking.ProposedTicket{{TicketKey: matchmaking.TicketKey{No: w.ticket(bob).No, Generation: 1}, Team: "blue"}}},
		{ID: domain.UUID(playerID(3)), PlayersMax: 4, Tickets: []matchmaking.ProposedTicket{{TicketKey: matchmaking.TicketKey{No: w.ticket(bob).No, Generation: 1}, Team: "blue"}}},
	}}
	w.must(cmd)
	if cmd.Refused[0] == nil || cmd.Refused[1] != nil || cmd.Refused[2] == nil {
		t.Errorf("refused: %v; want the first, whose ticket was stopped, and the third, whose ticket is matched already", cmd.Refused)
	}
	w.wantStatus(bob, "COMPLETED")
	if err := w.do(&matchmaking.ProposeMatches{Configuration: "ranked", Version: 2}); err == nil {
		t.Error("a proposal for another rule set was taken")
	}
	w.check()
}

func TestAcceptance(t *testing.T) {
	w := newWorld(t, DefaultConfig())
	w.matchmaker(func(c *matchmaking.Configuration) { c.Standalone, c.AcceptanceRequired = true, true })
	accept := func(ticket string, yes bool, players ...string) {
		t.Helper()
		w.must(&matchmaking.AcceptMatch{Ticket: ticket, Players: players, Accept: yes})
	}
	ann, bob := w.search("ann"), w.search("bob", "cyd")
	w.propose(ann, bob)
	w.wantStatus(ann, "REQUIRES_ACCEPTANCE")
	accept(ann, true, "ann")
	accept(bob, true, "bob")
	w.wantStatus(bob, "REQUIRES_ACCEPTANCE")
	if err := w.do(&matchmaking.AcceptMatch{Ticket: bob, Players: []string{"ann"}, Accept: true}); err == nil {
		t.Error("a player of another ticket answered")
	}
	w.check()
	accept(bob, true, "cyd")
	w.wantStatus(ann, "COMPLETED")
	w.wantStatus(bob, "COMPLETED")

	dee, eve := w.search("dee"), w.search("eve")
	w.propose(dee, eve)
	accept(eve, true, "eve")
	accept(eve, false, "eve") // after all
	w.wantStatus(eve, "CANCELLED", matchmaking.AcceptanceRejected)
	w.wantStatus(dee, "SEARCHING", matchmaking.ProposedMatchRejected) // it had not answered, and was not asked long enough
	if o := w.ticket(dee); o.Outcome != nil || o.Generation != 2 {
		t.Errorf("back in the pool: %+v", o)
	}

	fay := w.search("fay")
	w.propose(dee, fay)
	accept(dee, true, "dee")
	w.advance(20 * time.Second)
	w.wantStatus(fay, "CANCELLED", matchmaking.AcceptanceTimedOut)
	w.wantStatus(dee, "SEARCHING", matchmaking.ProposedMatchTimedOut)

	gil := w.search("gil")
	w.propose(dee, gil)
	w.must(&matchmaking.StopMatchmaking{ID: gil})
	w.wantStatus(gil, "CANCELLED", matchmaking.StoppedByRequest)
	w.wantStatus(dee, "SEARCHING")
	w.check()
	w.advance(40 * time.Second)
	w.wantStatus(dee, "TIMED_OUT")
	w.check()
}

// In the documented examples, events after an acceptance have teams, and no answers.
func TestEventsAfterAnAcceptanceHaveNoAnswers(t *testing.T) {
	for _, standalone := range []bool{false, true} {
		w := newWorld(t, notifying(notice.Notify{Bus: true, Max: 100}))
		w.arena(func(c *matchmaking.Configuration) { c.Standalone, c.AcceptanceRequired = standalone, true })
		ann, bob := w.search("ann"), w.search("bob")
		w.propose(ann, bob)
		w.must(&matchmaking.AcceptMatch{Ticket: ann, Players: []string{"ann"}, Accept: true})
		w.must(&matchmaking.AcceptMatch{Ticket: bob, Players: []string{"bob"}, Accept: true})
		if !standalone {
			w.host(ann)
		}
		answers := map[string]int{}
		for _, n := range w.notices(notice.Bus) {
			if n.Match == nil {
				continue
			}
			answers[n.Match.Type] += 0
			for _, ticket := range n.Match.Tickets {
				answers[n.Match.Type] += int(ticket.Players[0].Answer)
			}
		}
		want := map[string]int{"PotentialMatchCreated": 0, "AcceptMatch": 1 + 2, "AcceptMatchCompleted": 0, "MatchmakingSucceeded": 0}
		if !maps.Equal(answers, want) {
			t.Errorf("standalone %v: answers in events %v, want %v", standalone, answers, want)
		}
	}
}

func TestTicketThatComesBackTooOldEnds(t *testing.T) {
	w := newWorld(t, DefaultConfig())
	w.matchmaker(func(c *matchmaking.Configuration) { c.Standalone, c.AcceptanceRequired = true, true })
	ann := w.search("ann")
	w.advance(50 * time.Second)
	bob := w.search("bob")
	w.propose(ann, bob)
	w.advance(15 * time.Second)
	w.wantStatus(ann, "REQUIRES_ACCEPTANCE") // its time is up, and a match in progress is not thrown away
	w.must(&matchmaking.AcceptMatch{Ticket: bob, Players: []string{"bob"}})
	w.wantStatus(ann, "TIMED_OUT")
	w.check()
}

func TestPlayerHasOneTicket(t *testing.T) {
	w := newWorld(t, DefaultConfig())
	w.arena(func(*matchmaking.Configuration) {})
	first := w.search("ann", "bob")
	second := w.search("ann")
	w.wantStatus(first, "CANCELLED", matchmaking.DuplicatePlayer)
	bob := w.search("bob")
	w.propose(second, bob)
	w.wantStatus(bob, "PLACING")
	again := w.search("bob", "cyd") // what is being placed is left alone
	w.wantStatus(bob, "PLACING")
	w.check()
	w.advance(30 * time.Second) // no server comes
	w.wantStatus(second, "SEARCHING", matchmaking.PlacementTimedOut)
	w.wantStatus(bob, "CANCELLED", matchmaking.DuplicatePlayer)
	w.wantStatus(again, "QUEUED")
	w.check()
}

// The newest of a player's tickets stays, also if the player has started and stopped a search while two others were in placement, and after a restart.
func TestNewestTicketStays(t *testing.T) {
	for _, restarts := range []bool{false, true} {
		w := newWorld(t, DefaultConfig())
		w.arena(func(*matchmaking.Configuration) {})
		first := w.search("ann")
		w.propose(first, w.search("bob"))
		w.advance(10 * time.Second)
		second := w.search("ann", "dee")
		w.propose(second, w.search("cyd"))
		third := w.search("ann", "eve")
		w.must(&matchmaking.StopMatchmaking{ID: third})
		if restarts {
			w.restart()
		}
		w.wantStatus(first, "PLACING")
		w.advance(20 * time.Second) // no server comes for the first match
		w.wantStatus(first, "CANCELLED", matchmaking.DuplicatePlayer)
		w.check()
		w.advance(10 * time.Second)
		w.wantStatus(second, "SEARCHING", matchmaking.PlacementTimedOut)
		w.check()
	}
}

func TestPlacementThatFails(t *testing.T) {
	for _, tc := range []struct {
		tag, value, timeout, failure string
	}{
		{"", "", "SEARCHING", "FAILED"},
		{matchmaking.PlacementTimeoutTag, matchmaking.Fail, "FAILED", "FAILED"},
		{matchmaking.PlacementFailureTag, matchmaking.Requeue, "SEARCHING", "SEARCHING"},
	} {
		w := newWorld(t, DefaultConfig())
		w.arena(func(c *matchmaking.Configuration) {
			if tc.tag != "" {
				c.Tags = []fleet.Tag{{Key: tc.tag, Value: tc.value}}
			}
		})
		ann, bob := w.search("ann"), w.search("bob")
		w.propose(ann, bob)
		w.advance(30 * time.Second)
		w.wantStatus(ann, tc.timeout)
		cyd, dee := w.search("cyd"), w.search("dee")
		w.propose(cyd, dee)
		w.must(&hosting.StopPlacement{ID: w.ticket(cyd).Outcome.Match})
		w.wantStatus(dee, tc.failure)
		w.check()
	}
}

// slots returns the number of free slots of a game session.
func (w *world) slots(game session.ID) int32 {
	v := w.cell.View()
	free, _ := v.FreeSlots(string(game))
	return free
}

func TestManualBackfill(t *testing.T) {
	w := newWorld(t, DefaultConfig())
	w.arena(func(*matchmaking.Configuration) {})
	ann, bob := w.search("ann"), w.search("bob")
	w.propose(ann, bob)
	key, game := w.host(ann)
	roster := matchPlayers("ann", "bob")
	roster[0].Team, roster[1].Team = "red", "blue"
	backfill := func(id string, server *fleet.Key) error {
		return w.do(&matchmaking.StartMatchBackfill{Configuration: "ranked", ID: id, Players: slices.Clone(roster), Game: string(game), Server: server})
	}
	if err := backfill("b1", &key); err != nil {
		t.Fatal(err)
	}
	if err := backfill("b2", nil); err != nil {
		t.Fatal(err)
	}
	w.wantStatus("b1", "CANCELLED", matchmaking.Replaced)
	hosted := func() matchmaking.Hosted {
		v := w.cell.View()
		h, _ := v.Hosted(game)
		return h
	}
	if h := hosted(); h.Updates != 1 || h.Why != matchmaking.BackfillCancelled || h.Ticket != "b1" {
		t.Errorf("the server is to be told %+v", h)
	}
	if refused := w.propose("b2"); refused == nil {
		t.Error("a backfill alone was a match")
	}
	trio := w.search("cyd", "dee", "eve")
	if refused := w.propose("b2", trio); refused == nil || refused.Reason != domain.Full {
		t.Errorf("three newcomers for two slots: %v", refused)
	}
	w.wantStatus("b2", "QUEUED")
	cyd := w.search("cyd")
	w.wantStatus(trio, "CANCELLED")
	if refused := w.propose("b2", cyd); refused != nil {
		t.Fatal(refused)
	}
	w.wantStatus("b2", "COMPLETED")
	w.wantStatus(cyd, "COMPLETED")
	v := w.cell.View()
	g, _ := v.GameSession(game)
	if h := hosted(); h.Why != matchmaking.DataUpdated || h.Updates != 2 || w.slots(game) != 1 || !strings.Contains(g.MatchmakerData, `"playerId":"cyd"`) ||
		!strings.Contains(g.MatchmakerData, `"matchId":"`+g.Name+`"`) {
		t.Errorf("after the backfill: %+v, %s", h, g.MatchmakerData)
	}
	at := w.cell.View()
	server, _ := at.Process(key)
	link := server.Link
	if err := w.do(&matchmaking.TellHosted{Game: game, Update: 2, Link: link + 1}); err == nil || hosted().Told == 2 {
		t.Errorf("the server was told on a connection that is not its newest: %v", err)
	}
	w.must(&matchmaking.TellHosted{Game: game, Update: 2, Link: link})
	if hosted().Told != 2 {
		t.Errorf("told are %+v", hosted())
	}
	w.check()
	if err := backfill("b3", &key); err != nil {
		t.Fatal(err)
	}
	w.must(&hosting.EndProcess{Process: key, Request: 9})
	w.wantStatus("b3", "FAILED", matchmaking.GameSessionLost)
	if err := backfill("b4", nil); err == nil || !strings.Contains(err.Error(), "is TERMINATED and accepts no new players") {
		t.Errorf("a backfill of a game session that has ended: %v", err)
	}
	w.check()
}

func TestBackfillOfAFullGameSession(t *testing.T) {
	w := newWorld(t, DefaultConfig())
	w.arena(func(*matchmaking.Configuration) {})
	ann, bob := w.search("ann"), w.search("bob")
	w.propose(ann, bob)
	_, game := w.host(ann)
	roster := matchPlayers("ann")
	roster[0].Team = "red"
	w.must(&matchmaking.StartMatchBackfill{Configuration: "ranked", ID: "b1", Players: roster, Game: string(game)})
	w.must(&hosting.ReservePlayers{Game: game, Players: []hosting.NewPlayer{{ID: playerID(8), Player: "x"}, {ID: playerID(9), Player: "y"}}})
	cyd := w.search("cyd")
	if refused := w.propose("b1", cyd); refused == nil {
		t.Error("a full game session got a newcomer")
	}
	w.wantStatus("b1", "FAILED", matchmaking.GameSessionLost)
	w.wantStatus(cyd, "QUEUED")
	w.check()
}

func TestAutomaticBackfill(t *testing.T) {
	w := newWorld(t, DefaultConfig())
	w.arena(func(c *matchmaking.Configuration) { c.AutoBackfill = true })
	ann, bob := w.search("ann"), w.search("bob")
	w.propose(ann, bob)
	_, game := w.host(ann)
	open := func() string {
		r, ok := w.cell.matchmaking.Records.BackfillOf(string(game))
		if !ok {
			return ""
		}
		x := w.cell.matchmaking.Records.Tickets.Get(r)
		v := w.cell.View()
		if g, _ := v.GameSession(game); x.Owner != matchmaking.ServiceOwned || !strings.Contains(g.MatchmakerData, `"autoBackfillTicketId":"`+x.ID+`"`) {
			t.Errorf("open backfill %+v, match data %s", x, g.MatchmakerData)
		}
		return x.ID
	}
	first := open()
	if first == "" {
		t.Fatal("no automatic backfill")
	}
	cyd := w.search("cyd")
	w.propose(first, cyd)
	w.wantStatus(first, "COMPLETED")
	second := open()
	if second == "" || second == first {
		t.Fatal("no second automatic backfill")
	}
	w.advance(time.Minute)
	w.wantStatus(second, "TIMED_OUT")
	third := open()
	if third == "" {
		t.Fatal("it was not renewed")
	}
	w.check()
	w.search("ann", "zoe") // who plays and searches: that ends it
	w.wantStatus(third, "CANCELLED", matchmaking.DuplicatePlayer)
	if id := open(); id != "" {
		t.Errorf("it came back as %s", id)
	}
	w.check()
}

func TestBackfillForLeavers(t *testing.T) {
	w := newWorld(t, DefaultConfig())
	w.arena(func(c *matchmaking.Configuration) {
		c.AutoBackfill, c.Tags = true, []fleet.Tag{{Key: matchmaking.BackfillLeaversTag, Value: "true"}}
	})
	ann, bob := w.search("ann", "amy"), w.search("bob", "ben")
	w.propose(ann, bob)
	key, game := w.host(ann)
	if _, ok := w.cell.matchmaking.Records.BackfillOf(string(game)); ok {
		t.Error("a full game session has a backfill")
	}
	amy := w.ticket(ann).Outcome.Sessions[1]
	w.must(&hosting.AcceptPlayer{Process: key, Game: game, Player: amy, Request: 5})
	w.must(&hosting.RemovePlayer{Process: key, Game: game, Player: amy})
	r, ok := w.cell.matchmaking.Records.BackfillOf(string(game))
	if !ok {
		t.Fatal("no backfill for a player who left")
	}
	if x := w.cell.matchmaking.Records.Tickets.Get(r); x.Players != 3 {
		t.Errorf("%d players are there, want 3", x.Players)
	}
	w.check()
}

func TestRuleSetThatTicketsDoNotFit(t *testing.T) {
	w := newWorld(t, DefaultConfig())
	w.matchmaker(func(c *matchmaking.Configuration) { c.Standalone = true })
	w.must(&matchmaking.StartMatchmaking{Configuration: "ranked", ID: "t1", Players: []matchmaking.Player{{
		ID: "ann", Attributes: []ruleset.NamedValue{{Name: "skill", Value: ruleset.Value{Kind: ruleset.Number, Number: 3}}},
	}}})
	bob := w.search("bob")
	body := strings.Replace(strings.Replace(duoRules, "number", "string", 1), `"default":10`, `"default":"x"`, 1)
	rules, problems := ruleset.Parse(body)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	w.must(&matchmaking.CreateRuleSet{RuleSet: matchmaking.RuleSet{Name: "words", Body: body}, Compiled: rules})
	w.must(&matchmaking.UpdateConfiguration{Name: "ranked", RuleSet: new("words")})
	keys := []matchmaking.TicketKey{{No: w.ticket("t1").No, Generation: 1}, {No: w.ticket(bob).No, Generation: 1}}
	w.must(&matchmaking.FailTickets{Tickets: keys})
	w.wantStatus("t1", "FAILED", matchmaking.IncompatibleRuleSet)
	w.wantStatus(bob, "QUEUED")
	for _, cmd := range []kernel.Command{&matchmaking.DeleteRuleSet{Name: "words"}, &matchmaking.DeleteConfiguration{Name: "ranked"}} {
		if err := w.do(cmd); err == nil {
			t.Errorf("%T of what is in use succeeded", cmd)
		}
	}
	w.must(&matchmaking.DeleteRuleSet{Name: "duo"})
	w.check()
}

func TestTicketIDs(t *testing.T) {
	w := newWorld(t, DefaultConfig())
	w.matchmaker(func(c *matchmaking.Configuration) { c.Standalone = true })
	ann := w.search("ann")
	again := &matchmaking.StartMatchmaking{Configuration: "ranked", ID: ann, Players: matchPlayers("ann")}
	w.must(again)
	if again.Ticket.No != w.ticket(ann).No || again.Ticket.ID != ann {
		t.Errorf("a repeat got %+v", again.Ticket)
	}
	if err := w.do(&matchmaking.StartMatchmaking{Configuration: "ranked", ID: ann, Players: matchPlayers("bob")}); err == nil {
		t.Error("another request got the id")
	}
	w.must(&matchmaking.StopMatchmaking{ID: ann})
	if err := w.do(&matchmaking.StartMatchmaking{Configuration: "ranked", ID: ann, Players: matchPlayers("ann")}); err == nil {
		t.Error("the id of a ticket that ended was used again")
	}
	for name, players := range map[string][]matchmaking.Player{
		"nobody": nil, "eleven": matchPlayers(strings.Split("abcdefghijk", "")...), "twice": matchPlayers("ann", "ann"),
		"wrong kind": {{ID: "ann", Attributes: []ruleset.NamedValue{{Name: "skill", Value: ruleset.Value{Kind: ruleset.String, Text: "x"}}}}},
	} {
		if err := w.do(&matchmaking.StartMatchmaking{Configuration: "ranked", ID: "t-" + name, Players: players}); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
}

func TestEstimatedWait(t *testing.T) {
	w := newWorld(t, DefaultConfig())
	w.matchmaker(func(c *matchmaking.Configuration) { c.Standalone = true })
	for i := range 3 {
		a, b := w.search(fmt.Sprint("a", i)), w.search(fmt.Sprint("b", i))
		w.advance(8 * time.Second)
		if w.ticket(a).WaitKnown {
			t.Errorf("known after %d tickets", 2*i)
		}
		w.propose(a, b)
	}
	if got := w.ticket(w.search("late")); !got.WaitKnown || got.EstimatedWait != 8 {
		t.Errorf("estimate %d, %t; want 8", got.EstimatedWait, got.WaitKnown)
	}
	w.check()
}
