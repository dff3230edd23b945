package arena

import (
	"strings"
	"testing"
)

func TestLoadNamesTheWrongProperty(t *testing.T) {
	for _, c := range []struct{ key, value, want string }{
		{"size", "16x8", ""}, {"size", "16", "property size"}, {"size", "3x8", "property size"},
		{"size", "16x65", "property size"}, {"goal", "5", ""}, {"goal", "0", "property goal"}, {"goal", "x", "property goal"},
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
	if told == nil || told.Player.Coins != 1 || told.Coin == nil || *told.Coin == (Cell{0, 1}) || won != "" {
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
