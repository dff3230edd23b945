package playerflow

import (
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/kernel"
)

// Each part below has the operations on one kind of record, and names the parts that it uses; none uses one that is declared before it. All
// of them embed the transaction that is being decided. Commands reach the parts through Tx: t.parties.leave(player, flow.Left).

// logins has login sessions, the proofs that they are made with, and the presence of players.
type logins struct {
	*transaction
	Memberships *Memberships
}

// parties has parties and their leaders.
type parties struct {
	*transaction
	invites  *invites
	searches *searches
}

// invites has invites to parties.
type invites struct{ *transaction }

// Matches has what matchmaking reports about tickets and matches: it implements matchmaking.Hooks.
type Matches struct {
	*transaction
	searches    *searches
	advices     *advices
	penalties   *penalties
	Memberships *Memberships
	Games       *Games
	backfills   *backfills
}

// backfills has searches for more players of a running game.
type backfills struct {
	*transaction
	Games *Games
}

// Games has game instances and their hosts.
type Games struct {
	*transaction
	Memberships *Memberships
	searches    *searches
	advices     *advices
}

// Memberships has the memberships of players in game instances, and their seats.
type Memberships struct {
	*transaction
	advices   *advices
	penalties *penalties
}

// searches has the searches of parties, and what players learn about queues.
type searches struct {
	*transaction
	advices   *advices
	penalties *penalties
}

// advices has what the studio says about single searches.
type advices struct{ *transaction }

// penalties has the penalties and locks of players.
type penalties struct{ *transaction }

// New returns the room without records.
func New(k *kernel.Kernel, limits *Limits, hosting Hosting, m Matchmaking, nodes Nodes) *Tx {
	s := &State{Kernel: k, Limits: limits, Config: flow.DefaultConfig(), Flow: flow.New(), hosting: hosting, matchmaking: m, nodes: nodes}
	t := &transaction{Tx: k.Tx(), State: s}
	if limits.Flow != nil {
		s.Config = *limits.Flow
		k.Before(t.noteActions)
	}
	r := &Tx{transaction: t, penalties: &penalties{t}, advices: &advices{t}, invites: &invites{t}}
	r.searches = &searches{t, r.advices, r.penalties}
	r.Memberships = &Memberships{t, r.advices, r.penalties}
	r.Games = &Games{t, r.Memberships, r.searches, r.advices}
	r.backfills = &backfills{t, r.Games}
	r.Matches = &Matches{t, r.searches, r.advices, r.penalties, r.Memberships, r.Games, r.backfills}
	r.parties = &parties{t, r.invites, r.searches}
	r.logins = &logins{t, r.Memberships}
	return r
}
