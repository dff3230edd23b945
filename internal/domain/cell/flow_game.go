package cell

import (
	"slices"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/placement"
	"github.com/musterhq/muster/internal/domain/session"
)

// What happens to game instances and memberships: the other half of the commands in command_flow_game.go and
// command_flow_server.go, and what follows when hosting does something.

// newMember is a player who gets a membership.
type newMember struct {
	player  flow.Ref
	team    string
	data    string
	ticket  domain.UUID // that the match was made of
	entered domain.Time // when that began to wait
}

// beginInstance makes a game instance with its memberships, pending. The players must be free of tickets and games, or
// come out of their tickets by it.
func (t *tx) beginInstance(x flow.Instance, members []newMember) flow.Ref {
	x.Status, x.Created = flow.InstancePending, t.now
	x.AllocateBy = t.contact.Add(x.Rules.AllocationTimeout)
	if x.Rules.AbsoluteTimeout > 0 {
		x.AbsoluteBy = t.contact.Add(x.Rules.AbsoluteTimeout)
	}
	t.emit(&GameInstanceChanged{Instance: x})
	r, _ := t.c.flow.Instance(x.ID)
	for _, m := range members {
		t.addMember(r, m)
	}
	return r
}

// addMember makes a membership, pending.
func (t *tx) addMember(r flow.Ref, m newMember) {
	x := t.c.flow.Instances.Get(r)
	p := t.c.flow.Players.Get(m.player)
	id, told := p.ID, flow.Message{Instance: x.ID, Match: x.Match, Team: m.team, Reconnect: x.Rules.Reconnect, Attributes: x.Attributes}
	t.emit(&MembershipChanged{Membership: flow.Membership{
		Instance: x.ID, Player: id, Status: flow.MemberPending, Team: m.team, Party: p.Keys.Party, Joined: t.now, Data: m.data,
		Ticket: m.ticket, Entered: m.entered,
	}})
	game := told.Instance
	t.tellAdded(r, t.c.flow.Memberships.Get(t.c.flow.Players.Get(m.player).Membership()))
	t.setKeys(m.player, func(k *flow.Keys) { k.Ticket, k.Game = domain.UUID{}, game })
	t.tellPlayers(flow.OnAddedToGame, told, id)
	t.planEmpty(r)
}

// changeInstance lets f change a copy of a game instance.
func (t *tx) changeInstance(r flow.Ref, f func(*flow.Instance)) {
	x := *t.c.flow.Instances.Get(r)
	f(&x)
	t.emit(&GameInstanceChanged{Instance: x})
}

// changeMembership lets f change a copy of a membership, and tells the player when the status is another one.
func (t *tx) changeMembership(r flow.Ref, f func(*flow.Membership)) {
	m := *t.c.flow.Memberships.Get(r)
	was := m.Status
	f(&m)
	if suspect := t.c.flow.Instances.Get(m.InstanceRef()).Suspect; suspect != 0 && m.HoldBy != 0 {
		m.HoldLeft, m.HoldBy = max(int64(m.HoldBy-t.contact), 1), 0
	}
	t.emit(&MembershipChanged{Membership: m})
	if m.Status != was {
		t.touch(m.PlayerRef())
		t.tellPlayers(flow.OnGameMembershipChanged, flow.Message{
			Instance: m.Instance, OldStatus: was, Status: m.Status, Deadline: t.c.holdUntil(&m),
		}, m.Player)
	}
}

// holdUntil is the end of a hold on the wall clock; 0 when there is none, or the host is suspect.
func (c *Cell) holdUntil(m *flow.Membership) domain.Time {
	if m.HoldBy == 0 {
		return 0
	}
	return c.wall(m.HoldBy)
}

// planEmpty waits for somebody to play in a game instance that nobody is in.
func (t *tx) planEmpty(r flow.Ref) {
	x := t.c.flow.Instances.Get(r)
	empty := x.Status == flow.InstanceActive && len(x.Members()) == 0 && x.Rules.EmptyTimeout > 0
	switch {
	case empty && x.EmptyBy == 0:
		t.changeInstance(r, func(x *flow.Instance) { x.EmptyBy = t.contact.Add(x.Rules.EmptyTimeout) })
	case !empty && x.EmptyBy != 0:
		t.changeInstance(r, func(x *flow.Instance) { x.EmptyBy = 0 })
	}
}

// instancePlaced gives a game instance the host that its placement found. Seats of players who have left meanwhile are
// free at once.
func (t *tx) instancePlaced(id string, game session.ID) {
	r, ok := t.c.flow.InstanceOfPlacement(id)
	if !ok {
		return
	}
	t.hostInstance(r, game)
}

// reservationFor is how long a seat waits for its player in the game session of a placement.
func (t *tx) reservationFor(id string) time.Duration {
	if r, ok := t.c.flow.InstanceOfPlacement(id); ok {
		return t.c.flow.Instances.Get(r).Rules.Reservation
	}
	return t.c.config.Reservation
}

// mayBeForeign refuses what is done with a player whom player flow knows to be somewhere, unless that is allowed: anybody
// who can call it could end a stranger's search, or seat one player in two games.
func (t *tx) mayBeForeign(field string, i int, player string) error {
	return t.mayBeIn(field, i, player, func(phase flow.Phase) bool { return phase == flow.Idle })
}

// mayBeBackfilled refuses a backfill with a player who searches: it would end that search.
func (t *tx) mayBeBackfilled(field string, i int, player string) error {
	return t.mayBeIn(field, i, player, func(phase flow.Phase) bool { return phase != flow.Matchmaking })
}

func (t *tx) mayBeIn(field string, i int, player string, fits func(flow.Phase) bool) error {
	if t.c.config.Flow == nil || t.c.flowConfig.Games.LaxPlayers {
		return nil
	}
	r, ok := t.c.flow.Player(player)
	if !ok {
		return nil
	}
	if phase := t.c.flow.Players.Get(r).Keys.Phase(); !fits(phase) {
		return domain.Refuse(domain.Invalid, "%s[%d]: player %s is %s in player flow, and strictPlayers is on", field, i, player, phase)
	}
	return nil
}

// hostInstance lets a game instance be active in a game session. With manualReady the time for that runs until Game.Ready: before
// nobody can play.
func (t *tx) hostInstance(r flow.Ref, game session.ID) {
	t.flow.cause = "Allocated"
	t.changeInstance(r, func(x *flow.Instance) {
		x.Status, x.Game, x.Ready = flow.InstanceActive, string(game), x.Ready || !x.Rules.ManualReady
		if x.Ready {
			x.AllocateBy = 0
		}
		if x.Rules.KeepAlive > 0 {
			x.KeepAliveBy = t.contact.Add(x.Rules.KeepAlive)
		}
	})
	x := t.c.flow.Instances.Get(r)
	t.tellHosted(r)
	t.freeSeatsOfLeavers(game, x.ID)
	if x.Ready {
		t.admitMembers(r)
	}
	t.planEmpty(r)
}

// freeSeatsOfLeavers closes reservations that a placement made for players who have left the game since. Others without a
// membership were matched over the plain API.
func (t *tx) freeSeatsOfLeavers(game session.ID, instance domain.UUID) {
	g, _ := t.c.sessions.Game(game)
	var gone []domain.UUID
	r, _ := t.c.flow.Instance(instance)
	t.c.sessions.PlayersIn(g, func(_ session.Ref, p *session.PlayerSession) bool {
		player, ok := t.c.flow.Player(p.Player)
		if !ok || p.Status != session.Reserved || t.c.flow.Players.Get(player).Keys.Game == instance {
			return true
		}
		if last := t.c.flow.Players.Get(player).LastGame; last != nil && last.Instance == instance {
			gone = append(gone, p.ID)
			t.tellServer(r, flow.OnPlayerLeft, flow.Notice{Player: p.Player, Reason: last.Membership.String()})
		}
		return true
	})
	for _, id := range gone {
		t.emit(&PlayerEnded{id, session.TimedOut})
	}
}

// admitMembers gives every pending member a reservation.
func (t *tx) admitMembers(r flow.Ref) {
	t.settleAdvice(r)
	for _, m := range slices.Clone(t.c.flow.Instances.Get(r).Members()) {
		if t.c.flow.Memberships.Get(m).Status == flow.MemberPending {
			t.admit(m)
		}
	}
}

// admit gives a pending member a reservation, or the one that the placement made.
func (t *tx) admit(r flow.Ref) {
	m := *t.c.flow.Memberships.Get(r)
	x := t.c.flow.Instances.Get(m.InstanceRef())
	keep := x.Rules.Reconnect != flow.ReconnectOff && !x.Rules.NoHold
	g, _ := t.c.sessions.Game(session.ID(x.Game))
	id, ok := t.c.reservationIn(g, m.Player)
	if !ok {
		if game := t.c.sessions.Games.Get(g); game.SeatsHeld >= game.PlayersMax {
			t.endMembership(r, flow.SlotLost)
			return
		}
		id = t.reserve(r, false)
	}
	t.changeMembership(r, func(m *flow.Membership) {
		m.Status, m.Attempt, m.Session, m.Keep = flow.MemberReserved, 1, id, keep
		m.Epoch = t.c.flow.Players.Get(m.PlayerRef()).Epoch
	})
	t.wrapData(r)
	t.tellHost(r, flow.Allocated)
}

// reservationIn finds the reservation of a player in a game session.
func (c *Cell) reservationIn(g session.Ref, player string) (id domain.UUID, ok bool) {
	c.sessions.PlayersNamed(player, func(_ session.Ref, p *session.PlayerSession) bool {
		if p.Game == g && p.Status == session.Reserved {
			id, ok = p.ID, true
		}
		return !ok
	})
	return id, ok
}

// reserve makes a player session for a member: on the seat that is the member's already, or on a free one.
func (t *tx) reserve(r flow.Ref, kept bool) domain.UUID {
	m := t.c.flow.Memberships.Get(r)
	x := t.c.flow.Instances.Get(m.InstanceRef())
	by := t.contact.Add(x.Rules.Reservation)
	if open, overdue := t.overdue(m); overdue {
		by = open
	}
	id := t.newID()
	t.emit(&PlayerReserved{
		PlayerSession: id, GameSession: session.ID(x.Game), Player: m.Player, Data: m.Data,
		ReserveBy: by, Kept: kept,
	})
	return id
}

// overdue reports whether the hold of a seat has ended while a reservation was open, and when that expires: another one
// lasts no longer, or a player could keep a seat for ever by asking again and again. See holdOver.
func (t *tx) overdue(m *flow.Membership) (open domain.ContactTime, overdue bool) {
	p, ok := t.c.sessions.PlayerByID(m.Session)
	if !ok || m.Status != flow.MemberReserved || m.HoldBy == 0 {
		return 0, false
	}
	open = t.c.sessions.Players.Get(p).ReserveBy
	return open, m.HoldBy == open.Add(holdOverdue)
}

// tellHost tells a member how to reach the game server.
func (t *tx) tellHost(r flow.Ref, cause flow.Reason) {
	m := t.c.flow.Memberships.Get(r)
	host := t.c.hostOf(m)
	t.tellPlayers(flow.OnHostConnectionDetailsReceived, flow.Message{Host: host, Instance: m.Instance, Reason: cause}, m.Player)
}

// tellReconnect tells a member that the game goes on.
func (t *tx) tellReconnect(r flow.Ref) {
	m := t.c.flow.Memberships.Get(r)
	x := t.c.flow.Instances.Get(m.InstanceRef())
	t.tellPlayers(flow.OnReconnectAvailable, flow.Message{
		Instance: m.Instance, Reconnect: x.Rules.Reconnect, Deadline: t.c.holdUntil(m), CanDecline: x.Rules.Reconnect == flow.ReconnectOptional,
		Suspect: x.Suspect != 0,
	}, m.Player)
}

// hostOf is how a member reaches the game server, by the reservation that is to be used now; nil when there is none.
func (c *Cell) hostOf(m *flow.Membership) *flow.Host {
	x := c.flow.Instances.Get(m.InstanceRef())
	id := m.Session
	if !m.Next.IsZero() {
		id = m.Next
	}
	p, ok := c.sessions.PlayerByID(id)
	if !ok {
		return nil
	}
	ps := c.sessions.Players.Get(p)
	g := c.sessions.Games.Get(ps.Game)
	host := &flow.Host{
		Instance: x.ID, GameSession: string(g.ID), Region: g.Region, IPAddress: g.IPAddress, DNSName: g.DNSName, Port: g.Port,
		Session: ps.ID, Attempt: m.Attempt, Epoch: m.Epoch, Suspect: x.Suspect != 0, TokenUntil: m.TokenUntil,
	}
	if ps.ReserveBy != 0 {
		host.ReserveBy = c.wall(ps.ReserveBy)
	}
	if r, ok := c.fleets.Compute(g.FleetID, g.ComputeName); ok {
		host.TLS = c.fleets.Computes.Get(r).CertificatePath != ""
	}
	return host
}

// instanceNotPlaced ends a game instance that gets no host.
func (t *tx) instanceNotPlaced(id string, status placement.Status) {
	r, ok := t.c.flow.InstanceOfPlacement(id)
	if !ok {
		return
	}
	why := flow.HostError
	switch status {
	case placement.TimedOut:
		why = flow.NoCapacity
	case placement.Cancelled:
		why = flow.AllocationCancelled
	}
	t.failAllocation(r, why)
}

// failAllocation ends a game instance that nobody can play in.
func (t *tx) failAllocation(r flow.Ref, why flow.Reason) {
	t.flow.cause = "AllocationFailed"
	x := t.c.flow.Instances.Get(r)
	id, pending, game := x.ID, x.Placement, x.Game
	var out []flow.Membership
	for _, ref := range x.Members() {
		out = append(out, *t.c.flow.Memberships.Get(ref))
	}
	advices := t.advicesOf(out)
	t.closeInstance(r, flow.AllocationFailed, flow.AllocationFailed, "")
	if p, ok := t.c.placements.Placement(pending); ok && t.c.placements.Placements.Get(p).Status == placement.Pending {
		t.endPlacement(p, placement.Cancelled) // and with it the old tickets
	}
	requeued := t.requeue(t.c.flow.Instances.Get(r), out, advices)
	for _, m := range out {
		_, again := slices.BinarySearch(requeued, m.Player)
		t.tellPlayers(flow.OnFailedToAllocateGameInstance, flow.Message{Instance: id, Reason: why, Requeued: again}, m.Player)
	}
	t.stopHost(game) // one that was found and did not get ready
}

// closeInstance ends a game instance and all its memberships, in one transaction for all players. What they are told
// beside the change of their keys is the caller's matter.
func (t *tx) closeInstance(r flow.Ref, end, member flow.Reason, result string) {
	x := *t.c.flow.Instances.Get(r)
	members := slices.Clone(x.Members())
	t.changeInstance(r, func(x *flow.Instance) {
		x.Status, x.EndReason, x.Ended, x.Result = flow.InstanceEnded, end, t.now, result
		x.AllocateBy, x.AbsoluteBy, x.EndBy, x.EmptyBy, x.KeepAliveBy, x.Suspect = 0, 0, 0, 0, 0, 0
		x.ForgetAt = t.now.Add(t.c.flowConfig.Games.EndedKept)
	})
	for _, m := range members {
		t.dropMembership(m, end, member, result, x.Status != flow.InstancePending && end != flow.AllocationFailed)
	}
}

// dropMembership ends a membership: the keys, the hold, and a reservation that is still open.
func (t *tx) dropMembership(r flow.Ref, end, reason flow.Reason, result string, wasActive bool) {
	m := *t.c.flow.Memberships.Get(r)
	t.tellMemberEnd(&m, reason)
	t.emit(&MembershipEnded{m.Player, &flow.LastGame{Instance: m.Instance, EndReason: end, Membership: reason, Ended: t.now, Result: result}})
	t.adviceOfLeaver(&m)
	t.setKeys(m.PlayerRef(), func(k *flow.Keys) { k.Game = domain.UUID{} })
	for _, id := range []domain.UUID{m.Session, m.Next} {
		if p, ok := t.c.sessions.PlayerByID(id); ok && t.c.sessions.Players.Get(p).Status == session.Reserved {
			t.emit(&PlayerEnded{id, session.TimedOut})
		}
	}
	if wasActive {
		t.clearReady(m.PlayerRef())
	}
}

// clearReady makes a player not ready who has come out of a game.
func (t *tx) clearReady(r flow.Ref) {
	p := t.c.flow.Players.Get(r)
	party, ok := t.c.flow.Party(p.Keys.Party)
	if !ok {
		return
	}
	x := t.c.flow.Parties.Get(party)
	if i, ok := x.Member(p.ID); ok && x.Members[i].Ready {
		t.changeParty(party, flow.ReadyChanged, p.ID, func(x *flow.Party) { x.Members[i].Ready = false })
	}
}

// endInstance ends a game instance that was active, and tells its players.
func (t *tx) endInstance(r flow.Ref, end, member flow.Reason, result string, results map[string]string) {
	x := t.c.flow.Instances.Get(r)
	if !x.Live() {
		return
	}
	if x.Status == flow.InstancePending {
		t.failAllocation(r, flow.AllocationCancelled)
		return
	}
	id := x.ID
	var players []string
	for _, ref := range x.Members() {
		players = append(players, t.c.flow.Memberships.Get(ref).Player)
	}
	t.closeInstance(r, end, member, result)
	t.tellPlayers(flow.OnGameEnded, flow.Message{Instance: id, Reason: end, Result: result}, players...)
	for _, player := range players {
		t.tellPlayers(flow.OnRemovedFromGame, flow.Message{Instance: id, Reason: member, Result: results[player]}, player)
		if own, ok := results[player]; ok {
			p, _ := t.c.flow.Player(player)
			last := *t.c.flow.Players.Get(p).LastGame
			last.Result = own
			t.changePlayer(p, func(e *PlayerChanged) { e.LastGame = &last })
		}
	}
}

// endMembership ends the membership of one player, whose game goes on.
func (t *tx) endMembership(r flow.Ref, reason flow.Reason) {
	t.endMembershipWith(r, reason, "")
}

func (t *tx) endMembershipWith(r flow.Ref, reason flow.Reason, result string) {
	m := *t.c.flow.Memberships.Get(r)
	x := t.c.flow.Instances.Get(m.InstanceRef())
	t.dropMembership(r, flow.NoReason, reason, result, x.Status != flow.InstancePending)
	t.tellPlayers(flow.OnRemovedFromGame, flow.Message{Instance: m.Instance, Reason: reason, Result: result}, m.Player)
	t.planEmpty(m.InstanceRef())
	t.penaliseEnd(&m, reason)
}

// stopHost asks for the end of the game session of a game instance.
func (t *tx) stopHost(game string) {
	g, ok := t.c.sessions.Game(session.ID(game))
	if !ok || game == "" {
		return
	}
	if x := t.c.sessions.Games.Get(g); x.Live() && x.Status != session.Terminating {
		p := x.Process
		t.emit(&GameSessionTerminating{x.ID})
		t.askTermination(p, fleet.EndedForced)
	}
}

// hostEndReasons is what the end of a game session means for the game instance that it hosted.
var hostEndReasons = map[session.EndCause][2]flow.Reason{
	session.EndedByServer: {flow.Terminated, flow.GameTerminated}, session.EndedByForce: {flow.Terminated, flow.GameTerminated},
	session.EndedByCrash: {flow.HostLost, flow.HostLost}, session.EndedByReplacement: {flow.HostLost, flow.HostLost},
	session.EndedUnhealthy: {flow.HostLost, flow.HostLost}, session.EndedWithCompute: {flow.HostLost, flow.HostLost},
}

// hostEnds ends the game instance that a game session hosts. It runs before the player sessions end.
func (t *tx) hostEnds(g session.Ref, cause session.EndCause) {
	r, ok := t.c.flow.InstanceOfGame(string(t.c.sessions.Games.Get(g).ID))
	if !ok {
		return
	}
	t.flow.cause = "HostEnded"
	why, ok := hostEndReasons[cause]
	if !ok {
		why = [2]flow.Reason{flow.Terminated, flow.GameTerminated}
	}
	t.endInstance(r, why[0], why[1], "", nil)
}

// hostEnding lets nobody new into a game instance whose game session is to end.
func (t *tx) hostEnding(game session.ID) {
	r, ok := t.c.flow.InstanceOfGame(string(game))
	if !ok || t.c.flow.Instances.Get(r).Status != flow.InstanceActive {
		return
	}
	t.changeInstance(r, func(x *flow.Instance) {
		x.Status, x.EndBy, x.EmptyBy, x.AllocateBy = flow.InstanceEnding, t.contact.Add(x.Rules.EndingGrace), 0, 0
	})
	for _, m := range t.c.flow.Instances.Get(r).Members() {
		t.touch(t.c.flow.Memberships.Get(m).PlayerRef())
	}
}

// memberOf finds the membership that a player session belongs to, if it is the current one or the one that takes over.
func (t *tx) memberOf(player string, id domain.UUID) (r flow.Ref, next, ok bool) {
	p, known := t.c.flow.Player(player)
	if !known || t.c.flow.Players.Get(p).Membership() == 0 {
		return 0, false, false
	}
	r = t.c.flow.Players.Get(p).Membership()
	m := t.c.flow.Memberships.Get(r)
	return r, m.Next == id, m.Next == id || m.Session == id
}

// playerAccepted notes that a player has connected to the game server.
func (t *tx) playerAccepted(player string, id domain.UUID) {
	r, next, ok := t.memberOf(player, id)
	if !ok {
		return
	}
	t.flow.cause = "PlayerAccepted"
	old := t.c.flow.Memberships.Get(r).Session
	t.changeMembership(r, func(m *flow.Membership) {
		m.Status, m.Session, m.Next, m.HoldBy, m.HoldLeft, m.WasActive, m.Excused = flow.MemberActive, id, domain.UUID{}, 0, 0, true, false
	})
	if next {
		if p, ok := t.c.sessions.PlayerByID(old); ok && t.c.sessions.Players.Get(p).Status.Live() {
			t.emit(&PlayerEnded{old, session.Completed})
		}
	}
}

// playerCompleted notes that a game server has ended a player session without a reason. Of one that is not current it
// says nothing about the player. Last is what lastReservation said before.
func (t *tx) playerCompleted(player string, id domain.UUID, last bool) {
	r, next, ok := t.memberOf(player, id)
	if !ok {
		return
	}
	t.flow.cause = "PlayerCompleted"
	if next {
		t.changeMembership(r, func(m *flow.Membership) { m.Next = domain.UUID{} })
		return
	}
	m := t.c.flow.Memberships.Get(r)
	x := t.c.flow.Instances.Get(m.InstanceRef())
	switch {
	case m.Status == flow.MemberReserved:
		t.reservationOver(r, last)
	case x.Rules.Completed == flow.CompletedLeft:
		t.endMembership(r, flow.Left)
	case x.Rules.Completed == flow.CompletedAuto && x.Status == flow.InstanceEnding:
		t.endMembership(r, flow.GameEnded)
	default:
		t.connectionLost(r)
	}
}

// connectionLost is what becomes of a member who played and has lost the game connection.
func (t *tx) connectionLost(r flow.Ref) {
	m := *t.c.flow.Memberships.Get(r)
	rules := t.c.flow.Instances.Get(m.InstanceRef()).Rules
	lost := m.Disconnects + 1
	switch {
	case rules.Reconnect == flow.ReconnectOff:
		t.changeMembership(r, func(m *flow.Membership) { m.Disconnects, m.LostAt = lost, t.now })
		t.endMembership(r, flow.Disconnected)
		return
	case rules.Reconnect == flow.ReconnectOptional && rules.DisconnectsMax > 0 && lost > rules.DisconnectsMax:
		t.endMembership(r, flow.TooManyDisconnects)
		return
	}
	t.changeMembership(r, func(m *flow.Membership) {
		m.Status, m.Disconnects, m.LostAt = flow.MemberDisconnected, lost, t.now
		if rules.Reconnect == flow.ReconnectOptional {
			m.HoldBy = t.contact.Add(rules.ReconnectWindow)
		}
		if !m.Next.IsZero() { // who was about to take over still may
			m.Status, m.Session, m.Next = flow.MemberReserved, m.Next, domain.UUID{}
		}
	})
	t.excuseMany(m.InstanceRef())
	t.tellReconnect(r)
}

// excuseMany makes it no offence to have lost the connection when half of the players lost theirs at the same time.
func (t *tx) excuseMany(r flow.Ref) {
	var together []flow.Ref
	members := t.c.flow.Instances.Get(r).Members()
	for _, ref := range members {
		m := t.c.flow.Memberships.Get(ref)
		if m.LostAt != 0 && t.now.Sub(m.LostAt) <= t.c.flowConfig.Games.LossesTogether && m.Status != flow.MemberActive {
			together = append(together, ref)
		}
	}
	if len(together) < 2 || 2*len(together) < len(members) {
		return
	}
	for _, ref := range together {
		if !t.c.flow.Memberships.Get(ref).Excused {
			t.changeMembership(ref, func(m *flow.Membership) { m.Excused = true })
		}
	}
}

// playerTimedOut notes that a reservation has expired.
func (t *tx) playerTimedOut(player string, id domain.UUID) {
	r, next, ok := t.memberOf(player, id)
	if !ok {
		return
	}
	t.flow.cause = "ReservationExpired"
	if next {
		t.changeMembership(r, func(m *flow.Membership) { m.Next = domain.UUID{} })
		return
	}
	t.reservationOver(r, false) // if it was the last one, the hold ends right behind it
}

// lastReservation reports whether the hold of a seat has ended, and waits for this player session alone.
func (t *tx) lastReservation(player string, id domain.UUID) bool {
	r, next, ok := t.memberOf(player, id)
	if !ok || next {
		return false
	}
	_, last := t.overdue(t.c.flow.Memberships.Get(r))
	return last
}

// reservationOver is what becomes of a member who has not come in time. The last reservation ends the membership with it, or
// whoever lets it end early would get another one.
func (t *tx) reservationOver(r flow.Ref, last bool) {
	m := *t.c.flow.Memberships.Get(r)
	x := t.c.flow.Instances.Get(m.InstanceRef())
	rules, suspect := x.Rules, x.Suspect != 0
	switch {
	case last && !suspect && m.WasActive:
		t.endMembership(r, flow.ReconnectExpired)
		return
	case last && !suspect:
		t.endMembership(r, flow.NoShow)
		return
	}
	if m.WasActive {
		t.changeMembership(r, func(m *flow.Membership) { m.Status = flow.MemberDisconnected })
		return
	}
	if rules.Reconnect == flow.ReconnectOff && !suspect {
		t.endMembership(r, flow.NoShow)
		return
	}
	first := m.HoldBy == 0 && m.HoldLeft == 0
	t.changeMembership(r, func(m *flow.Membership) {
		m.Status = flow.MemberNoShow
		switch {
		case !first:
		case rules.Reconnect == flow.ReconnectOptional:
			m.HoldBy = t.contact.Add(rules.NoShowHold)
		case rules.Reconnect == flow.ReconnectOff: // it ends once the host is known to be there
			m.HoldBy = t.contact.Add(time.Millisecond)
		}
	})
	if rules.Reconnect != flow.ReconnectOff {
		t.tellReconnect(r)
	}
}

// holdOverdue is how long a hold that is over lasts behind the reservation that was open.
const holdOverdue = time.Millisecond

// holdOver ends a membership whose player has not come back in time; not before an open reservation has ended.
func (t *tx) holdOver(r flow.Ref) {
	t.flow.cause = "HoldOver"
	m := t.c.flow.Memberships.Get(r)
	switch m.Status {
	case flow.MemberReserved:
		by := t.contact
		if p, ok := t.c.sessions.PlayerByID(m.Session); ok {
			by = max(by, t.c.sessions.Players.Get(p).ReserveBy)
		}
		t.changeMembership(r, func(m *flow.Membership) { m.HoldBy = by.Add(holdOverdue) })
	case flow.MemberDisconnected:
		t.endMembership(r, flow.ReconnectExpired)
	case flow.MemberNoShow:
		t.endMembership(r, flow.NoShow)
	default:
		t.changeMembership(r, func(m *flow.Membership) { m.HoldBy = 0 })
	}
}

// reviewHost notes whether the host of a game instance is suspected to be gone: its link is lost, or it does not report
// that it is healthy. While it is, no clock of a kept seat runs.
func (t *tx) reviewHost(key fleet.Key) {
	process, ok := t.c.fleets.Process(key)
	if !ok || t.c.fleets.Processes.Get(process).Session == 0 {
		return
	}
	p := t.c.fleets.Processes.Get(process)
	r, ok := t.c.flow.InstanceOfGame(string(t.c.sessions.Games.Get(p.Session).ID))
	if !ok {
		return
	}
	well := p.Linked && p.Health != fleet.Unhealthy && !t.c.flow.Instances.Get(r).MissedOne
	t.suspect(r, !well)
}

func (t *tx) suspect(r flow.Ref, suspect bool) {
	x := t.c.flow.Instances.Get(r)
	if !x.Live() || suspect == (x.Suspect != 0) {
		return
	}
	t.changeInstance(r, func(x *flow.Instance) {
		x.Suspect = 0
		if suspect {
			x.Suspect = t.contact
		}
	})
	for _, ref := range slices.Clone(t.c.flow.Instances.Get(r).Members()) {
		m := t.c.flow.Memberships.Get(ref)
		switch {
		case suspect && m.HoldBy != 0: // changeMembership stops the clock
			t.changeMembership(ref, func(*flow.Membership) {})
		case !suspect && m.HoldLeft != 0:
			t.changeMembership(ref, func(m *flow.Membership) {
				m.HoldBy, m.HoldLeft = t.contact+domain.ContactTime(m.HoldLeft), 0
			})
		}
	}
}

// keepAliveMissed suspects a host that did not say that it is alive, and later gives it up.
func (t *tx) keepAliveMissed(r flow.Ref) {
	x := t.c.flow.Instances.Get(r)
	if !x.MissedOne && x.Rules.KeepAliveMisses > 1 {
		t.changeInstance(r, func(x *flow.Instance) {
			x.MissedOne = true
			x.KeepAliveBy = t.contact.Add(x.Rules.KeepAlive * time.Duration(x.Rules.KeepAliveMisses-1))
		})
		t.suspect(r, true)
		return
	}
	t.flow.cause = "KeepAliveLost"
	game := x.Game
	t.endInstance(r, flow.HostLost, flow.HostLost, "", nil)
	t.stopHost(game)
}
