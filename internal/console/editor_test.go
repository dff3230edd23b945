package console

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/audit"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/matchmaking"
	"github.com/musterhq/muster/internal/domain/ruleset"
)

const nearRules = `{"ruleLanguageVersion": "1.0", "playerAttributes": [{"name": "skill", "type": "number"}],
	"teams": [{"name": "all", "minPlayers": 2, "maxPlayers": 2}],
	"rules": [{"name": "Near", "type": "distance", "measurements": ["max(flatten(teams[*].players.attributes[skill]))"],
		"referenceValue": "min(flatten(teams[*].players.attributes[skill]))", "maxDistance": 5}]}`

// anyone is nearRules without its bound in effect.
var anyone = strings.Replace(nearRules, `"maxDistance": 5`, `"maxDistance": 5000`, 1)

// matchmakers returns a desk with a rule set and a configuration that uses it.
func matchmakers(t *testing.T) *desk {
	t.Helper()
	x := newDesk(t)
	rules, problems := ruleset.Parse(nearRules)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	x.do(&matchmaking.CreateRuleSet{RuleSet: matchmaking.RuleSet{Name: "near", Body: nearRules}, Compiled: rules})
	x.do(&matchmaking.CreateConfiguration{Configuration: matchmaking.Configuration{Name: "ranked", RuleSet: "near", RequestTimeout: time.Minute, Standalone: true}})
	return x
}

// try presses a button of the editor that changes nothing.
func (x *desk) try(as *http.Cookie, button string, pairs ...string) *http.Response {
	form := url.Values{}
	for i := 0; i < len(pairs); i += 2 {
		form.Set(pairs[i], pairs[i+1])
	}
	r := httptest.NewRequest("POST", Prefix+"/rule-sets/"+button, strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	r.AddCookie(as)
	w := httptest.NewRecorder()
	x.ServeHTTP(w, r)
	return w.Result()
}

func TestEditorPointsAtMistakes(t *testing.T) {
	x := matchmakers(t)
	look := x.signedInAs("LOOK")
	x.wantPage(x.get(Prefix+"/do/create-rule-set?configuration=ranked", look), http.StatusOK, `"maxDistance": 5}`, "The rule set is valid.", `<option value="ranked" selected>ranked, which uses near`,
		`<option value="near" selected>`, "needs the role admin", "<button disabled>")
	x.wantPage(x.get(Prefix+"/do/create-rule-set", look), http.StatusOK, "NearSkill", "The rule set is valid.")
	x.wantPage(x.get(Prefix+"/do/create-rule-set?from=none", look), http.StatusNotFound, `There is no rule set "none"`)
	x.wantPage(x.get(Prefix+"/rule-sets", look), http.StatusOK, `href="/console/do/create-rule-set?from=near"`, `href="/console/do/create-rule-set?configuration=ranked"`, "Use another rule set: needs the role admin")
	wrong := strings.Replace(nearRules, `"type": "distance"`, `"type": "distanze"`, 1)
	_, problems := ruleset.Parse(wrong)
	if len(problems) == 0 {
		t.Fatal("the rule set is valid")
	}
	// The message is that of the command line, with the probable spelling, and the place is marked.
	x.wantPage(x.try(look, "check", "body", wrong), http.StatusOK, "The rule set is not valid.", `data-line="3"`, "3:37</a>: error: "+problems[0].String(), `"type": <mark>"distanze"`)
	x.wantPage(x.try(look, "check", "body", strings.Replace(nearRules, "[skill]))", "[skil]))", 1)), http.StatusOK, `did you mean "skill"?`)
	x.wantPage(x.try(look, "check", "body", "{\n\t\"x\" 1}"), http.StatusOK, `data-line="2"`, "error: ")
	x.wantPage(x.try(look, "simulate", "body", wrong, "name", "next"), http.StatusUnprocessableEntity, "There was no trial: next has 1 error")
	x.wantPage(x.try(look, "check", "body", strings.Repeat("x", ruleSetMax+1)), http.StatusUnprocessableEntity, "at most 65535 characters")
	x.wantPage(x.try(look, "check", "body", strings.Repeat("x", editorBytesMax)), http.StatusBadRequest, "more than 2097152 bytes")
	x.wantPage(x.try(look, "check", "body", "{}", "other", "1"), http.StatusBadRequest, `no field "other"`)
	if r := x.get(Prefix + "/rule-sets/check"); r.StatusCode != http.StatusSeeOther {
		t.Errorf("%d", r.StatusCode)
	}
	elsewhere := httptest.NewRequest("POST", Prefix+"/rule-sets/simulate", strings.NewReader("body={}"))
	elsewhere.Header.Set("Sec-Fetch-Site", "cross-site")
	elsewhere.AddCookie(look)
	w := httptest.NewRecorder()
	x.ServeHTTP(w, elsewhere)
	x.wantPage(w.Result(), http.StatusForbidden, "Nothing was tried")
}

func TestRuleSetIsSavedAndUsed(t *testing.T) {
	x := matchmakers(t)
	admin := x.signedInAs("ADMIN")
	x.wantPage(x.send(x.signedInAs("RUN"), "create-rule-set", "body", anyone, "name", "wide"), http.StatusForbidden, "needs the role admin")
	x.wantPage(x.send(admin, "create-rule-set", "body", "{}", "name", "wide"), http.StatusUnprocessableEntity, "ruleLanguageVersion", "<textarea id=\"f-body\"")
	x.wantPage(x.send(admin, "create-rule-set", "body", anyone, "name", ""), http.StatusUnprocessableEntity, "Name is empty")
	x.wantPage(x.send(admin, "create-rule-set", "body", anyone, "name", "near"), http.StatusUnprocessableEntity, "exists already")
	x.done(x.send(admin, "create-rule-set", "body", anyone, "name", "wide", "configuration", "ranked", "reason", "long waits"), "do/use-rule-set/ranked?done=create-rule-set&ruleSet=wide")
	x.wantAudit(0, audit.Document{Who: "ADMIN", Door: "console", Address: "192.0.2.1", What: "CreateMatchmakingRuleSet", Reason: "long waits", Outcome: "done"})
	form := Prefix + "/do/use-rule-set/ranked?ruleSet=wide"
	x.wantPage(x.get(form, admin), http.StatusOK, "The configuration uses near.", `value="wide"`, "aws gamelift update-matchmaking-configuration --name ranked --rule-set-name wide")
	seen := x.seen(x.get(form, admin))
	x.wantPage(x.send(admin, "use-rule-set/ranked", "seen", seen, "ruleSet", "none"), http.StatusUnprocessableEntity, "none")
	x.done(x.send(admin, "use-rule-set/ranked", "seen", seen, "ruleSet", "wide", "reason", "long waits"), "matchmaking?done=use-rule-set")
	x.wantAudit(0, audit.Document{Who: "ADMIN", Door: "console", Address: "192.0.2.1", What: "UpdateMatchmakingConfiguration", Reason: "long waits", Outcome: "done"})
	x.read(func(v *cell.View) {
		if c, _ := v.Configuration("ranked"); c.RuleSet != "wide" {
			t.Errorf("the configuration uses %s", c.RuleSet)
		}
		if s, _ := v.RuleSet("wide"); s.Body != anyone {
			t.Errorf("the rule set is %s", s.Body)
		}
	})
	// Another person opened the form earlier: they are shown the present configuration, and it stays until they decide again.
	late := x.send(admin, "use-rule-set/ranked", "seen", seen, "ruleSet", "near")
	x.wantPage(late, http.StatusUnprocessableEntity, "It had the rule set near. It now has the rule set wide.")
	x.read(func(v *cell.View) {
		if c, _ := v.Configuration("ranked"); c.RuleSet != "wide" {
			t.Errorf("a late form has the configuration use %s", c.RuleSet)
		}
	})
	x.wantPage(x.send(admin, "use-rule-set/ranked", "ruleSet", "near"), http.StatusUnprocessableEntity, "something that this form does not say")
}

func TestSimulationInTheEditor(t *testing.T) {
	x := matchmakers(t)
	look := x.signedInAs("LOOK")
	pasted := "at,ticket,player,skill\n0,t1,ann,10\n1,t2,bob,90\n2,t3,cyd,12\n"
	r := x.try(look, "simulate", "body", anyone, "name", "wide", "compare", "near", "configuration", "ranked", "arrivals", pasted)
	x.wantPage(r, http.StatusOK, "3 tickets.", "near.json", "wide.json", `aria-label="Wait, by when a ticket came"`, "2 (66.7 %)", "Only the second matches 1 of the tickets, only the first 1.",
		"timed out after 60.0 s", "matched after 1.00 s", "muster simulate near.json --compare wide.json --request-timeout 1m0s --arrivals arrivals.csv", `t2,bob,90`)
	r = x.try(look, "simulate", "body", anyone, "minutes", "2")
	x.wantPage(r, http.StatusOK, "new.json", "arrivalsPerSecond", `"skill": {`, "--population population.json --for 2m")
	x.wantPage(x.try(look, "simulate", "body", anyone, "minutes", "1500"), http.StatusUnprocessableEntity, `Minutes to simulate is "1500"; want a whole number from 1 to 1440.`)
	x.wantPage(x.try(look, "simulate", "body", anyone, "arrivals", "at,ticket,skill\n0,t1,x\n"), http.StatusUnprocessableEntity, `There was no trial: the table: line 2: skill: "x", want a number`)
}

// The replay runs real tickets through the rule set in use and the edited one.
func TestReplayOfTheLastHour(t *testing.T) {
	x := matchmakers(t)
	look := x.signedInAs("LOOK")
	x.wantPage(x.try(look, "replay", "body", anyone), http.StatusUnprocessableEntity, "want the configuration whose tickets")
	x.wantPage(x.try(look, "replay", "body", anyone, "configuration", "ranked"), http.StatusUnprocessableEntity, "had no ticket in the last hour")
	for id, skill := range map[string]float64{"t1": 10, "t2": 90} {
		x.do(&matchmaking.StartMatchmaking{Configuration: "ranked", ID: id, Chosen: true, Players: []matchmaking.Player{{ID: "p-" + id,
			Attributes: []ruleset.NamedValue{{Name: "skill", Value: ruleset.Value{Kind: ruleset.Number, Number: skill}}}}}})
	}
	x.do(&matchmaking.StopMatchmaking{ID: "t1"})
	r := x.try(look, "replay", "body", anyone, "name", "wide", "configuration", "ranked")
	x.wantPage(r, http.StatusOK, "What it would have done", "2 tickets from", "0 timed out, 1 were cancelled, 0 failed, and 1 still waited", "near.json", "wide.json", "left before",
		"--arrivals arrivals.jsonl --differences 100", `href="/console/matchmaking/ranked/arrivals.jsonl"`)
	lines := text(t, x.get(Prefix+"/matchmaking/ranked/arrivals.jsonl", look))
	if !regexp.MustCompile(`(?m)^\{"at":0,"ticket":"t\d",.*"leaves":`).MatchString(lines) || strings.Count(lines, "\n") != 2 {
		t.Errorf("got %s, want both tickets as muster simulate reads them", lines)
	}
	if r := x.get(Prefix + "/matchmaking/ranked/arrivals.jsonl"); r.StatusCode != http.StatusSeeOther {
		t.Errorf("%d without a sign-in", r.StatusCode)
	}
}
