package searchindex

import (
	"iter"

	"github.com/musterhq/muster/internal/domain/search"
)

// Session is what the index has to know of a game session.
type Session struct {
	ID          string
	Fleet       string
	Location    string
	Name        string // empty: it has none
	Properties  iter.Seq2[string, string]
	Players     int32
	SeatsKept   int32 // for players who are away: nobody else gets them
	PlayersMax  int32
	DenyPlayers bool
	Created     int64
}

// Set indexes the game sessions of all fleets. They are named by the references of the table that holds them. One
// writer; readers only while the writer is kept out.
type Set struct {
	fleets map[string]*fleet
	spots  []spot // by reference; beside the records, so that moving rows copies none of them
}

// spot is where a game session is. Its block is nil when it is not indexed.
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

// Remove forgets a game session.
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

// SetPlayers changes playerSessionCount, and how many seats are kept. It is called for each player who comes or goes, also for
// game sessions that are not indexed.
func (x *Set) SetPlayers(ref uint32, players, kept int32) {
	if int(ref) >= len(x.spots) {
		return
	}
	if at := x.spots[ref]; at.block != nil {
		at.block.players[at.row], at.block.kept[at.row] = players, kept
		at.block.judge(int(at.row))
	}
}

// Change brings a game session up to date. Neither its id nor its time of creation changes.
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

// Len is the number of game sessions that are indexed in a fleet.
func (x *Set) Len(fleetID string) int {
	n := 0
	if f := x.fleets[fleetID]; f != nil {
		for _, b := range f.blocks {
			n += b.count
		}
	}
	return n
}
