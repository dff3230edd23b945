package matcher

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/ruleset"
)

// guideTry has tickets for an example of the guides, and how many of their players find a match.
type guideTry struct {
	what    string
	tickets [][]Player
	after   int64 // seconds of waiting
	matched int   // players
	also    func(*ruleset.RuleSet, map[uint64]Ticket, *Proposal) string
}

// TestGuideRuleSets plays tickets against every rule set that the guides show. Every example has tickets that match and tickets
// that do not, so the claims of the text are tested.
func TestGuideRuleSets(t *testing.T) {
	examples := guideRuleSets(t)
	for name := range guideTries {
		if _, ok := examples[name]; !ok {
			t.Errorf("there are tickets for the example %q, which no guide has", name)
		}
	}
	for name, body := range examples {
		t.Run(name, func(t *testing.T) {
			tries := guideTries[name]
			matches := func(try guideTry) bool { return try.matched > 0 }
			misses := func(try guideTry) bool { return try.matched < playersOf(try.tickets) }
			if !slices.ContainsFunc(tries, matches) || !slices.ContainsFunc(tries, misses) {
				t.Fatal("no tickets for this example: add some that match and some that do not to guideTries")
			}
			for _, try := range tries {
				playGuide(t, body, &try)
			}
		})
	}
}

func playersOf(tickets [][]Player) (n int) {
	for _, players := range tickets {
		n += len(players)
	}
	return n
}

func playGuide(t *testing.T, body string, try *guideTry) {
	t.Helper()
	rules := mustParse(t, body)
	m, tickets := New(rules, Config{Name: "guide"}), map[uint64]Ticket{}
	for i, players := range try.tickets {
		for k := range players {
			if players[k].ID == "" {
				players[k].ID = fmt.Sprint("p", i, "-", k)
			}
		}
		ticket := Ticket{Key: uint64(i), No: uint64(i), Start: benchStart, Players: players}
		tickets[ticket.Key] = ticket
		if err := m.Add(ticket); err != nil {
			t.Fatalf("%s: %v", try.what, err)
		}
	}
	matched, now := 0, benchStart+domain.Time(1000*try.after)
	for m.Dirty() {
		for _, p := range m.Pass(now) {
			matched += int(p.Players)
			if wrong := illegal(rules, tickets, &p, now, 0); wrong != "" {
				t.Errorf("%s: %s", try.what, wrong)
			}
			if try.also == nil {
				continue
			}
			if wrong := try.also(rules, tickets, &p); wrong != "" {
				t.Errorf("%s: %s", try.what, wrong)
			}
		}
	}
	if matched != try.matched {
		t.Errorf("%s: %d players are matched after %d s, want %d", try.what, matched, try.after, try.matched)
	}
}

// guideRuleSets collects the examples by name: the heading in the manual, the page of one inside a command, or the file.
func guideRuleSets(t *testing.T) map[string]string {
	t.Helper()
	examples := map[string]string{}
	manual := readText(t, "../../../docs/guide/rule-sets.md")
	var whole map[string]json.RawMessage
	heading := ""
	for at := range strings.SplitSeq(manual, "```json\n") {
		text, _, _ := strings.Cut(at, "\n```")
		if whole != nil || heading != "" {
			var parts map[string]json.RawMessage
			if whole != nil {
				text = "{" + text + "}"
			}
			if err := json.Unmarshal([]byte(text), &parts); err != nil {
				t.Fatalf("the example below %q: %v", heading, err)
			}
			if whole == nil {
				whole = parts
			}
			together := maps.Clone(whole)
			maps.Copy(together, parts)
			body, err := json.Marshal(together)
			if err != nil {
				t.Fatal(err)
			}
			name := heading
			for n := 2; examples[name] != ""; n++ {
				name = fmt.Sprint(heading, " ", n)
			}
			examples[name] = string(body)
		}
		if all := regexp.MustCompile("(?m)^#+ (.*)$").FindAllStringSubmatch(at, -1); len(all) > 0 {
			heading = all[len(all)-1][1]
		}
	}
	for _, pattern := range []string{"../../../README.md", "../../../docs/*.md", "../../../docs/guide/*.md", "../../../examples/*/README.md"} {
		pages, _ := filepath.Glob(pattern)
		for _, page := range pages {
			for _, body := range regexp.MustCompile(`'(\{"ruleLanguageVersion".*\})'`).FindAllStringSubmatch(readText(t, page), -1) {
				examples[page[len("../../../"):]] = body[1]
			}
		}
	}
	files, _ := filepath.Glob("../../../examples/matchmaking/*.json")
	for _, file := range files {
		if text := readText(t, file); strings.Contains(text, "ruleLanguageVersion") {
			examples[filepath.Base(file)] = text
		}
	}
	if len(examples) < 18 {
		t.Fatalf("found the examples %v, want those of all guides", slices.Sorted(maps.Keys(examples)))
	}
	return examples
}

func readText(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(string(text), "\r", "")
}

// Values of the players below are numbers, strings, lists of strings, maps of numbers, or latencies.

type (
	ofPlayer map[string]any
	ping     int32 // to "home"
)

func person(of ofPlayer) Player {
	var p Player
	for _, name := range slices.Sorted(maps.Keys(of)) {
		v := ruleset.NamedValue{Name: name}
		switch x := of[name].(type) {
		case ping:
			p.Latencies = append(p.Latencies, Latency{name, int32(x)})
			continue
		case int:
			v.Value = ruleset.Value{Kind: ruleset.Number, Number: float64(x)}
		case string:
			if name == "id" {
				p.ID = x
				continue
			}
			v.Value = ruleset.Value{Kind: ruleset.String, Text: x}
		case []string:
			v.Value = ruleset.Value{Kind: ruleset.List, List: x}
		case map[string]float64:
			v.Value = ruleset.MapOf(x)
		}
		p.Attributes = append(p.Attributes, v)
	}
	return p
}

// alone makes one ticket for each player.
func alone(of ...ofPlayer) (tickets [][]Player) {
	for _, x := range of {
		tickets = append(tickets, []Player{person(x)})
	}
	return tickets
}

func together(of ...ofPlayer) []Player {
	var players []Player
	for _, x := range of {
		players = append(players, person(x))
	}
	return players
}

func times(n int, of ofPlayer) []ofPlayer { return slices.Repeat([]ofPlayer{of}, n) }

func both(a, b []ofPlayer) [][]Player { return alone(slices.Concat(a, b)...) }

// each makes n players who differ in one value.
func each[T any](n int, name string, value func(i int) T) (all []ofPlayer) {
	for i := range n {
		all = append(all, ofPlayer{name: value(i)})
	}
	return all
}
