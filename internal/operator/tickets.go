package operator

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/matcher"
	"github.com/musterhq/muster/internal/domain/matchmaking"
	"github.com/musterhq/muster/internal/domain/ruleset"
)

// Search explains why a ticket waits in its pool: which tickets could be matched with it now, which rules reject which tickets, and what waiting
// changes. Rules have their names in the rule set.
type Search struct {
	Ended       bool     `json:"ended,omitempty"` // the ticket has ended, and this was the state at its end
	Waited      int64    `json:"waitedSeconds"`
	Unmatchable string   `json:"unmatchable,omitempty"` // why it can never be matched
	Needed      int32    `json:"playersNeeded"`         // fewest players of a match at the ticket's age
	Short       int32    `json:"playersShort"`          // how many players are missing even with all possible partners
	Others      int      `json:"otherTickets"`          // in the pool
	Effort      string   `json:"effort"`                // SEARCHED; CONTINUED: the search exhausted its budget and will be continued; GIVEN_UP: it was continued up to its limit
	Turns       int      `json:"turns,omitempty"`       // how often a search was continued
	SeatsKept   bool     `json:"seatsKept,omitempty"`   // for a backfill: all free seats of its game session are held for disconnected players
	Alone       []string `json:"rejectedAlone,omitempty"`
	Now         Partners `json:"now"`
	Together    []string `json:"rejectedTogether,omitempty"` // rules that reject the first large enough match of possible partners
	// Reasons are the reasons of the rules in Alone and Together, with the values, by rule.
	Reasons map[string]string `json:"reasons,omitempty"`

	backfill bool
	players  int32  // of the ticket
	Oldest   []Pair `json:"oldest,omitempty"` // the oldest other tickets, one by one
	Steps    []Step `json:"steps,omitempty"`  // what waiting changes, the next change first
	Rules    []Rule `json:"rules,omitempty"`  // how often each was evaluated with this ticket
}

// Partners counts the other tickets, each paired with this one.
type Partners struct {
	Looked   int         `json:"looked"`         // how many others were examined, oldest first
	More     bool        `json:"more,omitempty"` // some were not examined
	Possible int         `json:"possible"`       // those that no rule rejects yet
	Players  int32       `json:"players"`        // of those
	NoRoom   int         `json:"noRoom"`         // those that fit on no team together with it
	Rejected []Rejection `json:"rejected,omitempty"`
}

// Rejection tells how many of the others a rule rejects.
type Rejection struct {
	Rule    string `json:"rule"`
	Tickets int    `json:"tickets"`
	With    string `json:"with,omitempty"`   // the oldest of them
	Reason  string `json:"reason,omitempty"` // why the rule rejects that one, with the values
}

// Pair is one other ticket.
type Pair struct {
	Ticket   string   `json:"ticket"`
	Possible bool     `json:"possible"`
	Rejected []string `json:"rejectedBy,omitempty"`
	Reasons  []string `json:"reasons,omitempty"` // in the order of Rejected
	NoRoom   bool     `json:"noRoom,omitempty"`
}

// Step is a moment at which the rule set relaxes for the ticket.
type Step struct {
	At       time.Time `json:"at"`
	Wait     int32     `json:"waitSeconds"`
	Changes  []Change  `json:"changes"`
	Partners *Partners `json:"partners,omitempty"` // at that time, if the pool does not change
}

// Change is one property of the rule set that a step changes.
type Change struct {
	Property string `json:"property"`
	From     string `json:"from,omitempty"`
	To       string `json:"to"`
}

// Rule tells how often a rule was evaluated.
type Rule struct {
	Name   string `json:"name"`
	Passed uint64 `json:"passed"`
	Failed uint64 `json:"failed"`
}

// Searches explains the tickets that wait in the matchers' pools.
type Searches interface {
	// Explain returns why a ticket waits, with its rule set; false if it is in no pool.
	Explain(configuration string, no uint64, now domain.Time) (matcher.Explanation, *ruleset.RuleSet, bool)
	// ExplainEnd returns what rejected a ticket when it ended; false if unknown.
	ExplainEnd(configuration string, no uint64) (matcher.Explanation, *ruleset.RuleSet, bool)
}

// explainTicket explains a ticket. Only the leader has the pools, so another node asks it; without an answer, the explanation is based on the state
// alone.
func (d *Door) explainTicket(ctx context.Context, id string) (*Explanation, error) {
	x, err := d.explainTicketHere(ctx, id)
	if err != nil || x.Search != nil || d.config.AskLeader == nil {
		return x, err
	}
	answer, err := d.config.AskLeader(ctx, []byte(id))
	if err != nil {
		return x, nil
	}
	var there Explanation
	if err := json.Unmarshal(answer, &there); err != nil {
		d.log.Warn("the explanation of the node that decides cannot be read: this node explains without it", "ticket", id, "error", err)
		return x, nil
	}
	return &there, nil
}

// AnswerLeader, on the leader, answers another node's question: the explanation of the ticket with this id, as JSON. The asking node has
// authenticated the operator.
func (d *Door) AnswerLeader(ctx context.Context, question []byte) (answer []byte, err error) {
	x, err := d.explainTicketHere(ctx, string(question))
	if err != nil {
		return nil, err
	}
	return json.Marshal(x)
}

func (d *Door) explainTicketHere(ctx context.Context, id string) (*Explanation, error) {
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
	ticketMoments(x, &t.Ticket)
	if o := t.Outcome; o != nil {
		x.fact("match", o.Match)
		x.fact("team", o.Team)
		x.fact("answers", answersInWords(&t.Ticket))
		x.fact("game session", o.Game)
	}
	if t.Status == matchmaking.RequiresAcceptance {
		if err := d.acceptanceOf(ctx, x, &t); err != nil {
			return nil, err
		}
	}
	if t.Status.Waits() || t.End != 0 {
		if err := d.searchOf(ctx, x, &t); err != nil {
			return nil, err
		}
	}
	x.Why = whyTicket(x, &t)
	return x.sorted(), nil
}

// ticketMoments adds the life of a ticket.
func ticketMoments(x *Explanation, t *matchmaking.Ticket) {
	x.moment(t.Start, "STARTED", "in configuration "+t.Configuration)
	x.moment(t.End, t.Status.String(), t.Reason.Message(t.Game))
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

// acceptanceOf adds until when a proposed match waits for its players, and which of them have not answered.
func (d *Door) acceptanceOf(ctx context.Context, x *Explanation, t *matchmaking.TicketView) error {
	return d.engine.Read(ctx, func(v *cell.View) error {
		match, ok := v.Match(t.Outcome.Match)
		if !ok {
			return nil
		}
		x.fact("accept until", clock(match.AcceptBy))
		var silent []string
		for _, seat := range match.Seats {
			other, ok := v.TicketNo(seat.Ticket)
			if !ok || other.Outcome == nil || other.Backfill {
				continue // players in a backfill's roster are not asked
			}
			for i, p := range other.PlayersOf() {
				if other.Outcome.Answer(i) == matchmaking.NoAnswer {
					silent = append(silent, p.ID+" (ticket "+other.ID+")")
				}
			}
		}
		x.fact("not answered", strings.Join(silent, ", "))
		return nil
	})
}

// searchOf reads the search from the pool in which the ticket waits, or waited until its end.
func (d *Door) searchOf(ctx context.Context, x *Explanation, t *matchmaking.TicketView) error {
	if d.searches == nil {
		return nil
	}
	var found matcher.Explanation
	var rules *ruleset.RuleSet
	var ok bool
	if t.End != 0 {
		found, rules, ok = d.searches.ExplainEnd(t.Configuration, t.No)
	} else {
		found, rules, ok = d.searches.Explain(t.Configuration, t.No, domain.TimeOf(d.engine.Now()))
	}
	if !ok {
		return nil
	}
	names, kept := map[uint64]string{}, false
	err := d.engine.Read(ctx, func(v *cell.View) error {
		if t.Backfill && t.End == 0 {
			free, takes := v.FreeSlots(t.Game)
			kept = takes && free == 0
		}
		keys := make([]uint64, 0, 16)
		for _, p := range found.Oldest {
			keys = append(keys, p.Key)
		}
		for _, r := range found.Now.Rejected {
			keys = append(keys, r.With)
		}
		for _, key := range keys {
			if other, ok := v.TicketNo(key); ok {
				names[key] = other.ID
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	x.Search = search(&found, rules, names)
	x.Search.Ended, x.Search.SeatsKept = t.End != 0, kept
	return nil
}

var effortNames = [...]string{matcher.Searched: "SEARCHED", matcher.Continued: "CONTINUED", matcher.GivenUp: "GIVEN_UP"}

// search converts the matcher's explanation to the names of the rule set.
func search(found *matcher.Explanation, rules *ruleset.RuleSet, names map[uint64]string) *Search {
	s := &Search{
		Waited: found.Waited, Unmatchable: found.Unmatchable, Needed: found.Needed, Others: found.Others,
		Effort: effortNames[found.Effort], Turns: found.Turns, backfill: found.Backfill, players: found.Players,
		Short: max(0, found.Needed-found.Players-found.Now.Players), Reasons: map[string]string{},
	}
	if s.backfill && found.Now.Players == 0 {
		s.Short = max(1, s.Short)
	}
	named := func(objections []matcher.Objection) (all, reasons []string) {
		for _, o := range objections {
			all, reasons = append(all, rules.Rules[o.Rule].Name), append(reasons, o.Reason)
		}
		return all, reasons
	}
	noted := func(objections []matcher.Objection) []string {
		all, reasons := named(objections)
		for i, name := range all {
			s.Reasons[name] = reasons[i]
		}
		return all
	}
	partners := func(p *matcher.Partners) Partners {
		out := Partners{Looked: p.Looked, More: p.More, Possible: p.Possible, Players: p.Players, NoRoom: p.NoRoom}
		for _, r := range p.Rejected {
			out.Rejected = append(out.Rejected, Rejection{rules.Rules[r.Rule].Name, r.Tickets, names[r.With], r.Reason})
		}
		return out
	}
	s.Now, s.Alone, s.Together = partners(&found.Now), noted(found.Alone), noted(found.Together)
	for _, p := range found.Oldest {
		if id, ok := names[p.Key]; ok { // it may have ended meanwhile
			pair := Pair{Ticket: id, Possible: p.Possible, NoRoom: p.NoRoom}
			pair.Rejected, pair.Reasons = named(p.Rejected)
			s.Oldest = append(s.Oldest, pair)
		}
	}
	for _, step := range found.Steps {
		out := Step{At: step.At.Std(), Wait: rules.Waits()[step.Level]}
		for _, c := range rules.Level(step.Level).Changes {
			out.Changes = append(out.Changes, Change{c.Property, c.From, c.To})
		}
		if step.Partners.Looked > 0 {
			out.Partners = new(partners(&step.Partners))
		}
		s.Steps = append(s.Steps, out)
	}
	for _, c := range found.Counts {
		s.Rules = append(s.Rules, Rule{rules.Rules[c.Rule].Name, c.Passed, c.Failed})
	}
	return s
}
