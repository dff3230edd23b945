package sessionapi

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/musterhq/muster/internal/callstats"
	"github.com/musterhq/muster/internal/domain/excerpt"
	"github.com/musterhq/muster/internal/jsonbody"
)

// bodyMax leaves room for the largest request, a game session's data of 256 KiB with every character escaped once.
const bodyMax = 1 << 20

const (
	// valuesMax bounds the JSON values of a body before it is decoded: the largest request, a search for ten players with ten
	// attributes of a hundred strings each, has 10,000. A value takes up to 300 bytes of memory, two in the text.
	valuesMax = 16 << 10
	valueCost = 300

	// bodyBytesMax bounds the memory that bodies take while they are read and decoded.
	bodyBytesMax = 512 << 20
)

// bodyCost returns the maximum memory for a request's body: the text, the strings decoded from it, and its values.
func bodyCost(r *http.Request) int64 {
	size := r.ContentLength
	if size < 0 || size > bodyMax {
		size = bodyMax
	}
	return 2*size + valueCost*min(size/2, valuesMax)
}

// checkValues refuses a body that has more values than any request needs. Each value but the first has a comma, a colon or an
// opening bracket before it; those inside strings do not count.
func checkValues(body []byte) *Problem {
	values, quoted := 0, false
	for i := 0; i < len(body); i++ {
		switch c := body[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case !quoted && (c == ',' || c == ':' || c == '[' || c == '{'):
			values++
		}
	}
	if values > valuesMax {
		return &Problem{status: http.StatusRequestEntityTooLarge, Name: bodyTooLarge, Field: "body", Value: fmt.Sprintf("%d values", values),
			Expected: fmt.Sprintf("at most %d values", valuesMax), Message: fmt.Sprintf("the body has %d values; want at most %d", values, valuesMax)}
	}
	return nil
}

func readBody(w http.ResponseWriter, r *http.Request) ([]byte, *Problem) {
	// A web page cannot send this type to another site without a preflight request, which this service does not allow.
	if kind := r.Header.Get("Content-Type"); r.Method == http.MethodPost && (kind != "" || r.ContentLength != 0) {
		if media, _, err := mime.ParseMediaType(kind); err != nil || media != "application/json" {
			return nil, &Problem{status: http.StatusUnsupportedMediaType, Name: invalidRequest, Field: "Content-Type", Value: excerpt.Short(kind),
				Expected: "application/json", Message: fmt.Sprintf("Content-Type: %q; want application/json", excerpt.Short(kind))}
		}
	}
	body, err := io.ReadAll(http.MaxBytesReader(callstats.Unwrapped(w), r.Body, bodyMax))
	switch _, tooLarge := errors.AsType[*http.MaxBytesError](err); {
	case tooLarge:
		return nil, &Problem{status: http.StatusRequestEntityTooLarge, Name: bodyTooLarge, Field: "body",
			Expected: fmt.Sprintf("at most %d bytes", bodyMax), Message: fmt.Sprintf("the body is larger than %d bytes", bodyMax)}
	case err != nil:
		return nil, &Problem{status: http.StatusBadRequest, Name: invalidRequest, Field: "body", Message: "the body ended early"}
	}
	return body, nil
}

// decode decodes one JSON object. No body counts as an empty object. An unknown name is an error: it is a mistake that would otherwise
// be hard to find.
func decode(body []byte, in any) *Problem {
	body = bytes.TrimSpace(body)
	switch {
	case len(body) == 0:
		return nil
	case body[0] != '{':
		return &Problem{status: http.StatusBadRequest, Name: invalidRequest, Field: "body", Expected: "one JSON object", Message: "body: want one JSON object"}
	case !utf8.Valid(body):
		return &Problem{status: http.StatusBadRequest, Name: invalidRequest, Field: "body", Expected: "UTF-8", Message: "body: want UTF-8"}
	}
	if problem := checkValues(body); problem != nil {
		return problem
	}
	err := jsonbody.WithWholeNumbers(body, func(body []byte) error {
		d := json.NewDecoder(bytes.NewReader(body))
		d.DisallowUnknownFields()
		if err := d.Decode(in); err != nil {
			return err
		}
		if _, err := d.Token(); !errors.Is(err, io.EOF) {
			return &Problem{status: http.StatusBadRequest, Name: invalidRequest, Field: "body", Expected: "nothing after the object", Message: "body: want nothing after the object"}
		}
		return nil
	})
	if err != nil {
		return decodeProblem(err)
	}
	return nil
}

func decodeProblem(err error) *Problem {
	if p, ok := errors.AsType[*Problem](err); ok {
		return p
	}
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		field := cmp.Or(wrong.Field, "body")
		expected := jsonName(wrong.Type.Kind().String())
		return &Problem{status: http.StatusBadRequest, Name: invalidRequest, Field: field, Value: "a " + wrong.Value, Expected: expected,
			Message: fmt.Sprintf("%s: a %s; want %s", field, wrong.Value, expected)}
	}
	text := strings.TrimPrefix(err.Error(), "json: ")
	if name, ok := strings.CutPrefix(text, "unknown field "); ok {
		if plain, err := strconv.Unquote(name); err == nil {
			name = plain
		}
		name = cmp.Or(excerpt.Short(name), `""`)
		return &Problem{status: http.StatusBadRequest, Name: invalidRequest, Field: name, Message: name + ": this node has no such field"}
	}
	return &Problem{status: http.StatusBadRequest, Name: invalidRequest, Field: "body", Expected: "JSON", Message: "body: " + excerpt.Short(text)}
}

// jsonName returns the JSON name of a kind of Go value.
func jsonName(kind string) string {
	switch {
	case kind == "string":
		return "a string"
	case kind == "bool":
		return "true or false"
	case kind == "slice":
		return "an array"
	case kind == "map", kind == "struct", kind == "ptr":
		return "an object"
	case strings.HasPrefix(kind, "float"):
		return "a number"
	default:
		return "a whole number" + map[string]string{"int32": " that fits in 32 bits"}[kind]
	}
}
