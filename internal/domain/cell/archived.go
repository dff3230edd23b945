package cell

import (
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/session"
	"github.com/musterhq/muster/internal/domain/wire"
)

// EndedRecord is a game session or a player session that has ended, for the archive.
type EndedRecord struct {
	Game           bool   // a game session; else a player session
	ID             string // session.ID, or the sixteen bytes of the player session's UUID
	Created, Ended domain.Time
	Fleet          string // of a game session
	GameID, Player string // of a player session
	Data           []byte // for DecodeGameSession or DecodePlayerSession
	Changed        uint64
}

// Ended returns up to `most` of the records that ended before `before`, in the order they ended, beginning with the
// skip-th.
func (v *View) Ended(skip, most int, before domain.Time) []EndedRecord {
	var all []EndedRecord
	v.c.sessions.EndedFrom(skip, func(e session.Ended) bool {
		if len(all) == most {
			return false
		}
		var x EndedRecord
		if e.Game != 0 {
			g := *v.c.sessions.Games.Get(e.Game)
			v.saw(g.Changed)
			x = EndedRecord{Game: true, ID: string(g.ID), Created: g.Created, Ended: g.Ended, Fleet: g.FleetID, Data: wire.Append(nil, &g)}
		} else {
			p := v.player(v.c.sessions.Players.Get(e.Player))
			x = EndedRecord{ID: string(p.ID[:]), Created: p.Created, Ended: p.Ended, GameID: string(p.GameID), Player: p.Player, Data: wire.Append(nil, &p)}
		}
		if x.Ended > before {
			return false
		}
		all = append(all, x)
		return true
	})
	return all
}

// DecodeGameSession reads the Data of an EndedRecord.
func DecodeGameSession(data []byte) (session.GameSession, error) {
	var g session.GameSession
	err := wire.Unmarshal(data, &g)
	return g, err
}

// DecodePlayerSession reads the Data of an EndedRecord.
func DecodePlayerSession(data []byte) (PlayerSession, error) {
	var p PlayerSession
	err := wire.Unmarshal(data, &p)
	return p, err
}

// Fields of a player session in the archive.
func (p *PlayerSession) Fields(c *wire.Codec) {
	p.PlayerSession.Fields(c)
	wire.Text(c, 16, &p.GameID)
	c.String(17, &p.FleetID)
	c.String(18, &p.Region)
	c.String(19, &p.Account)
	c.String(20, &p.IPAddress)
	c.String(21, &p.DNSName)
	wire.Int(c, 22, &p.Port)
}
