package matchmaker

import (
	"maps"
	"slices"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/matcher"
	"github.com/musterhq/muster/internal/domain/matchmaking"
	"github.com/musterhq/muster/internal/domain/ruleset"
)

// Pool has the waiting tickets of one configuration, and the matcher that finds matches among them. Its methods apply the state's
// events, in order; a repeated event is harmless. It is not safe for concurrent use.
type Pool struct {
	configuration matchmaking.Configuration
	rules         *ruleset.RuleSet
	matcher       *matcher.Matcher
	reader        matchmaking.RosterReader

	generations map[uint64]uint32       // of its tickets, by number
	backfills   map[uint64]backfilling  // of these, the backfill tickets
	queued      []matchmaking.TicketKey // tickets whose search has not begun yet
	unfit       []matchmaking.TicketKey // tickets that the rule set cannot match
}

// backfilling is a backfill ticket as the matcher sees it, with its game session.
type backfilling struct {
	ticket matcher.Ticket
	game   string
}

// NewPool returns an empty pool for a configuration and its rule set.
func NewPool(c matchmaking.Configuration, rules *ruleset.RuleSet) *Pool {
	return &Pool{
		configuration: c, rules: rules,
		matcher:     matcher.New(rules, matcher.Config{Name: c.Name, AdditionalPlayers: keptFree(&c)}),
		generations: map[uint64]uint32{}, backfills: map[uint64]backfilling{},
	}
}

// Fits reports whether the pool fits the current configuration. If it does not, it must be replaced.
func (p *Pool) Fits(c *matchmaking.Configuration) bool {
	return p.configuration.Version == c.Version && p.configuration.Standalone == c.Standalone && keptFree(&p.configuration) == keptFree(c)
}

// keptFree returns how many seats new matches keep free. It is 0 without a game session that players could join. Source: API reference,
// AdditionalPlayerCount.
func keptFree(c *matchmaking.Configuration) int32 {
	if c.Standalone {
		return 0
	}
	return c.AdditionalPlayers
}

// Add adds a ticket, unless the pool already has a later generation of it.
func (p *Pool) Add(t *matchmaking.Ticket) {
	if known, ok := p.generations[t.No]; ok && known >= t.Generation || !t.Status.Waits() {
		return
	}
	p.Remove(t.No)
	key := matchmaking.TicketKey{No: t.No, Generation: t.Generation}
	x := matcher.Ticket{Key: t.No, Start: t.Start, No: t.No, Backfill: t.Backfill, FreeSlots: -1}
	for _, player := range p.reader.Decode(t.Roster) {
		to := matcher.Player{ID: player.ID, Team: player.Team, Attributes: player.Attributes}
		for _, l := range player.Latencies {
			to.Latencies = append(to.Latencies, matcher.Latency{Region: l.Region, Milliseconds: l.Milliseconds})
		}
		x.Players = append(x.Players, to)
	}
	if err := p.matcher.Add(x); err != nil {
		p.unfit = append(p.unfit, key)
		return
	}
	p.generations[t.No] = t.Generation
	if t.Status == matchmaking.Queued {
		p.queued = append(p.queued, key)
	}
	if t.Backfill {
		p.backfills[t.No] = backfilling{x, t.Game}
	}
}

// Remove removes a ticket, if the pool has it.
func (p *Pool) Remove(no uint64) {
	delete(p.generations, no)
	delete(p.backfills, no)
	p.matcher.Remove(no)
}

// Slots updates the matcher with the number of players that the game sessions of backfill tickets can take now. If one can take none
// because its free seats are held for disconnected players, its ticket waits for them.
func (p *Pool) Slots(free func(game string) (slots int32, takes bool)) {
	for _, no := range slices.Sorted(maps.Keys(p.backfills)) {
		b := p.backfills[no]
		slots, takes := free(b.game)
		switch {
		case !takes:
			// The proposal must be made so that the core refuses it; nothing else would end this ticket.
			slots = -1
		case slots <= 0:
			slots = 0
		case p.configuration.Standalone: // only the caller knows
			slots = -1
		}
		if slots == b.ticket.FreeSlots {
			continue
		}
		b.ticket.FreeSlots = slots
		p.matcher.Remove(no)
		if p.matcher.Add(b.ticket) == nil {
			p.backfills[no] = b
		}
	}
}

// dirty reports whether a pass may have something to do, whatever the time.
func (p *Pool) dirty() bool {
	return p.matcher.Dirty() || len(p.queued) > 0 || len(p.unfit) > 0
}

// News returns the commands to execute before a pass.
func (p *Pool) News() (commands []kernel.Command) {
	for some := range slices.Chunk(p.queued, newsMost) {
		commands = append(commands, &matchmaking.BeginSearch{Tickets: some})
	}
	for some := range slices.Chunk(p.unfit, newsMost) {
		commands = append(commands, &matchmaking.FailTickets{Tickets: some})
	}
	p.queued, p.unfit = nil, nil
	return commands
}

// Bounds of one command, so that none delays others for long.
const (
	newsMost      = 1000
	matchesMost   = 64
	proposedsMost = 256 // tickets
)

// Pass searches for matches. Their tickets leave the pool; those of a refused proposal must be added again.
func (p *Pool) Pass(now domain.Time, newID func() domain.UUID) (commands []*matchmaking.ProposeMatches) {
	var cmd *matchmaking.ProposeMatches
	tickets := 0
	for _, found := range p.matcher.Pass(now) {
		if cmd == nil || len(cmd.Proposals) == matchesMost || tickets+len(found.Tickets) > proposedsMost {
			cmd = &matchmaking.ProposeMatches{Configuration: p.configuration.Name, Version: p.configuration.Version}
			commands = append(commands, cmd)
			tickets = 0
		}
		cmd.Proposals = append(cmd.Proposals, p.proposal(&found, newID()))
		tickets += len(found.Tickets)
	}
	return commands
}

func (p *Pool) proposal(found *matcher.Proposal, id domain.UUID) matchmaking.Proposal {
	x := matchmaking.Proposal{
		ID: id, Tickets: make([]matchmaking.ProposedTicket, len(found.Tickets)), PlayersMax: found.MaxPlayers, Region: found.Region,
		Counts: counts(found.Counts),
	}
	for team, seats := range found.Teams {
		for _, s := range seats {
			x.Tickets[s.Ticket].Team = p.rules.Teams[team].Name // all players of a ticket are on one team
		}
	}
	for i, no := range found.Tickets {
		to := &x.Tickets[i]
		to.TicketKey = matchmaking.TicketKey{No: no, Generation: p.generations[no]}
		if _, ok := p.backfills[no]; ok {
			to.Team = "" // its players have teams of their own
		}
		delete(p.generations, no)
		delete(p.backfills, no)
	}
	return x
}

// Refused returns the tickets of a command's refused proposals, which must return to the pool.
func Refused(cmd *matchmaking.ProposeMatches, err error) (tickets []uint64) {
	for i, proposal := range cmd.Proposals {
		if err == nil && cmd.Refused[i] == nil {
			continue
		}
		for _, t := range proposal.Tickets {
			tickets = append(tickets, t.No)
		}
	}
	return tickets
}

func counts(from []matcher.RuleCount) []matchmaking.RuleCount {
	to := make([]matchmaking.RuleCount, len(from))
	for i, c := range from {
		to[i] = matchmaking.RuleCount{Rule: int32(c.Rule), Passed: c.Passed, Failed: c.Failed}
	}
	return to
}
