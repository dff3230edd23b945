package cell

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/access"
	"github.com/musterhq/muster/internal/domain/chunk"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/gameservers"
	"github.com/musterhq/muster/internal/domain/matchmaking"
	"github.com/musterhq/muster/internal/domain/notice"
	"github.com/musterhq/muster/internal/domain/placement"
	"github.com/musterhq/muster/internal/domain/session"
	"github.com/musterhq/muster/internal/domain/wire"
)

// Snapshot is the cell at one moment. It can be written while the cell goes on.
type Snapshot struct {
	head      snapshotHead
	locations chunk.Frozen[fleet.Location]
	fleets    chunk.Frozen[fleet.Fleet]
	computes  chunk.Frozen[fleet.Compute]
	processes chunk.Frozen[fleet.Process]
	events    chunk.Frozen[fleet.Event]
	creations chunk.Frozen[fleet.Creation]
	aliases   chunk.Frozen[fleet.Alias]
	builds    chunk.Frozen[fleet.Build]
	groups    chunk.Frozen[gameservers.Group]
	servers   chunk.Frozen[gameservers.Server]
	games     chunk.Frozen[session.GameSession]
	players   chunk.Frozen[session.PlayerSession]

	queues     chunk.Frozen[placement.Queue]
	placements chunk.Frozen[placement.Placement]

	notices       chunk.Frozen[notice.Notice]
	subscriptions chunk.Frozen[notice.Subscription]

	ruleSets       chunk.Frozen[matchmaking.RuleSet]
	configurations chunk.Frozen[matchmaking.Configuration]
	tickets        chunk.Frozen[matchmaking.Ticket]
	matches        chunk.Frozen[matchmaking.Match]
	hosted         chunk.Frozen[matchmaking.Hosted]
	recent         chunk.Frozen[matchmaking.Recent]
	flow           flowSnapshot

	accessKeys chunk.Frozen[access.Key]
	takenOver  *access.TakenOver // replaced, never changed
	losses     []Loss            // the same
}

// snapshotHead is what the cell keeps beside its records.
type snapshotHead struct {
	Last, Downtime domain.Time
	Forgotten      uint64
	EventNo        uint64
	Games, Players int64
	EndedNo        uint64
	NoticeNo       uint64
	PlacementNo    uint64
	TicketNo       uint64
}

func (h *snapshotHead) Fields(c *wire.Codec) {
	wire.Int(c, 1, &h.Last)
	wire.Int(c, 2, &h.Downtime)
	wire.Int(c, 3, &h.Forgotten)
	wire.Int(c, 4, &h.EventNo)
	wire.Int(c, 5, &h.Games)
	wire.Int(c, 6, &h.Players)
	wire.Int(c, 7, &h.EndedNo)
	wire.Int(c, 8, &h.NoticeNo)
	wire.Int(c, 9, &h.PlacementNo)
	wire.Int(c, 10, &h.TicketNo)
}

// Freeze takes a Snapshot. It costs microseconds, whatever the cell holds.
func (c *Cell) Freeze() *Snapshot {
	s := &Snapshot{
		locations: c.fleets.Locations.Freeze(),
		fleets:    c.fleets.Fleets.Freeze(),
		computes:  c.fleets.Computes.Freeze(),
		processes: c.fleets.Processes.Freeze(),
		events:    c.fleets.Events.Freeze(),
		creations: c.fleets.Creations.Freeze(),
		aliases:   c.fleets.Aliases.Freeze(),
		builds:    c.fleets.Builds.Freeze(),
		groups:    c.gameServers.Groups.Freeze(),
		servers:   c.gameServers.Servers.Freeze(),
		games:     c.sessions.Games.Freeze(),
		players:   c.sessions.Players.Freeze(),

		queues:     c.placements.Queues.Freeze(),
		placements: c.placements.Placements.Freeze(),

		notices:       c.notices.Notices.Freeze(),
		subscriptions: c.notices.Subscriptions.Freeze(),

		ruleSets:       c.matchmaking.RuleSets.Freeze(),
		configurations: c.matchmaking.Configurations.Freeze(),
		tickets:        c.matchmaking.Tickets.Freeze(),
		matches:        c.matchmaking.Matches.Freeze(),
		hosted:         c.matchmaking.Hosted.Freeze(),
		recent:         c.matchmaking.Recent.Freeze(),
		flow:           c.freezeFlow(),

		accessKeys: c.access.Keys.Freeze(),
		takenOver:  c.access.TakenOver,
		losses:     c.losses,
	}
	s.head = snapshotHead{c.last, c.downtime, c.forgotten, c.eventNo, int64(s.games.Len()), int64(s.players.Len()), c.ended.no, c.noticeNo, c.placementNo, c.ticketNo}
	return s
}

// Field numbers of message SnapshotPart in proto/journal.proto. A snapshot is a sequence of parts, each behind its
// length.
const (
	partHead = iota + 1
	partLocation
	partFleet
	partCompute
	partProcess
	partEvent
	partCreation
	partGame   // followed by its player sessions
	partPlayer // of the game session before it
	partEnd
	partAlias
	partBuild
	partGameServerGroup = 14
	partGameServer      = 15

	partQueue     = 16
	partPlacement = 17

	partNotice       = 18
	partSubscription = 19

	partRuleSet       = 20
	partConfiguration = 21
	partTicket        = 22
	partMatch         = 23
	partHosted        = 24
	partRecentWaits   = 25
	partFlowPlayer    = 30
	partLogin         = 31
	partParty         = 32
	partInvite        = 33
	partInstance      = 34
	partMembership    = 35
	partRequest       = 36
	partLoginTicket   = 37
	partFlowQueue     = 38
	partFlowOverrides = 39
	partFlowFeed      = 41
	partFlowChange    = 43
	partSearchAdvice  = 44
	partAccessKey     = 50
	partTakenOver     = 51
	partLoss          = 60
)

// Write writes the snapshot.
func (s *Snapshot) Write(to io.Writer) error {
	w := &partWriter{w: bufio.NewWriterSize(to, 1<<18)}
	w.part(partHead, &s.head)
	writeAll(w, partLocation, s.locations)
	writeAll(w, partFleet, s.fleets)
	writeAll(w, partCompute, s.computes)
	writeAll(w, partProcess, s.processes)
	writeAll(w, partEvent, s.events)
	writeAll(w, partCreation, s.creations)
	writeAll(w, partAlias, s.aliases)
	writeAll(w, partBuild, s.builds)
	writeAll(w, partGameServerGroup, s.groups)
	writeAll(w, partGameServer, s.servers)
	for _, g := range s.games.All() {
		copied := *g
		w.part(partGame, &copied)
		for r := g.FirstPlayer(); r != 0; {
			p := *s.players.Get(r)
			w.part(partPlayer, &p)
			r = p.NextInGame()
		}
	}
	writeAll(w, partQueue, s.queues)
	writeAll(w, partPlacement, s.placements)
	writeAll(w, partNotice, s.notices)
	writeAll(w, partSubscription, s.subscriptions)
	writeAll(w, partRuleSet, s.ruleSets)
	writeAll(w, partConfiguration, s.configurations)
	writeAll(w, partTicket, s.tickets)
	writeAll(w, partMatch, s.matches)
	writeAll(w, partHosted, s.hosted)
	writeAll(w, partRecentWaits, s.recent)
	s.flow.write(w)
	writeAll(w, partAccessKey, s.accessKeys)
	if s.takenOver != nil {
		copied := *s.takenOver
		w.part(partTakenOver, &copied)
	}
	for _, l := range s.losses {
		w.part(partLoss, &l)
	}
	w.part(partEnd, &Ticked{})
	if w.err != nil {
		return w.err
	}
	return w.w.Flush()
}

type partWriter struct {
	w   *bufio.Writer
	c   wire.Codec
	err error
}

// part writes one record. Records are copied first: reading and writing share code, and a frozen record must not be
// written to.
func (w *partWriter) part(kind uint8, m wire.Message) {
	if w.err != nil {
		return
	}
	w.c.Buf = append(w.c.Buf[:0], 0)
	w.c.Buf = binary.AppendUvarint(w.c.Buf, uint64(kind)<<3|lengthDelimited)
	w.c.Buf = append(w.c.Buf, 0)
	body := len(w.c.Buf) - 1
	m.Fields(&w.c)
	w.c.Buf = wire.PrefixLength(w.c.Buf, body)
	w.c.Buf = wire.PrefixLength(w.c.Buf, 0)
	_, w.err = w.w.Write(w.c.Buf)
}

func writeAll[T any, M interface {
	*T
	wire.Message
}](w *partWriter, kind uint8, records chunk.Frozen[T]) {
	for _, r := range records.All() {
		copied := *r
		w.part(kind, M(&copied))
	}
}

// Load fills an empty cell from a snapshot.
func (c *Cell) Load(from io.Reader) error {
	r := bufio.NewReaderSize(from, 1<<18)
	l := loader{c: c}
	l.reader.Intern()
	var buf []byte
	for !l.ended {
		n, err := binary.ReadUvarint(r)
		if err != nil {
			return fmt.Errorf("snapshot ends before its end mark: %w", err)
		}
		if n > maxPart {
			return fmt.Errorf("snapshot part of %d bytes: %w", n, wire.ErrMalformed)
		}
		if uint64(cap(buf)) < n {
			buf = make([]byte, n)
		}
		buf = buf[:n]
		if _, err := io.ReadFull(r, buf); err != nil {
			return fmt.Errorf("snapshot: %w", err)
		}
		if err := l.part(buf); err != nil {
			return err
		}
	}
	return l.finish()
}

// maxPart bounds what a damaged length makes us allocate; the largest record is a game session with full data.
const maxPart = 16 << 20

// roomMax bounds the room that is made for player sessions beforehand; more of them make their own.
const roomMax = 1 << 21

type loader struct {
	c      *Cell
	reader wire.Reader
	head   snapshotHead
	game   session.Ref
	ended  bool
}

func (l *loader) part(b []byte) error {
	kind, body, _, err := next(b)
	if err != nil {
		return fmt.Errorf("snapshot part: %w", err)
	}
	f, s := l.c.fleets, l.c.sessions
	switch kind {
	case partHead:
		err = l.reader.Read(body, &l.head)
		s.RestorePlayers(int(min(max(l.head.Players, 0), roomMax)))
	case partLocation:
		err = load(l, body, &f.Locations)
	case partFleet:
		err = load(l, body, &f.Fleets)
	case partCompute:
		err = load(l, body, &f.Computes)
	case partProcess:
		err = load(l, body, &f.Processes)
	case partEvent:
		err = load(l, body, &f.Events)
	case partCreation:
		err = load(l, body, &f.Creations)
	case partAlias:
		err = load(l, body, &f.Aliases.Table)
	case partBuild:
		err = load(l, body, &f.Builds.Table)
	case partGameServerGroup:
		err = load(l, body, &l.c.gameServers.Groups.Table)
	case partGameServer:
		err = load(l, body, &l.c.gameServers.Servers.Table)
	case partGame:
		var g session.GameSession
		err = l.reader.Read(body, &g)
		l.game = s.AddGame(g)
	case partPlayer:
		if l.game == 0 {
			return fmt.Errorf("snapshot has a player session before any game session: %w", wire.ErrMalformed)
		}
		p := session.PlayerSession{Game: l.game}
		err = l.reader.Read(body, &p)
		s.RestorePlayer(p)
	case partQueue:
		var q placement.Queue
		err = l.reader.Read(body, &q)
		l.c.placements.PutQueue(q)
	case partPlacement:
		var p placement.Placement
		err = l.reader.Read(body, &p)
		l.c.placements.Add(p)
	case partNotice:
		var n notice.Notice
		err = l.reader.Read(body, &n)
		l.c.notices.Add(n)
	case partSubscription:
		var x notice.Subscription
		err = l.reader.Read(body, &x)
		l.c.notices.Subscribe(x)
	case partRuleSet, partConfiguration, partTicket, partMatch, partHosted, partRecentWaits:
		err = l.matchmaking(kind, body)
	case partAccessKey:
		err = load(l, body, &l.c.access.Keys.Table)
	case partTakenOver:
		l.c.access.TakenOver = &access.TakenOver{}
		err = l.reader.Read(body, l.c.access.TakenOver)
	case partLoss:
		var x Loss
		err = l.reader.Read(body, &x)
		l.c.losses = append(l.c.losses, x)
	case partEnd:
		l.ended = true
	case partFlowPlayer, partLogin, partParty, partInvite, partInstance, partMembership, partRequest, partLoginTicket, partFlowQueue, partFlowOverrides, partFlowFeed, partFlowChange, partSearchAdvice:
		err = l.flowPart(kind, body)
	default:
		return fmt.Errorf("snapshot part of unknown kind %d: written by a later release", kind)
	}
	return err
}

func load[T any, M interface {
	*T
	wire.Message
}](l *loader, body []byte, t *chunk.Table[T]) error {
	_, record := t.Add()
	return l.reader.Read(body, M(record))
}

// finish rebuilds what the snapshot does not hold: indexes, references between records, deadlines.
func (l *loader) finish() error {
	c := l.c
	c.last, c.downtime, c.forgotten, c.eventNo = l.head.Last, l.head.Downtime, l.head.Forgotten, l.head.EventNo
	if got := int64(c.sessions.Players.Len()); got != l.head.Players {
		return fmt.Errorf("snapshot holds %d player sessions, want %d: %w", got, l.head.Players, wire.ErrMalformed)
	}
	if err := c.fleets.Restore(); err != nil {
		return fmt.Errorf("snapshot: %w: %w", err, wire.ErrMalformed)
	}
	c.restoreEnded(l.head.EndedNo)
	for r, g := range c.sessions.Games.All() {
		if g.Live() {
			p, ok := c.fleets.Process(fleet.Key{Fleet: g.FleetID, Compute: g.ComputeName, Process: g.ProcessID})
			if !ok {
				return fmt.Errorf("snapshot: game session %s has no server process: %w", g.ID, wire.ErrMalformed)
			}
			c.sessions.Games.Mut(r).Process = p
			x := c.fleets.Processes.Mut(p)
			x.Session, x.Activating = r, g.Status == session.Activating
			c.fleets.Reindex(p)
			c.waiting.set(activation, r, g.ActivateBy)
		}
	}
	for r, p := range c.sessions.Players.All() {
		c.waiting.set(reservation, r, p.ReserveBy)
	}
	for r, p := range c.fleets.Processes.All() {
		c.waiting.set(ready, r, p.ReadyBy)
		c.waiting.set(lost, r, p.LostBy)
		c.waiting.set(unhealthy, r, p.UnhealthyBy)
		c.waiting.set(termination, r, p.TerminateBy)
		if p.State == fleet.Ended {
			c.waiting.setWall(forgetProcess, r, p.ForgetAt)
		}
	}
	c.gameServers.Restore()
	c.access.Restore()
	for r, x := range c.gameServers.Servers.All() {
		c.waiting.set(gameServerClaim, r, x.ClaimBy)
		c.waiting.set(gameServerHealth, r, x.HealthBy)
	}
	for r, x := range c.fleets.Creations.All() {
		c.waiting.setWall(creation, r, x.Until)
	}
	c.placementNo = l.head.PlacementNo
	for r, p := range c.placements.Placements.All() {
		if p.Status == placement.Pending {
			c.waiting.setWall(placementTimeout, r, p.TimeoutAt)
			c.placementNo = max(c.placementNo, p.No) // older snapshots do not tell it
		}
	}
	c.restoreMatchmaking(l.head.TicketNo)
	c.noticeNo = l.head.NoticeNo
	for r, n := range c.notices.Notices.All() {
		c.waiting.setWall(noticeAge, r, n.Until)
	}
	for r, f := range c.fleets.Fleets.All() {
		if mustSweep(f) {
			c.waiting.setWall(sweep, r, sweepAt)
		}
	}
	return c.restoreFlow()
}
