package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/matchmaking"
	"github.com/musterhq/muster/internal/domain/placement"
	"github.com/musterhq/muster/internal/domain/playerflow"
	"github.com/musterhq/muster/internal/domain/ruleset"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/settings"
)

const (
	matchParties = 15
	partySize    = 4
	matchPlayers = matchParties * partySize
)

// largeMatch is two teams of up to thirty-two.
const largeMatch = `{"name": "large", "ruleLanguageVersion": "1.0", "playerAttributes": [{"name": "skill", "type": "number", "default": 1}],
	"algorithm": {"strategy": "balanced", "balancedAttribute": "skill", "batchingPreference": "largestPopulation"},
	"teams": [{"name": "red", "minPlayers": 1, "maxPlayers": 32}, {"name": "blue", "minPlayers": 1, "maxPlayers": 32}]}`

// flowMatches measures the commits of matches of sixty players in fifteen parties, one after another: keys, memberships, the placement, and
// the events of all players. It does not include the matcher, which runs outside the core.
func (b *bench) flowMatches(ctx context.Context) (err error) {
	dir, err := b.freshDir("flow-match")
	if err != nil {
		return err
	}
	s := settings.Defaults()
	s.PlayerFlow = true
	c, err := openCellWith(ctx, dir, s.Cell(), 0, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	x := &flowMatch{ctx: ctx, cell: c, moved: make(chan int, 1)}
	end := c.Follow(kernel.Kinds(new(playerflow.PlayerKeysChanged)), x.count)
	defer end()
	if err := x.setUp(); err != nil {
		return err
	}
	var took histogram
	for range b.sizes.flowMatches {
		d, err := x.commit()
		if err != nil {
			return err
		}
		took.add(d)
	}
	p50, p99 := took.quantile(0.5), took.quantile(0.99)
	b.progress("  %d matches of %d players: p50 %s, p99 %s", b.sizes.flowMatches, matchPlayers, milliseconds(p50), milliseconds(p99))
	b.table.addFact(fmt.Sprintf("a match of %d players in %d parties, one durable batch (median of %d)", matchPlayers, matchParties, b.sizes.flowMatches),
		"5 ms", "%s (p99 %s)", milliseconds(p50), milliseconds(p99))
	return nil
}

// flowMatch has players who are matched repeatedly.
type flowMatch struct {
	ctx     context.Context
	cell    *localCell
	players [matchPlayers]playerflow.Caller
	moved   chan int // how many players were moved into a game by one journal entry
}

func (x *flowMatch) count(c engine.Committed) {
	n := 0
	for _, e := range c.Events {
		if e := e.Event.(*playerflow.PlayerKeysChanged); !e.Keys.Game.IsZero() {
			n++
		}
	}
	if n > 0 {
		x.moved <- n
	}
}

func (x *flowMatch) do(commands ...kernel.Command) error {
	for _, cmd := range commands {
		if err := x.cell.Do(x.ctx, cmd); err != nil {
			return fmt.Errorf("%T: %w", cmd, err)
		}
	}
	return nil
}

func (x *flowMatch) setUp() error {
	if err := fillHosts(func(cmd kernel.Command) error { return x.do(cmd) }); err != nil {
		return err
	}
	rules, problems := ruleset.Parse(largeMatch)
	if len(problems) > 0 {
		panic(problems) // the rule set above is valid
	}
	err := x.do(
		&hosting.CreateQueue{Queue: placement.Queue{Name: queueName, Region: region, Timeout: 10 * time.Minute, Destinations: []string{"arn:aws:gamelift:" + region + "::fleet/" + localFleet}}},
		&matchmaking.CreateRuleSet{RuleSet: matchmaking.RuleSet{Name: "large", Region: region, Account: "000000000000", Body: largeMatch}, Compiled: rules},
		&matchmaking.CreateConfiguration{Configuration: matchmaking.Configuration{
			Name: "large", Region: region, Account: "000000000000", RuleSet: "large", RequestTimeout: time.Hour,
			Queues: []string{"arn:aws:gamelift:" + region + "::gamesessionqueue/" + queueName},
		}},
	)
	if err != nil {
		return err
	}
	for i := range x.players {
		login := &playerflow.Login{Player: playerOf(0, i+1), LoginSessionID: flow.LoginSessionID(randomID()), Token: randomID()}
		if err := x.do(login, &playerflow.AttachStream{Player: login.Player, LoginSessionID: login.LoginSessionID, Stream: uint64(i) + 1}); err != nil {
			return err
		}
		x.players[i] = playerflow.Caller{Player: login.Player, LoginSessionID: login.LoginSessionID}
	}
	return nil
}

// commit makes one match and measures the time from the proposal until it is durable. Then it frees all players.
func (x *flowMatch) commit() (time.Duration, error) {
	proposal := matchmaking.Proposal{ID: randomID(), PlayersMax: matchPlayers, Tickets: make([]matchmaking.ProposedTicket, matchParties)}
	err := inParallel(matchParties, matchParties, func(i int) (err error) {
		proposal.Tickets[i].Team = []string{"red", "blue"}[i%2]
		proposal.Tickets[i].TicketKey, err = x.search(x.players[i*partySize : (i+1)*partySize])
		return err
	})
	if err != nil {
		return 0, err
	}
	var version uint64
	if err := x.cell.Read(x.ctx, func(v *cell.View) error {
		c, _ := v.Configuration("large")
		version = c.Version
		return nil
	}); err != nil {
		return 0, err
	}
	cmd := &matchmaking.ProposeMatches{Configuration: "large", Version: version, Proposals: []matchmaking.Proposal{proposal}}
	began := time.Now()
	err = x.do(cmd)
	took := time.Since(began)
	if err == nil && cmd.Refused[0] != nil {
		err = cmd.Refused[0]
	}
	if err != nil {
		return 0, err
	}
	if n := <-x.moved; n != matchPlayers {
		return 0, fmt.Errorf("%d players came into the game in one batch, want %d", n, matchPlayers)
	}
	return took, x.free()
}

// search makes a party and lets it search.
func (x *flowMatch) search(players []playerflow.Caller) (matchmaking.TicketKey, error) {
	party, ticket := flow.PartyID(randomID()), domain.TicketID(randomID())
	err := x.do(&playerflow.CreateParty{Caller: players[0], ID: party, Joinability: flow.Open})
	for i, player := range players {
		if i > 0 && err == nil {
			err = x.do(&playerflow.JoinParty{Caller: player, Party: party})
		}
		if err == nil {
			err = x.do(&playerflow.SetReady{Caller: player, Ready: true})
		}
	}
	if err == nil {
		err = x.do(&playerflow.EnterMatchmaking{Caller: players[0], Ticket: ticket, Queue: "large"})
	}
	if err != nil {
		return matchmaking.TicketKey{}, err
	}
	var key matchmaking.TicketKey
	err = x.cell.Read(x.ctx, func(v *cell.View) error {
		t, ok := v.Ticket(ticket.String())
		if !ok {
			return fmt.Errorf("ticket %s was not found", ticket)
		}
		key = matchmaking.TicketKey{No: t.No, Generation: t.Generation}
		return nil
	})
	return key, err
}

// free ends the game and the parties.
func (x *flowMatch) free() error {
	var game flow.InstanceID
	if err := x.cell.Read(x.ctx, func(v *cell.View) error {
		s, _ := v.Record(x.players[0].Player)
		game = s.Keys.Game
		return nil
	}); err != nil {
		return err
	}
	if err := x.do(&playerflow.ForceEnd{Instance: game}); err != nil {
		return err
	}
	for i := 0; i < matchPlayers; i += partySize {
		if err := x.do(&playerflow.DisbandParty{Caller: x.players[i]}); err != nil {
			return err
		}
	}
	return nil
}
