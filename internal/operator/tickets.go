package operator

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/matcher"
	"github.com/musterhq/muster/internal/domain/matchmaking"
	"github.com/musterhq/muster/internal/domain/ruleset"
)

// Search is why a ticket waits in its pool: who could be in a match with it now, what the rules say to whom, and what
// waiting changes. Rules are named as in the rule set.
type Search struct {
	Waited      int64    `json:"waitedSeconds"`
	Unmatchable string   `json:"unmatchable,omitempty"` // what no partner and no wait can help
	Needed      int32    `json:"playersNeeded"`         // that a match has at least, at the ticket's age
	Others      int      `json:"otherTickets"`          // in the pool
	Alone       []string `json:"rejectedAlone,omitempty"`
	Now         Partners `json:"now"`
	Together    []string `json:"rejectedTogether,omitempty"` // rules against the first match of possible partners that is large enough
	Oldest      []Pair   `json:"oldest,omitempty"`           // the oldest other tickets, one by one
	Steps       []Step   `json:"steps,omitempty"`            // what waiting changes, the next first
	Rules       []Rule   `json:"rules,omitempty"`            // how often each was evaluated with this ticket
}

// Partners counts the other tickets, pair by pair with this one.
type Partners struct {
	Looked   int         `json:"looked"`   // at so many others, the oldest
	Possible int         `json:"possible"` // with whom nothing stands against a match yet
	Players  int32       `json:"players"`  // of those
	NoRoom   int         `json:"noRoom"`   // who find no place on a team beside it
	Rejected []Rejection `json:"rejected,omitempty"`
}

// Rejection is how many of the others a rule rejects.
type Rejection struct {
	Rule    string `json:"rule"`
	Tickets int    `json:"tickets"`
}

// Pair is one other ticket.
type Pair struct {
	Ticket   string   `json:"ticket"`
	Possible bool     `json:"possible"`
	Rejected []string `json:"rejectedBy,omitempty"`
	NoRoom   bool     `json:"noRoom,omitempty"`
}

// Step is a moment at which the rule set relaxes for the ticket.
type Step struct {
	At       time.Time `json:"at"`
	Wait     int32     `json:"waitSeconds"`
	Changes  []Change  `json:"changes"`
	Partners *Partners `json:"partners,omitempty"` // then, if nobody came and nobody left
}

// Change is one property of the rule set that a step replaces.
type Change struct {
	Property string `json:"property"`
	From     string `json:"from,omitempty"`
	To       string `json:"to"`
}

// Rule is how often a rule was evaluated.
type Rule struct {
	Name   string `json:"name"`
	Passed uint64 `json:"passed"`
	Failed uint64 `json:"failed"`
}

// Searches is where the tickets wait.
type Searches interface {
	// Explain says why a ticket waits, under which rule set; false for one that is in no pool.
	Explain(configuration string, no uint64, now domain.Time) (matcher.Explanation, *ruleset.RuleSet, bool)
}

func (d *Door) explainTicket(ctx context.Context, id string) (*Explanation, error) {
	t, err := d.engine.Ticket(ctx, id)
	if err != nil {
		return nil, err
	}
	x := &Explanation{Kind: "ticket", ID: t.ID, Status: t.Status.String()}
	x.fact("configuration", t.Configuration)
	x.fact("players", playersInWords(&t.Ticket))
	if t.Backfill {
		x.fact("backfill of", t.Game)
	}
	x.fact("started", clock(t.Start))
	if t.Status.Waits() {
		x.fact("times out", clock(t.TimeoutAt))
	}
	if t.WaitKnown {
		x.fact("estimated wait", (time.Duration(t.EstimatedWait) * time.Second).String())
	}
	x.fact("reason", t.Reason.Code())
	x.moment(t.Start, "STARTED", "in configuration "+t.Configuration)
	if o := t.Outcome; o != nil {
		x.fact("match", o.Match)
		x.fact("team", o.Team)
		x.fact("answers", answersInWords(&t.Ticket))
		x.fact("game session", o.Game)
	}
	if t.Status.Waits() {
		if err := d.searchOf(ctx, x, &t); err != nil {
			return nil, err
		}
	}
	if t.End != 0 {
		x.moment(t.End, t.Status.String(), t.Reason.Message(t.Game))
	}
	x.Why = whyTicket(x, &t)
	return x.sorted(), nil
}

func playersInWords(t *matchmaking.Ticket) string {
	var names []string
	for id := range t.EachPlayer {
		names = append(names, id)
	}
	return strings.Join(names, ", ")
}

func answersInWords(t *matchmaking.Ticket) string {
	if t.Outcome == nil || len(t.Outcome.Answers) == 0 {
		return ""
	}
	words := [...]string{matchmaking.NoAnswer: "has not answered", matchmaking.Accepted: "accepted", matchmaking.Rejected: "rejected"}
	var all []string
	for i, p := range t.PlayersOf() {
		all = append(all, p.ID+" "+words[t.Outcome.Answer(i)])
	}
	return strings.Join(all, ", ")
}

// searchOf asks the pool in which the ticket waits.
func (d *Door) searchOf(ctx context.Context, x *Explanation, t *cell.Ticket) error {
	if d.searches == nil {
		return nil
	}
	found, rules, ok := d.searches.Explain(t.Configuration, t.No, domain.TimeOf(d.engine.Now()))
	if !ok {
		return nil
	}
	names := map[uint64]string{}
	err := d.engine.Read(ctx, func(v *cell.View) error {
		for _, p := range found.Oldest {
			if other, ok := v.TicketNo(p.Key); ok {
				names[p.Key] = other.ID
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	x.Search = search(&found, rules, names)
	return nil
}

// search puts what the matcher says in the rule set's names.
func search(found *matcher.Explanation, rules *ruleset.RuleSet, names map[uint64]string) *Search {
	named := func(places []int) (all []string) {
		for _, i := range places {
			all = append(all, rules.Rules[i].Name)
		}
		return all
	}
	partners := func(p *matcher.Partners) Partners {
		out := Partners{Looked: p.Looked, Possible: p.Possible, Players: p.Players, NoRoom: p.NoRoom}
		for _, r := range p.Rejected {
			out.Rejected = append(out.Rejected, Rejection{rules.Rules[r.Rule].Name, r.Tickets})
		}
		return out
	}
	s := &Search{
		Waited: found.Waited, Unmatchable: found.Unmatchable, Needed: found.Needed, Others: found.Others,
		Alone: named(found.Alone), Now: partners(&found.Now), Together: named(found.Together),
	}
	for _, p := range found.Oldest {
		if id, ok := names[p.Key]; ok { // it may have gone meanwhile
			s.Oldest = append(s.Oldest, Pair{id, p.Possible, named(p.Rejected), p.NoRoom})
		}
	}
	for _, step := range found.Steps {
		out := Step{At: step.At.Std(), Wait: rules.Waits()[step.Level]}
		for _, c := range rules.Level(step.Level).Changes {
			out.Changes = append(out.Changes, Change{c.Property, c.From, c.To})
		}
		if step.Partners.Looked > 0 {
			p := partners(&step.Partners)
			out.Partners = &p
		}
		s.Steps = append(s.Steps, out)
	}
	for _, c := range found.Counts {
		s.Rules = append(s.Rules, Rule{rules.Rules[c.Rule].Name, c.Passed, c.Failed})
	}
	return s
}

func whyTicket(x *Explanation, t *cell.Ticket) string {
	switch t.Status {
	case matchmaking.RequiresAcceptance:
		return "A match was found, and not all of its players have accepted it."
	case matchmaking.Placing:
		return "A match was made, and its queue looks for a place: see placement " + t.Outcome.Match + "."
	case matchmaking.Completed:
		return fmt.Sprintf("It was matched, and ended after %s.", t.End.Sub(t.Start).Round(time.Millisecond))
	case matchmaking.Queued, matchmaking.Searching:
		return whyWaiting(x.Search)
	default:
		if text := t.Reason.Message(t.Game); text != "" {
			return text
		}
		return "It ended as " + t.Status.String() + "."
	}
}

func whyWaiting(s *Search) string {
	switch {
	case s == nil:
		return "It waits, and the next pass will look at it."
	case s.Unmatchable != "":
		return "It can never be matched: " + s.Unmatchable + "."
	case len(s.Alone) > 0:
		return "It waits: " + inWords("rule", s.Alone) + " rejects it whoever its partners are. " + nextStep(s)
	case s.Others == 0:
		return "It waits, and nobody else does."
	}
	text := fmt.Sprintf("It waits. Of %d other tickets, %d could be in a match with it", s.Now.Looked, s.Now.Possible)
	if len(s.Now.Rejected) > 0 {
		most := s.Now.Rejected[0]
		for _, r := range s.Now.Rejected {
			if r.Tickets > most.Tickets {
				most = r
			}
		}
		text += fmt.Sprintf("; rule %s rejects %d", most.Rule, most.Tickets)
	}
	text += fmt.Sprintf(". A match has at least %d players. ", s.Needed)
	if len(s.Together) > 0 {
		text += "The first match that is large enough is rejected by " + inWords("rule", s.Together) + ". "
	}
	return strings.TrimSpace(text + nextStep(s))
}

func inWords(what string, names []string) string { return what + " " + strings.Join(names, " and ") }

func nextStep(s *Search) string {
	if len(s.Steps) == 0 {
		return "Waiting changes no rule any more."
	}
	step := s.Steps[0]
	var changes []string
	for _, c := range step.Changes {
		changes = append(changes, c.Property+" becomes "+c.To)
	}
	text := "At " + step.At.Format(timeForm) + " " + strings.Join(changes, " and ")
	if step.Partners != nil {
		text += "; then " + strconv.Itoa(step.Partners.Possible) + " could be"
	}
	return text + "."
}
