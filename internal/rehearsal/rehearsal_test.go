package rehearsal

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/matchmaking"
	"github.com/musterhq/muster/internal/domain/ruleset"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/simulate"
	"github.com/musterhq/muster/internal/waittest"
)

func example(t *testing.T, name string) Set {
	t.Helper()
	body, err := os.ReadFile("../../examples/matchmaking/" + name)
	if err != nil {
		t.Fatal(err)
	}
	rules, problems := ruleset.Parse(string(body))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return Set{name, rules}
}

func wantRefusal(t *testing.T, err error, reason domain.Reason, says string) {
	t.Helper()
	if refused, ok := errors.AsType[*domain.Refusal](err); !ok || refused.Reason != reason || !strings.Contains(refused.Detail, says) {
		t.Errorf("got %v, want %s that says %q", err, reason, says)
	}
}

func TestTrialComparesTwoRuleSets(t *testing.T) {
	quick, patient := example(t, "ranked.json"), example(t, "ranked-patient.json")
	arrivals, err := Arrivals(Suggest(quick.Rules), time.Minute, []Set{quick, patient})
	if err != nil || len(arrivals) < 30 {
		t.Fatalf("%v, %d arrivals", err, len(arrivals))
	}
	s := NewStage()
	s.time = time.Hour // the machine may be slow
	r, err := s.Run(t.Context(), Trial{Sets: []Set{quick, patient}, Timeout: 30 * time.Second, Arrivals: arrivals})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Reports) != 2 || r.Reports[0].RuleSet != "ranked.json" || r.Reports[0].Tickets.Arrived != len(arrivals) || r.Reports[0].Tickets.Matched == 0 {
		t.Errorf("got %+v", r.Reports)
	}
	if r.Differences == nil || r.Differences.Gained-r.Differences.Lost != r.Reports[1].Tickets.Matched-r.Reports[0].Tickets.Matched {
		t.Errorf("the differences are %+v, and the second matches %d instead of %d", r.Differences, r.Reports[1].Tickets.Matched, r.Reports[0].Tickets.Matched)
	}
	if _, err := s.Run(t.Context(), Trial{Sets: []Set{quick}, Timeout: time.Minute, Arrivals: arrivals[:10]}); err != nil {
		t.Errorf("the next trial: %v", err)
	}
	s.time = time.Nanosecond
	_, err = s.Run(t.Context(), Trial{Sets: []Set{quick}, Timeout: 30 * time.Second, Arrivals: arrivals})
	wantRefusal(t, err, domain.Invalid, "stopped after 1ns")
	_, err = s.Run(t.Context(), Trial{Sets: []Set{quick}, Arrivals: make([]simulate.Arrival, TicketsMax+1)})
	wantRefusal(t, err, domain.Invalid, "20001 tickets")
}

func TestTrialsRunOneAfterTheOther(t *testing.T) {
	s := NewStage()
	leave, err := s.enter(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	gone, cancel := context.WithCancel(t.Context())
	left := make(chan error)
	for range trialsWaiting - 1 {
		go func() { _, err := s.enter(gone); left <- err }()
	}
	waittest.Until(t, "all of them wait", func() bool { return len(s.waiting) == trialsWaiting })
	_, err = s.enter(t.Context())
	wantRefusal(t, err, domain.Overloaded, "another trial")
	cancel()
	for range trialsWaiting - 1 {
		if err := <-left; !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want that it waits no longer for a page that has left", err)
		}
	}
	leave()
	if leave, err = s.enter(t.Context()); err != nil {
		t.Fatalf("a place that was left is not free: %v", err)
	}
	leave()
	_, err = s.Run(gone, Trial{Sets: []Set{example(t, "ranked.json")}})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want that a trial ends with its page", err)
	}
}

func TestArrivalsInEveryForm(t *testing.T) {
	sets := []Set{example(t, "ranked.json")}
	for text, form := range map[string]Form{
		"at,ticket,skill\n1,a,1500\n": Table,
		`{"at": 1, "ticket": "a", "players": [{"id": "p", "attributes": {"skill": 7}}]}` + "\n":             Lines,
		"\n{\n\"arrivalsPerSecond\": [{\"hour\": 0, \"rate\": 5}]}":                                         Population,
		`{"arrivalsPerSecond": [{"hour": 0, "rate": 5}], "attributes": {"skill": {"normal": {"mean": 1}}}}`: Population,
	} {
		if got := FormOf(text); got != form {
			t.Errorf("%s: %s, want %s", text, got, form)
		}
		if all, err := Arrivals(text, time.Minute, sets); err != nil || len(all) == 0 {
			t.Errorf("%s: %v, %d arrivals", text, err, len(all))
		}
	}
	for text, says := range map[string]string{
		`{"arrivalsPerSecond": [{"hour": 0, "rate": 50000}]}`: "more than 20000",
		`{"arrivalsPerSecond": []}`:                           "the population: arrivalsPerSecond: empty",
		"at,ticket,skill\n1,a,x\n":                            `line 2: skill: "x", want a number`,
		`{"players": []}`:                                     "the lines: line 1: at: missing",
	} {
		_, err := Arrivals(text, time.Minute, sets)
		wantRefusal(t, err, domain.Invalid, says)
	}
	_, err := Arrivals(`{"arrivalsPerSecond": [{"hour": 0, "rate": 1}]}`, 25*time.Hour, sets)
	wantRefusal(t, err, domain.Invalid, "at most 24h")
}

// The replay starts from the outcomes of the tickets: cancelled ones leave, completed and failed ones stay until they are matched, and those that still wait leave at the end.
func TestTicketsBecomeArrivals(t *testing.T) {
	skill := []ruleset.NamedValue{{Name: "skill", Value: ruleset.Value{Kind: ruleset.Number, Number: 7}}}
	ticket := func(no uint64, start, end domain.Time, status matchmaking.Status) matchmaking.Ticket {
		return matchmaking.Ticket{
			ID: fmt.Sprintf("t%d", no), No: no, Start: start, End: end, Status: status,
			Roster: matchmaking.EncodeRoster([]matchmaking.Player{{ID: "p", Attributes: skill, Latencies: []matchmaking.Latency{{Region: "eu", Milliseconds: 30}}}}),
		}
	}
	all := []matchmaking.Ticket{
		ticket(1, 1000, 5000, matchmaking.Completed), ticket(2, 2000, 4000, matchmaking.Cancelled), ticket(3, 2000, 6000, matchmaking.Cancelled), ticket(4, 3000, 8000, matchmaking.TimedOut),
		ticket(5, 3000, 7000, matchmaking.Failed), ticket(6, 4000, 0, matchmaking.Searching), ticket(7, 5000, 20_000, matchmaking.Completed), ticket(8, 6000, 7000, matchmaking.Completed),
	}
	all[2].Outcome = &matchmaking.Outcome{Match: "rejected"}
	all[7].Backfill = true
	r := record(engine.TicketsSince{Tickets: all, Until: 10_000, Whole: true})
	if r.From != 1000 || r.Completed != 1 || r.Cancelled != 2 || r.TimedOut != 1 || r.Failed != 1 || r.Waiting != 2 || r.Backfills != 1 || r.Wait.P50 != 4 || !r.Whole {
		t.Errorf("got %+v", r)
	}
	for i, want := range []time.Duration{0, 3 * time.Second, 0, 0, 0, 9 * time.Second, 9 * time.Second} {
		if a := r.Arrivals[i]; a.Leaves != want || a.At != all[i].Start.Sub(r.From) || a.Ticket != all[i].ID {
			t.Errorf("ticket %s comes at %s and leaves at %s, want %s", a.Ticket, a.At, a.Leaves, want)
		}
	}
	if p := r.Arrivals[0].Players[0]; p.ID != "p" || len(p.Attributes) != 1 || p.Attributes[0].Value.Number != 7 || len(p.Latencies) != 1 || p.Latencies[0].Milliseconds != 30 {
		t.Errorf("got %+v, want the player as recorded", p)
	}
}
