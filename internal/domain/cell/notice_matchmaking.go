package cell

import (
	"slices"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/matchmaking"
	"github.com/musterhq/muster/internal/domain/notice"
	"github.com/musterhq/muster/internal/domain/session"
)

// Events of matchmaking, as receivers are told. Source: docs/spec/flexmatch.md#events.

// rulesToldMax is how many rules an event tells of.
const rulesToldMax = 50

// someoneListens reports whether anybody is told what happens in a configuration.
func (t *tx) someoneListens(c *matchmaking.Configuration) bool {
	to := t.c.config.Notify
	return to != nil && c != nil && (to.Bus || c.NotificationTarget != "" && slices.Contains(to.Topics, c.NotificationTarget))
}

// tellOf writes an event down. The settings are those of now, as far as the configuration is still there.
func (t *tx) tellOf(c *matchmaking.Configuration, e notice.Match) {
	if now, ok := t.c.matchmaking.Configuration(c.Name); ok {
		c = now
	}
	if !t.someoneListens(c) {
		return
	}
	e.Configuration, e.Region, e.Account = c.Name, c.Region, c.Account
	t.tell(notice.Notice{CustomEventData: c.CustomEventData, Match: &e}, c.NotificationTarget)
}

func noticeTicket(x *matchmaking.Ticket) notice.MatchTicket {
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

// metrics names the rules of a configuration with what was counted.
func (t *tx) metrics(c *matchmaking.Configuration, counts []matchmaking.RuleCount) []notice.MatchRule {
	rules := t.c.matchmaking.Compiled(c.RuleSet)
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

func (t *tx) tellSearching(r matchmaking.Ref) {
	x := t.c.matchmaking.Tickets.Get(r)
	c, _ := t.c.matchmaking.Configuration(x.Configuration)
	if !t.someoneListens(c) {
		return
	}
	e := notice.Match{Type: "MatchmakingSearching", Tickets: []notice.MatchTicket{noticeTicket(x)}}
	e.EstimatedWait, e.WaitKnown = t.c.matchmaking.EstimatedWait(c.Name, t.now)
	t.tellOf(c, e)
}

// tellTicketEnd tells of a ticket that ended alone. Of a cancellation that nobody asked for the cloud service says
// nothing; a configuration may want it said.
func (t *tx) tellTicketEnd(r matchmaking.Ref, status matchmaking.Status, why matchmaking.Reason) {
	x := t.c.matchmaking.Tickets.Get(r)
	c, _ := t.c.matchmaking.Configuration(x.Configuration)
	if !t.someoneListens(c) {
		return
	}
	e := notice.Match{Reason: why.Code(), Message: why.Message(gameARN(x)), Tickets: []notice.MatchTicket{noticeTicket(x)}, Rules: t.metrics(c, nil)}
	switch {
	case status == matchmaking.TimedOut:
		e.Type = "MatchmakingTimedOut"
	case status == matchmaking.Failed:
		e.Type = "MatchmakingFailed"
	case why == matchmaking.StoppedByRequest || c.TellsSilentCancels():
		e.Type = "MatchmakingCancelled"
	default:
		return
	}
	t.tellOf(c, e)
}

// gameARN is the ARN of a backfill ticket's game session.
func gameARN(x *matchmaking.Ticket) string {
	switch {
	case x.Game == "" || x.GameRegion == "":
		return x.Game
	default:
		return "arn:aws:gamelift:" + x.GameRegion + "::gamesession/" + x.Game
	}
}

// tellMatch tells of all tickets of a match; more adds what the event has beside them.
func (t *tx) tellMatch(match matchmaking.Ref, kind string, more func(*notice.Match)) {
	m := t.c.matchmaking
	x := m.Matches.Get(match)
	if !t.someoneListens(x.Of) {
		return
	}
	e := notice.Match{Type: kind, ID: x.ID}
	for _, s := range x.Seats {
		if r, ok := m.TicketNo(s.Ticket); ok {
			e.Tickets = append(e.Tickets, noticeTicket(m.Tickets.Get(r)))
		}
	}
	if more != nil {
		more(&e)
	}
	t.tellOf(x.Of, e)
}

func (t *tx) tellProposed(match matchmaking.Ref) {
	x := t.c.matchmaking.Matches.Get(match)
	of, asked, counts, answerIn := x.Of, x.AcceptBy != 0, x.Counts, x.AcceptBy.Sub(t.now)
	t.tellMatch(match, "PotentialMatchCreated", func(e *notice.Match) {
		e.Rules = t.metrics(of, counts)
		if asked {
			e.AcceptanceRequired, e.AcceptanceTimeout = true, int32(answerIn.Seconds())
		}
	})
}

func (t *tx) tellAccepted(match matchmaking.Ref, how string) {
	t.tellMatch(match, "AcceptMatchCompleted", func(e *notice.Match) {
		e.Acceptance = how
		if how == "Accepted" { // its example shows the teams without the answers
			for i := range e.Tickets {
				for j := range e.Tickets[i].Players {
					e.Tickets[i].Players[j].Answer = 0
				}
			}
		}
	})
}

func (t *tx) tellSucceeded(match matchmaking.Ref, game session.ID, sessions []domain.UUID) {
	region, standalone := t.c.matchmaking.Matches.Get(match).Region, t.c.matchmaking.Matches.Get(match).Of.Standalone
	t.tellMatch(match, "MatchmakingSucceeded", func(e *notice.Match) {
		if standalone {
			e.Location = region
			return
		}
		r, _ := t.c.sessions.Game(game)
		g := t.c.sessions.Games.Get(r)
		e.Game = "arn:aws:gamelift:" + g.Region + "::gamesession/" + string(game)
		e.IPAddress, e.DNSName, e.Port, e.Compute, e.Location = g.IPAddress, g.DNSName, g.Port, g.ComputeName, g.Location
		left := sessions
		for i := range e.Tickets {
			players := e.Tickets[i].Players
			if at, ok := t.c.matchmaking.TicketNo(e.Tickets[i].No); ok && t.c.matchmaking.Tickets.Get(at).Backfill || len(left) < len(players) {
				continue
			}
			for j := range players {
				players[j].Session, players[j].Answer = left[j], 0
			}
			left = left[len(players):]
		}
	})
}

func (t *tx) tellFailed(match matchmaking.Ref, why matchmaking.Reason) {
	of, counts := t.c.matchmaking.Matches.Get(match).Of, t.c.matchmaking.Matches.Get(match).Counts
	t.tellMatch(match, "MatchmakingFailed", func(e *notice.Match) {
		e.Reason, e.Message, e.Rules = why.Code(), why.Message(""), t.metrics(of, counts)
		for i := range e.Tickets {
			for j := range e.Tickets[i].Players {
				e.Tickets[i].Players[j].Answer = 0
			}
		}
	})
}
