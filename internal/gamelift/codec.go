package gamelift

import (
	"reflect"
	"time"
)

// codec is one of the two wire formats. scan adds up what decoding a body would allocate, up to a bound, and does not
// allocate itself. decode returns only API errors, and its result shares no memory with the body.
type codec interface {
	contentType() []string // in the form of a header value; shared, so it must not be changed
	scan(body []byte, c *constraint, most int64) (bytes int64, r scanResult)
	decode(body []byte, into any) error
	appendOutput(dst []byte, w *wireType, v reflect.Value) []byte
	appendError(dst []byte, code, message string) []byte
}

const (
	// depthMax is far above the deepest input of the model, which nests six levels.
	depthMax = 32

	// listMax bounds the elements of one list or map before its own limit is checked.
	listMax = 16384
)

// wireTypeName names the type of a member in terms that fit both codecs.
func wireTypeName(t reflect.Type) string {
	if t == nil {
		return "another type"
	}
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "a boolean"
	case reflect.Int32:
		return "a 32 bit integer"
	case reflect.Int64:
		return "a 64 bit integer"
	case reflect.Float32, reflect.Float64:
		return "a number"
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return "base64 data"
		}
		return "a list"
	case reflect.Map:
		return "a map"
	default:
		if t == reflect.TypeFor[time.Time]() {
			return "a timestamp"
		}
		return "a structure"
	}
}

var (
	jsonContentType = []string{"application/x-amz-json-1.1"}
	cborContentType = []string{"application/cbor"}
)
