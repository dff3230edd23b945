package attention

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/matcher"
	"github.com/musterhq/muster/internal/matchmaker"
)

// patience is how long a ticket waits, in seconds, before rules that reject what is in the pool now are told: others may come.
const patience = 10

// pools are the configurations in which the oldest ticket cannot be matched however long it waits.
func (f *Finder) pools(ctx context.Context, all []*matchmaker.Oldest) (items []Item) {
	items = []Item{} // null in JSON would not be a list
	for _, o := range all {
		why, rule := impossible(o)
		if why == "" {
			continue
		}
		ticket, rules := "", ""
		err := f.config.Engine.ReadHere(ctx, func(v *cell.View) error {
			if t, ok := v.TicketNo(o.Why.Key); ok {
				ticket = t.ID
			}
			if c, ok := v.Configuration(o.Configuration); ok {
				rules = c.RuleSet
			}
			return nil
		})
		if err != nil || ticket == "" {
			continue // it ended meanwhile
		}
		what := fmt.Sprintf("Matchmaking %s finds no match for ticket %s, which has waited longest, %s", o.Configuration, ticket, time.Duration(o.Why.Waited)*time.Second)
		if o.Waiting > 1 {
			what += fmt.Sprintf(", of %d that wait", o.Waiting)
		}
		next := "Check the players' attributes and rule set " + rules + ": muster explain ticket " + ticket + " has the reasons."
		if rule != "" {
			next = fmt.Sprintf("Correct or relax rule %s in a new rule set instead of %s (muster simulate tries one), and use it with aws gamelift update-matchmaking-configuration --name %s --rule-set-name NEW. "+
				"muster explain ticket %s shows every rule.", rule, rules, o.Configuration, ticket)
		}
		items = append(items, Item{what + ": " + why, next, "ticket", ticket})
	}
	return items
}

// impossible says why the oldest ticket of a pool cannot be matched by waiting, and which rule is in the way; empty if waiting may help.
func impossible(o *matchmaker.Oldest) (why, rule string) {
	e := &o.Why
	if e.Unmatchable != "" {
		return e.Unmatchable + ".", ""
	}
	final := func(objections []matcher.Objection) (x matcher.Objection, ok bool) {
		for _, x := range objections {
			if !relaxed(e, x.Rule) {
				return x, true
			}
		}
		return x, false
	}
	const never = " Waiting longer changes nothing."
	if x, ok := final(e.Alone); ok {
		name := o.Rules.Rules[x.Rule].Name
		return fmt.Sprintf("rule %s rejects it with any partner: %s.", name, x.Reason) + never, name
	}
	if e.Waited < patience || e.Others == 0 || len(e.Steps) > 0 {
		return "", ""
	}
	if e.Now.Possible == 0 {
		most := matcher.Rejection{}
		for _, r := range e.Now.Rejected {
			if r.Tickets > most.Tickets {
				most = r
			}
		}
		if most.Tickets == e.Now.Looked && most.Tickets > 0 {
			name := o.Rules.Rules[most.Rule].Name
			return fmt.Sprintf("rule %s rejects it with each of the %d others that were tried (one of them: %s).", name, most.Tickets, most.Reason) + never, name
		}
	}
	if x, ok := final(e.Together); ok {
		var names []string
		for _, x := range e.Together {
			names = append(names, o.Rules.Rules[x.Rule].Name)
		}
		name := o.Rules.Rules[x.Rule].Name
		return fmt.Sprintf("a match that is large enough is rejected by rule %s: %s.", strings.Join(names, " and "), x.Reason) + never, name
	}
	return "", ""
}

// relaxed reports whether a later step changes a rule.
func relaxed(e *matcher.Explanation, rule int) bool {
	return slices.ContainsFunc(e.Steps, func(s matcher.Step) bool { return slices.Contains(s.Rules, rule) })
}
