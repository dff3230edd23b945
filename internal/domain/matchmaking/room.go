package matchmaking

import (
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/keyvalue"
	"github.com/musterhq/muster/internal/domain/notice"
	"github.com/musterhq/muster/internal/domain/placement"
	"github.com/musterhq/muster/internal/domain/session"
	"github.com/musterhq/muster/internal/domain/wire"
)

// Room is the room's number.
const Room kernel.RoomNo = 3

const wall = kernel.FirstWall + kernel.Wait(Room)*kernel.WaitsOfRoom

// Wall deadlines.
const (
	AcceptanceTimeout = wall + iota // a match that awaits acceptance
	TicketTimeout                   // a ticket that waits in its pool
)

// State is the room's records and limits.
type State struct {
	*kernel.Kernel
	Config  *Config
	Records *Records
	hosting Hosting
	hooks   Hooks
	notices Notices

	ticketNo uint64 // number of the latest ticket
}

// Tx is the room: its state and its part of the current transaction.
type Tx struct {
	*kernel.Tx
	*State
}

// Hosting is the part of hosting that matchmaking needs.
type Hosting interface {
	FindGame(id session.ID) (session.GameRef, bool)
	Game(r session.GameRef) *session.GameSession
	PlayersNamed(player string, yield func(session.PlayerRef, *session.PlayerSession) bool)
	FindPlacement(id string) (placement.Ref, bool)
	Placement(r placement.Ref) *placement.Placement
	FindQueue(name string) (placement.QueueRef, bool)
	Queue(r placement.QueueRef) *placement.Queue
	ReservationTime() time.Duration
	PlayersMax() int32
	Tagged(own keyvalue.Own, have, add []keyvalue.Pair) ([]keyvalue.Pair, error)

	// CheckProperties refuses invalid game properties.
	CheckProperties(properties []session.Property) error
	// Hosted refuses a game session that is not hosted by a server process.
	Hosted(process fleet.Key, id session.ID) (session.GameRef, *session.GameSession, error)
	// HasLink reports whether a connection is the current one of a game session's server process.
	HasLink(id session.ID, link uint64) bool
	BeginPlacement(p *placement.Placement)
	Reserve(r session.Reservation)
	SetMatchmakerData(id session.ID, data string)
}

// Notices records notices for webhook receivers.
type Notices interface {
	Listens(topic string) bool
	Tell(n notice.Notice, topic string)
}

// Hooks lets player flow take part in the life of tickets and matches. For a ticket or match without a party, each hook returns the
// value that changes nothing.
type Hooks interface {
	// MayBeForeign refuses a ticket with a player whom player flow has in another search or game. The player is element i of a field of
	// the call.
	MayBeForeign(field string, i int, player string) error
	// MayBeBackfilled refuses a backfill with a player who is searching, because it would end that search.
	MayBeBackfilled(field string, i int, player string) error
	// HeldBack reports whether an absent party member prevents a ticket from being matched.
	HeldBack(x *Ticket) bool
	// AcceptanceTimeout returns how long the players of a match have to accept it.
	AcceptanceTimeout(c *Configuration, tickets []TicketRef) time.Duration

	// PromisedSeats returns the number of seats of a game session that are promised to players without a seat; known is false for a game
	// session without a game instance.
	PromisedSeats(game session.GameRef) (n int32, known bool)
	// KeptSeats returns the number of seats of a game session that are held for absent members of its game instance, who may never come.
	KeptSeats(game session.GameRef) int32
	// PlaysIn reports whether a player is in the game instance of a game session; known is false if there is none.
	PlaysIn(game, player string) (yes, known bool)

	// Newcomers returns how to reserve seats for the players of a match who come from parties.
	Newcomers(match MatchRef, game session.ID) map[string]Newcomer
	// MatchProperties returns the game properties for the game session of a match.
	MatchProperties(x *Match) []session.Property
	// PlayerData returns the PlayerData of a matched player; empty if there is none.
	PlayerData(player string) string
	// Regions returns the preferred order of locations for the game session of a match; nil: any.
	Regions(match string) []string

	// SearchBegun runs when the matchmaker has added a ticket to its pool.
	SearchBegun(x *Ticket)
	// MatchesMade runs when matches of a configuration were made.
	MatchesMade(configuration string)
	MatchProposed(match MatchRef)
	MatchAnswered(match MatchRef, declined bool)
	// TicketReturned runs when a ticket continues to search after its match failed through no fault of its own.
	TicketReturned(x *Ticket)
	TicketEnded(x *Ticket, why Reason)
	// MatchNotPlaced runs when a committed match failed before its placement started.
	MatchNotPlaced(id string)

	// MatchCommitted, StandaloneCommitted and BackfillCommitted move the players of a final match from their tickets into a game
	// instance: before the match's placement, for a match that the service only makes, and into a running game session.
	MatchCommitted(match MatchRef)
	StandaloneCommitted(match MatchRef)
	BackfillCommitted(match MatchRef, game session.ID)

	// BackfillBegun and BackfillEnded run for backfill tickets. matched: the backfill has brought players.
	BackfillBegun(x *Ticket)
	BackfillEnded(x *Ticket, matched bool, why Reason)
	// RenewBackfill removes players who have left from an open backfill whose roster player flow has made; done is false for any other.
	RenewBackfill(open TicketRef) (done bool)
}

// Newcomer describes the reservation for a player whom a backfill brings.
type Newcomer struct {
	Data string        // PlayerData
	Wait time.Duration // how long the seat waits
}

// New returns an empty room, which Connect completes.
func New(k *kernel.Kernel, config *Config, hosting Hosting, notices Notices) *Tx {
	return &Tx{Tx: k.Tx(), State: &State{Kernel: k, Config: config, Records: NewRecords(), hosting: hosting, notices: notices}}
}

// Connect sets the hooks. It is called once, before the first command.
func (t *Tx) Connect(h Hooks) { t.hooks = h }

// Events returns the constructors of the room's events.
func (*Tx) Events() []func() kernel.Event { return events }

// View reads the room's state.
type View struct {
	kernel.Reader
	c *State
}

// View returns a View. It is valid until the next command is executed.
func (c *State) View() View { return View{c.Reader(), c} }

// Due handles deadline d, which has passed.
func (t *Tx) Due(d kernel.Deadline) (heavy bool) {
	if d.Kind == AcceptanceTimeout {
		t.Cause = "AcceptanceTimeout"
		t.acceptanceDue(MatchRef(d.Ref))
	} else {
		t.Cause = "TicketTimeout"
		t.EndTicket(TicketRef(d.Ref), TimedOut, RequestTimedOut)
	}
	return false
}

// Settle is never called, because the room leaves no work for the end of a command.
func (t *Tx) Settle() {}

// Reset does nothing, for the same reason.
func (t *Tx) Reset() {}

const endedTicket kernel.EndedKind = 0

// EachEnded yields the tickets in memory that have ended.
func (c *State) EachEnded(yield func(no uint64, e kernel.Ended)) {
	for r, x := range c.Records.Tickets.All() {
		if x.EndedNo != 0 {
			yield(x.EndedNo, kernel.Ended{Room: Room, Kind: endedTicket, Ref: r.Any()})
		}
	}
}

// Drop removes an ended ticket from memory.
func (c *State) Drop(e kernel.Ended) (counts bool) {
	c.Records.RemoveTicket(TicketRef(e.Ref))
	return true
}

// Freeze returns the room's part of a snapshot.
func (c *State) Freeze(h *kernel.Head) []kernel.Frozen {
	h.TicketNo = c.ticketNo
	r := c.Records
	return []kernel.Frozen{
		kernel.Freeze(partRuleSet, r.RuleSets), kernel.Freeze(partConfiguration, r.Configurations), kernel.Freeze(partTicket, r.Tickets),
		kernel.Freeze(partMatch, r.Matches), kernel.Freeze(partHosted, r.Hosted), kernel.Freeze(partRecentWaits, r.Recent),
	}
}

// Field numbers of message SnapshotPart in proto/journal.proto.
const (
	partRuleSet       = 20
	partConfiguration = 21
	partTicket        = 22
	partMatch         = 23
	partHosted        = 24
	partRecentWaits   = 25
)

func (c *State) Load(l *kernel.Loader, kind uint64, body []byte) (known bool, err error) {
	r := c.Records
	switch kind {
	case partRuleSet:
		err = kernel.LoadWith(l, body, r.PutRuleSet)
	case partConfiguration:
		err = kernel.LoadWith(l, body, r.PutConfiguration)
	case partTicket:
		err = kernel.LoadWith(l, body, func(x Ticket) { r.AddTicket(x) })
	case partMatch:
		err = kernel.LoadWith(l, body, func(x Match) { r.AddMatch(x) })
	case partHosted:
		err = kernel.LoadWith(l, body, r.PutHosted)
	case partRecentWaits:
		err = kernel.LoadWith(l, body, r.RestoreRecent)
	default:
		return false, nil
	}
	return true, err
}

// Restore rebuilds the data that snapshots omit.
func (c *State) Restore(h *kernel.Head) error {
	c.ticketNo = h.TicketNo
	for r, t := range c.Records.Tickets.All() {
		if t.Status.Waits() {
			c.Waiting.SetWall(TicketTimeout, r.Any(), t.TimeoutAt)
		}
	}
	for r, x := range c.Records.Matches.All() {
		c.Waiting.SetWall(AcceptanceTimeout, r.Any(), x.AcceptBy)
	}
	return nil
}

// EndedRecord returns a ticket that has ended, for the archive.
func (v *View) EndedRecord(e kernel.Ended) kernel.EndedRecord {
	x := v.ticket(TicketRef(e.Ref)).Ticket
	return kernel.EndedRecord{Kind: kernel.ATicket, ID: x.ID, Created: x.Start, Ended: x.End, Data: wire.Marshal(&x)}
}

// MatchmakingCounts counts the records of the room.
func (v *View) MatchmakingCounts() []kernel.RecordCount {
	m := v.c.Records
	return []kernel.RecordCount{
		{Kind: "rule_sets", Count: m.RuleSets.Len(), Most: v.c.Config.RuleSetsMax},
		{Kind: "matchmaking_configurations", Count: m.Configurations.Len(), Most: v.c.Config.MatchmakersMax},
		{Kind: "tickets", Count: m.Tickets.Len()},
		{Kind: "matches", Count: m.Matches.Len()},
	}
}

// GameGone removes the record of a matched game session that has ended.
func (c *State) GameGone(game session.ID) { c.Records.RemoveHosted(string(game)) }

// ownConfigurationTags has the tags that the service itself acts on, and their values.
var ownConfigurationTags = keyvalue.Own{
	PlacementTimeoutTag: {Requeue, Fail}, PlacementFailureTag: {Fail, Requeue},
	BackfillLeaversTag: {"true", "false"}, SilentCancelTag: {"true", "false"},
}

// RuleSetTags returns the tags of a rule set.
func (c *State) RuleSetTags(name string) (kernel.Tagged, error) {
	r, ok := c.Records.RuleSet(name)
	if !ok {
		return kernel.Tagged{}, domain.Refuse(domain.NotFound, "rule set %s not found", name)
	}
	x := *c.Records.RuleSets.Get(r)
	return kernel.Tagged{Tags: x.Tags, Store: func(tags []keyvalue.Pair) kernel.Event { x.Tags = tags; return &RuleSetChanged{x} }}, nil
}

// ConfigurationTags returns the tags of a matchmaking configuration.
func (c *State) ConfigurationTags(name string) (kernel.Tagged, error) {
	now, ok := c.Records.Configuration(name)
	if !ok {
		return kernel.Tagged{}, domain.Refuse(domain.NotFound, "matchmaking configuration %s not found", name)
	}
	x := *now
	return kernel.Tagged{Tags: x.Tags, Own: ownConfigurationTags, Store: func(tags []keyvalue.Pair) kernel.Event { x.Tags = tags; return &ConfigurationChanged{x} }}, nil
}
