package matchmaking

import (
	"cmp"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/excerpt"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/quota"
	"github.com/musterhq/muster/internal/domain/session"
)

// StartMatchBackfill starts the search for more players for a running game session.
type StartMatchBackfill struct {
	Configuration string
	ID            string
	Chosen        bool
	Players       []Player   // present players, with their teams
	Game          string     // id of the game session; with STANDALONE, any name chosen by the caller, or empty
	Slots         int32      // players wanted; 0: as many as there is room for
	Server        *fleet.Key // the calling server process; nil: another caller
	quota.Taking

	Owner     Owner // 0: a client
	Unmatched bool  // the game session may have been created without a match

	kernel.ArchivedID `cbor:"-"`

	// Result
	Ticket TicketView
}

// Claimed returns the id if the caller chose it.
func (cmd *StartMatchBackfill) Claimed() (kernel.ClaimKind, string) {
	if !cmd.Chosen {
		return kernel.Nothing, ""
	}
	return kernel.ATicket, cmd.ID
}

func (cmd *StartMatchBackfill) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	begin, err := t.CheckBackfill(cmd)
	if err == nil {
		begin()
	}
	return err
}

// CheckBackfill checks whether the backfill may start, and returns a function that starts it and cannot fail.
func (t *Tx) CheckBackfill(cmd *StartMatchBackfill) (begin func(), err error) {
	c, ok := t.Records.Configuration(cmd.Configuration)
	if !ok {
		return nil, domain.Refuse(domain.NotFound, "matchmaking configuration %s not found", cmd.Configuration)
	}
	if n := len(cmd.Players); n < 1 || n > playersInBackfillMax {
		return nil, domain.Refuse(domain.Invalid, "Players: %d players; want 1 to %d", n, playersInBackfillMax)
	}
	if err := t.CheckPlayers(c, cmd.Players); err != nil {
		return nil, err
	}
	if err := t.checkTeams(c, cmd.Players); err != nil {
		return nil, err
	}
	for i, p := range cmd.Players {
		if err := t.hooks.MayBeBackfilled("Players", i, p.ID); err != nil {
			return nil, err
		}
	}
	x := Ticket{
		ID: cmd.ID, Owner: cmp.Or(cmd.Owner, ClientOwned), Configuration: c.Name, Backfill: true, Players: int32(len(cmd.Players)), Game: cmd.Game, Slots: cmd.Slots,
		Roster: EncodeRoster(cmd.Players), Holder: t.HolderFor(cmd.Holder, 0),
	}
	if !c.Standalone {
		g, err := t.checkBackfilled(cmd)
		if err != nil {
			return nil, err
		}
		x.GameRegion = g.Region
	}
	old, err := t.sameTicket(&x, cmd.Chosen, cmd.Archived, cmd.ArchivedAt)
	switch {
	case err != nil:
		return nil, err
	case old != 0:
		return func() { cmd.Ticket = t.TicketView(old, t.Now) }, nil
	}
	if err := t.CheckRoom(&x); err != nil {
		return nil, err
	}
	return func() {
		if r, ok := t.Records.BackfillOf(x.Game); ok && x.Game != "" {
			why := Replaced
			if cmd.Server != nil {
				why = ReplacedByServer
			}
			t.CancelTicket(r, why)
		}
		cmd.Ticket = t.TicketView(t.StartTicket(c, x), t.Now)
	}, nil
}

// checkTeams checks that every player names a team of the rule set.
func (t *Tx) checkTeams(c *Configuration, players []Player) error {
	rules := t.Records.Compiled(c.RuleSet)
	for i, p := range players {
		known := false
		for _, team := range rules.Teams {
			known = known || team.Name == p.Team
		}
		switch {
		case p.Team == "":
			return domain.Refuse(domain.Invalid, "Players[%d].Team: required for a backfill", i)
		case !known:
			return domain.Refuse(domain.Invalid, "Players[%d].Team: rule set %s has no team %q", i, c.RuleSet, excerpt.Short(p.Team))
		}
	}
	return nil
}

// checkBackfilled finds the game session that a backfill is for.
func (t *Tx) checkBackfilled(cmd *StartMatchBackfill) (*session.GameSession, error) {
	game, server := cmd.Game, cmd.Server
	if game == "" {
		return nil, domain.Refuse(domain.Invalid, "GameSessionArn: required, because FlexMatchMode is WITH_QUEUE")
	}
	if server != nil {
		if _, _, err := t.hosting.Hosted(*server, session.ID(game)); err != nil {
			return nil, err
		}
	}
	r, ok := t.hosting.FindGame(session.ID(game))
	if !ok {
		return nil, domain.Refuse(domain.NotFound, "GameSessionArn: game session %s not found", game)
	}
	g := t.hosting.Game(r)
	if !g.Live() {
		return nil, domain.Refuse(domain.Invalid, "GameSessionArn: game session %s is %s and accepts no new players", game, g.Status)
	}
	if _, ok := t.Records.HostedBy(game); !ok && !cmd.Unmatched {
		return nil, domain.Refuse(domain.Invalid, "GameSessionArn: game session %s was not created by a match, or its match is still being placed", game)
	}
	if !TakesPlayers(g) {
		return nil, domain.Refuse(domain.Invalid, "GameSessionArn: game session %s is %s and accepts no new players", game, g.Status)
	}
	return g, nil
}

func TakesPlayers(g *session.GameSession) bool { return g.Status == session.Active && !g.DenyPlayers }
