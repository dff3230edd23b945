package cell

import (
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/session"
)

// NewPlayer is a player who wants a seat.
type NewPlayer struct {
	ID     domain.UUID // of the player session to be
	Player string
	Data   string
}

// ReservePlayers takes seats in a game session: one for each player, or none.
type ReservePlayers struct {
	Game    session.ID
	Players []NewPlayer
	By      domain.Maker

	// Result: one for each of Players, in their order.
	Reserved []PlayerSession
}

func (cmd *ReservePlayers) decide(t *tx) error {
	r, g, err := t.gameByID(cmd.Game)
	taken := int32(0)
	if err == nil {
		taken = g.SeatsHeld + t.awaited(r, cmd.Players)
	}
	switch wanted := int32(len(cmd.Players)); {
	case len(cmd.Players) > t.c.config.PlayersInOneCommandMax:
		return domain.Refuse(domain.Invalid, "PlayerIds: %d players; at most %d are allowed", wanted, t.c.config.PlayersInOneCommandMax)
	case err != nil:
		return err
	case g.Status != session.Active:
		return domain.Refuse(domain.WrongGameStatus, "game session %s is %s; players can join an ACTIVE one", g.ID, g.Status)
	case g.DenyPlayers:
		return domain.Refuse(domain.WrongGameStatus, "game session %s accepts no new players (DENY_ALL)", g.ID)
	case taken+wanted > g.PlayersMax: // not ==: the maximum can be lowered below what is held
		return domain.Refuse(domain.Full, "game session %s: %d of %d player slots are taken, %d wanted", g.ID, taken, g.PlayersMax, wanted)
	}
	for i, p := range cmd.Players {
		for _, q := range cmd.Players[:i] {
			if p.Player == q.Player {
				return domain.Refuse(domain.Invalid, "PlayerIds[%d]: the same player is named twice", i)
			}
		}
	}
	for i, p := range cmd.Players {
		if err := t.mayBeForeign("PlayerIds", i, p.Player); err != nil {
			return err
		}
	}
	bytes := 0
	for i := range cmd.Players {
		bytes += (&session.PlayerSession{Player: cmd.Players[i].Player, Data: cmd.Players[i].Data}).Bytes()
	}
	if err := t.c.sessions.Held().Room(cmd.By, bytes, t.c.config.PlayerSessionBytesMax, "player sessions"); err != nil {
		return err
	}
	by := t.contact.Add(t.c.config.Reservation)
	id := g.ID
	cmd.Reserved = make([]PlayerSession, len(cmd.Players))
	for i, p := range cmd.Players {
		t.emit(&PlayerReserved{PlayerSession: p.ID, GameSession: id, Player: p.Player, Data: p.Data, ReserveBy: by, Maker: cmd.By})
		made, _ := t.c.sessions.PlayerByID(p.ID)
		cmd.Reserved[i] = t.c.playerSession(t.c.sessions.Players.Get(made), t.c.sessions.Games.Get(r))
	}
	return nil
}

// awaited is how many seats of a game session are promised to members of its game instance who wait for Game.Ready, beside those
// who are to get one now.
func (t *tx) awaited(game session.Ref, but []NewPlayer) int32 {
	r, ok := t.c.flow.InstanceOfGame(string(t.c.sessions.Games.Get(game).ID))
	if !ok {
		return 0
	}
	n := t.c.unseated(r, game)
	for _, p := range but {
		if m, ok := t.memberIn(r, p.Player); ok && t.c.waitsForSeat(t.c.flow.Memberships.Get(m), game) {
			n--
		}
	}
	return n
}

// ReleasePlayer gives back the seat of a player who will not come, before its time is up. Whoever holds the identifier of
// the player session and may touch it may do so. A player who has connected is the game server's to remove.
type ReleasePlayer struct {
	Player domain.UUID
	By     domain.Maker

	// Result
	Released PlayerSession
}

func (cmd *ReleasePlayer) decide(t *tx) error {
	r, ok := t.c.sessions.PlayerByID(cmd.Player)
	if !ok || !cmd.By.MayTouch(t.c.sessions.Players.Get(r).Maker) {
		return domain.Refuse(domain.NotFound, "player session psess-%s not found", cmd.Player)
	}
	switch p := t.c.sessions.Players.Get(r); p.Status {
	case session.Reserved:
		player, game, last := p.Player, p.Game, t.lastReservation(p.Player, cmd.Player)
		t.emit(&PlayerEnded{cmd.Player, session.Completed})
		t.playerCompleted(player, cmd.Player, last)
		t.playerLeft(game)
	case session.PlayerActive:
		return domain.Refuse(domain.WrongPlayerState,
			"player session psess-%s is ACTIVE: its game server gives the seat back when the player leaves", p.ID)
	}
	p := t.c.sessions.Players.Get(r)
	cmd.Released = t.c.playerSession(p, t.c.sessions.Games.Get(p.Game))
	return nil
}
