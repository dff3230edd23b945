package hosting

import (
	"github.com/musterhq/muster/internal/domain/chunk"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/placement"
	"github.com/musterhq/muster/internal/domain/session"
	"github.com/musterhq/muster/internal/domain/wire"
)

// Kinds of ended records, which go to the archive.
const (
	endedPlayer kernel.EndedKind = iota
	endedGame
	endedPlacement
)

func (c *State) ended(kind kernel.EndedKind, r chunk.AnyRef) {
	c.Ended.Push(kernel.Ended{Room: Room, Kind: kind, Ref: r})
}

// EachEnded yields the records in memory that have ended.
func (c *State) EachEnded(yield func(no uint64, e kernel.Ended)) {
	for r, g := range c.Sessions.Games.All() {
		if g.EndedNo != 0 {
			yield(g.EndedNo, kernel.Ended{Room: Room, Kind: endedGame, Ref: r.Any()})
		}
	}
	for r, p := range c.Sessions.Players.All() {
		if p.EndedNo != 0 {
			yield(p.EndedNo, kernel.Ended{Room: Room, Kind: endedPlayer, Ref: r.Any()})
		}
	}
	for r, p := range c.Placements.Placements.All() {
		if p.EndedNo != 0 {
			yield(p.EndedNo, kernel.Ended{Room: Room, Kind: endedPlacement, Ref: r.Any()})
		}
	}
}

// Drop removes an ended record from memory.
func (c *State) Drop(e kernel.Ended) (counts bool) {
	switch e.Kind {
	case endedGame:
		c.Sessions.DropGame(session.GameRef(e.Ref))
	case endedPlacement:
		c.Placements.Remove(placement.Ref(e.Ref))
	default:
		c.Sessions.DropPlayer(session.PlayerRef(e.Ref))
		return false
	}
	return true
}

// EndedRecord returns a record that has ended, for the archive.
func (v *View) EndedRecord(e kernel.Ended) kernel.EndedRecord {
	switch e.Kind {
	case endedGame:
		g := v.game(session.GameRef(e.Ref))
		if g.Replaced {
			return kernel.EndedRecord{Ended: g.Ended}
		}
		return kernel.EndedRecord{Kind: kernel.AGameSession, ID: string(g.ID), Created: g.Created, Ended: g.Ended, Fleet: g.FleetID, Data: wire.Marshal(&g)}
	case endedPlacement:
		p := v.placement(placement.Ref(e.Ref))
		return kernel.EndedRecord{Kind: kernel.APlacement, ID: p.ID, Created: p.Start, Ended: p.End, Data: wire.Marshal(&p)}
	default:
		p := v.player(v.c.PlayerSession(session.PlayerRef(e.Ref)))
		return kernel.EndedRecord{Kind: kernel.APlayerSession, ID: string(p.ID[:]), Created: p.Created, Ended: p.Ended, GameID: string(p.GameID), Player: p.Player, Data: wire.Marshal(&p)}
	}
}
