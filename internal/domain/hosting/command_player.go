package hosting

import (
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/excerpt"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/quota"
	"github.com/musterhq/muster/internal/domain/session"
)

// NewPlayer describes the player session that ReservePlayers creates.
type NewPlayer struct {
	ID     domain.PlayerSessionID // of the new player session
	Player string
	Data   string
}

// ReservePlayers reserves seats in a game session for all given players or for none.
type ReservePlayers struct {
	Game    session.ID
	Players []NewPlayer
	By      domain.Maker
	quota.Taking

	// Result: one for each of Players, in their order.
	Reserved []PlayerSession
}

func (cmd *ReservePlayers) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	r, g, err := t.gameByID(cmd.Game)
	taken := int32(0)
	if err == nil {
		taken = g.SeatsHeld
		if t.hooks != nil {
			taken += t.hooks.Awaited(r, cmd.names())
		}
	}
	switch wanted := int32(len(cmd.Players)); {
	case len(cmd.Players) > t.Config.PlayersInOneCommandMax:
		return domain.Refuse(domain.Invalid, "PlayerIds: %d players; at most %d are allowed", wanted, t.Config.PlayersInOneCommandMax)
	case err != nil:
		return err
	case g.Status != session.Active:
		return domain.Refuse(domain.WrongGameStatus, "game session %s is %s; players can join an ACTIVE one", g.ID, g.Status)
	case g.DenyPlayers:
		return domain.Refuse(domain.WrongGameStatus, "game session %s accepts no new players (DENY_ALL)", g.ID)
	case taken+wanted > g.PlayersMax: // not ==, because the maximum can be lowered below the number taken
		return domain.Refuse(domain.Full, "game session %s: %d of %d player slots are taken, %d wanted", g.ID, taken, g.PlayersMax, wanted)
	}
	for i, p := range cmd.Players {
		for _, q := range cmd.Players[:i] {
			if p.Player == q.Player {
				return domain.Refuse(domain.Invalid, "PlayerIds[%d]: %s is named twice", i, excerpt.Short(p.Player))
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
	holder := t.HolderFor(cmd.Holder, cmd.By)
	if err := t.Sessions.Held().Room(quota.PlayerSessions, holder, cmd.By, bytes, t.Config.PlayerSessionBytesMax); err != nil {
		return err
	}
	if err := t.Quotas.Check(quota.PlayerSessions, t.Sessions.Held(), holder, len(cmd.Players), 0); err != nil {
		return err
	}
	by := t.Contact.Add(t.Config.Reservation)
	id := g.ID
	cmd.Reserved = make([]PlayerSession, len(cmd.Players))
	for i, p := range cmd.Players {
		t.Emit(&PlayerReserved{PlayerSession: p.ID, GameSession: id, Player: p.Player, Data: p.Data, ReserveBy: by, Maker: cmd.By, Holder: quota.Stored(holder, cmd.By)})
		made, _ := t.Sessions.PlayerByID(p.ID)
		cmd.Reserved[i] = t.playerSession(t.PlayerSession(made), t.Game(r))
	}
	return nil
}

func (cmd *ReservePlayers) names() []string {
	all := make([]string, len(cmd.Players))
	for i, p := range cmd.Players {
		all[i] = p.Player
	}
	return all
}

// ReleasePlayer frees a reserved seat before the reservation expires. The caller needs the id of the player session and the right to
// change it. Only the game server can remove a player who has connected.
type ReleasePlayer struct {
	Player domain.PlayerSessionID
	By     domain.Maker

	// Result
	Released PlayerSession
}

func (cmd *ReleasePlayer) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	r, ok := t.Sessions.PlayerByID(cmd.Player)
	if !ok || !cmd.By.MayTouch(t.PlayerSession(r).Maker) {
		return domain.Refuse(domain.NotFound, "player session %s not found", cmd.Player)
	}
	switch p := t.PlayerSession(r); p.Status {
	case session.Reserved:
		t.endSeat(p, session.Completed)
	case session.PlayerActive:
		return domain.Refuse(domain.WrongPlayerState,
			"player session %s is ACTIVE: its game server gives the seat back when the player leaves", p.ID)
	}
	p := t.PlayerSession(r)
	cmd.Released = t.playerSession(p, t.Game(p.Game))
	return nil
}
