package matchmaking

import (
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/chunk"
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
	AcceptanceTimeout = wall + iota // a match whose players are asked
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

	ticketNo uint64 // tickets ever started
}

// Tx is the room: its state, and its part of the transaction that is being decided.
type Tx struct {
	*kernel.Tx
	*State
}

// Hosting is what matchmaking needs of game sessions and placements.
type Hosting interface {
	FindGame(id session.ID) (session.Ref, bool)
	Game(r session.Ref) *session.GameSession
	PlayersNamed(player string, yield func(session.Ref, *session.PlayerSession) bool)
	FindPlacement(id string) (placement.Ref, bool)
	Placement(r placement.Ref) *placement.Placement
	FindQueue(name string) (placement.Ref, bool)
	Queue(r placement.Ref) *placement.Queue
	ReservationTime() time.Duration
	PlayersMax() int32
	Tagged(own keyvalue.Own, have, add []keyvalue.Pair) ([]keyvalue.Pair, error)

	// CheckProperties refuses game properties that a game session cannot have.
	CheckProperties(properties []session.Property) error
	// Hosted refuses a game session that is not hosted by a server process.
	Hosted(process fleet.Key, id session.ID) (session.Ref, *session.GameSession, error)
	BeginPlacement(p placement.Placement)
	Reserve(r session.Reservation)
	SetMatchmakerData(id session.ID, data string)
}

// Notices writes down who is to be told of what.
type Notices interface {
	Listens(topic string) bool
	Tell(n notice.Notice, topic string)
}

// Hooks is how player flow takes part in what happens to tickets and matches. Tickets and matches that have nothing to do with
// parties get the answer that changes nothing.
type Hooks interface {
	// MayBeForeign refuses a ticket with a player, element i of a field of the call, whom player flow knows to be somewhere else.
	MayBeForeign(field string, i int, player string) error
	// MayBeBackfilled refuses a backfill with a player who searches: it would end that search.
	MayBeBackfilled(field string, i int, player string) error
	// HeldBack reports whether a member of a party who is away keeps a ticket from being matched.
	HeldBack(x *Ticket) bool
	// AcceptanceTimeout is how long the players of a match may take to accept it.
	AcceptanceTimeout(c *Configuration, tickets []Ref) time.Duration

	// PromisedSeats is how many seats of a game session belong to players who hold none yet; known is false for a game session
	// that hosts no game instance.
	PromisedSeats(game session.Ref) (n int32, known bool)
	// KeptSeats is how many seats of a game session belong to members of its game instance who are not there and may never come.
	KeptSeats(game session.Ref) int32
	// PlaysIn reports whether a player is in the game instance of a game session; known is false if it hosts none.
	PlaysIn(game, player string) (yes, known bool)

	// Newcomers is what player flow says of the reservations of those players of a match who came of parties.
	Newcomers(match Ref, game session.ID) map[string]Newcomer
	// MatchProperties are the properties of the game session of a match.
	MatchProperties(x *Match) []session.Property
	// PlayerData is the PlayerData of a matched player; empty when none was given.
	PlayerData(player string) string
	// Regions is the order of locations that is wanted for the game session of a match; nil: any.
	Regions(match string) []string
	// OwnsPlacement reports whether a game instance waits for the placement of a match: then its rules say what follows from a
	// placement that fails.
	OwnsPlacement(match string) bool

	// SearchBegun says that the matchmaker has taken a ticket into its pool.
	SearchBegun(x *Ticket)
	// MatchesMade says that matches of a configuration were made.
	MatchesMade(configuration string)
	MatchProposed(match Ref)
	MatchAnswered(match Ref, declined bool)
	// TicketReturned says that a ticket searches on: its match came to nothing without its doing.
	TicketReturned(x *Ticket)
	TicketEnded(x *Ticket, why Reason)
	// MatchFailed says that a match came to nothing after it was final.
	MatchFailed(id string)

	// MatchCommitted, StandaloneCommitted and BackfillCommitted move the players of a final match from their tickets into a game
	// instance: before its placement, for a match that the service only makes, and into a running game session.
	MatchCommitted(match Ref)
	StandaloneCommitted(match Ref)
	BackfillCommitted(match Ref, game session.ID)

	// BackfillBegun and BackfillEnded are about backfill tickets. Matched says that the backfill has brought players.
	BackfillBegun(x *Ticket)
	BackfillEnded(x *Ticket, matched bool, why Reason)
	// RenewBackfill takes players who have left out of an open backfill whose roster player flow has made; done is false for any
	// other.
	RenewBackfill(open Ref) (done bool)
}

// Newcomer is what is known of the reservation of a player whom a backfill brings.
type Newcomer struct {
	Data string        // PlayerData
	Wait time.Duration // how long the seat waits
}

// New returns the room without records. Connect completes it.
func New(k *kernel.Kernel, config *Config, hosting Hosting, notices Notices) *Tx {
	return &Tx{Tx: k.Tx(), State: &State{Kernel: k, Config: config, Records: NewRecords(), hosting: hosting, notices: notices}}
}

// Connect tells the room who takes part in what happens here. It is called once, before the first command.
func (t *Tx) Connect(h Hooks) { t.hooks = h }

// Events has the constructors of the room's events.
func (*Tx) Events() []func() kernel.Event { return events }

// View reads the room's state.
type View struct {
	kernel.Reader
	c *State
}

// View returns a View. It is good as long as no command is executed.
func (c *State) View() View { return View{c.Reader(), c} }

// Due ends what d waits for.
func (t *Tx) Due(d kernel.Deadline) (heavy bool) {
	if d.Kind == AcceptanceTimeout {
		t.Cause = "AcceptanceTimeout"
		t.acceptanceDue(d.Ref)
	} else {
		t.Cause = "TicketTimeout"
		t.EndTicket(d.Ref, TimedOut, RequestTimedOut)
	}
	return false
}

// Settle is never called: everything follows at once.
func (t *Tx) Settle() {}

// Reset is nothing, as Settle is.
func (t *Tx) Reset() {}

const endedTicket kernel.EndedKind = 0

// EachEnded yields the tickets in memory that have ended.
func (c *State) EachEnded(yield func(no uint64, e kernel.Ended)) {
	for r, x := range c.Records.Tickets.All() {
		if x.EndedNo != 0 {
			yield(x.EndedNo, kernel.Ended{Room: Room, Kind: endedTicket, Ref: r})
		}
	}
}

// Drop forgets an ended ticket.
func (c *State) Drop(e kernel.Ended) (counts bool) {
	c.Records.RemoveTicket(e.Ref)
	return true
}

type frozen struct {
	ruleSets       chunk.Frozen[RuleSet]
	configurations chunk.Frozen[Configuration]
	tickets        chunk.Frozen[Ticket]
	matches        chunk.Frozen[Match]
	hosted         chunk.Frozen[Hosted]
	recent         chunk.Frozen[Recent]
}

// Freeze returns what a snapshot holds of the room.
func (c *State) Freeze(h *kernel.Head) kernel.Frozen {
	h.TicketNo = c.ticketNo
	r := c.Records
	return &frozen{r.RuleSets.Freeze(), r.Configurations.Freeze(), r.Tickets.Freeze(), r.Matches.Freeze(), r.Hosted.Freeze(), r.Recent.Freeze()}
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

// Write writes the parts, each kind behind those that it names.
func (f *frozen) Write(w *kernel.PartWriter) {
	kernel.WriteAll(w, partRuleSet, f.ruleSets)
	kernel.WriteAll(w, partConfiguration, f.configurations)
	kernel.WriteAll(w, partTicket, f.tickets)
	kernel.WriteAll(w, partMatch, f.matches)
	kernel.WriteAll(w, partHosted, f.hosted)
	kernel.WriteAll(w, partRecentWaits, f.recent)
}

// Load reads a part of a snapshot.
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

// Restore rebuilds what a snapshot does not hold.
func (c *State) Restore(h *kernel.Head) error {
	c.ticketNo = h.TicketNo
	for r, t := range c.Records.Tickets.All() {
		if t.Status.Waits() {
			c.Waiting.SetWall(TicketTimeout, r, t.TimeoutAt)
		}
	}
	for r, x := range c.Records.Matches.All() {
		c.Waiting.SetWall(AcceptanceTimeout, r, x.AcceptBy)
	}
	return nil
}

// EndedRecord returns a ticket that has ended, for the archive.
func (v *View) EndedRecord(e kernel.Ended) kernel.EndedRecord {
	x := v.ticket(e.Ref).Ticket
	return kernel.EndedRecord{Kind: kernel.ATicket, ID: x.ID, Created: x.Start, Ended: x.End, Data: wire.Append(nil, &x)}
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

// GameGone forgets what is known of a game session that has ended.
func (c *State) GameGone(game session.ID) { c.Records.RemoveHosted(string(game)) }

// ownConfigurationTags are the tags that the service itself acts on, and their values.
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
