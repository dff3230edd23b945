package cloudwatch

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/fxamacker/cbor/v2"
	"github.com/go-json-experiment/json"

	"github.com/musterhq/muster/internal/jsonbody"
)

// Bounds of a request.
const (
	bodyMax   = 256 << 10 // 500 queries, each with 30 dimensions, have less
	depthMax  = 12
	valuesMax = 50_000
)

// refusal is an error of the API.
type refusal struct {
	code    string // of the query protocol; the others name shapes
	message string
}

func (r *refusal) Error() string { return r.code + ": " + r.message }

func invalid(format string, args ...any) *refusal {
	return &refusal{codeInvalidValue, fmt.Sprintf(format, args...)}
}

// The codes of the query protocol.
const (
	codeInvalidValue       = "InvalidParameterValue"
	codeInvalidCombination = "InvalidParameterCombination"
	codeMissing            = "MissingParameter"
	codeInvalidToken       = "InvalidNextToken"
	codeInternal           = "InternalServiceError"
)

func serialization(what string, err error) *refusal {
	return &refusal{"SerializationException", "the body is no " + what + " object of this operation: " + err.Error()}
}

// object is a structure of a request: its values are objects, lists of them ([]any), strings, float64, bool and time.Time.
type object map[string]any

func readJSON(body []byte) (object, error) {
	if len(bytes.TrimSpace(body)) == 0 {
		return object{}, nil
	}
	if err := (jsonbody.Bounds{Depth: depthMax, Values: valuesMax}).Check(body); err != nil {
		return nil, serialization("JSON", err)
	}
	var m map[string]any
	if err := json.Unmarshal(body, &m); err != nil {
		return nil, serialization("JSON", err)
	}
	return m, nil
}

var cborMode = func() cbor.DecMode {
	mode, err := cbor.DecOptions{
		DupMapKey: cbor.DupMapKeyEnforcedAPF, TimeTag: cbor.DecTagOptional, MaxNestedLevels: depthMax, MaxMapPairs: valuesMax, MaxArrayElements: valuesMax,
		NaN: cbor.NaNDecodeForbidden, Inf: cbor.InfDecodeForbidden, DefaultMapType: reflect.TypeFor[map[string]any](),
	}.DecMode()
	if err != nil {
		panic("cloudwatch: CBOR options: " + err.Error())
	}
	return mode
}()

func readCBOR(body []byte) (object, error) {
	if len(body) == 0 {
		return object{}, nil
	}
	var m map[string]any
	if err := cborMode.Unmarshal(body, &m); err != nil {
		return nil, serialization("CBOR", err)
	}
	return m, nil
}

// readForm parses a form of the query protocol: Names.member.1.Name is a member of the first structure in the list Names.
func readForm(body []byte) (object, error) {
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return nil, serialization("form", err)
	}
	root := object{}
	for name, values := range form {
		at, parts := root, strings.Split(name, ".")
		if len(parts) > 2*depthMax {
			return nil, serialization("form", fmt.Errorf("%s: nested more than %d deep", clip(name), depthMax))
		}
		for _, part := range parts[:len(parts)-1] {
			next, ok := at[part].(object)
			if !ok {
				if at[part] != nil {
					return nil, serialization("form", fmt.Errorf("%s: is a value and a structure", clip(name)))
				}
				next = object{}
				at[part] = next
			}
			at = next
		}
		last := parts[len(parts)-1]
		if at[last] != nil {
			return nil, serialization("form", fmt.Errorf("%s: is a value and a structure", clip(name)))
		}
		at[last] = values[0]
	}
	o, ok := lists(root).(object)
	if !ok {
		return nil, serialization("form", errors.New("it is a list"))
	}
	return o, nil
}

// lists replaces structures whose only member is "member" with lists.
func lists(of any) any {
	o, ok := of.(object)
	if !ok {
		return of
	}
	for name, value := range o {
		o[name] = lists(value)
	}
	numbered, ok := o["member"].(object)
	if !ok || len(o) != 1 {
		return o
	}
	var all []any
	for n := 1; n <= len(numbered); n++ {
		all = append(all, numbered[strconv.Itoa(n)])
	}
	return all
}

// reader reads the members of a structure and keeps the first mistake.
type reader struct {
	o    object
	path string // of the structure, for messages
	err  *error
}

func newReader(o object) reader { return reader{o: o, err: new(error)} }

func (r reader) fail(name, want string) {
	if *r.err == nil {
		*r.err = invalid("The parameter %s%s must be %s.", r.path, name, want)
	}
}

func (r reader) has(name string) bool { return r.o[name] != nil }

func (r reader) text(name string) string {
	switch v := r.o[name].(type) {
	case nil:
	case string:
		if len(v) > textMax {
			r.fail(name, fmt.Sprintf("at most %d bytes long", textMax))
		}
		return v
	default:
		r.fail(name, "a string")
	}
	return ""
}

// textMax is the documented maximum length of an expression, which is the longest text.
const textMax = 2048

func (r reader) required(name string) string {
	if !r.has(name) && *r.err == nil {
		*r.err = &refusal{codeMissing, "The parameter " + r.path + name + " is required."}
	}
	return r.text(name)
}

func (r reader) number(name string, otherwise int64) int64 {
	var v float64
	switch x := r.o[name].(type) {
	case nil:
		return otherwise
	case float64:
		v = x
	case int64:
		v = float64(x)
	case uint64:
		v = float64(x)
	case string:
		var err error
		if v, err = strconv.ParseFloat(x, 64); err != nil {
			v = math.NaN()
		}
	default:
		v = math.NaN()
	}
	if v != math.Trunc(v) || math.Abs(v) > 1<<40 {
		r.fail(name, "a whole number")
		return otherwise
	}
	return int64(v)
}

func (r reader) yes(name string, otherwise bool) bool {
	switch x := r.o[name].(type) {
	case nil:
		return otherwise
	case bool:
		return x
	case string:
		if x == "true" || x == "false" {
			return x == "true"
		}
	}
	r.fail(name, "true or false")
	return otherwise
}

func (r reader) time(name string) time.Time {
	switch x := r.o[name].(type) {
	case nil:
		*r.err = cmpErr(*r.err, &refusal{codeMissing, "The parameter " + r.path + name + " is required."})
	case time.Time:
		return x
	case float64:
		if x >= 0 && x < maxSeconds {
			return time.UnixMilli(int64(x * 1000))
		}
		r.fail(name, "a time stamp")
	case int64, uint64:
		if n := r.number(name, 0); n >= 0 {
			return time.Unix(n, 0)
		}
		r.fail(name, "a time stamp")
	case string:
		for _, form := range []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999", "2006-01-02T15:04:05Z0700", "2006-01-02T15:04", "2006-01-02"} {
			if t, err := time.Parse(form, x); err == nil {
				return t
			}
		}
		if v, err := strconv.ParseFloat(x, 64); err == nil && v >= 0 && v < maxSeconds {
			return time.UnixMilli(int64(v * 1000))
		}
		r.fail(name, "a time stamp such as 2026-01-05T15:50:00Z")
	default:
		r.fail(name, "a time stamp")
	}
	return time.Time{}
}

// maxSeconds is in the year 9999.
const maxSeconds = 253_402_300_799

func cmpErr(first, second error) error {
	if first != nil {
		return first
	}
	return second
}

// structures returns a list of structures, at most as many as given.
func (r reader) structures(name string, most int) (all []reader) {
	for i, x := range r.list(name, most) {
		var o object
		switch v := x.(type) {
		case map[string]any:
			o = v
		case object:
			o = v
		default:
			r.fail(name, "a list of structures")
		}
		all = append(all, reader{o, fmt.Sprintf("%s%s.member.%d.", r.path, name, i+1), r.err})
	}
	return all
}

func (r reader) structure(name string) reader {
	at := reader{object{}, r.path + name + ".", r.err}
	switch v := r.o[name].(type) {
	case nil:
	case map[string]any:
		at.o = v
	case object:
		at.o = v
	default:
		r.fail(name, "a structure")
	}
	return at
}

func (r reader) list(name string, most int) []any {
	switch v := r.o[name].(type) {
	case nil:
		return nil
	case []any:
		if len(v) <= most {
			return v
		}
		r.fail(name, fmt.Sprintf("a list of at most %d", most))
		return nil
	case string:
		if v == "" { // the form of an empty list in a query
			return nil
		}
	}
	r.fail(name, "a list")
	return nil
}

func clip(s string) string { return s[:min(len(s), 100)] }
