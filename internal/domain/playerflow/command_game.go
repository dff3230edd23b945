package playerflow

import (
	"strings"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/matchmaking"
	"github.com/musterhq/muster/internal/domain/placement"
	"github.com/musterhq/muster/internal/domain/session"
)

// ownGame finds the membership of a player in the game instance that the player means.
func (t *Tx) ownGame(r flow.PlayerRef, instance domain.UUID) (flow.MembershipRef, error) {
	p := t.Flow.Players.Get(r)
	if p.Keys.Game == instance && !instance.IsZero() {
		return p.Membership(), nil
	}
	if l := p.LastGame; l != nil && l.Instance == instance && l.EndReason != flow.NoReason && l.Ended.Add(t.Config.Games.LastGameKept) > t.Now {
		return 0, flow.Refuse(flow.Refusal{Code: flow.GameHasEnded, Instance: instance}, "game instance gi-%s has ended: %s", instance, l.EndReason)
	}
	return 0, flow.Refuse(flow.Refusal{Code: flow.NotInGame}, "player %s is not in game instance gi-%s", p.ID, instance)
}

// GetHostConnectionDetails asks how to reach the game server. It may make a new reservation: to come back to a seat that
// is kept, or to take over from another device. Made is the player session.
type GetHostConnectionDetails struct {
	Caller
	Instance domain.UUID
	Data     *string // PlayerData of a reservation that is made by it; nil: that of the one before

	// Result
	Host *flow.Host
	// Lost says that the seat was not kept and nobody else has left: GAME_FULL, and the membership has ended. It is no
	// refusal, because something has changed.
	Lost bool
}

func (cmd *GetHostConnectionDetails) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	r, done, err := t.caller(&cmd.Caller, "GetHostConnectionDetails")
	if err != nil {
		return err
	}
	if done {
		if m := t.Flow.Players.Get(r).Membership(); m != 0 {
			cmd.Host = t.HostOf(t.Flow.Memberships.Get(m))
		}
		cmd.Lost = cmd.Made.IsZero()
		return nil
	}
	if cmd.Look {
		reach, err := t.mayReach(r, cmd.Instance)
		cmd.Would = err == nil && !reach.again && !reach.lost
		return err
	}
	cmd.Host, err = t.connectionDetails(r, cmd.Instance, cmd.Data)
	if err != nil {
		return err
	}
	if cmd.Lost = cmd.Host == nil; !cmd.Lost {
		cmd.Made = domain.UUID(cmd.Host.Session)
	}
	return nil
}

// reach is how a member is to reach the game server.
type reach struct {
	member flow.MembershipRef
	open   domain.PlayerSessionID // player session that is reserved, if one is
	again  bool                   // it is good for a while yet
	lost   bool                   // the seat was not kept, and nobody else has left
}

// mayReach checks that a member can be told how to reach the game server.
func (t *Tx) mayReach(r flow.PlayerRef, instance domain.UUID) (way reach, err error) {
	way.member, err = t.ownGame(r, instance)
	if err != nil {
		return way, err
	}
	ref := way.member
	p := t.Flow.Players.Get(r)
	m := *t.Flow.Memberships.Get(ref)
	x := t.Flow.Instances.Get(m.InstanceRef())
	switch {
	case m.Status == flow.MemberPending:
		return way, flow.Refuse(flow.Refusal{Code: flow.HostNotReady}, "game instance gi-%s has no host that takes players yet", x.ID)
	case x.Status == flow.InstanceEnding:
		return way, flow.Refuse(flow.Refusal{Code: flow.GameIsEnding}, "game instance gi-%s is about to end", x.ID)
	case m.Status == flow.MemberActive && x.Rules.DenyTakeover:
		return way, flow.Refuse(flow.Refusal{Code: flow.NotDisconnected}, "player %s is connected to the game", p.ID)
	}
	way.open = m.Session
	if m.Status == flow.MemberActive {
		way.open = m.Next
	}
	way.again = t.stillGood(way.open, x) && m.Epoch == p.Epoch && t.tokenGood(&m, x)
	if !way.again && m.Seat == 0 && !t.seatedNow(&m) {
		g, _ := t.hosting.FindGame(session.ID(x.Game))
		game := t.hosting.Game(g)
		way.lost = game.SeatsHeld >= game.PlayersMax
	}
	return way, nil
}

// connectionDetails gives a member the details, with a reservation that is good for a while. No host and no error mean that the
// seat is lost, and with it the membership.
func (t *Tx) connectionDetails(r flow.PlayerRef, instance domain.UUID, data *string) (*flow.Host, error) {
	way, err := t.mayReach(r, instance)
	switch {
	case err != nil:
		return nil, err
	case way.again:
		t.tellHost(way.member, flow.Resent)
	case way.lost:
		t.endMembership(way.member, flow.SlotLost)
		return nil, nil
	default:
		if data != nil && *data != t.Flow.Memberships.Get(way.member).Data {
			t.changeMembership(way.member, func(m *flow.Membership) { m.Data = *data })
		}
		t.makeReservation(way.member, way.open, t.Flow.Players.Get(r).Epoch)
	}
	return t.HostOf(t.Flow.Memberships.Get(way.member)), nil
}

// stillGood reports whether a reservation is open and has enough time left to be used.
func (t *Tx) stillGood(id domain.PlayerSessionID, x *flow.Instance) bool {
	r, ok := t.hosting.FindPlayer(id)
	if !ok {
		return false
	}
	p := t.hosting.PlayerSession(r)
	return p.Status == session.Reserved && p.ReserveBy >= t.Contact.Add(t.leastLeft(x))
}

// leastLeft is how much time a reservation must have left to be worth giving out.
func (t *Tx) leastLeft(x *flow.Instance) time.Duration {
	return min(t.Config.Games.MinLeft, x.Rules.Reservation/2)
}

// tokenGood reports whether the token of the latest reservation lives long enough. One whose hash is known to the game server
// does not live longer because the service was down, though its reservation does.
func (t *Tx) tokenGood(m *flow.Membership, x *flow.Instance) bool {
	return m.TokenUntil == 0 || m.TokenUntil >= t.Now.Add(t.leastLeft(x))
}

// seatedNow reports whether a player session of the membership sits on a seat.
func (t *Tx) seatedNow(m *flow.Membership) bool {
	for _, id := range []domain.PlayerSessionID{m.Session, m.Next} {
		if r, ok := t.hosting.FindPlayer(id); ok && t.hosting.PlayerSession(r).Status.Live() {
			return true
		}
	}
	return false
}

// makeReservation gives a member a new player session, on the same seat where there is one, and voids the one that is open.
func (t *Tx) makeReservation(ref flow.MembershipRef, open domain.PlayerSessionID, epoch uint32) {
	takeover := t.Flow.Memberships.Get(ref).Status == flow.MemberActive
	id, old := t.reserve(ref, true), t.Flow.Memberships.Get(ref).Session
	cause := flow.Reconnected
	t.changeMembership(ref, func(m *flow.Membership) {
		m.Attempt++
		m.Epoch = epoch
		switch {
		case takeover:
			cause, m.Next = flow.Takeover, id
		default:
			m.Status, m.Session = flow.MemberReserved, id
		}
	})
	if r, ok := t.hosting.FindPlayer(open); ok && t.hosting.PlayerSession(r).Status == session.Reserved {
		t.hosting.EndSeat(open, session.TimedOut)
	}
	t.wrapData(ref)
	t.tellReservation(t.Flow.Memberships.Get(ref), id, old, takeover)
	t.tellHost(ref, cause)
}

// inGame refuses what players who are in a game cannot do, and says which of them could get out of it.
func (t *Tx) inGame(players ...flow.PlayerRef) error {
	refusal := flow.Refusal{Code: flow.PlayerInGame}
	for _, r := range players {
		p := t.Flow.Players.Get(r)
		refusal.Players = append(refusal.Players, p.ID)
		if t.mayDecline(t.Flow.Memberships.Get(p.Membership())) {
			refusal.Decliners = append(refusal.Decliners, p.ID)
		}
	}
	return flow.Refuse(refusal, "in a game: %s", strings.Join(refusal.Players, ", "))
}

// mayDecline is the row of DeclineReconnect: only a player who is not in the game, and not under OFF or REQUIRED.
func (c *State) mayDecline(m *flow.Membership) bool {
	return c.Flow.Instances.Get(m.InstanceRef()).Rules.Reconnect == flow.ReconnectOptional && m.Status != flow.MemberActive && m.Status != flow.MemberPending
}

// gameCaller finds the membership of the player who wishes something of a game; see caller.
func (t *Tx) gameCaller(by *Caller, cause string, instance domain.UUID) (member flow.MembershipRef, done bool, err error) {
	r, done, err := t.caller(by, cause)
	if err == nil && !done {
		member, err = t.ownGame(r, instance)
	}
	return member, done, err
}

// DeclineReconnect gives up the seat that is kept.
type DeclineReconnect struct {
	Caller
	Instance domain.UUID
}

func (cmd *DeclineReconnect) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	ref, done, err := t.gameCaller(&cmd.Caller, "DeclineReconnect", cmd.Instance)
	if err != nil || done {
		return err
	}
	m := t.Flow.Memberships.Get(ref)
	if mode := t.Flow.Instances.Get(m.InstanceRef()).Rules.Reconnect; mode != flow.ReconnectOptional {
		return flow.Refuse(flow.Refusal{Code: flow.CannotDeclineReconnect}, "reconnect is %s in game instance gi-%s", mode, cmd.Instance)
	}
	if !t.mayDecline(m) {
		return flow.Refuse(flow.Refusal{Code: flow.NotDisconnected}, "player %s is %s in game instance gi-%s", cmd.Player, m.Status, cmd.Instance)
	}
	t.endMembership(ref, flow.DeclinedReconnect)
	return nil
}

// LeaveGame goes out of the game for good.
type LeaveGame struct {
	Caller
	Instance domain.UUID
}

func (cmd *LeaveGame) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	ref, done, err := t.gameCaller(&cmd.Caller, "LeaveGame", cmd.Instance)
	if err != nil || done {
		return err
	}
	if t.Flow.Instances.Get(t.Flow.Memberships.Get(ref).InstanceRef()).Rules.Reconnect == flow.ReconnectRequired {
		return flow.Refuse(flow.Refusal{Code: flow.LeaveNotAllowed}, "game instance gi-%s is not to be left: reconnect is REQUIRED", cmd.Instance)
	}
	t.endMembership(ref, flow.Left)
	return nil
}

// CreateGameInstance is a player's own game instance. Made is its id; it is off by default.
type CreateGameInstance struct {
	Caller
	Plan GamePlan // what the studio says; what is absent is as the service has it: the queue, how many players, their latencies
	Data string   // PlayerData of the player
	Size int32    // how many players the caller wants; 0: as many as the service has it. The studio's word is above it
}

func (cmd *CreateGameInstance) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	r, done, err := t.caller(&cmd.Caller, "CreateGameInstance")
	if err != nil || done {
		return err
	}
	if err := t.mayPlayDirectly(r); err != nil {
		return err
	}
	plan := cmd.Plan
	if err := t.completePlan(&plan, r, cmd.Size); err != nil {
		return err
	}
	if plan.Queue == "" && cmd.looks() { // the studio may name one yet
		return nil
	}
	if plan.Queue == "" {
		return flow.Refuse(flow.Refusal{Code: flow.JoinNotAllowed}, "nobody says which queue places the game instances of players")
	}
	plan.Players = []PlannedPlayer{{Player: cmd.Player, Data: cmd.Data}}
	begin, err := t.checkPlan(&plan)
	if err != nil || cmd.looks() {
		return err
	}
	begin()
	cmd.Made = plan.ID
	return nil
}

// completePlan fills in what a player's plan leaves to the service.
func (t *Tx) completePlan(plan *GamePlan, r flow.PlayerRef, size int32) error {
	config := &t.Config.Games
	if !config.DirectCreate {
		return flow.Refuse(flow.Refusal{Code: flow.JoinNotAllowed}, "players do not create game instances here")
	}
	if plan.Queue == "" {
		plan.Queue = config.DirectQueue
	}
	if size < 0 || size > config.DirectPlayersMax {
		return flow.Refuse(flow.Refusal{Code: flow.InvalidArgument}, "max_players: %d, want 1 to %d", size, config.DirectPlayersMax)
	}
	switch {
	case plan.PlayersMax != 0:
	case size != 0:
		plan.PlayersMax = size
	default:
		plan.PlayersMax = config.DirectPlayersMax
	}
	if plan.Latencies == nil {
		p := t.Flow.Players.Get(r)
		for _, l := range profileOf(p).Latencies {
			plan.Latencies = append(plan.Latencies, placement.Latency{Player: p.ID, Location: l.Region, Milliseconds: float32(l.Milliseconds)})
		}
	}
	return nil
}

// mayPlayDirectly checks that a player is free for a game without matchmaking.
func (t *Tx) mayPlayDirectly(r flow.PlayerRef) error {
	p := t.Flow.Players.Get(r)
	switch {
	case p.Keys.Phase() == flow.Matchmaking:
		return flow.Refuse(flow.Refusal{Code: flow.InMatchmaking, Players: []string{p.ID}}, "player %s is in matchmaking", p.ID)
	case !p.Keys.Game.IsZero():
		return t.inGame(r)
	}
	return nil
}

// JoinGameInstance takes a free seat in a game instance that is active; it is off by default. Made is its id.
type JoinGameInstance struct {
	Caller
	Instance domain.UUID
	Team     string
	Data     string // PlayerData of the player
}

func (cmd *JoinGameInstance) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	r, done, err := t.caller(&cmd.Caller, "JoinGameInstance")
	if err != nil || done {
		return err
	}
	if err := t.mayPlayDirectly(r); err != nil {
		return err
	}
	if !t.Config.Games.DirectJoin {
		return flow.Refuse(flow.Refusal{Code: flow.JoinNotAllowed}, "players do not join game instances here")
	}
	x, err := t.liveInstance(cmd.Instance)
	if err != nil {
		return err
	}
	if err := t.hasRoom(x, 1); err != nil {
		return err
	}
	if !t.letsIn(x) {
		return flow.Refuse(flow.Refusal{Code: flow.JoinNotAllowed}, "the game session of gi-%s accepts no new players (DENY_ALL)", cmd.Instance)
	}
	if cmd.looks() {
		return nil
	}
	t.seatNewcomer(x, newMember{player: r, team: cmd.Team, data: cmd.Data})
	cmd.Made = cmd.Instance
	return nil
}

// UpdateOwnGame changes the attributes of the game instance that the caller is in. Made is its id.
type UpdateOwnGame struct {
	Caller
	Attributes string      // a JSON object
	Instance   domain.UUID // the one that the studio was asked about; zero: whichever it is
}

func (cmd *UpdateOwnGame) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	r, done, err := t.caller(&cmd.Caller, "UpdateGameInstance")
	if err != nil || done {
		return err
	}
	p := t.Flow.Players.Get(r)
	if p.Membership() == 0 || !cmd.Instance.IsZero() && cmd.Instance != p.Keys.Game {
		return flow.Refuse(flow.Refusal{Code: flow.NotInGame}, "player %s is in no game, or in another one", p.ID)
	}
	cmd.Made = p.Keys.Game
	x := t.Flow.Memberships.Get(p.Membership()).InstanceRef()
	if t.Flow.Instances.Get(x).Status == flow.InstanceEnding {
		return flow.Refuse(flow.Refusal{Code: flow.GameIsEnding}, "game instance gi-%s is about to end", cmd.Made)
	}
	if cmd.looks() {
		return nil
	}
	t.changeInstance(x, func(x *flow.Instance) { x.Attributes = cmd.Attributes })
	var players []string
	for _, m := range t.Flow.Instances.Get(x).Members() {
		players = append(players, t.Flow.Memberships.Get(m).Player)
	}
	t.tellPlayers(flow.OnGameInstanceUpdated, flow.Message{Instance: cmd.Made, Attributes: cmd.Attributes}, players...)
	return nil
}

// liveInstance finds a game instance that has not ended.
func (t *Tx) liveInstance(id domain.UUID) (flow.InstanceRef, error) {
	r, ok := t.Flow.Instance(id)
	switch {
	case !ok:
		return 0, flow.Refuse(flow.Refusal{Code: flow.GameInstanceNotFound}, "game instance gi-%s not found", id)
	case !t.Flow.Instances.Get(r).Live():
		return 0, flow.Refuse(flow.Refusal{Code: flow.GameHasEnded, Instance: id}, "game instance gi-%s has ended", id)
	}
	return r, nil
}

// unseated is how many members of a game instance wait for Game.Ready and hold no seat in its game session: what its placement
// reserved for them, if it did, has expired. Their seats are theirs all the same.
func (c *State) unseated(r flow.InstanceRef, game session.GameRef) (n int32) {
	x := c.Flow.Instances.Get(r)
	if x.Ready {
		return 0
	}
	for _, ref := range x.Members() {
		if c.waitsForSeat(c.Flow.Memberships.Get(ref), game) {
			n++
		}
	}
	return n
}

func (c *State) waitsForSeat(m *flow.Membership, game session.GameRef) bool {
	if m.Status != flow.MemberPending {
		return false
	}
	_, reserved := c.reservationIn(game, m.Player)
	return !reserved
}

// hasRoom checks that newcomers can be seated in a game instance now.
func (t *Tx) hasRoom(r flow.InstanceRef, newcomers int32) error {
	x := t.Flow.Instances.Get(r)
	switch x.Status {
	case flow.InstancePending:
		return flow.Refuse(flow.Refusal{Code: flow.HostNotReady}, "game instance gi-%s has no host yet", x.ID)
	case flow.InstanceEnding:
		return flow.Refuse(flow.Refusal{Code: flow.GameIsEnding}, "game instance gi-%s is about to end", x.ID)
	}
	g, _ := t.hosting.FindGame(session.ID(x.Game))
	waiting := t.unseated(r, g)
	if game := t.hosting.Game(g); game.SeatsHeld+waiting+newcomers > game.PlayersMax {
		return flow.Refuse(flow.Refusal{Code: flow.GameFull}, "game instance gi-%s: %d of %d seats are taken", x.ID, game.SeatsHeld+waiting, game.PlayersMax)
	}
	return nil
}

// letsIn reports whether the game session of a game instance takes players who come by themselves. Its policy is its server's,
// which may bring some nevertheless; and it says nothing of those who belong to the game.
func (t *Tx) letsIn(r flow.InstanceRef) bool {
	g, ok := t.hosting.FindGame(session.ID(t.Flow.Instances.Get(r).Game))
	return ok && matchmaking.TakesPlayers(t.hosting.Game(g))
}

// seatNewcomer adds a player to a game instance that is active.
func (t *Tx) seatNewcomer(r flow.InstanceRef, m newMember) {
	t.addMember(r, m)
	if t.Flow.Instances.Get(r).Ready {
		t.admit(t.Flow.Players.Get(m.player).Membership())
	}
}
