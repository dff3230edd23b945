package operator

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/domain/cell"
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
	o.do(&cell.CreateRuleSet{RuleSet: matchmaking.RuleSet{Name: "duel", Region: "us-east-1", Body: duel}, Compiled: rules})
	o.do(&cell.CreateConfiguration{Configuration: matchmaking.Configuration{
		Name: "duel", Region: "us-east-1", RuleSet: "duel", Standalone: true, RequestTimeout: 2 * time.Hour,
	}})
	runner := matchmaker.Start(matchmaker.Config{Engine: o.engine, Log: slog.New(slog.DiscardHandler), PassEvery: time.Millisecond})
	o.Cleanup(runner.Close)
	o.door.searches = runner
}

func (o *office) ticket(id string, skill float64, mode string) {
	o.Helper()
	p := matchmaking.Player{ID: id + "-player", Attributes: []ruleset.NamedValue{{Name: "mode", Value: ruleset.Value{Kind: ruleset.String, Text: mode}}}}
	if skill >= 0 {
		p.Attributes = append(p.Attributes, ruleset.NamedValue{Name: "skill", Value: ruleset.Value{Kind: ruleset.Number, Number: skill}})
	}
	o.do(&cell.StartMatchmaking{Configuration: "duel", ID: id, Chosen: true, Players: []matchmaking.Player{p}})
}

// explained asks until the answer is as it will be once the matcher has caught up.
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
	for _, want := range []string{"It waits.", "rule Near rejects", "rules[Near].maxDistance becomes 1000", "then 1 could be"} {
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
