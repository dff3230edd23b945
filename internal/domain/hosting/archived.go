package hosting

import (
	"github.com/musterhq/muster/internal/domain/placement"
	"github.com/musterhq/muster/internal/domain/session"
	"github.com/musterhq/muster/internal/domain/wire"
)

// DecodePlacement reads the Data of an EndedRecord.
func DecodePlacement(data []byte) (placement.Placement, error) {
	var p placement.Placement
	err := wire.Unmarshal(data, &p)
	return p, err
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

// Fields encodes or decodes a player session for the archive.
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
