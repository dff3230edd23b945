package cell

import (
	"encoding/binary"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/matchmaking"
	"github.com/musterhq/muster/internal/domain/placement"
	"github.com/musterhq/muster/internal/domain/session"
	"github.com/musterhq/muster/internal/domain/wire"
)

// EndedRecord is something that has ended, for the archive.
type EndedRecord struct {
	Kind           ClaimKind // Nothing: it need not be kept
	ID             string    // session.ID, a placement's or ticket's id, the sixteen bytes of a player session's UUID, or the number of a flow.Change
	Created, Ended domain.Time
	Fleet          string // of a game session
	GameID, Player string // of a player session; Player also of a flow.Change
	Data           []byte // for DecodeGameSession, DecodePlayerSession, DecodePlacement, DecodeTicket or DecodeChange
}

// Counts reports whether Cell.Forgotten counts the record.
func (e *EndedRecord) Counts() bool { return e.Kind != APlayerSession && e.Kind != AChange }

// Ended returns up to `most` of the records that ended before `before`, in the order they ended, beginning with the
// skip-th.
func (v *View) Ended(skip, most int, before domain.Time) []EndedRecord {
	var all []EndedRecord
	for i := skip; i < v.c.ended.used && len(all) < most; i++ {
		x := v.endedRecord(v.c.ended.at(i))
		if x.Ended > before {
			break
		}
		all = append(all, x)
	}
	return all
}

func (v *View) endedRecord(e endedEntry) EndedRecord {
	switch e.kind {
	case endedGame:
		g := v.game(e.ref)
		if g.Replaced {
			return EndedRecord{Ended: g.Ended}
		}
		return EndedRecord{Kind: AGameSession, ID: string(g.ID), Created: g.Created, Ended: g.Ended, Fleet: g.FleetID, Data: wire.Append(nil, &g)}
	case endedPlacement:
		p := v.placement(e.ref)
		return EndedRecord{Kind: APlacement, ID: p.ID, Created: p.Start, Ended: p.End, Data: wire.Append(nil, &p)}
	case endedTicket:
		x := v.ticket(e.ref).Ticket
		return EndedRecord{Kind: ATicket, ID: x.ID, Created: x.Start, Ended: x.End, Data: wire.Append(nil, &x)}
	case endedChange:
		x := *v.c.flow.Changes.Get(e.ref)
		v.saw(x.Changed)
		id := binary.BigEndian.AppendUint64(nil, x.EndedNo) // those of one millisecond come in order
		return EndedRecord{Kind: AChange, ID: string(id), Created: x.At, Ended: x.At, Player: x.Player, Data: wire.Append(nil, &x)}
	default:
		p := v.player(v.c.sessions.Players.Get(e.ref))
		return EndedRecord{Kind: APlayerSession, ID: string(p.ID[:]), Created: p.Created, Ended: p.Ended, GameID: string(p.GameID), Player: p.Player, Data: wire.Append(nil, &p)}
	}
}

// DecodePlacement reads the Data of an EndedRecord.
func DecodePlacement(data []byte) (placement.Placement, error) {
	var p placement.Placement
	err := wire.Unmarshal(data, &p)
	return p, err
}

// DecodeTicket reads the Data of an EndedRecord.
func DecodeTicket(data []byte) (matchmaking.Ticket, error) {
	var t matchmaking.Ticket
	err := wire.Unmarshal(data, &t)
	return t, err
}

// DecodeChange reads the Data of an EndedRecord.
func DecodeChange(data []byte) (flow.Change, error) {
	var x flow.Change
	err := wire.Unmarshal(data, &x)
	return x, err
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
