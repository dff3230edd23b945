// Package cell is the whole state of one Muster installation and the only code that changes it.
//
// A command is checked against the state; if it may happen, it emits events, and each event is applied at once. The
// events of one command are one transaction: all of them reach the journal in one piece, or none. A replay of the journal
// calls the same apply, so memory after a restart is what it was.
//
// # Player flow
//
// It is there when Config.Flow is set. A refusal of its commands has a *flow.Refusal as its cause (errors.AsType), whose Code
// is the player API's; flow.CodeOf gives it. Commands of players embed a Caller: Player, Session (the login session that
// View.LoginByToken gave), Request (X-Request-Id), IfRev; after them Caller.Flow is what every answer carries and
// Caller.Made the id of what was made.
//
//	sessions: Login RefreshLogin Logout AttachStream LoseStream PollEvents AckEvents IssueLoginTicket
//	parties:  CreateParty JoinParty (by id, code, or an accepted invite) LeaveParty KickPlayer PromoteLeader SetReady
//	          SetPartyPreferences SetPlayerPreferences RotateInviteCode DisbandParty SendInvite CancelInvite DeclineInvite
//	search:   EnterMatchmaking LeaveMatchmaking AnswerMatch (AcceptMatch of the player API)
//	games:    GetHostConnectionDetails DeclineReconnect LeaveGame CreateGameInstance JoinGameInstance
//	partner:  MakeGame (Flow.CreateGameInstance) ReadyGame ConnectMember DisconnectMember RemoveMembers ReleaseMembers
//	          AddMembers UpdateGame KeepGameAlive EndGame ShutDownParty SetPlayerAttributes SetBlocks
//	operator: ForceLogout ForceRelease ForceEnd ShutDownParty BanPlayer SetPenalty SetQueue SetFlowConfig
//	          AwaitPlayers AnnounceMaintenance
//	View:     FlowEnabled LoginByToken Login LoginExpires Stand FlowOf EventsAfter Party GameInstance GameInstanceOf
//	          VerifyPlayer FlowQueues QueueClosed FlowTotals ExplainStuck FlowTimers FindPlayers ChangesOf Audit
//	          Survey FlowConfig FlowOverrides
//
// What players are told is written in the transaction that causes it: each player has an outbox whose numbers have no
// gaps. A stream follows KindPlayersTold, which names the players and their numbers (one follower feeds all streams of a
// node; the body is rendered once for all it is for), and catches up with View.EventsAfter, or View.FlowOf when that says
// that they are not all there any more: register first, then read, then drop what has a number that was seen.
// KindLoginChanged (with state LoginReplaced) and KindLoginRemoved say that a stream has to be closed.
package cell

import (
	"fmt"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/access"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/gameservers"
	"github.com/musterhq/muster/internal/domain/matchmaking"
	"github.com/musterhq/muster/internal/domain/notice"
	"github.com/musterhq/muster/internal/domain/placement"
	"github.com/musterhq/muster/internal/domain/session"
	"github.com/musterhq/muster/internal/domain/wire"
)

// Cell is the state. One goroutine at a time may call Execute, Replay or Freeze; Views may be used beside each other but
// not beside those.
type Cell struct {
	config      Config
	fleets      *fleet.State
	sessions    *session.State
	gameServers *gameservers.State
	placements  *placement.State
	notices     *notice.State
	matchmaking *matchmaking.State
	flow        *flow.State
	access      *access.State
	flowConfig  flow.Config // Config.Flow; the defaults without it, for what is left of when it was on

	waiting  deadlines
	ended    endedQueue
	last     domain.Time // when the last transaction happened
	downtime domain.Time // how long the service was down since the cell began: what contact deadlines are moved by
	number   uint64      // of the journal entry that is being built or replayed
	part     uint32      // number of the transaction in it that is being applied, from 1
	changed  uint64      // number of the last change

	forgotten   uint64 // game sessions, placements and tickets that left memory for the archive: the watermark of look-ups there
	eventNo     uint64 // fleet events ever written
	placementNo uint64 // placements ever started
	noticeNo    uint64 // notices ever written
	ticketNo    uint64 // tickets ever started
	losses      []Loss // accepted ones, the oldest first; replaced, never written to
	replayed    wire.Reader
}

// New returns an empty cell.
func New(config Config) *Cell {
	c := &Cell{config: config, fleets: fleet.New(), gameServers: gameservers.New(), sessions: session.New(), placements: placement.New(), notices: notice.New(), matchmaking: matchmaking.New(), flow: flow.New(), access: access.New(), waiting: newDeadlines()}
	if c.flowConfig = flow.DefaultConfig(); config.Flow != nil {
		c.flowConfig = *config.Flow
	}
	return c
}

// Config returns the limits and periods that commands of this cell are decided with.
func (c *Cell) Config() Config { return c.config }

// Forgotten counts the game sessions, placements and tickets that left memory for the archive. A look-up in the archive that began at one count
// may be relied on only while the count is the same.
func (c *Cell) Forgotten() uint64 { return c.forgotten }

// contact converts an instant to the clock that stands still while the service is down.
func (c *Cell) contact(t domain.Time) domain.ContactTime { return domain.ContactTime(t - c.downtime) }

// wall converts back.
func (c *Cell) wall(t domain.ContactTime) domain.Time { return domain.Time(t) + c.downtime }

// Command is a wish. Its exported fields below "Result" are filled in when it succeeds.
type Command interface{ decide(tx *tx) error }

// Env is what a command needs from outside, and where its transaction goes.
type Env struct {
	Now    domain.Time // never before the time of an earlier command: Execute sees to that
	Number uint64      // of the journal entry that will hold the transaction
	Seed   domain.UUID // random; identifiers that a command makes beside its own come from it

	Batch  []byte    // the transaction is appended here
	Events []Emitted // the events that somebody follows are appended here
	Follow KindMask  // which those are
}

// Emitted is an event as its followers get it: the fact, and what they need beside it.
type Emitted struct {
	Event  Event
	At     domain.Time // of its transaction
	Part   uint32      // number of its transaction in the journal entry, from 1
	Before any         // what the event changes, as it was before; see Cell.before
}

// Execute decides a command. An error is a *domain.Refusal, and then nothing has changed. It reports whether anything
// was emitted.
func (c *Cell) Execute(cmd Command, env *Env) (emitted bool, err error) {
	now := max(env.Now, c.last)
	t := tx{c: c, env: env, now: now, contact: c.contact(now), start: len(env.Batch), cmd: cmd}
	c.begin(env.Number)
	err = cmd.decide(&t)
	if err == nil {
		t.settle()
		t.settleFlow()
	}
	if t.open {
		if err != nil {
			panic(fmt.Sprintf("%T refused after it had emitted: %v", cmd, err))
		}
		t.close()
	}
	return t.open, err
}

// Replay applies one journal entry.
func (c *Cell) Replay(number uint64, batch []byte) error {
	c.begin(number)
	defer c.fleets.TakeFreed() // whoever waited was served then, by events of their own
	return eachEvent(batch, &c.replayed, func() { c.part++ }, c.apply)
}

// begin says which journal entry transactions belong to from now on.
func (c *Cell) begin(number uint64) {
	if c.number != number {
		c.number, c.part = number, 0
	}
}

// touch returns the number to note in a record that is being changed.
func (c *Cell) touch() uint64 {
	c.changed = c.number
	return c.number
}
