package arenaclient

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/musterhq/muster/examples/arena"
)

const linesKept = 6 // lines of chat and events

// screen is this client's view of the game.
type screen struct {
	me            string
	width, height int
	coin          arena.Cell
	players       map[string]arena.Player
	lines         []string
}

func newScreen(w arena.Message) *screen {
	s := &screen{me: w.Name, width: w.Width, height: w.Height, players: map[string]arena.Player{}}
	if w.Coin != nil {
		s.coin = *w.Coin
	}
	for _, p := range w.Players {
		s.players[p.Name] = p
	}
	return s
}

func (s *screen) see(m arena.Message) {
	if m.Player != nil {
		s.players[m.Player.Name] = *m.Player
	}
	if m.Coin != nil {
		s.coin = *m.Coin
	}
	switch m.Kind {
	case arena.Joined:
		s.lines = append(s.lines, m.Player.Name+" has come")
	case arena.Left:
		delete(s.players, m.Name)
		s.lines = append(s.lines, m.Name+" has left")
	case arena.Said:
		s.lines = append(s.lines, m.Name+": "+m.Text)
	case arena.Round:
		for _, p := range m.Players {
			s.players[p.Name] = p
		}
		s.lines = append(s.lines, fmt.Sprintf("%s has won the round, number %d begins", m.Name, m.Round))
	case arena.Over:
		s.lines = append(s.lines, "game over: "+m.Text)
	}
	s.lines = s.lines[max(0, len(s.lines)-linesKept):]
}

// draw clears the terminal and shows the game: @ is this player, others are their initials, $ is the coin.
func (s *screen) draw(out io.Writer) {
	var b strings.Builder
	b.WriteString("\x1b[H\x1b[2J")
	grid := make([][]rune, s.height)
	for y := range grid {
		grid[y] = []rune(strings.Repeat(".", s.width))
	}
	if s.coin.Y < s.height && s.coin.X < s.width {
		grid[s.coin.Y][s.coin.X] = '$'
	}
	for _, name := range slices.Sorted(maps.Keys(s.players)) {
		p := s.players[name]
		mark := '@'
		if name != s.me {
			mark = []rune(name)[0]
		}
		grid[p.At.Y][p.At.X] = mark
	}
	for _, row := range grid {
		b.WriteString(string(row) + "\n")
	}
	for _, name := range slices.Sorted(maps.Keys(s.players)) {
		fmt.Fprintf(&b, "%s %d  ", name, s.players[name].Coins)
	}
	b.WriteString("\n" + strings.Join(s.lines, "\n") + "\n[w a s d: walk, q: leave, else: talk] ")
	_, _ = io.WriteString(out, b.String())
}
