package simulate

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

// outcomes simulates arrivals with a rule set and returns how each ended.
func outcomes(t *testing.T, body string, arrivals []Arrival) (*Report, []Outcome) {
	t.Helper()
	all := make([]Outcome, len(arrivals))
	r, err := Run(t.Context(), parse(t, body), Settings{Name: "duel", RequestTimeout: 30 * time.Second, OnEnd: func(i int, o Outcome) { all[i] = o }}, arrivals)
	if err != nil {
		t.Fatal(err)
	}
	return r, all
}

func TestPlayersLeave(t *testing.T) {
	arrivals := []Arrival{single(0, "a", 10, "siege", 20), single(1, "b", 200, "siege", 20), single(7, "c", 10, "siege", 20), single(8, "d", 11, "siege", 20)}
	arrivals[0].Leaves = 5 * time.Second // before c comes, whom it would have met
	arrivals[3].Leaves = time.Hour       // after it was matched
	r, got := outcomes(t, duel, arrivals)
	if want := (Count{Arrived: 4, Matched: 2, TimedOut: 1, Left: 1}); r.Tickets != want {
		t.Errorf("got %+v, want %+v", r.Tickets, want)
	}
	for i, want := range []Outcome{{Left, 5 * time.Second}, {TimedOut, 30 * time.Second}, {Matched, time.Second}, {Matched, 0}} {
		if got[i] != want {
			t.Errorf("ticket %s: %s, want %s", arrivals[i].Ticket, got[i], want)
		}
	}
	var lines, table bytes.Buffer
	if err := errors.Join(WriteLines(&lines, arrivals), WriteTable(&table, r)); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(table.String(), "left before                       1 (25.0 %)") {
		t.Errorf("the table does not say who left:\n%s", &table)
	}
	back, err := ReadLines(&lines)
	if err != nil || back[0].Leaves != 5*time.Second || back[1].Leaves != 0 {
		t.Errorf("%v, %+v: want the arrivals as they were written", err, back)
	}
	if _, err := ReadLines(strings.NewReader(`{"at": 2, "ticket": "t", "players": [{"id": "p"}], "leaves": 2}`)); err == nil || !strings.Contains(err.Error(), "leaves: 2, want more than at") {
		t.Errorf("got %v, want that it leaves too early", err)
	}
}

func TestCompareNamesTicketsThatEndDifferently(t *testing.T) {
	arrivals := []Arrival{single(0, "a", 10, "siege", 20), single(0, "b", 30, "siege", 20), single(1, "c", 500, "siege", 20), single(1, "d", 590, "siege", 20), single(2, "e", -1, "siege", 20)}
	_, one := outcomes(t, duel, arrivals)                                                                  // a and b meet after 10 s
	_, two := outcomes(t, strings.Replace(duel, `"maxDistance": 5`, `"maxDistance": 100`, 1), arrivals[:]) // all but e at once
	d := Compare(arrivals, one, two)
	if d.Gained != 2 || d.Sooner != 2 || d.Lost != 0 || d.Later != 0 || len(d.All) != 4 {
		t.Fatalf("%+v, want two more tickets matched and two sooner", d)
	}
	if d.All[0].Arrival.Ticket != "c" || d.All[3].Arrival.Ticket != "b" {
		t.Errorf("%+v, want first those that only one matches", d.All)
	}
	if back := Compare(arrivals, two, one); back.Lost != 2 || back.Later != 2 {
		t.Errorf("%+v, want two fewer tickets matched and two later", back)
	}
	if d := Compare(arrivals, one, one); len(d.All) != 0 {
		t.Errorf("%+v, want no difference", d)
	}
	var out bytes.Buffer
	if err := WriteDifferences(&out, &d, 1); err != nil {
		t.Fatal(err)
	}
	if got := out.String(); !strings.Contains(got, "Only the second matches 2 of the tickets, only the first 0") || !strings.Contains(got, `"c" at 0:00:01: timed out after 30.0 s, then matched after 0.00 s`) || strings.Count(got, "\n") != 2 {
		t.Errorf("got %s", got)
	}
}

func TestPaceRestsAsLongAsItsShareAsks(t *testing.T) {
	at, rested := time.Unix(0, 0), time.Duration(0)
	p := &pace{share: 0.25, began: at, now: func() time.Time { return at }, rest: func(_ context.Context, d time.Duration) error { rested += d; at = at.Add(d); return nil }}
	worked := time.Duration(0)
	for range 100 {
		at, worked = at.Add(2*time.Millisecond), worked+2*time.Millisecond
		if err := p.keep(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if want := 3 * worked; rested > want || rested < want-3*workSlice {
		t.Errorf("%s of rest for %s of work, want about %s", rested, worked, want)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if err := newPace(0).keep(over); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want that it stops", err)
	}
	if err := rest(over, time.Hour); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want that it does not rest any longer", err)
	}
}

func TestWithinBoundsThePopulation(t *testing.T) {
	p := &Population{
		ArrivalsPerSecond: []RateAt{{0, 2}}, PartySizes: map[string]float64{"1": 1, "5": 1}, Homes: map[string]Home{"x": {Share: 1, LatencyMs: map[string]float64{"eu": 20, "us": 90}}},
		Attributes: map[string]Distribution{"skill": {Normal: &Normal{Mean: 1}}, "roles": {AnyOf: map[string]float64{"a": 1, "b": 1}}},
	}
	const arrivals, values = 120, 120 * 5 * (1 + 3 + 2)
	if err := p.Within(time.Minute, arrivals, values); err != nil {
		t.Error(err)
	}
	if err := p.Within(time.Minute, arrivals-1, values); err == nil || !strings.Contains(err.Error(), "more than 119") {
		t.Errorf("got %v, want too many arrivals", err)
	}
	if err := p.Within(time.Minute, arrivals, values-1); err == nil || !strings.Contains(err.Error(), "want at most 3599") {
		t.Errorf("got %v, want too many values", err)
	}
}
