package operator

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/domain/matchmaking"
	"github.com/musterhq/muster/internal/plural"
)

// whyTicket explains a ticket's state in sentences.
func whyTicket(x *Explanation, t *matchmaking.TicketView) string {
	switch t.Status {
	case matchmaking.RequiresAcceptance:
		return whyAcceptance(x)
	case matchmaking.Placing:
		return "A match was made, and its queue looks for a place: see placement " + t.Outcome.Match + "."
	case matchmaking.Completed:
		return fmt.Sprintf("It was matched, and ended after %s.", t.End.Sub(t.Start).Round(time.Millisecond))
	case matchmaking.Queued, matchmaking.Searching:
		return whyWaiting(x.Search)
	}
	text := t.Reason.Message(t.Game)
	if text == "" {
		text = "It ended as " + t.Status.String() + "."
	}
	if t.Status == matchmaking.TimedOut && x.Search != nil {
		text += " " + whyWaiting(x.Search)
	}
	return text
}

func whyAcceptance(x *Explanation) string {
	text := "A match was found, and not all of its players have accepted it."
	for _, f := range x.Facts {
		switch f.Name {
		case "not answered":
			text += " No answer yet from " + f.Value + "."
		case "accept until":
			text += " They can accept until " + f.Value + "."
		}
	}
	return text
}

// whyWaiting describes what prevents a match, or prevented it at the end.
func whyWaiting(s *Search) string {
	begin := "It waits. "
	if s != nil && s.Ended {
		begin = "This is how the search stood at its end. "
	}
	switch {
	case s == nil:
		return "It waits, and the next pass will look at it."
	case s.Unmatchable != "":
		return "It can never be matched: " + s.Unmatchable + "."
	case s.SeatsKept:
		return "It waits for a seat: the free seats of its game session are kept for players who may come back."
	case len(s.Alone) > 0:
		return begin + inWords("Rule", s.Alone) + " rejects it with any partner: " + s.Reasons[s.Alone[0]] + "." + nextStep(s)
	case s.Others == 0:
		return begin + "No other ticket waits." + nextStep(s)
	}
	text := begin + othersInWords(s) + playersInNumbers(s)
	if len(s.Together) > 0 {
		text += " The first match that is large enough is rejected by " + inWords("rule", s.Together) + ": " + s.Reasons[s.Together[0]] + "."
	}
	switch s.Effort {
	case "CONTINUED":
		text += fmt.Sprintf(" The search for a match used up its budget, and continues while the matchmaker is idle: %s so far.", plural.Of(s.Turns, "turn", "turns"))
	case "GIVEN_UP":
		text += " The search for a match used up its budget, continued up to its limit, and was given up until something changes."
	}
	return text + nextStep(s)
}

func othersInWords(s *Search) string {
	others := plural.Of(s.Now.Looked, "other ticket", "other tickets")
	if s.Now.More {
		others = fmt.Sprintf("the %d oldest of %s", s.Now.Looked, plural.Of(s.Others, "other ticket", "other tickets"))
	}
	text := fmt.Sprintf("Of %s, %d could be in a match with it", others, s.Now.Possible)
	if len(s.Now.Rejected) == 0 {
		return text + "."
	}
	most := s.Now.Rejected[0]
	for _, r := range s.Now.Rejected {
		if r.Tickets > most.Tickets {
			most = r
		}
	}
	text += fmt.Sprintf("; rule %s rejects %d", most.Rule, most.Tickets)
	if most.Reason != "" {
		who := "one of them"
		if most.With != "" {
			who = "ticket " + most.With
		}
		text += fmt.Sprintf(" (%s: %s)", who, most.Reason)
	}
	return text + "."
}

func playersInNumbers(s *Search) string {
	if s.backfill {
		if s.Short == 0 {
			return ""
		}
		return fmt.Sprintf(" Its game session has %s, and needs at least %d more.", plural.Of(int(s.players), "player", "players"), s.Short)
	}
	text := fmt.Sprintf(" A match has at least %s", plural.Of(int(s.Needed), "player", "players"))
	if s.Short > 0 {
		text += fmt.Sprintf("; this ticket and those have %d, so %d are missing", s.Needed-s.Short, s.Short)
	}
	return text + "."
}

func inWords(what string, names []string) string { return what + " " + strings.Join(names, " and ") }

// nextStep describes what waiting changes next, preceded by a blank.
func nextStep(s *Search) string {
	switch {
	case s.Ended:
		return ""
	case len(s.Steps) == 0:
		return " Waiting no longer changes any rule."
	}
	step := s.Steps[0]
	var changes []string
	for _, c := range step.Changes {
		changes = append(changes, c.Property+" becomes "+c.To)
	}
	text := " At " + step.At.Format(timeForm) + " " + strings.Join(changes, " and ")
	if step.Partners != nil {
		text += "; then " + strconv.Itoa(step.Partners.Possible) + " could be"
	}
	return text + "."
}
