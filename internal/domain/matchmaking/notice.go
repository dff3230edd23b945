package matchmaking

import (
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/notice"
	"github.com/musterhq/muster/internal/domain/session"
)

// This file writes the matchmaking events for receivers. Source: docs/spec/flexmatch.md#events.

// rulesToldMax is the most rules listed in an event.
const rulesToldMax = 50

// someoneListens reports whether any receiver gets the events of a configuration.
func (t *Tx) someoneListens(c *Configuration) bool {
	return c != nil && t.notices.Listens(c.NotificationTarget)
}

// tellOf records an event with the current settings, if the configuration still exists.
func (t *Tx) tellOf(c *Configuration, e notice.Match) {
	if now, ok := t.Records.Configuration(c.Name); ok {
		c = now
	}
	if !t.someoneListens(c) {
		return
	}
	e.Configuration, e.Region, e.Account = c.Name, c.Region, c.Account
	t.notices.Tell(notice.Notice{CustomEventData: c.CustomEventData, Match: &e}, c.NotificationTarget)
}

func noticeTicket(x *Ticket) notice.MatchTicket {
	told := notice.MatchTicket{No: x.No, ID: x.ID, Start: x.Start}
	for i, p := range x.PlayersOf() {
		player := notice.MatchPlayer{ID: p.ID, Team: p.Team}
		if x.Outcome != nil {
			player.Answer = uint8(x.Outcome.Answer(i))
		}
		told.Players = append(told.Players, player)
	}
	return told
}

// metrics returns the rule names of a configuration with their counts.
func (t *Tx) metrics(c *Configuration, counts []RuleCount) []notice.MatchRule {
	rules := t.Records.Compiled(c.RuleSet)
	if rules == nil {
		return nil
	}
	told := make([]notice.MatchRule, min(len(rules.Rules), rulesToldMax))
	for i := range told {
		told[i].Name = rules.Rules[i].Name
	}
	for _, n := range counts {
		if int(n.Rule) < len(told) {
			told[n.Rule].Passed, told[n.Rule].Failed = n.Passed, n.Failed
		}
	}
	return told
}

func (t *Tx) tellSearching(r TicketRef) {
	x := t.Ticket(r)
	c, _ := t.Records.Configuration(x.Configuration)
	if !t.someoneListens(c) {
		return
	}
	e := notice.Match{Type: "MatchmakingSearching", Tickets: []notice.MatchTicket{noticeTicket(x)}}
	e.EstimatedWait, e.WaitKnown = t.Records.EstimatedWait(c.Name, t.Now)
	t.tellOf(c, e)
}

// tellTicketEnd records the event of a ticket that ended alone. For a cancellation that no caller requested, the cloud service sends
// no event; a configuration may request one.
func (t *Tx) tellTicketEnd(r TicketRef, status Status, why Reason) {
	x := t.Ticket(r)
	c, _ := t.Records.Configuration(x.Configuration)
	if !t.someoneListens(c) {
		return
	}
	e := notice.Match{Reason: why.Code(), Message: why.Message(gameARN(x)), Tickets: []notice.MatchTicket{noticeTicket(x)}, Rules: t.metrics(c, nil)}
	switch {
	case status == TimedOut:
		e.Type = "MatchmakingTimedOut"
	case status == Failed:
		e.Type = "MatchmakingFailed"
	case why == StoppedByRequest || c.TellsSilentCancels():
		e.Type = "MatchmakingCancelled"
	default:
		return
	}
	t.tellOf(c, e)
}

// gameARN returns the ARN of a backfill ticket's game session.
func gameARN(x *Ticket) string {
	if x.Game == "" || x.GameRegion == "" {
		return x.Game
	}
	return session.ID(x.Game).ARN(x.GameRegion)
}

// tellMatch records an event about all tickets of a match; more adds the fields that only this kind has.
func (t *Tx) tellMatch(match MatchRef, kind string, more func(*notice.Match)) {
	x := t.Match(match)
	if !t.someoneListens(x.Of) {
		return
	}
	e := notice.Match{Type: kind, ID: x.ID}
	for _, s := range x.Seats {
		if r, ok := t.Records.TicketNo(s.Ticket); ok {
			e.Tickets = append(e.Tickets, noticeTicket(t.Ticket(r)))
		}
	}
	if more != nil {
		more(&e)
	}
	t.tellOf(x.Of, e)
}

func (t *Tx) tellProposed(match MatchRef) {
	x := t.Match(match)
	of, asked, counts, answerIn := x.Of, x.AcceptBy != 0, x.Counts, x.AcceptBy.Sub(t.Now)
	t.tellMatch(match, "PotentialMatchCreated", func(e *notice.Match) {
		e.Rules = t.metrics(of, counts)
		if asked {
			e.AcceptanceRequired, e.AcceptanceTimeout = true, int32(answerIn.Seconds())
		}
	})
}

func (t *Tx) tellAccepted(match MatchRef, how string) {
	t.tellMatch(match, "AcceptMatchCompleted", func(e *notice.Match) {
		e.Acceptance = how
		if how == "Accepted" {
			clearAnswers(e)
		}
	})
}

// clearAnswers removes the answers from an event: documented examples of events after an acceptance have none.
func clearAnswers(e *notice.Match) {
	for i := range e.Tickets {
		for j := range e.Tickets[i].Players {
			e.Tickets[i].Players[j].Answer = 0
		}
	}
}

func (t *Tx) tellSucceeded(match MatchRef, game session.ID, sessions []domain.PlayerSessionID) {
	region, standalone := t.Match(match).Region, t.Match(match).Of.Standalone
	t.tellMatch(match, "MatchmakingSucceeded", func(e *notice.Match) {
		clearAnswers(e)
		if standalone {
			e.Location = region
			return
		}
		r, _ := t.hosting.FindGame(game)
		g := t.hosting.Game(r)
		e.Game = game.ARN(g.Region)
		e.IPAddress, e.DNSName, e.Port, e.Compute, e.Location = g.IPAddress, g.DNSName, g.Port, g.ComputeName, g.Location
		left := sessions
		for i := range e.Tickets {
			players := e.Tickets[i].Players
			if at, ok := t.Records.TicketNo(e.Tickets[i].No); ok && t.Ticket(at).Backfill || len(left) < len(players) {
				continue
			}
			for j := range players {
				players[j].Session = left[j]
			}
			left = left[len(players):]
		}
	})
}

func (t *Tx) tellFailed(match MatchRef, why Reason) {
	of, counts := t.Match(match).Of, t.Match(match).Counts
	t.tellMatch(match, "MatchmakingFailed", func(e *notice.Match) {
		e.Reason, e.Message, e.Rules = why.Code(), why.Message(""), t.metrics(of, counts)
		clearAnswers(e)
	})
}
