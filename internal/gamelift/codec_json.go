package gamelift

import (
	"encoding/base64"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/musterhq/muster/internal/jsonbody"
)

// jsonCodec implements AWS JSON 1.1, which the AWS CLI, boto3, JavaScript and SDKs from before 2026 use.
type jsonCodec struct{}

func (jsonCodec) contentType() []string { return jsonContentType }

var jsonDecode = json.WithUnmarshalers(json.UnmarshalFromFunc(unmarshalJSONTime))

func (jsonCodec) scan(body []byte, c *constraint, most int64) (int64, scanResult) {
	if len(body) == 0 {
		return 0, scanned
	}
	s := jsonScan{footprint{most: most}, jsonbody.Read(body, jsonbody.Lenient...)}
	defer s.Free()
	r := s.document(c)
	return s.bytes, r
}

func (jsonCodec) decode(body []byte, into any) error {
	if len(body) == 0 {
		return nil // no body and {} mean the same
	}
	err := json.Unmarshal(body, into, jsonDecode)
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*json.SemanticError](err); ok {
		path := memberPath(string(e.JSONPointer))
		if path == "" {
			return serializationError("the body must be a JSON object, got %s", jsonKindName(e.JSONKind))
		}
		if e.Err != nil {
			return serializationError("member %s: %s", path, plainJSONError(e))
		}
		return serializationError("member %s must be %s, got %s", path, wireTypeName(e.GoType), jsonKindName(e.JSONKind))
	}
	if e, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		return serializationError("the body is not valid JSON: %s (at byte %d)", e.Err, e.ByteOffset)
	}
	return serializationError("the body is not valid JSON")
}

// errNotANumber is the error of a timestamp that is not a number.
var errNotANumber = errors.New("must be a number of seconds since 1970")

// unmarshalJSONTime reads seconds since 1970. It keeps fractions to the millisecond.
func unmarshalJSONTime(d *jsontext.Decoder, t *time.Time) error {
	token, err := d.ReadToken()
	if err != nil {
		return err
	}
	if token.Kind() != '0' {
		return errNotANumber
	}
	seconds, err := strconv.ParseFloat(token.String(), 64)
	if err != nil || math.Abs(seconds) > timeMax {
		return errNotANumber
	}
	*t = time.UnixMilli(int64(math.Round(seconds * 1000))).UTC()
	return nil
}

// timeMax is the year 9999: past it a time has no common text form.
const timeMax = 253402300799

// plainJSONError returns an error for clients, without Go's names, and without the value, which may be a secret.
func plainJSONError(e *json.SemanticError) string {
	switch {
	case errors.Is(e.Err, errNotANumber):
		return errNotANumber.Error()
	case errors.Is(e.Err, strconv.ErrRange):
		return "the number is too large for " + wireTypeName(e.GoType)
	default:
		return fmt.Sprintf("must be %s", wireTypeName(e.GoType))
	}
}

func jsonKindName(k jsontext.Kind) string {
	switch k {
	case 'n':
		return "null"
	case 't', 'f':
		return "a boolean"
	case '"':
		return "a string"
	case '0':
		return "a number"
	case '{':
		return "an object"
	case '[':
		return "a list"
	default:
		return "something else"
	}
}

// memberPath converts the JSON pointer /Tags/0/Key to Tags[0].Key.
func memberPath(pointer string) string {
	var path strings.Builder
	for part := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		switch _, err := strconv.Atoi(part); {
		case err == nil:
			path.WriteString("[" + part + "]")
		case path.Len() > 0:
			path.WriteString("." + part)
		default:
			path.WriteString(part)
		}
	}
	return path.String()
}

func (jsonCodec) appendOutput(dst []byte, w *wireType, v reflect.Value) []byte {
	return appendJSON(dst, w, v)
}

func (jsonCodec) appendError(dst []byte, code, message string) []byte {
	dst = append(dst, `{"__type":`...)
	dst = appendJSONString(dst, code)
	dst = append(dst, `,"Message":`...)
	dst = appendJSONString(dst, message)
	dst = append(dst, `,"message":`...)
	dst = appendJSONString(dst, message)
	return append(dst, '}')
}

func appendJSON(dst []byte, w *wireType, v reflect.Value) []byte {
	if w.pointer {
		v = v.Elem()
	}
	switch w.kind {
	case wireString:
		return appendJSONString(dst, v.String())
	case wireBool:
		return strconv.AppendBool(dst, v.Bool())
	case wireInt:
		return strconv.AppendInt(dst, v.Int(), 10)
	case wireFloat:
		return appendJSONFloat(dst, v.Float(), 32)
	case wireDouble:
		return appendJSONFloat(dst, v.Float(), 64)
	case wireTime:
		return strconv.AppendFloat(dst, epochSeconds(v), 'f', -1, 64)
	case wireBlob:
		dst = append(dst, '"')
		dst = base64.StdEncoding.AppendEncode(dst, v.Bytes())
		return append(dst, '"')
	case wireList:
		dst = append(dst, '[')
		for i := range v.Len() {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendJSON(dst, w.elem, v.Index(i))
		}
		return append(dst, ']')
	case wireMap:
		dst = append(dst, '{')
		for i, key := range sortedKeys(v) {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(appendJSONString(dst, key.String()), ':')
			dst = appendJSON(dst, w.elem, v.MapIndex(key))
		}
		return append(dst, '}')
	default:
		return appendJSONStruct(dst, w, v)
	}
}

func appendJSONStruct(dst []byte, w *wireType, v reflect.Value) []byte {
	dst = append(dst, '{')
	separate := false
	for i := range w.fields {
		f := &w.fields[i]
		member := v.Field(f.index)
		if f.unset(member) {
			continue
		}
		if separate {
			dst = append(dst, ',')
		}
		separate = true
		dst = append(dst, f.jsonName...)
		dst = appendJSON(dst, f.typ, member)
	}
	return append(dst, '}')
}

func appendJSONString(dst []byte, s string) []byte {
	quoted, err := jsontext.AppendQuote(dst, s)
	if err != nil { // the only cause is invalid UTF-8, which the codecs refuse in inputs
		quoted, _ = jsontext.AppendQuote(dst, strings.ToValidUTF8(s, string(utf8.RuneError)))
	}
	return quoted
}

// appendJSONFloat writes the shortest number that parses to the same value, formatted as in JavaScript.
func appendJSONFloat(dst []byte, f float64, bits int) []byte {
	if abs := math.Abs(f); abs != 0 && (abs < 1e-6 || abs >= 1e21) {
		return strconv.AppendFloat(dst, f, 'e', -1, bits)
	}
	return strconv.AppendFloat(dst, f, 'f', -1, bits)
}

// epochSeconds returns a time in its wire form: seconds since 1970 with milliseconds as the fraction.
func epochSeconds(v reflect.Value) float64 {
	t := *v.Addr().Interface().(*time.Time)
	return float64(t.UnixMilli()) / 1000
}
