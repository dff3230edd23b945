package arenaclient

import "github.com/musterhq/muster/examples/arena"

var directions = map[arena.Direction]arena.Cell{
	arena.North: {X: 0, Y: -1}, arena.South: {X: 0, Y: 1}, arena.West: {X: -1, Y: 0}, arena.East: {X: 1, Y: 0},
}

// way returns the first step of a shortest path to the coin, searching backwards from the coin.
func (s *screen) way() (arena.Direction, bool) {
	me := s.players[s.me].At
	taken := map[arena.Cell]bool{s.coin: true} // cells of other players, and those that the search has visited
	for name, p := range s.players {
		if name != s.me {
			taken[p.At] = true
		}
	}
	for edge := []arena.Cell{s.coin}; len(edge) > 0; edge = edge[1:] {
		for direction, by := range directions {
			from := arena.Cell{X: edge[0].X - by.X, Y: edge[0].Y - by.Y}
			if from == me {
				return direction, true
			}
			if from.X < 0 || from.Y < 0 || from.X >= s.width || from.Y >= s.height || taken[from] {
				continue
			}
			taken[from] = true
			edge = append(edge, from)
		}
	}
	return "", false
}
