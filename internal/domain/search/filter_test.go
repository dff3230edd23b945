package search

import (
	"errors"
	"math/big"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// FuzzFilter: for every text the parser returns either a filter that can be evaluated or a position in the text and what was expected.
func FuzzFilter(f *testing.F) {
	for _, text := range []string{
		"", "hasAvailablePlayerSessions=true", "maximumSessions>=20 AND NOT (playerSessionCount = 0)", `gameSessionName = 'Matt\'s'`,
		"gameSessionProperties.mode <> 'a' OR creationTimeMillis<-1.50", "gameSessionId='arn:aws:gamelift:::gamesession/a/b/c'",
		"playerSessionCount = '3'", "((", "NOT NOT", `'\`, "gameSessionProperties.difficulty DESC", "\xff", strings.Repeat("ü", 1025),
	} {
		f.Add(text)
	}
	row := Row{ID: "fleet-1/custom-home/a", Name: "a", Property: func(string) (string, bool) { return "a", true }, PlayersMax: 4}
	f.Fuzz(func(t *testing.T, text string) {
		filter, err := ParseFilter(text)
		checkSyntaxError(t, text, err)
		filter.Match(row)
		order, err := ParseOrder(text)
		checkSyntaxError(t, text, err)
		if p := order.PlaceOf(row); order.Compare(p, p) != 0 {
			t.Errorf("%q: a game session does not stand where it stands", text)
		}
	})
}

func checkSyntaxError(t *testing.T, text string, err error) {
	if err == nil {
		if n := utf8.RuneCountInString(text); n > TextMax {
			t.Errorf("took %d characters", n)
		}
		return
	}
	e, ok := errors.AsType[*SyntaxError](err)
	if !ok || e.At < 0 || e.At > utf8.RuneCountInString(text) || e.Want == "" {
		t.Errorf("%q: got %#v, want a place in the text and an expectation", text, err)
	}
}

// TestNumbersCompareExactly compares intervals with arithmetic of unlimited precision.
func TestNumbersCompareExactly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		literal := rapid.StringMatching(`-?[0-9]{1,30}(\.[0-9]{1,4})?`).Draw(t, "literal")
		if rapid.Bool().Draw(t, "small") {
			literal = rapid.StringMatching(`-?[0-3](\.(0|5|00))?`).Draw(t, "small literal")
		}
		comparator := rapid.SampledFrom([]string{"=", "<>", "<", ">", "<=", ">="}).Draw(t, "comparator")
		value := rapid.Int64Range(0, 1<<50).Draw(t, "value")
		if rapid.Bool().Draw(t, "small value") {
			value %= 4
		}
		f, err := ParseFilter("creationTimeMillis" + comparator + literal)
		if err != nil {
			t.Fatal(err)
		}
		want, _ := new(big.Rat).SetString(literal)
		sign := new(big.Rat).SetInt64(value).Cmp(want)
		holds := map[string]bool{"=": sign == 0, "<>": sign != 0, "<": sign < 0, ">": sign > 0, "<=": sign <= 0, ">=": sign >= 0}[comparator]
		if got := f.Match(Row{Created: value}); got != holds {
			t.Errorf("%d %s %s: got %v, want %v", value, comparator, literal, got, holds)
		}
	})
}

func TestTextThatIsTooLong(t *testing.T) {
	short := "gameSessionName = '" + strings.Repeat("ü", TextMax-20) + "'"
	if _, err := ParseFilter(short); err != nil {
		t.Errorf("%d characters: %v", utf8.RuneCountInString(short), err)
	}
	for _, long := range []string{short + " ", strings.Repeat("x", 1<<20)} {
		_, err := ParseFilter(long)
		if e, ok := errors.AsType[*SyntaxError](err); !ok || e.At != TextMax || len(e.Token) > 200 {
			t.Errorf("%d bytes: got %v, want an error at character %d", len(long), err, TextMax+1)
		}
	}
}

func TestCursorComesBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		start := rapid.Uint64().Draw(t, "start")
		p := Place{
			rapid.Bool().Draw(t, "none"), rapid.Int64().Draw(t, "number"), rapid.String().Draw(t, "text"),
			rapid.Int64().Draw(t, "created"), rapid.String().Draw(t, "id"),
		}
		gotStart, got, ok := ParseCursor(Cursor(start, p))
		if !ok || gotStart != start || got != p {
			t.Errorf("got %d %+v %v, want %d %+v", gotStart, got, ok, start, p)
		}
	})
}

// TestOrderTextFitsAToken: a page token has 1024 characters of base64, and room for more than the text.
func TestOrderTextFitsAToken(t *testing.T) {
	name := strings.Repeat("ü€😀", 400)
	if got := OrderText(name); len(got) > 400 || got == OrderText(name+"x") || OrderText("short") != "short" {
		t.Errorf("OrderText of %d bytes: %d bytes", len(name), len(got))
	}
}
