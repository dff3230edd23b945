// Package cell is the whole state of one installation: it composes the kernel and the rooms, and is the only package that imports all of
// them.
//
//	hosting      fleets, computes, server processes, game sessions, player sessions, queues and placements, aliases, builds
//	gameservers  game server groups, whose servers clients claim
//	notice       notices that receivers have yet to take
//	matchmaking  rule sets, configurations, tickets, matches
//	playerflow   login sessions, parties, searches, game instances, and players' outboxes
//	access       access keys, accepted losses
//	membership   nodes of a cluster that take connections
//	hosts        machines whose agents have joined, and tokens for others
//	capacity     which host serves which fleet of a build, and scaling
//	audit        the audit log
//	grants       requests of devices for a sign-in, and used authorization codes
//	people       sign-in sessions, and people of the cell's own with their passkeys
//	answers      answers that a node of a cluster may ask for again
//
// Hosting, matchmaking and membership declare hooks, which other rooms implement; cell connects them (hooks.go). A new noun is a package like these,
// a line in New and, if clients can read it, a field of View.
package cell

import (
	"sync"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/access"
	"github.com/musterhq/muster/internal/domain/answers"
	"github.com/musterhq/muster/internal/domain/audit"
	"github.com/musterhq/muster/internal/domain/capacity"
	"github.com/musterhq/muster/internal/domain/gameservers"
	"github.com/musterhq/muster/internal/domain/grants"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/hosts"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/matchmaking"
	"github.com/musterhq/muster/internal/domain/membership"
	"github.com/musterhq/muster/internal/domain/notice"
	"github.com/musterhq/muster/internal/domain/people"
	"github.com/musterhq/muster/internal/domain/playerflow"
	"github.com/musterhq/muster/internal/domain/playerflow/inspection"
)

// Cell is the state. Only one goroutine at a time may call Execute, Replay or Freeze. Views may be used concurrently with each other, but not with
// those calls.
type Cell struct {
	*kernel.Kernel
	config      Config
	hosting     *hosting.Tx
	gameservers *gameservers.Tx
	notices     *notice.Tx
	matchmaking *matchmaking.Tx
	playerflow  *playerflow.Tx
	inspection  *inspection.Inspection
	access      *access.Tx
	answers     *answers.Tx
	membership  *membership.Tx
	capacity    *capacity.Tx
	hosts       *hosts.Tx
	audit       *audit.Tx
	grants      *grants.Tx
	people      *people.Tx
}

// New returns an empty cell.
func New(config Config) *Cell {
	c := &Cell{Kernel: kernel.New(), config: config}
	c.Quotas = config.Quotas
	c.notices = notice.New(c.Kernel, c.config.Notify)
	c.membership = membership.New(c.Kernel)
	c.hosting = hosting.New(c.Kernel, &c.config.Hosting, c.notices, c.membership)
	c.gameservers = gameservers.New(c.Kernel, &c.config.GameServers, c.hosting)
	c.matchmaking = matchmaking.New(c.Kernel, &c.config.Matchmaking, c.hosting, c.notices)
	c.playerflow = playerflow.New(c.Kernel, &c.config.PlayerFlow, c.hosting, c.matchmaking, c.membership)
	c.inspection = inspection.New(c.playerflow.State, c.hosting, c.matchmaking)
	c.access = access.New(c.Kernel, &c.config.Access)
	c.answers = answers.New(c.Kernel)
	c.capacity = capacity.New(c.Kernel, managedFleets{c.hosting})
	c.hosts = hosts.New(c.Kernel)
	c.grants = grants.New(c.Kernel)
	c.people = people.New(c.Kernel)
	c.audit = audit.New(c.Kernel, &c.config.Audit, &subjects{c})

	c.hosting.Connect(&hooks{c.matchmaking, c.playerflow})
	c.matchmaking.Connect(c.playerflow.Matches)
	c.membership.Connect(&holders{c})
	c.hosts.Connect(&hostFleets{c})
	if c.capacity.Connect(&joinedHosts{c.hosts.State}); config.Pool != nil {
		c.capacity.Connect(config.Pool)
	}

	c.Register(hosting.Room, c.hosting)
	c.Register(gameservers.Room, c.gameservers)
	c.Register(notice.Room, c.notices)
	c.Register(matchmaking.Room, c.matchmaking)
	c.Register(playerflow.Room, c.playerflow)
	c.Register(access.Room, c.access)
	c.Register(membership.Room, c.membership)
	c.Register(hosts.Room, c.hosts)
	c.Register(capacity.Room, c.capacity)
	c.Register(people.Room, c.people)
	c.Register(audit.Room, c.audit)
	c.Register(grants.Room, c.grants)
	c.Register(answers.Room, c.answers)
	return c
}

// Askers returns, for each process of a cluster's nodes that has had commands executed, what is known of it.
func (c *Cell) Askers() map[domain.UUID]answers.Standing { return c.answers.Askers() }

// Configure changes the limits and periods of further commands and the receivers of notices. Deadlines that are set do not change. Neither do player
// flow's startup configuration and the pool of hosts.
func (c *Cell) Configure(config Config) {
	flow, pool := c.config.PlayerFlow, c.config.Pool
	c.config = config
	c.config.PlayerFlow.Flow, c.config.PlayerFlow.Tokens, c.config.Pool = flow.Flow, flow.Tokens, pool
	c.notices.Configure(config.Notify)
}

// Config returns the limits and periods of this cell's commands.
func (c *Cell) Config() Config { return c.config }

// EachEvent calls f for each event of a journal entry, with the time of its transaction.
func EachEvent(batch []byte, f func(at domain.Time, e kernel.Event)) error {
	return kinds().EachEvent(batch, f)
}

// kinds knows the events of all rooms.
var kinds = sync.OnceValue(func() *Cell { return New(DefaultConfig()) })
