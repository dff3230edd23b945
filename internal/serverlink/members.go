package serverlink

import (
	"bytes"
	"io"
	"strconv"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/musterhq/muster/internal/jsonbody"
)

// depthMax bounds the nesting of a message. The deepest message of an SDK, with a player's attributes, has six levels.
const depthMax = 64

// members calls visit for each member of the object in message, with its name and the text of its value, which are valid during the
// call. It is strict about syntax and reports whether message is an object. The caller decides about lenient names and types.
func members(message []byte, visit func(name, value []byte)) bool {
	r := jsonbody.Read(message, jsonbody.Lenient...)
	defer r.Free()
	if start, err := r.ReadToken(); err != nil || start.Kind() != jsontext.KindBeginObject {
		return false
	}
	for r.PeekKind() == jsontext.KindString {
		name, err := r.Name()
		if err != nil {
			return false
		}
		value, err := valueOf(r, message)
		if err != nil {
			return false
		}
		visit(name, value)
	}
	if _, err := r.ReadToken(); err != nil { // the end of the object
		return false
	}
	_, err := r.ReadToken()
	return err == io.EOF
}

// valueOf reads the value of a member.
func valueOf(r *jsonbody.Reader, message []byte) ([]byte, error) {
	if kind := r.PeekKind(); kind != jsontext.KindBeginObject && kind != jsontext.KindBeginArray {
		return r.ReadValue()
	}
	behindName := r.InputOffset()
	for { // by tokens, because ReadValue nests 10,000 levels deep
		if _, err := r.ReadToken(); err != nil {
			return nil, err
		}
		switch depth := r.StackDepth(); {
		case depth == 1:
			return bytes.TrimLeft(message[behindName:r.InputOffset()], ": \t\r\n"), nil
		case depth > depthMax:
			return nil, &jsonbody.BoundError{Depth: depthMax}
		}
	}
}

// unquote returns the text of a string. Invalid UTF-8 becomes U+FFFD, so that no other code has to handle it.
func unquote(quoted []byte) string {
	if bytes.IndexByte(quoted, '\\') < 0 && utf8.Valid(quoted) {
		return string(quoted[1 : len(quoted)-1])
	}
	text, _ := jsontext.AppendUnquote(nil, quoted) // an error only means that something was replaced
	return string(text)
}

// wholeNumber reads an integer that may be written as 7, 7.0 or 7e0.
func wholeNumber(text []byte) (int, bool) {
	if n, err := strconv.Atoi(string(text)); err == nil {
		return n, true
	}
	f, err := strconv.ParseFloat(string(text), 64)
	if err != nil || f != float64(int32(f)) {
		return 0, false
	}
	return int(f), true
}
