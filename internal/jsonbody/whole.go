package jsonbody

import (
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Decode is json.Unmarshal for texts of clients, see WithWholeNumbers.
func Decode(text []byte, into any) error {
	return WithWholeNumbers(text, func(text []byte) error { return json.Unmarshal(text, into) })
}

// WithWholeNumbers calls decode for a text of a client that may have a whole number as 12.0 or 1.2e1 where an integer is wanted, and if that fails,
// again with these numbers as integers. In some languages, such as GDScript, the JSON parser makes floating-point numbers of all numbers, and they
// are sent back like that. JSON has one kind of number.
func WithWholeNumbers(text []byte, decode func(text []byte) error) error {
	err := decode(text)
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && strings.HasPrefix(wrong.Value, "number") {
		if whole, changed := wholeNumbers(text); changed {
			return decode(whole)
		}
	}
	return err
}

// exactMax is the number up to which a float64 has all integers.
const exactMax = 1 << 53

// wholeNumbers writes the whole numbers of a text without fraction and exponent, and reports whether there was one to write so.
func wholeNumbers(text []byte) (whole []byte, changed bool) {
	r := Read(text, Lenient...)
	defer r.Free()
	done := 0
	for {
		token, err := r.ReadToken()
		if err != nil { // the end, or no JSON: the decoder says what is wrong
			return append(whole, text[done:]...), changed
		}
		if token.Kind() != jsontext.KindNumber {
			continue
		}
		number, end := token.String(), int(r.InputOffset())
		x, err := strconv.ParseFloat(number, 64)
		if !strings.ContainsAny(number, ".eE") || err != nil || x != math.Trunc(x) || math.Abs(x) > exactMax {
			continue
		}
		whole = append(whole, text[done:end-len(number)]...)
		whole, done, changed = strconv.AppendInt(whole, int64(x), 10), end, true
	}
}
