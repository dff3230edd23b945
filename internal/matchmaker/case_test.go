package matchmaker

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// acceptanceCase is one of the acceptance cases of matchmaking: a rule set, tickets that arrive over virtual time, and
// the expected results. docs/spec/flexmatch-cases.md#keys explains the keys.
type acceptanceCase struct {
	Name          string
	RuleSet       json.RawMessage
	RuleSetText   *string
	Config        caseConfig
	Tickets       []caseTicket
	Actions       []caseAction
	RunUntil      int64 `json:"runUntilSeconds"`
	Expect        expectation
	Title, Basis  string
	Sources, Note any
}

type caseConfig struct {
	RequestTimeout     *int64 `json:"requestTimeoutSeconds"`
	AcceptanceRequired bool
	AcceptanceTimeout  *int64 `json:"acceptanceTimeoutSeconds"`
	FlexMatchMode      string
	AdditionalPlayers  int32 `json:"additionalPlayerCount"`
	Placements         []casePlacement
}

type casePlacement struct {
	After  int64 `json:"afterSeconds"`
	Result string
}

type caseTicket struct {
	ID          string
	Arrival     int64 `json:"arrivalSeconds"`
	Kind        string
	GameSession string
	Players     []casePlayer
}

type casePlayer struct {
	ID         string
	Attributes map[string]json.RawMessage
	LatencyMs  map[string]int32
	Team       string
}

type caseAction struct {
	At      int64 `json:"atSeconds"`
	Op      string
	Ticket  string
	Players []string
}

type window struct{ NotBefore, NotAfter *int64 }

func (w window) holds(at int64) bool {
	return (w.NotBefore == nil || at >= *w.NotBefore) && (w.NotAfter == nil || at <= *w.NotAfter)
}

type expectation struct {
	Valid            *bool
	ErrorMentionsAny []string
	Matches          []struct {
		window
		Tickets []string
		Teams   map[string][]string
	}
	MatchCount    json.RawMessage
	NoMatchBefore *int64
	Unmatched     []string
	Matched       []struct {
		window
		Ticket  string
		Tickets []string
	}
	Together   [][]string
	Apart      [][]string
	PlayerTeam map[string]json.RawMessage
	SameTeam   [][]string
	EachMatch  []constraint
	Status     []struct {
		Ticket            string
		At                int64 `json:"atSeconds"`
		OneOf             []string
		ReasonMentionsAny []string
	}
	Rejected []struct{ Ticket string }
	Events   []expectedEvent
	NoEvents []expectedEvent
}

type expectedEvent struct {
	window
	Type    string
	Tickets []string
	Detail  map[string]any
	Count   *int
}

type constraint struct {
	Kind, Team, Attribute, Per, WhereTicket string
	Min, Max                                *float64
	MaxLatency                              *float64
	Value                                   any
}

// caseDirs are where the cases lie: those that the rule sets are tested with, too, and further ones that look at a single
// clause each.
var caseDirs = []string{"../domain/ruleset/testdata/cases", "testdata/cases"}

// TestCases runs every acceptance case through the core and the matcher under a virtual clock.
func TestCases(t *testing.T) {
	for _, dir := range caseDirs {
		files, err := filepath.Glob(dir + "/*.json")
		if err != nil || len(files) < 97 {
			t.Fatalf("%d cases in %s, want at least 97: %v", len(files), dir, err)
		}
		for _, file := range files {
			t.Run(strings.TrimSuffix(filepath.Base(file), ".json"), func(t *testing.T) { runCase(t, readCase(t, file)) })
		}
	}
}

// readCase reads a case. It refuses unknown keys, because they would be expectations that always hold.
func readCase(t testing.TB, file string) *acceptanceCase {
	text, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer text.Close()
	d := json.NewDecoder(text)
	d.DisallowUnknownFields()
	var c acceptanceCase
	if err := d.Decode(&c); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return &c
}
