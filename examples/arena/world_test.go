package arena

import (
	"strings"
	"testing"
)

func TestLoadNamesTheWrongProperty(t *testing.T) {
	for _, c := range []struct{ key, value, want string }{
		{"size", "16x8", ""}, {"size", "16", "property size"}, {"size", "3x8", "property size"},
		{"size", "16x65", "property size"}, {"goal", "5", ""}, {"goal", "0", "property goal"}, {"goal", "x", "property goal"},
		{"rounds", "3", ""}, {"rounds", "0", "property rounds"}, {"rounds", "100", "property rounds"},
		{"mode", "anything", ""},
	} {
		_, err := Load(map[string]string{c.key: c.value}, 1)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s=%s: got %v, want %q", c.key, c.value, err, c.want)
		}
	}
}

func TestWalking(t *testing.T) {
	w, err := Load(map[string]string{"size": "4x4", "goal": "2"}, 1)
	if err != nil {
		t.Fatal(err)
	}
	w.coin = Cell{3, 3}
	if _, err := w.Enter("Ann"); err != nil {
		t.Fatal(err)
	}
	joined, err := w.Enter("Bob")
	if err != nil || joined.Player.At != (Cell{1, 0}) {
		t.Fatalf("Bob: got %+v %v, want him beside Ann", joined.Player, err)
	}
	if _, err := w.Enter("Bob"); err == nil {
		t.Error("a taken name was given out twice")
	}
	if told, _ := w.Step("Ann", North); told != nil {
		t.Errorf("through the wall: got %+v", told)
	}
	if told, _ := w.Step("Ann", East); told != nil {
		t.Errorf("onto Bob: got %+v", told)
	}
	w.coin = Cell{0, 1}
	told, won := w.Step("Ann", South)
	if len(told) != 1 || told[0].Player.Coins != 1 || told[0].Coin == nil || *told[0].Coin == (Cell{0, 1}) || won != "" {
		t.Fatalf("onto the coin: got %+v, won %q", told, won)
	}
	w.coin = Cell{0, 2}
	if _, won := w.Step("Ann", South); !strings.Contains(won, "Ann has reached the goal of 2") {
		t.Errorf("the goal: got %q", won)
	}
	if look := w.Look("Bob"); len(look.Players) != 2 || look.Players[0].Coins != 2 {
		t.Errorf("look: got %+v", look)
	}
}

func TestWhatIsSaidIsCleanedUp(t *testing.T) {
	w, _ := Load(nil, 1)
	if m := w.Talk("Ann", " hi\x1b[2J\n "); m.Text != "hi[2J" {
		t.Errorf("got %q", m.Text)
	}
	if m := w.Talk("Ann", "\n \t"); m != nil {
		t.Errorf("nothing: got %+v", m)
	}
	if m := w.Talk("Ann", strings.Repeat("ä", 300)); len([]rune(m.Text)) != textRunesMax {
		t.Errorf("got %d runes, want %d", len([]rune(m.Text)), textRunesMax)
	}
}

// Four players, three rounds; one leaves and comes back to the old score, one stays away and keeps it.
func TestRounds(t *testing.T) {
	w, err := Load(map[string]string{"size": "8x8", "goal": "1", "rounds": "3"}, 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"Ann", "Bob", "Cyd", "Dan"} {
		if _, err := w.Enter(name); err != nil {
			t.Fatal(err)
		}
	}
	// win lets a player find the coin below.
	win := func(name string) ([]Message, string) {
		w.coin = Cell{w.players[name].At.X, w.players[name].At.Y + 1}
		return w.Step(name, South)
	}
	told, won := win("Ann")
	if len(told) != 2 || told[1].Kind != Round || told[1].Round != 2 || told[1].Name != "Ann" || won != "" {
		t.Errorf("the first round: got %+v, %q", told, won)
	}
	if p := w.players["Ann"]; p.Coins != 0 || p.Wins != 1 {
		t.Errorf("a new round begins with %+v", p)
	}
	w.Exit("Ann")
	if told, _ := win("Bob"); len(told) != 2 || told[1].Round != 3 || len(told[1].Players) != 3 {
		t.Errorf("the second round: got %+v", told)
	}
	w.Exit("Bob")
	if back, err := w.Enter("Ann"); err != nil || back.Player.Wins != 1 {
		t.Errorf("Ann is back: got %+v, %v, want her win", back.Player, err)
	}
	if _, won := win("Ann"); won != "Ann has won 2 of 3 rounds" {
		t.Errorf("got %q", won)
	}
}
