package arena

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// The limits of a level.
const (
	sizeMin = 4
	sizeMax = 64

	roundsMax = 99

	nameRunesMax = 16
	textRunesMax = 200
)

// World is the state of one game and its rules. It has no connections and is not safe for concurrent use.
type World struct {
	width, height int
	goal          int // coins that win a round; 0: the game does not end by itself
	rounds        int
	round         int // from 1
	coin          Cell
	players       map[string]*Player
	away          map[string]*Player // players who have left, with their scores
	dice          *rand.Rand
}

// Load makes a world from a session's properties: "size" is width x height ("16x8"), "goal" the number
// of coins that win a round ("5"; without it the game does not end), "rounds" the number of rounds ("3"; default 1). The
// seed decides where coins appear.
func Load(properties map[string]string, seed uint64) (*World, error) {
	w := &World{
		width: 16, height: 8, rounds: 1, round: 1,
		players: map[string]*Player{}, away: map[string]*Player{}, dice: rand.New(rand.NewPCG(seed, 0)),
	}
	if size, ok := properties["size"]; ok {
		x, y, _ := strings.Cut(size, "x")
		var errX, errY error
		w.width, errX = strconv.Atoi(x)
		w.height, errY = strconv.Atoi(y)
		if errX != nil || errY != nil || min(w.width, w.height) < sizeMin || max(w.width, w.height) > sizeMax {
			return nil, fmt.Errorf("property size is %q: want width x height from %d to %d, such as 16x8", size, sizeMin, sizeMax)
		}
	}
	if goal, ok := properties["goal"]; ok {
		n, err := strconv.Atoi(goal)
		if err != nil || n < 1 {
			return nil, fmt.Errorf("property goal is %q: want a number of coins from 1", goal)
		}
		w.goal = n
	}
	if rounds, ok := properties["rounds"]; ok {
		n, err := strconv.Atoi(rounds)
		if err != nil || n < 1 || n > roundsMax {
			return nil, fmt.Errorf("property rounds is %q: want a number from 1 to %d", rounds, roundsMax)
		}
		w.rounds = n
	}
	w.dropCoin()
	return w, nil
}

// CheckName returns the mistake in a name, or nil.
func CheckName(name string) error {
	runes := []rune(name)
	if len(runes) == 0 || len(runes) > nameRunesMax || slices.ContainsFunc(runes, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r)
	}) {
		return fmt.Errorf("name %q: want 1 to %d letters and digits", name, nameRunesMax)
	}
	return nil
}

// Enter places a player on the first free cell and returns the message for the others, or an error. A player who was here before
// gets the old score back.
func (w *World) Enter(name string) (Message, error) {
	if err := CheckName(name); err != nil {
		return Message{}, err
	}
	if _, taken := w.players[name]; taken {
		return Message{}, fmt.Errorf("name %q is taken", name)
	}
	for y := range w.height {
		for x := range w.width {
			if at := (Cell{x, y}); at != w.coin && w.at(at) == nil {
				p := cmp.Or(w.away[name], &Player{Name: name})
				delete(w.away, name)
				p.At = at
				w.players[name] = p
				seen := *p
				return Message{Kind: Joined, Player: &seen}, nil
			}
		}
	}
	return Message{}, fmt.Errorf("the arena is full")
}

// Exit removes a player, whose score is kept.
func (w *World) Exit(name string) Message {
	if p := w.players[name]; p != nil {
		w.away[name] = p
		delete(w.players, name)
	}
	return Message{Kind: Left, Name: name}
}

// Step moves a player. There is no message when a wall or another player is in the way. won is the reason why the
// game is over, or empty.
func (w *World) Step(name string, d Direction) (told []Message, won string) {
	p := w.players[name]
	to := p.At
	switch d {
	case North:
		to.Y--
	case South:
		to.Y++
	case West:
		to.X--
	case East:
		to.X++
	default:
		return nil, ""
	}
	if to.X < 0 || to.Y < 0 || to.X >= w.width || to.Y >= w.height || w.at(to) != nil {
		return nil, ""
	}
	p.At = to
	m := Message{Kind: Moved}
	if to == w.coin {
		p.Coins++
		w.dropCoin()
		coin := w.coin
		m.Coin = &coin
	}
	seen := *p
	m.Player = &seen
	told = []Message{m}
	if m.Coin != nil && p.Coins == w.goal {
		p.Wins++
		if w.round == w.rounds {
			return told, w.verdict(p)
		}
		told = append(told, w.nextRound(name))
	}
	return told, ""
}

// verdict names the winner of the game after its last round.
func (w *World) verdict(last *Player) string {
	if w.rounds == 1 {
		return fmt.Sprintf("%s has reached the goal of %d", last.Name, w.goal)
	}
	best := last // with equal scores, the winner of the last round wins
	for _, others := range []map[string]*Player{w.players, w.away} {
		for _, p := range others {
			if p.Wins > best.Wins || p.Wins == best.Wins && best != last && p.Name < best.Name {
				best = p
			}
		}
	}
	return fmt.Sprintf("%s has won %d of %d rounds", best.Name, best.Wins, w.rounds)
}

// nextRound takes all players' coins, also of disconnected players.
func (w *World) nextRound(winner string) Message {
	w.round++
	for _, p := range w.players {
		p.Coins = 0
	}
	for _, p := range w.away {
		p.Coins = 0
	}
	m := w.Look(winner)
	m.Kind, m.Width, m.Height = Round, 0, 0
	return m
}

// Talk cleans up a player's text; nil if nothing is left of it.
func (w *World) Talk(name, text string) *Message {
	text = strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return -1
	}, text)
	if runes := []rune(text); len(runes) > textRunesMax {
		text = string(runes[:textRunesMax])
	}
	if text = strings.TrimSpace(text); text == "" {
		return nil
	}
	return &Message{Kind: Said, Name: name, Text: text}
}

// Look returns the whole world, for a new player.
func (w *World) Look(name string) Message {
	players := make([]Player, 0, len(w.players))
	for _, p := range slices.SortedFunc(maps.Values(w.players), func(a, b *Player) int { return cmp.Compare(a.Name, b.Name) }) {
		players = append(players, *p)
	}
	coin := w.coin
	return Message{Kind: Welcome, Name: name, Width: w.width, Height: w.height, Coin: &coin, Players: players, Round: w.round}
}

func (w *World) at(c Cell) *Player {
	for _, p := range w.players {
		if p.At == c {
			return p
		}
	}
	return nil
}

// dropCoin puts the coin on a free cell; on a full grid it stays where it is, under a player.
func (w *World) dropCoin() {
	for range 4 * w.width * w.height {
		if c := (Cell{w.dice.IntN(w.width), w.dice.IntN(w.height)}); w.at(c) == nil {
			w.coin = c
			return
		}
	}
}
