package playerflow

import (
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/kernel"
)

// Each part below implements the operations on one kind of record and names the parts that it uses; none uses a part declared before it.
// All of them embed the current transaction. Commands reach the parts through Tx: t.parties.leave(player, flow.Left).

// logins handles login sessions, the credentials used up by logins, and players' presence.
type logins struct {
	*transaction
	Memberships *Memberships
}

// parties handles parties and their leaders.
type parties struct {
	*transaction
	invites  *invites
	searches *searches
}

// invites handles invites to parties.
type invites struct{ *transaction }

// Matches handles what matchmaking reports about tickets and matches: it implements matchmaking.Hooks.
type Matches struct {
	*transaction
	searches    *searches
	advices     *advices
	penalties   *penalties
	Memberships *Memberships
	Games       *Games
	backfills   *backfills
}

// backfills handles searches for more players of a running game.
type backfills struct {
	*transaction
	Games *Games
}

// Games handles game instances and their hosts.
type Games struct {
	*transaction
	Memberships *Memberships
	searches    *searches
	advices     *advices
}

// Memberships handles players' memberships in game instances and their seats.
type Memberships struct {
	*transaction
	advices   *advices
	penalties *penalties
}

// searches handles the searches of parties, and what players are told about queues.
type searches struct {
	*transaction
	advices   *advices
	penalties *penalties
}

// advices handles the studio's advice for single searches.
type advices struct{ *transaction }

// penalties handles players' penalties and locks.
type penalties struct{ *transaction }

// New returns an empty room.
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
