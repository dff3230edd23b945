// Package playerflow is the room of players: login sessions, parties, searches, game instances and memberships, and the events for
// players, game servers and the studio. It always knows which party, search and game a player is in, and brings a player back into the
// game after a crash. Its records are in package flow; package inspection reads its state for operators.
//
// Where to look: command_*.go has the commands with the checks of each; parts.go lists the parts that commands share, one for each kind
// of record, and what each part uses (party.go, search.go, membership.go, …). transaction.go has what all parts use to change records,
// settle.go what follows at the end of a transaction, apply.go what events do to the state, and due.go what deadlines do.
//
// The room is on when Limits.Flow is set. A refusal of its commands has a *flow.Refusal as its cause (errors.AsType), with the code of
// the player API; flow.CodeOf returns it. Commands of players embed a Caller: Player, Session (the login session from
// View.LoginByToken), Request (X-Request-Id) and IfRev. After the command, Caller.Flow has the flow record for the answer, and
// Caller.Made the id of what the call created.
//
//	sessions: Login RefreshLogin Logout AttachStream LoseStream PollEvents AckEvents IssueLoginTicket
//	parties:  CreateParty JoinParty (by id, code, or an accepted invite) LeaveParty KickPlayer PromoteLeader SetReady
//	          SetPartyPreferences SetPlayerPreferences RotateInviteCode DisbandParty SendInvite CancelInvite DeclineInvite
//	search:   EnterMatchmaking LeaveMatchmaking AnswerMatch (AcceptMatch of the player API)
//	games:    GetHostConnectionDetails DeclineReconnect LeaveGame CreateGameInstance JoinGameInstance UpdateOwnGame
//	partner:  MakeGame (Flow.CreateGameInstance) ReadyGame ConnectMember DisconnectMember RemoveMembers ReleaseMembers AddMembers
//	          UpdateGame KeepGameAlive EndGame EnterBackfill LeaveBackfill ShutDownParty SetPlayerAttributes SetBlocks
//	operator: ForceLogout ForceRelease ForceEnd ShutDownParty BanPlayer SetPenalty SetQueue SetFlowConfig AwaitPlayers
//	          AnnounceMaintenance
//
// Events for players are written in the transaction that causes them (Settle): each player has an outbox with gapless numbers. A stream
// follows PlayersTold, which names the players and their numbers. It catches up with View.EventsAfter, or with View.FlowOf if some of
// the events are no longer kept: it first registers, then reads, then drops events with a number that it has already sent. LoginChanged
// (with state LoginReplaced) and LoginRemoved mean that the stream has to be closed.
package playerflow

import (
	"encoding/binary"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/matchmaking"
	"github.com/musterhq/muster/internal/domain/placement"
	"github.com/musterhq/muster/internal/domain/ruleset"
	"github.com/musterhq/muster/internal/domain/session"
	"github.com/musterhq/muster/internal/domain/wire"
)

// Room is the room's number.
const Room kernel.RoomNo = 4

// State is the room's records, rules and limits.
type State struct {
	*kernel.Kernel
	Limits      *Limits
	Config      flow.Config // Limits.Flow with operators' changes; if Limits.Flow is nil, the defaults, for records from when it was set
	Flow        *flow.State
	hosting     Hosting
	matchmaking Matchmaking
	nodes       Nodes
}

// Nodes are the nodes of a cluster that have streams; see hosting.Nodes.
type Nodes interface {
	Holder(id domain.UUID) (no uint32, err error)
	Present(no uint32) bool
}

// Tx is the room: the current transaction and the parts that implement the rules.
type Tx struct {
	*transaction
	logins      *logins
	parties     *parties
	invites     *invites
	Matches     *Matches
	backfills   *backfills
	Games       *Games
	Memberships *Memberships
	searches    *searches
	advices     *advices
	penalties   *penalties
}

// transaction is the state of the room and its part of the current transaction.
type transaction struct {
	*kernel.Tx
	*State
	scratch scratch
}

// Hosting is what player flow needs of game sessions, server processes and placements.
type Hosting interface {
	FindGame(id session.ID) (session.GameRef, bool)
	Game(r session.GameRef) *session.GameSession
	FindPlayer(id domain.PlayerSessionID) (session.PlayerRef, bool)
	PlayerSession(r session.PlayerRef) *session.PlayerSession
	PlayersNamed(player string, yield func(session.PlayerRef, *session.PlayerSession) bool)
	FindProcess(key fleet.Key) (fleet.ProcessRef, bool)
	Process(r fleet.ProcessRef) *fleet.Process
	HasCertificate(fleetID, compute string) bool
	FindPlacement(id string) (placement.Ref, bool)
	Placement(r placement.Ref) *placement.Placement

	CheckPlacement(p *placement.Placement) error
	CheckPlacementRoom(p *placement.Placement) error
	BeginPlacement(p *placement.Placement)
	StopPlacement(id string)
	TerminateGame(id session.ID)
	Reserve(r session.Reservation)
	Accept(p *session.PlayerSession, request uint64)
	EndSeat(id domain.PlayerSessionID, status session.PlayerStatus)
	WrapData(id domain.PlayerSessionID, data string)

	// These change hosting's state while an event of player flow is applied.
	KeepSeat(player session.PlayerRef) (seat session.SeatRef)
	KeepEmptySeat(game session.GameRef) (seat session.SeatRef)
	ReleaseSeat(seat session.SeatRef)
	ShareSeat(player, with session.PlayerRef)
	DelayPlacement(id string, by domain.Time)
}

// Matchmaking is what player flow needs of tickets and matches.
type Matchmaking interface {
	FindTicket(id string) (matchmaking.TicketRef, bool)
	FindTicketNo(no uint64) (matchmaking.TicketRef, bool)
	Ticket(r matchmaking.TicketRef) *matchmaking.Ticket
	TicketView(r matchmaking.TicketRef, now domain.Time) matchmaking.TicketView
	Match(r matchmaking.MatchRef) *matchmaking.Match
	MatchedPlayers(match matchmaking.MatchRef) (players []matchmaking.Player, latencies []placement.Latency)
	EachConfiguration(yield func(*matchmaking.Configuration) bool)
	Configuration(name string) (*matchmaking.Configuration, bool)
	Compiled(ruleSet string) *ruleset.RuleSet
	EstimatedWait(configuration string, now domain.Time) (seconds int32, ok bool)
	HostedMatch(game string) (matchmaking.Hosted, bool)
	BackfillOf(game string) (matchmaking.TicketRef, bool)
	Sits(player string, game session.ID) bool
	HasQueue(name string) bool

	CheckRoom(x *matchmaking.Ticket) error
	CheckPlayers(c *matchmaking.Configuration, players []matchmaking.Player) error
	CheckBackfill(start *matchmaking.StartMatchBackfill) (begin func(), err error)
	StartTicket(c *matchmaking.Configuration, x matchmaking.Ticket) matchmaking.TicketRef
	EndTicket(r matchmaking.TicketRef, status matchmaking.Status, why matchmaking.Reason)
	CancelTicket(r matchmaking.TicketRef, why matchmaking.Reason)
	SetHosted(h matchmaking.Hosted)
	ChangeHosted(h matchmaking.Hosted)
	// PlayerLeft makes room for others in the backfill of a game session that a player has left for good.
	PlayerLeft(game session.GameRef)

	// DelaySearch changes matchmaking's state while an event of player flow is applied.
	DelaySearch(ticket, match string, acceptBy, by domain.Time) domain.Time
}

// Events returns the constructors of the room's events.
func (*Tx) Events() []func() kernel.Event { return events }

// View reads the room's state.
type View struct {
	kernel.Reader
	c *State
}

// View returns a View. It is valid until the next command is executed.
func (c *State) View() View { return View{c.Reader(), c} }

const endedChange kernel.EndedKind = 0

// EachEnded yields the changes of players' keys in memory, which count as ended from the start.
func (c *State) EachEnded(yield func(no uint64, e kernel.Ended)) {
	for r, x := range c.Flow.Changes.All() {
		yield(x.EndedNo, kernel.Ended{Room: Room, Kind: endedChange, Ref: r.Any()})
	}
}

// Drop removes a change.
func (c *State) Drop(e kernel.Ended) (counts bool) {
	c.Flow.RemoveChange(flow.ChangeRef(e.Ref))
	return false
}

// EndedRecord returns a change, for the archive.
func (v *View) EndedRecord(e kernel.Ended) kernel.EndedRecord {
	x := *v.c.Flow.Changes.Get(flow.ChangeRef(e.Ref))
	v.Saw(x.Commit)
	id := binary.BigEndian.AppendUint64(nil, x.EndedNo) // orders the changes of one millisecond
	return kernel.EndedRecord{Kind: kernel.AChange, ID: string(id), Created: x.At, Ended: x.At, Player: x.Player, Data: wire.Marshal(&x)}
}
