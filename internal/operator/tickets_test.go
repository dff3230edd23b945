package operator

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/matchmaking"
	"github.com/musterhq/muster/internal/domain/ruleset"
	"github.com/musterhq/muster/internal/matchmaker"
)

const duel = `{"ruleLanguageVersion": "1.0",
	"playerAttributes": [{"name": "skill", "type": "number"}, {"name": "mode", "type": "string", "default": "siege"}],
	"teams": [{"name": "one", "minPlayers": 1, "maxPlayers": 1}, {"name": "two", "minPlayers": 1, "maxPlayers": 1}],
	"rules": [
		{"name": "Near", "type": "distance", "measurements": ["max(flatten(teams[*].players.attributes[skill]))"],
			"referenceValue": "min(flatten(teams[*].players.attributes[skill]))", "maxDistance": 5},
		{"name": "SameMode", "type": "comparison", "measurements": ["flatten(teams[*].players.attributes[mode])"], "operation": "="}],
	"expansions": [{"target": "rules[Near].maxDistance", "steps": [{"waitTimeSeconds": 3600, "value": 1000}]}]}`

func (o *office) matchmaking() {
	rules, problems := ruleset.Parse(duel)
	if len(problems) > 0 {
		o.Fatal(problems)
	}
	o.do(&matchmaking.CreateRuleSet{RuleSet: matchmaking.RuleSet{Name: "duel", Region: "us-east-1", Body: duel}, Compiled: rules})
	o.do(&matchmaking.CreateConfiguration{Configuration: matchmaking.Configuration{
		Name: "duel", Region: "us-east-1", RuleSet: "duel", Standalone: true, RequestTimeout: 2 * time.Hour,
	}})
	runner := matchmaker.New(matchmaker.Config{Engine: o.engine, Log: slog.New(slog.DiscardHandler), PassEvery: time.Millisecond})
	runner.Lead()
	o.Cleanup(runner.Rest)
	o.door.searches = runner
}

func (o *office) ticket(id string, skill float64, mode string) {
	o.Helper()
	p := matchmaking.Player{ID: id + "-player", Attributes: []ruleset.NamedValue{{Name: "mode", Value: ruleset.Value{Kind: ruleset.String, Text: mode}}}}
	if skill >= 0 {
		p.Attributes = append(p.Attributes, ruleset.NamedValue{Name: "skill", Value: ruleset.Value{Kind: ruleset.Number, Number: skill}})
	}
	o.do(&matchmaking.StartMatchmaking{Configuration: "duel", ID: id, Chosen: true, Players: []matchmaking.Player{p}})
}

// explained asks until the matcher has caught up and the answer is ready.
func (o *office) explained(id string, ready func(*Explanation) bool) Explanation {
	o.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		x := o.explain("ticket/" + id)
		if ready(&x) {
			return x
		}
		if time.Now().After(end) {
			o.Fatalf("it never came: %+v, search %+v", x, x.Search)
		}
	}
}

func TestTicketThatWaitsIsExplained(t *testing.T) {
	o := newOffice(t)
	o.matchmaking()
	o.ticket("far", 500, "siege")
	o.ticket("other", 12, "race")
	o.ticket("hopeless", -1, "siege")
	o.ticket("ann", 10, "siege")
	x := o.explained("ann", func(x *Explanation) bool { return x.Search != nil && x.Search.Others == 3 && x.Search.Now.Looked == 2 })
	s := x.Search
	if x.Kind != "ticket" || s.Needed != 2 || s.Now.Possible != 0 {
		t.Errorf("got %+v, search %+v: want a ticket that needs two players and has no partner", x, s)
	}
	oldest := func(ticket string) []string {
		for _, p := range s.Oldest {
			if p.Ticket == ticket {
				return p.Rejected
			}
		}
		return []string{"is not listed"}
	}
	if got := oldest("far"); !slices.Equal(got, []string{"Near"}) {
		t.Errorf("far is rejected by %v, want Near", got)
	}
	if got := oldest("other"); !slices.Equal(got, []string{"SameMode"}) {
		t.Errorf("other is rejected by %v, want SameMode", got)
	}
	if len(s.Steps) != 1 || s.Steps[0].Wait != 3600 || fmt.Sprint(s.Steps[0].Changes) != "[{rules[Near].maxDistance 5 1000}]" {
		t.Errorf("steps %+v, want the one of an hour", s.Steps)
	}
	if p := s.Steps[0].Partners; p == nil || p.Possible != 1 {
		t.Errorf("partners after the step: %+v, want one", p)
	}
	for _, want := range []string{"It waits.", "rule Near rejects", "(ticket far: from 500 to 10 it is 490, want at most 5)",
		"A match has at least 2 players; this ticket and those have 1, so 1 are missing.", "rules[Near].maxDistance becomes 1000", "then 1 could be"} {
		if !strings.Contains(x.Why, want) {
			t.Errorf("why: %q does not say %q", x.Why, want)
		}
	}
	x = o.explained("hopeless", func(x *Explanation) bool { return x.Search != nil })
	if !strings.Contains(x.Why, "never") || !strings.Contains(x.Why, "skill") {
		t.Errorf("why: %q, want that it can never be matched for want of skill", x.Why)
	}
}

func TestTicketThatEndedIsExplained(t *testing.T) {
	o := newOffice(t)
	o.matchmaking()
	o.ticket("ann", 10, "siege")
	o.ticket("bob", 11, "siege")
	x := o.explained("ann", func(x *Explanation) bool { return x.Status == "COMPLETED" })
	if !strings.Contains(x.Why, "It was matched") || x.Search != nil {
		t.Errorf("got %+v, want a match", x)
	}
	if status, body := o.ask("explain/ticket/nobody"); status != 404 {
		t.Errorf("unknown ticket: %d %s, want 404", status, body)
	}
}

// configuration makes a configuration for the duel's rules.
func (o *office) configuration(name string, change func(*matchmaking.Configuration)) {
	o.Helper()
	c := matchmaking.Configuration{Name: name, Region: "us-east-1", RuleSet: "duel", Standalone: true, RequestTimeout: 2 * time.Hour}
	change(&c)
	o.do(&matchmaking.CreateConfiguration{Configuration: c})
}

func (o *office) says(x *Explanation, wants ...string) {
	o.Helper()
	for _, want := range wants {
		if !strings.Contains(x.Why, want) {
			o.Errorf("why: %q does not say %q", x.Why, want)
		}
	}
}

func duelist(id string, skill float64) matchmaking.Player {
	return matchmaking.Player{ID: id, Attributes: []ruleset.NamedValue{{Name: "skill", Value: ruleset.Value{Kind: ruleset.Number, Number: skill}}}}
}

func TestTicketThatWaitsForAnswersIsExplained(t *testing.T) {
	o := newOffice(t)
	o.matchmaking()
	o.configuration("asked", func(c *matchmaking.Configuration) { c.AcceptanceRequired, c.AcceptanceTimeout = true, 10*time.Minute })
	for _, name := range []string{"ann", "bob"} {
		o.do(&matchmaking.StartMatchmaking{Configuration: "asked", ID: name, Chosen: true, Players: []matchmaking.Player{duelist(name+"-player", 10)}})
	}
	o.explained("ann", func(x *Explanation) bool { return x.Status == "REQUIRES_ACCEPTANCE" })
	o.do(&matchmaking.AcceptMatch{Ticket: "ann", Players: []string{"ann-player"}, Accept: true})
	x := o.explain("ticket/ann")
	o.says(&x, "No answer yet from bob-player (ticket bob).", "They can accept until 20")
	if strings.Contains(x.Why, "ann-player") {
		t.Errorf("why: %q names a player who has accepted", x.Why)
	}
}

func TestTicketThatTimedOutKeepsWhatStoodAgainstIt(t *testing.T) {
	o := newOffice(t)
	o.matchmaking()
	o.configuration("short", func(c *matchmaking.Configuration) { c.RequestTimeout = time.Minute })
	for name, skill := range map[string]float64{"ann": 10, "far": 55} {
		o.do(&matchmaking.StartMatchmaking{Configuration: "short", ID: name, Chosen: true, Players: []matchmaking.Player{duelist(name, skill)}})
	}
	o.do(&matchmaking.StartMatchmaking{Configuration: "short", ID: "unable", Chosen: true, Players: []matchmaking.Player{{ID: "unable"}}})
	o.explained("ann", func(x *Explanation) bool { return x.Search != nil && x.Search.Others == 2 })
	o.offset.Add(int64(2 * time.Minute))
	o.do(&hosting.CreateLocation{Name: "custom-c", Region: "us-east-1"}) // wakes the clock
	x := o.explained("unable", func(x *Explanation) bool { return x.Status == "TIMED_OUT" && x.Search != nil })
	o.says(&x, "timing out", "It can never be matched: player", "skill")
	x = o.explained("ann", func(x *Explanation) bool { return x.Status == "TIMED_OUT" && x.Search != nil })
	if !x.Search.Ended {
		t.Errorf("got %+v, want the search as it ended", x.Search)
	}
	o.says(&x, "Removed from matchmaking due to timing out.")
	if !strings.Contains(x.Why, "it is 45, want at most 5") && !strings.Contains(o.explain("ticket/far").Why, "it is 45, want at most 5") {
		t.Errorf("why: %q and %q, want one to say that they were 45 apart", x.Why, o.explain("ticket/far").Why)
	}
}

func TestWhyWaiting(t *testing.T) {
	crowd := Search{Needed: 10, Short: 7, Others: 4999, Effort: "CONTINUED", Turns: 12, Now: Partners{Looked: 2000, More: true, Possible: 2, Players: 2,
		Rejected: []Rejection{{"Mode", 3, "t1", "the values are not all equal"}, {"Near", 1990, "t2", "from 55 to 10 it is 45, want at most 10"}}}}
	for want, s := range map[string]Search{
		"It waits. Of the 2000 oldest of 4999 other tickets, 2 could be in a match with it; rule Near rejects 1990 (ticket t2: from 55 to 10 it is 45, " +
			"want at most 10). A match has at least 10 players; this ticket and those have 3, so 7 are missing. The search for a match used up its " +
			"budget, and continues while the matchmaker is idle: 12 turns so far. Waiting no longer changes any rule.": crowd,
		`It can never be matched: its roster has 6 players on team "red", which takes 5.`: {Unmatchable: `its roster has 6 players on team "red", which takes 5`},
		"It waits. Of 1 other ticket, 0 could be in a match with it. Its game session has 3 players, and needs at least 1 more. Waiting no longer changes any rule.": {
			backfill: true, players: 3, Short: 1, Others: 1, Now: Partners{Looked: 1}},
		"It waits for a seat: the free seats of its game session are kept for players who may come back.":                             {backfill: true, players: 3, SeatsKept: true},
		"This is how the search stood at its end. No other ticket waits.":                                                             {Ended: true},
		"It waits. Rule Ping rejects it with any partner: no region was reported by all players. Waiting no longer changes any rule.": {Alone: []string{"Ping"}, Reasons: map[string]string{"Ping": "no region was reported by all players"}},
	} {
		if got := whyWaiting(&s); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

// A follower has no pool. It asks the leader to explain a ticket, and answers from the state if the leader does not answer.
func TestTicketIsExplainedAtAnotherNode(t *testing.T) {
	o := newOffice(t)
	o.matchmaking()
	o.ticket("far", 500, "siege")
	o.ticket("ann", 10, "siege")
	found := func(x *Explanation) bool {
		return x.Status == "SEARCHING" && x.Search != nil && x.Search.Others == 1 && x.Search.Now.Looked == 1
	}
	want := o.explained("ann", found)
	decides := o.door
	config := decides.config
	config.Searches = matchmaker.New(matchmaker.Config{Engine: o.engine, Log: slog.New(slog.DiscardHandler)})
	lost := errors.New("lost")
	var fails error
	config.AskLeader = func(ctx context.Context, question []byte) ([]byte, error) {
		if fails != nil {
			return nil, fails
		}
		return decides.AnswerLeader(ctx, question)
	}
	o.door = NewDoor(config)
	if x := o.explain("ticket/ann"); !found(&x) || x.Why != want.Why || !reflect.DeepEqual(x.Search.Now, want.Search.Now) {
		t.Errorf("got %+v, search %+v, want %+v, search %+v", x, x.Search, want, want.Search)
	}
	fails = lost
	if x := o.explain("ticket/ann"); x.Search != nil || x.Status != want.Status || x.ID != "ann" {
		t.Errorf("without an answer: %+v", x)
	}
}
