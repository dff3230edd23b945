package searchindex

import (
	"iter"

	"github.com/musterhq/muster/internal/domain/search"
)

// Session has the indexed attributes of a game session.
type Session struct {
	ID          string
	Fleet       string
	Location    string
	Name        string // empty: it has none
	Properties  iter.Seq2[string, string]
	Players     int32
	SeatsKept   int32 // held for absent players
	PlayersMax  int32
	DenyPlayers bool
	Created     int64
}

// Set indexes the game sessions of all fleets, which it identifies by their references in the table of game sessions. It allows one
// writer, and readers only while the writer is excluded.
type Set struct {
	fleets map[string]*fleet
	spots  []spot // by reference; not in the records, so that moving rows copies no records
}

// spot is the location of a game session in the index. Its block is nil if it is not indexed.
type spot struct {
	block *block
	row   int32
}

// New returns an empty Set.
func New() *Set { return &Set{fleets: map[string]*fleet{}} }

// Add indexes a game session.
func (x *Set) Add(ref uint32, s Session) { x.add(mark{search.Mark(s.ID), ref}, s) }

func (x *Set) add(at mark, s Session) {
	ref := at.ref
	for int(ref) >= len(x.spots) {
		x.spots = append(x.spots, make([]spot, max(64, len(x.spots)/2))...)
	}
	f := x.fleets[s.Fleet]
	if f == nil {
		f = newFleet(x)
		x.fleets[s.Fleet] = f
	}
	b := f.roomFor(at)
	row := b.take()
	x.spots[ref] = spot{b, int32(row)}
	b.marks[row], b.refs[row], b.created[row] = at.hash, ref, s.Created
	b.players[row], b.kept[row], b.most[row] = s.Players, s.SeatsKept, s.PlayersMax
	b.deny.set(row, s.DenyPlayers)
	b.judge(row)
	b.locations[row] = f.locations.use(s.Location)
	b.setName(row, s.Name)
	b.setProperties(row, s.Properties)
}

// Remove removes a game session.
func (x *Set) Remove(ref uint32, s Session) {
	at := x.spots[ref]
	x.spots[ref] = spot{}
	b, row := at.block, int(at.row)
	f := b.fleet
	f.locations.release(b.locations[row])
	b.setName(row, "")
	b.clearProperties(row, s.Properties)
	b.live.set(row, false)
	b.joinable.set(row, false)
	b.count--
	f.tidy(mark{b.marks[row], ref})
	if len(f.blocks) == 0 {
		delete(x.fleets, s.Fleet)
	}
}

// SetPlayers changes playerSessionCount and the number of held seats. It may be called for a game session that is not indexed.
func (x *Set) SetPlayers(ref uint32, players, kept int32) {
	if int(ref) >= len(x.spots) {
		return
	}
	if at := x.spots[ref]; at.block != nil {
		at.block.players[at.row], at.block.kept[at.row] = players, kept
		at.block.judge(int(at.row))
	}
}

// Change updates a game session. Its id and time of creation never change.
func (x *Set) Change(ref uint32, was, is Session, properties bool) {
	at := x.spots[ref]
	b, row := at.block, int(at.row)
	b.players[row], b.kept[row], b.most[row] = is.Players, is.SeatsKept, is.PlayersMax
	b.deny.set(row, is.DenyPlayers)
	b.judge(row)
	if was.Name != is.Name {
		b.setName(row, is.Name)
	}
	if properties {
		b.clearProperties(row, was.Properties)
		b.setProperties(row, is.Properties)
	}
}

// Len returns the number of indexed game sessions of a fleet.
func (x *Set) Len(fleetID string) int {
	n := 0
	if f := x.fleets[fleetID]; f != nil {
		for _, b := range f.blocks {
			n += b.count
		}
	}
	return n
}
