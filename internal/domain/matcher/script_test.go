package matcher_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/matcher"
	"github.com/musterhq/muster/internal/domain/ruleset"
)

// TestScripts plays testdata: a rule set, tickets that arrive, and passes that find matches. Times count from the beginning.
//
//	rules          the rule set as JSON: an empty pool
//	add            a ticket a line: id, start=5s, the players' values as skill=10 or skill=(10,20) for a party, and
//	               us-east-1=40 for latencies; backfill=red with free=2 for the roster of a game session on one team
//	remove a       a ticket leaves
//	pass at=5s     the matches, the oldest ticket of each first, and when the next wait time is reached
//	why a at=5s    why a ticket has no match
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		s := &script{}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			s.out.Reset()
			at := domain.Time(0)
			if d.HasArg("at") {
				at = s.instant(t, d, d.CmdArgs[len(d.CmdArgs)-1].Vals[0])
			}
			switch d.Cmd {
			case "rules":
				s.rules(t, d)
			case "add":
				for line := range strings.Lines(d.Input) {
					s.add(t, d, strings.TrimSpace(line))
				}
			case "remove":
				s.matcher.Remove(s.key(d.CmdArgs[0].Key))
			case "pass":
				s.pass(at)
			case "why":
				s.why(d.CmdArgs[0].Key, at)
			default:
				d.Fatalf(t, "there is no command %q", d.Cmd)
			}
			return s.out.String()
		})
	})
}

const scriptBegan = domain.Time(1_700_000_000_000)

type script struct {
	out     strings.Builder
	set     *ruleset.RuleSet
	matcher *matcher.Matcher
	names   []string // of tickets, by key
}

func (s *script) instant(t *testing.T, d *datadriven.TestData, text string) domain.Time {
	passed, err := time.ParseDuration(text)
	if err != nil {
		d.Fatalf(t, "%v", err)
	}
	return scriptBegan.Add(passed)
}

// key returns the number of a ticket, which also orders it among those of the same start.
func (s *script) key(name string) uint64 {
	at := slices.Index(s.names, name)
	if at < 0 {
		at = len(s.names)
		s.names = append(s.names, name)
	}
	return uint64(at)
}

func (s *script) rules(t *testing.T, d *datadriven.TestData) {
	set, problems := ruleset.Parse(d.Input)
	if len(problems) > 0 {
		d.Fatalf(t, "%v", problems)
	}
	s.set, s.matcher, s.names = set, matcher.New(set, matcher.Config{Name: "script"}), nil
	for i, wait := range set.Waits() {
		fmt.Fprintf(&s.out, "level %d from %ds: %d to %d players\n", i, wait, set.Level(i).Minimum, set.Level(i).Slots)
	}
}

func (s *script) add(t *testing.T, d *datadriven.TestData, line string) {
	name, args, err := datadriven.ParseLine(line)
	if err != nil {
		d.Fatalf(t, "%v", err)
	}
	key := s.key(name)
	ticket := matcher.Ticket{Key: key, No: key, Start: scriptBegan, Players: make([]matcher.Player, 1)}
	for _, x := range args {
		switch x.Key {
		case "start":
			ticket.Start = s.instant(t, d, x.Vals[0])
		case "backfill":
			ticket.Backfill, ticket.FreeSlots = true, -1
		case "free":
			ticket.FreeSlots = int32(s.number(t, d, x.Vals[0]))
		default:
			for len(ticket.Players) < len(x.Vals) {
				ticket.Players = append(ticket.Players, matcher.Player{})
			}
		}
	}
	for i := range ticket.Players {
		p := &ticket.Players[i]
		p.ID = fmt.Sprintf("%s%d", name, i+1)
		for _, x := range args {
			if x.Key == "backfill" {
				p.Team = x.Vals[0]
				continue
			}
			if x.Key == "start" || x.Key == "free" {
				continue
			}
			value := x.Vals[min(i, len(x.Vals)-1)]
			n, err := strconv.ParseFloat(value, 64)
			switch {
			case strings.Count(x.Key, "-") == 2: // a region
				p.Latencies = append(p.Latencies, matcher.Latency{Region: x.Key, Milliseconds: int32(n)})
			case err == nil:
				p.Attributes = append(p.Attributes, ruleset.NamedValue{Name: x.Key, Value: ruleset.Value{Kind: ruleset.Number, Number: n}})
			default:
				p.Attributes = append(p.Attributes, ruleset.NamedValue{Name: x.Key, Value: ruleset.Value{Kind: ruleset.String, Text: value}})
			}
		}
	}
	if err := s.matcher.Add(ticket); err != nil {
		fmt.Fprintln(&s.out, err)
	}
}

func (s *script) number(t *testing.T, d *datadriven.TestData, text string) float64 {
	n, err := strconv.ParseFloat(text, 64)
	if err != nil {
		d.Fatalf(t, "%v", err)
	}
	return n
}

func (s *script) pass(at domain.Time) {
	found := s.matcher.Pass(at)
	for _, p := range found {
		fmt.Fprintf(&s.out, "match at level %d, %d of %d players:", p.Level, p.Players, p.MaxPlayers)
		for i, seats := range p.Teams {
			fmt.Fprintf(&s.out, " %s", s.set.Teams[i].Name)
			last := int32(-1)
			for _, seat := range seats {
				if seat.Ticket != last {
					fmt.Fprintf(&s.out, " %s", s.names[p.Tickets[seat.Ticket]])
				}
				last = seat.Ticket
			}
			fmt.Fprint(&s.out, map[bool]string{true: ",", false: ""}[i+1 < len(p.Teams)])
		}
		if p.Region != "" {
			fmt.Fprintf(&s.out, "; in %s", p.Region)
		}
		fmt.Fprintln(&s.out)
	}
	if len(found) == 0 {
		fmt.Fprintln(&s.out, "no match")
	}
	if due, ok := s.matcher.Due(at); ok {
		fmt.Fprintf(&s.out, "the next wait is reached at %s\n", due.Sub(scriptBegan))
	}
}

func (s *script) why(name string, at domain.Time) {
	e, ok := s.matcher.Explain(s.key(name), at)
	if !ok {
		fmt.Fprintln(&s.out, "it is not in the pool")
		return
	}
	fmt.Fprintf(&s.out, "level %d: needs %d players; %d of %d other tickets are possible partners\n", e.Level, e.Needed, e.Now.Possible, e.Others)
	if e.Unmatchable != "" {
		fmt.Fprintln(&s.out, "never:", e.Unmatchable)
	}
	for _, x := range e.Now.Rejected {
		fmt.Fprintf(&s.out, "rule %s rejects %d, such as %s: %s\n", s.set.Rules[x.Rule].Name, x.Tickets, s.names[x.With], x.Reason)
	}
	for _, x := range slices.Concat(e.Alone, e.Together) {
		fmt.Fprintf(&s.out, "rule %s: %s\n", s.set.Rules[x.Rule].Name, x.Reason)
	}
	for _, x := range e.Steps {
		fmt.Fprintf(&s.out, "at %s, level %d: %d possible\n", x.At.Sub(scriptBegan), x.Level, x.Partners.Possible)
	}
}
