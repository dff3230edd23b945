package session

import (
	"slices"

	"github.com/musterhq/muster/internal/domain/search"
	"github.com/musterhq/muster/internal/domain/searchindex"
)

// Search makes one step of a search; see searchindex.Scan.
func (s *State) Search(scan *searchindex.Scan) (done bool) { return scan.Step(s.search, s) }

// GameRef finds a game session for a scan.
func (s *State) GameRef(id string) (uint32, bool) {
	r, ok := s.byID.Find(ID(id))
	return uint32(r), ok
}

// GameID returns the id of a game session for a scan.
func (s *State) GameID(ref uint32) string { return string(s.Games.Get(GameRef(ref)).ID) }

// Row returns the fields of the game session that a search reads.
func (g *GameSession) Row() search.Row {
	return search.Row{
		ID: string(g.ID), Name: g.Name, Property: g.property, Players: g.Seated(), SeatsKept: g.SeatsEmpty,
		PlayersMax: g.PlayersMax, DenyPlayers: g.DenyPlayers, Created: int64(g.Created),
	}
}

func (g *GameSession) property(key string) (string, bool) {
	for _, p := range g.Properties {
		if p.Key == key {
			return p.Value, true
		}
	}
	return "", false
}

// indexForSearch updates the search index, which has the ACTIVE game sessions.
func (s *State) indexForSearch(r GameRef, was, is *GameSession) {
	switch wasActive, isActive := was.Status == Active, is.Status == Active; {
	case wasActive && isActive:
		s.search.Change(uint32(r), was.indexed(), is.indexed(), !slices.Equal(was.Properties, is.Properties))
	case wasActive:
		s.search.Remove(uint32(r), was.indexed())
	case isActive:
		s.search.Add(uint32(r), is.indexed())
	}
}

func (g *GameSession) indexed() searchindex.Session {
	return searchindex.Session{
		ID: string(g.ID), Fleet: g.FleetID, Location: g.Location, Name: g.Name, Properties: g.eachProperty,
		Players: g.Seated(), SeatsKept: g.SeatsEmpty, PlayersMax: g.PlayersMax, DenyPlayers: g.DenyPlayers, Created: int64(g.Created),
	}
}

func (g *GameSession) eachProperty(yield func(key, value string) bool) {
	for _, p := range g.Properties {
		if !yield(p.Key, p.Value) {
			return
		}
	}
}
