package jsonbody

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

func TestBounds(t *testing.T) {
	b := Bounds{Depth: 3, Values: 10}
	for text, want := range map[string]error{
		``:                                      nil,
		` {"a":[{}]} `:                          nil,
		`{"a":[[[]]]}`:                          &BoundError{Depth: 3},
		`[1,2,3,4,5,6,7,8,9]`:                   nil,
		`[1,2,3,4,5,6,7,8,9,10]`:                &BoundError{Values: 10},
		`{"a":1,"b":2,"c":3,"d":4}`:             nil,
		`{"a":1,"b":2,"c":3,"d":4,"e":5}`:       &BoundError{Values: 10},
		`[{},{},{},[],[],[],"","",""]`:          nil,
		`[{},{},{},[],[],[],"","","",""]`:       &BoundError{Values: 10},
		`["` + strings.Repeat(`\",`, 20) + `"]`: nil, // inside a string
		strings.Repeat("[", 1<<20):              &BoundError{Depth: 3},
	} {
		err := b.Check([]byte(text))
		if (err == nil) != (want == nil) || err != nil && err.Error() != want.Error() {
			t.Errorf("%.40s: %v, want %v", text, err, want)
		}
	}
	for _, wrong := range []string{`{`, `{"a":1,"a":2}`, `[1]]`, "\"\xff\"", `"\ud800"`, `nul`} {
		if _, ok := errors.AsType[*jsontext.SyntacticError](b.Check([]byte(wrong))); !ok {
			t.Errorf("%s: %v, want a syntactic error", wrong, b.Check([]byte(wrong)))
		}
	}
}

func TestNames(t *testing.T) {
	text := []byte(`{"plain":1, "\u0061\n" : [2], "":{}}`)
	r := Read(text, Lenient...)
	defer r.Free()
	if _, err := r.ReadToken(); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"plain", "a\n", ""} {
		if name, err := r.Name(); err != nil || string(name) != want {
			t.Errorf("%q, %v; want %q", name, err, want)
		}
		if _, err := r.ReadValue(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := r.Name(); err == nil {
		t.Error("a name behind the last one")
	}
}

// A reader that was freed does not hold its text, and the next text is read from its beginning.
func TestReadersAreUsedAgain(t *testing.T) {
	for range 10 {
		r := Read([]byte(`[1,`))
		if _, err := r.ReadValue(); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Fatal(err)
		}
		r.Free()
		r = Read([]byte(`7`))
		if v, err := r.ReadValue(); err != nil || string(v) != "7" {
			t.Fatalf("%s %v", v, err)
		}
		r.Free()
	}
}
