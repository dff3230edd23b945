package playerflow

import (
	"slices"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/quota"
	"github.com/musterhq/muster/internal/domain/session"
)

// MakeGame starts a game with players who were matched by the studio's backend. It moves all of them in one transaction, or none.
type MakeGame struct {
	Plan GamePlan

	// Result
	Instance flow.Instance
	Repeated bool
}

// Hold implements quota.Taker.
func (cmd *MakeGame) Hold(h quota.Holder) { cmd.Plan.Holder = h }

func (cmd *MakeGame) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	if err := t.flowOn(); err != nil {
		return err
	}
	if r, ok := t.Flow.Instance(cmd.Plan.ID); ok {
		cmd.Instance, cmd.Repeated = *t.Flow.Instances.Get(r), true
		return nil
	}
	begin, err := t.Games.checkPlan(&cmd.Plan)
	if err != nil {
		return err
	}
	t.Cause = "Flow.CreateGameInstance"
	begin()
	r, _ := t.Flow.Instance(cmd.Plan.ID)
	cmd.Instance = *t.Flow.Instances.Get(r)
	return nil
}

// ReadyGame records that a server accepts players (Game.Ready). It matters only with manualReady.
type ReadyGame struct{ Instance flow.InstanceID }

func (cmd *ReadyGame) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	r, err := t.Games.served(cmd.Instance, "Game.Ready")
	if err != nil {
		return err
	}
	switch x := t.Flow.Instances.Get(r); {
	case x.Ready:
		return nil
	case x.Status == flow.InstanceEnding:
		return flow.Refuse(flow.Refusal{Code: flow.GameIsEnding}, "game instance %s is about to end", x.ID)
	}
	t.changeInstance(r, func(x *flow.Instance) { x.Ready, x.AllocateBy = true, 0 })
	t.Memberships.admitAll(r)
	return nil
}

// ConnectMember records that a player has connected to the game server (Game.PlayerConnected). It is AcceptPlayer for a server that
// authenticates by its game session.
type ConnectMember struct {
	Instance      flow.InstanceID
	PlayerSession domain.PlayerSessionID
}

func (cmd *ConnectMember) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	r, err := t.Games.served(cmd.Instance, "Game.PlayerConnected")
	if err != nil {
		return err
	}
	p, err := t.Memberships.sessionOf(r, cmd.PlayerSession)
	switch {
	case err != nil:
		return err
	case p.Status == session.PlayerActive:
		return nil
	case p.Status != session.Reserved:
		return domain.Refuse(domain.WrongPlayerState, "player session %s is %s, not RESERVED", p.ID, p.Status)
	}
	t.hosting.Accept(p, 0)
	return nil
}

// DisconnectMember records that a player's game connection is gone (Game.PlayerDisconnected), and whether the player quit. It may arrive
// after the end of the player session, which the server SDK reports without a reason.
type DisconnectMember struct {
	Instance      flow.InstanceID
	PlayerSession domain.PlayerSessionID
	Quit          bool

	// Result: Stale if the player session is not the player's current one; the membership did not change. A repeat is not stale.
	Stale bool
}

func (cmd *DisconnectMember) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	r, err := t.Games.served(cmd.Instance, "Game.PlayerDisconnected")
	if err != nil {
		return err
	}
	p, err := t.Memberships.sessionOf(r, cmd.PlayerSession)
	if err != nil {
		return err
	}
	player, id, live, game := p.Player, p.ID, p.Status.Live(), p.Game
	last := t.Memberships.SeatEnding(player, id)
	m, next, ok := t.Memberships.ofSession(player, id)
	cmd.Stale = !ok && !cmd.repeats(t, r, player) || next
	if live {
		t.hosting.EndSeat(id, session.Completed)
	}
	switch {
	case next && live:
		t.changeMembership(m, func(m *flow.Membership) { m.Next = domain.PlayerSessionID{} })
	case !ok || next:
	case cmd.Quit && (live || t.Flow.Memberships.Get(m).Status == flow.MemberDisconnected):
		t.Memberships.end(m, flow.Left)
	case !live: // the loss is already recorded
	case t.Flow.Memberships.Get(m).Status == flow.MemberReserved:
		t.Memberships.reservationOver(m, last)
	default:
		t.Memberships.connectionLost(m)
	}
	t.matchmaking.PlayerLeft(game)
	return nil
}

// repeats reports whether an earlier call like this one ended the membership.
func (cmd *DisconnectMember) repeats(t *Tx, r flow.InstanceRef, player string) bool {
	if _, member := t.memberIn(r, player); member {
		return false
	}
	if cmd.Quit {
		return t.Memberships.leftBy(cmd.Instance, player, flow.Left)
	}
	return t.Memberships.leftBy(cmd.Instance, player, flow.Disconnected) || t.Memberships.leftBy(cmd.Instance, player, flow.TooManyDisconnects)
}

// RemoveMembers removes players from a game that continues (Game.RemovePlayers).
type RemoveMembers struct {
	Instance flow.InstanceID
	Players  []RemovedMember

	// Result: those who were not in the game.
	Unknown []string
}

// RemovedMember is a player to remove, with the reason.
type RemovedMember struct {
	Player   string
	Reason   flow.Reason // RemovedAFK, RemovedKicked, RemovedEliminated or Removed
	Penalise bool
	Result   string
}

func (cmd *RemoveMembers) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	r, err := t.Games.served(cmd.Instance, "Game.RemovePlayers")
	if err != nil {
		return err
	}
	for _, x := range cmd.Players {
		m, ok := t.memberIn(r, x.Player)
		if !ok {
			if !t.Memberships.leftBy(cmd.Instance, x.Player, flow.Removed) {
				cmd.Unknown = append(cmd.Unknown, x.Player)
			}
			continue
		}
		current := t.Flow.Memberships.Get(m).Session
		player, unasked := t.Flow.Memberships.Get(m).PlayerRef(), t.Flow.Memberships.Get(m).Unasked
		t.Memberships.endWith(m, flow.Removed, x.Result)
		t.Memberships.completeSession(current)
		if x.Penalise && x.Reason == flow.RemovedAFK && !unasked {
			t.penalties.add(player, flow.AFK, cmd.Instance, x.Reason)
		}
	}
	return nil
}

// ReleaseMembers ends memberships without a penalty (Game.ReleasePlayers); under REQUIRED it is the only way out.
type ReleaseMembers struct {
	Instance flow.InstanceID
	Players  []string
	Result   string

	// Result: those who were not in the game.
	Unknown []string
}

func (cmd *ReleaseMembers) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	r, err := t.Games.served(cmd.Instance, "Game.ReleasePlayers")
	if err != nil {
		return err
	}
	for _, player := range cmd.Players {
		if m, ok := t.memberIn(r, player); ok {
			t.Memberships.endWith(m, flow.Released, cmd.Result)
		} else if !t.Memberships.leftBy(cmd.Instance, player, flow.Released) {
			cmd.Unknown = append(cmd.Unknown, player)
		}
	}
	return nil
}

// AddMembers seats players who are idle or in a party (Game.AddPlayers). It returns those whom it could not seat.
type AddMembers struct {
	Instance flow.InstanceID
	Players  []PlannedPlayer

	// ByGame: the game server makes the request, not the studio's backend. A game server may seat only players who were in this game before,
	// because those asked for it or the backend named them. Nothing that follows counts as an offence of theirs.
	ByGame bool

	// Result
	Failed []FailedPlayer
}

// FailedPlayer is a player who was not seated, and why.
type FailedPlayer struct {
	Player string
	Why    flow.Code
}

func (cmd *AddMembers) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	r, err := t.Games.served(cmd.Instance, "Game.AddPlayers")
	if err != nil {
		return err
	}
	for _, x := range cmd.Players {
		p, err := t.playerNamed(x.Player)
		if err == nil {
			if _, ok := t.memberIn(r, x.Player); ok {
				continue // a repeat
			}
			err = t.mayPlayDirectly(p)
		}
		if err == nil && cmd.ByGame && !t.Memberships.wasIn(cmd.Instance, p) {
			err = flow.Refuse(flow.Refusal{Code: flow.JoinNotAllowed}, "player %s was never in game instance %s; the studio's backend may add the player", x.Player, cmd.Instance)
		}
		if err == nil {
			err = t.Games.hasRoom(r, 1)
		}
		if err != nil {
			cmd.Failed = append(cmd.Failed, FailedPlayer{x.Player, flow.CodeOf(err)})
			continue
		}
		t.Memberships.addSeated(r, newMember{player: p, team: x.Team, data: x.Data, unasked: cmd.ByGame})
	}
	return nil
}

// UpdateGame records what the game server reports about the game and its players (Game.Update).
type UpdateGame struct {
	Instance         flow.InstanceID
	Attributes       *string
	PlayerAttributes map[string]string
	Unranked         *bool // leaving the game is not an offence from now on
}

func (cmd *UpdateGame) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	r, err := t.Games.served(cmd.Instance, "Game.Update")
	if err != nil {
		return err
	}
	t.changeInstance(r, func(x *flow.Instance) {
		kernel.Patch(&x.Attributes, cmd.Attributes)
		kernel.Patch(&x.Unranked, cmd.Unranked)
	})
	var players []string
	for _, m := range slices.Clone(t.Flow.Instances.Get(r).Members()) {
		player := t.Flow.Memberships.Get(m).Player
		if own, ok := cmd.PlayerAttributes[player]; ok {
			t.changeMembership(m, func(m *flow.Membership) { m.Attributes = own })
		}
		players = append(players, player)
	}
	t.tellPlayers(flow.OnGameInstanceUpdated, flow.Message{Instance: cmd.Instance, Attributes: t.Flow.Instances.Get(r).Attributes}, players...)
	return nil
}

// KeepGameAlive is a keep-alive of a game server that has promised to send them (Game.KeepAlive).
type KeepGameAlive struct{ Instance flow.InstanceID }

func (cmd *KeepGameAlive) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	r, err := t.Games.served(cmd.Instance, "Game.KeepAlive")
	if err != nil {
		return err
	}
	x := t.Flow.Instances.Get(r)
	if x.Rules.KeepAlive == 0 {
		return nil
	}
	missed, game := x.MissedOne, x.Game
	t.changeInstance(r, func(x *flow.Instance) { x.MissedOne, x.KeepAliveBy = false, t.Contact.Add(x.Rules.KeepAlive) })
	if g, ok := t.hosting.FindGame(session.ID(game)); ok && missed && t.hosting.Game(g).Process != 0 {
		t.Games.HostChanged(t.hosting.Process(fleet.ProcessRef(t.hosting.Game(g).Process)).Key)
	}
	return nil
}

// EndGame ends the game and records its results (Game.EndGame). A second EndGame changes nothing.
type EndGame struct {
	Instance flow.InstanceID
	Result   string            // a JSON object; empty for none
	Results  map[string]string // per player
}

func (cmd *EndGame) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	if err := t.flowOn(); err != nil {
		return err
	}
	r, ok := t.Flow.Instance(cmd.Instance)
	if !ok {
		return flow.Refuse(flow.Refusal{Code: flow.GameInstanceNotFound}, "game instance %s not found", cmd.Instance)
	}
	t.Cause = "Game.EndGame"
	if x := t.Flow.Instances.Get(r); x.Live() {
		t.backfills.stop(x.Game)
	}
	t.Games.end(r, flow.Finished, flow.GameEnded, cmd.Result, cmd.Results)
	return nil
}

// SetPlayerAttributes sets a player's attributes on behalf of the studio's backend. They override those of the client.
type SetPlayerAttributes struct {
	Player     string
	Attributes string // a JSON object; empty for none
}

func (cmd *SetPlayerAttributes) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	if err := t.flowOn(); err != nil {
		return err
	}
	if err := checkPlayerID("player_id", cmd.Player); err != nil {
		return err
	}
	e := &PlayerChanged{Player: cmd.Player, Profile: &flow.Profile{Trusted: cmd.Attributes}}
	r, ok := t.Flow.Player(cmd.Player)
	if !ok {
		if err := t.roomForDescribed(); err != nil {
			return err
		}
		t.Emit(e)
		return nil
	}
	profile := profileOf(t.Flow.Players.Get(r))
	profile.Trusted = cmd.Attributes
	t.changePlayer(r, func(e *PlayerChanged) { e.Profile = &profile })
	return nil
}

// SetBlocks sets the players from whom a player receives no invites and with whom the player shares no party.
type SetBlocks struct {
	Player  string
	Blocked []string
}

// BlockedMax bounds a player's list of blocked players.
const BlockedMax = 1000

func (cmd *SetBlocks) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	if err := t.flowOn(); err != nil {
		return err
	}
	if err := checkPlayerID("player_id", cmd.Player); err != nil {
		return err
	}
	if len(cmd.Blocked) > BlockedMax {
		return flow.Refuse(flow.Refusal{Code: flow.InvalidArgument}, "blocked: %d players, want at most %d", len(cmd.Blocked), BlockedMax)
	}
	for _, blocked := range cmd.Blocked {
		if err := checkPlayerID("blocked", blocked); err != nil {
			return err
		}
	}
	r, ok := t.Flow.Player(cmd.Player)
	if !ok { // a player who has not logged in yet
		if err := t.roomForDescribed(); err != nil {
			return err
		}
		t.Emit(&PlayerChanged{Player: cmd.Player, Blocked: slices.Clone(cmd.Blocked)})
		return nil
	}
	t.changePlayer(r, func(e *PlayerChanged) { e.Blocked = slices.Clone(cmd.Blocked) })
	return nil
}
