package matchmaking

import (
	"encoding/binary"

	"github.com/musterhq/muster/internal/domain/ruleset"
	"github.com/musterhq/muster/internal/domain/wire"
)

// Player is one player of a ticket.
type Player struct {
	ID         string
	Team       string // in a backfill ticket and in match data
	Attributes []ruleset.NamedValue
	Latencies  []Latency // by region
}

// Latency is a player's latency to one region.
type Latency struct {
	Region       string
	Milliseconds int32
}

// players is the message MatchPlayers.
type players struct{ all []Player }

func (p *players) Fields(c *wire.Codec) { wire.Many(c, 1, &p.all, (*Player).Fields) }

// Fields encodes or decodes a Player.
func (p *Player) Fields(c *wire.Codec) {
	c.String(1, &p.ID)
	c.Shared(2, &p.Team)
	wire.Many(c, 3, &p.Attributes, attributeFields)
	wire.Many(c, 4, &p.Latencies, (*Latency).fields)
}

func attributeFields(v *ruleset.NamedValue, c *wire.Codec) {
	c.Shared(1, &v.Name)
	wire.Int(c, 2, &v.Kind)
	c.Float64(3, &v.Number)
	c.String(4, &v.Text)
	c.Strings(5, &v.List)
	wire.Many(c, 6, &v.Map, entryFields)
}

func entryFields(e *ruleset.Entry, c *wire.Codec) {
	c.Shared(1, &e.Key)
	c.Float64(2, &e.Number)
}

func (l *Latency) fields(c *wire.Codec) {
	c.Shared(1, &l.Region)
	wire.Int(c, 2, &l.Milliseconds)
}

// EncodeRoster packs players for a record.
func EncodeRoster(all []Player) string { return string(wire.Append(nil, &players{all})) }

// DecodeRoster unpacks the players of a record. The caller may change the result.
func DecodeRoster(roster string) []Player {
	var p players
	if err := wire.Unmarshal([]byte(roster), &p); err != nil {
		return nil // only EncodeRoster writes rosters
	}
	return p.all
}

// RosterReader unpacks many rosters, which share the memory of equal attribute and region names.
type RosterReader struct {
	reader wire.Reader
	begun  bool
}

// Decode unpacks the players of a record.
func (r *RosterReader) Decode(roster string) []Player {
	if !r.begun {
		r.reader.Share(wire.NewStrings())
		r.begun = true
	}
	var p players
	if err := r.reader.Read([]byte(roster), &p); err != nil {
		return nil
	}
	return p.all
}

// eachPlayer yields the ids of a roster's players without copying them.
func eachPlayer(roster string, yield func(id string) bool) {
	for len(roster) > 0 {
		_, player, rest, ok := field(roster)
		if !ok {
			return
		}
		roster = rest
		for id := player; len(id) > 0; {
			num, body, rest, ok := field(id)
			if !ok {
				return
			}
			if num == 1 {
				if !yield(body) {
					return
				}
				break
			}
			id = rest
		}
	}
}

// field splits a length-delimited field off a message; rosters begin with no other kind.
func field(s string) (num uint64, body, rest string, ok bool) {
	tag, n := uvarint(s)
	if n <= 0 || tag&7 != 2 {
		return 0, "", "", false
	}
	size, m := uvarint(s[n:])
	if m <= 0 || size > uint64(len(s)-n-m) {
		return 0, "", "", false
	}
	s = s[n+m:]
	return tag >> 3, s[:size], s[size:], true
}

func uvarint(s string) (uint64, int) {
	var b [binary.MaxVarintLen64]byte
	return binary.Uvarint(b[:copy(b[:], s)])
}
