package jsonbody

import (
	"fmt"
	"io"

	"github.com/go-json-experiment/json/jsontext"
)

// Bounds are what a text may have before it is decoded. A decoder makes up to 600 bytes of two in the text.
type Bounds struct {
	Depth  int // of objects and lists in each other
	Values int // of all kinds, and names
}

// BoundError says which bound a text exceeds.
type BoundError struct {
	Depth, Values int // the bound; the other is 0
}

func (e *BoundError) Error() string {
	if e.Depth > 0 {
		return fmt.Sprintf("nested more than %d deep", e.Depth)
	}
	return fmt.Sprintf("more than %d values and names", e.Values)
}

// Check reads text to its end and refuses what is not JSON with a *jsontext.SyntacticError, also a name that is twice in an object, and
// what exceeds the bounds with a *BoundError. It stops at the first of these, and allocates nothing for values. Several values behind
// each other pass; the decoder refuses them. With Lenient, names may repeat and texts may be invalid UTF-8.
func (b Bounds) Check(text []byte, options ...jsontext.Options) error {
	r := Read(text, options...)
	defer r.Free()
	for values := 0; ; {
		switch token, err := r.ReadToken(); {
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		case token.Kind() == jsontext.KindEndObject || token.Kind() == jsontext.KindEndArray:
		default:
			values++
		}
		switch {
		case r.StackDepth() > b.Depth:
			return &BoundError{Depth: b.Depth}
		case values > b.Values:
			return &BoundError{Values: b.Values}
		}
	}
}
