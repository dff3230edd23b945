package matcher

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/ruleset"
)

// illegal checks a proposal against the contract of legal matches, with the reference evaluator; "" is legal.
func illegal(rules *ruleset.RuleSet, tickets map[uint64]Ticket, p *Proposal, now domain.Time, additional int32) string {
	c := ruleset.Candidate{Teams: make([][]ruleset.Player, len(rules.Teams))}
	seen := map[Seat]bool{}
	backfills, news := 0, 0
	youngest, oldest := tickets[p.Tickets[0]].Start, tickets[p.Tickets[0]].Start
	free := int32(-1)
	newcomers := int32(0)
	for _, key := range p.Tickets {
		t := tickets[key]
		youngest, oldest = max(youngest, t.Start), min(oldest, t.Start)
		if t.Backfill {
			backfills++
			free = t.FreeSlots
		} else {
			news++
			newcomers += int32(len(t.Players))
		}
	}
	if !slices.IsSortedFunc(p.Tickets, func(a, b uint64) int {
		return cmp.Or(cmp.Compare(tickets[a].Start, tickets[b].Start), cmp.Compare(tickets[a].No, tickets[b].No))
	}) {
		return "tickets are not by age"
	}
	if news == 0 || backfills > 1 {
		return fmt.Sprintf("%d new tickets and %d backfills", news, backfills)
	}
	if free >= 0 && newcomers > free {
		return fmt.Sprintf("%d newcomers for %d free slots", newcomers, free)
	}
	total := int32(0)
	for team, seats := range p.Teams {
		last := Seat{-1, -1}
		for _, s := range seats {
			if seen[s] {
				return fmt.Sprintf("seat %v twice", s)
			}
			if s.Ticket < last.Ticket || s.Ticket == last.Ticket && s.Player <= last.Player {
				return fmt.Sprintf("seat %v after %v", s, last)
			}
			last = s
			seen[s] = true
			total++
			t := tickets[p.Tickets[s.Ticket]]
			player := t.Players[s.Player]
			if t.Backfill && rules.Teams[team].Name != player.Team {
				return fmt.Sprintf("%s of the roster is on %s, want %s", player.ID, rules.Teams[team].Name, player.Team)
			}
			values, err := rules.Player(player.Attributes)
			if err != nil {
				return err.Error()
			}
			var latencies []ruleset.RegionLatency
			for _, l := range player.Latencies {
				latencies = append(latencies, ruleset.RegionLatency{Region: l.Region, Milliseconds: l.Milliseconds})
			}
			c.Teams[team] = append(c.Teams[team], ruleset.Player{ID: player.ID, Ticket: int(s.Ticket), Values: values, Latencies: latencies})
		}
	}
	for i, key := range p.Tickets {
		team := -1
		for player := range tickets[key].Players {
			at := slices.IndexFunc(p.Teams, func(seats []Seat) bool { return slices.Contains(seats, Seat{int32(i), int32(player)}) })
			if at < 0 {
				return fmt.Sprintf("player %d of ticket %d has no seat", player, key)
			}
			if team >= 0 && team != at && !tickets[key].Backfill {
				return fmt.Sprintf("ticket %d is on two teams", key)
			}
			team = at
		}
	}
	start := youngest
	if rules.Algorithm.OldestAge {
		start = oldest
	}
	level := rules.LevelAt(age(start, now))
	l := rules.Level(level)
	switch {
	case level != p.Level:
		return fmt.Sprintf("level %d, want %d", p.Level, level)
	case total != p.Players || int(total) != len(seen):
		return fmt.Sprintf("%d players, want %d", p.Players, total)
	case p.MaxPlayers != l.Slots:
		return fmt.Sprintf("at most %d players, want %d", p.MaxPlayers, l.Slots)
	case backfills == 0 && total > l.Slots-additional:
		return fmt.Sprintf("%d players, want %d slots kept of %d", total, additional, l.Slots)
	case !l.Accepts(&c):
		return fmt.Sprintf("rules say %v, team sizes %v", l.Evaluate(&c), l.Teams)
	}
	return ""
}
