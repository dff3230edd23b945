package cloudwatch

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/fxamacker/cbor/v2"
	"github.com/go-json-experiment/json/jsontext"
)

// field is a member of an answer. Its value is a string, a float64, a time.Time, a []any of these, or fields.
type field struct {
	name  string
	value any
}

type fields []field

// protocol is one of the three protocols.
type protocol interface {
	read(body []byte) (object, error)
	contentType() string
	answer(operation string, of fields, requestID string) []byte
	refuse(r *refusal, sender bool, requestID string) []byte
}

const (
	target    = "GraniteServiceVersion20100801"
	namespace = "http://monitoring.amazonaws.com/doc/2010-08-01/"
)

// shapes has the names of errors in the protocols that use an error's shape as its name, where they differ from the code.
var shapes = map[string]string{
	codeInvalidValue: "InvalidParameterValueException", codeInvalidCombination: "InvalidParameterCombinationException", codeMissing: "MissingRequiredParameterException",
	codeInternal: "InternalServiceFault",
}

func shapeOf(code string) string {
	if shape, ok := shapes[code]; ok {
		return shape
	}
	return code
}

type jsonProtocol struct{}

func (jsonProtocol) read(body []byte) (object, error) { return readJSON(body) }
func (jsonProtocol) contentType() string              { return "application/x-amz-json-1.0" }

func (jsonProtocol) answer(_ string, of fields, _ string) []byte {
	var b bytes.Buffer
	writeJSON(&b, of)
	return b.Bytes()
}

func (p jsonProtocol) refuse(r *refusal, _ bool, _ string) []byte {
	return p.answer("", fields{{"__type", "com.amazonaws.cloudwatch#" + shapeOf(r.code)}, {"message", r.message}}, "")
}

func writeJSON(b *bytes.Buffer, value any) {
	switch v := value.(type) {
	case fields:
		b.WriteByte('{')
		for i, f := range v {
			if i > 0 {
				b.WriteByte(',')
			}
			writeJSON(b, f.name)
			b.WriteByte(':')
			writeJSON(b, f.value)
		}
		b.WriteByte('}')
	case []any:
		b.WriteByte('[')
		for i, x := range v {
			if i > 0 {
				b.WriteByte(',')
			}
			writeJSON(b, x)
		}
		b.WriteByte(']')
	case string:
		quoted, _ := jsontext.AppendQuote(nil, strings.ToValidUTF8(v, "\ufffd"))
		b.Write(quoted)
	case float64:
		b.WriteString(strconv.FormatFloat(v, 'g', -1, 64))
	case time.Time:
		b.WriteString(strconv.FormatInt(v.Unix(), 10))
	default:
		panic(fmt.Sprintf("cloudwatch: %T in an answer", value))
	}
}

type cborProtocol struct{}

func (cborProtocol) read(body []byte) (object, error) { return readCBOR(body) }
func (cborProtocol) contentType() string              { return "application/cbor" }

func (cborProtocol) answer(_ string, of fields, _ string) []byte {
	b, err := cborEncoding.Marshal(plain(of))
	if err != nil {
		panic("cloudwatch: CBOR: " + err.Error()) // maps, lists, texts and numbers can always be encoded
	}
	return b
}

func (p cborProtocol) refuse(r *refusal, _ bool, _ string) []byte {
	return p.answer("", fields{{"__type", "com.amazonaws.cloudwatch#" + shapeOf(r.code)}, {"message", r.message}}, "")
}

// cborEncoding writes timestamps as the protocol requires: tag 1 and seconds.
var cborEncoding = func() cbor.EncMode {
	mode, err := cbor.EncOptions{Time: cbor.TimeUnix, TimeTag: cbor.EncTagRequired, Sort: cbor.SortLengthFirst}.EncMode()
	if err != nil {
		panic("cloudwatch: CBOR options: " + err.Error())
	}
	return mode
}()

func plain(value any) any {
	switch v := value.(type) {
	case fields:
		m := make(map[string]any, len(v))
		for _, f := range v {
			m[f.name] = plain(f.value)
		}
		return m
	case []any:
		all := make([]any, len(v))
		for i, x := range v {
			all[i] = plain(x)
		}
		return all
	case string:
		return strings.ToValidUTF8(v, "\ufffd")
	}
	return value
}

type queryProtocol struct{}

func (queryProtocol) read(body []byte) (object, error) { return readForm(body) }
func (queryProtocol) contentType() string              { return "text/xml" }

func (queryProtocol) answer(operation string, of fields, requestID string) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, `<%sResponse xmlns="%s"><%sResult>`, operation, namespace, operation)
	writeXML(&b, of)
	fmt.Fprintf(&b, `</%sResult><ResponseMetadata><RequestId>%s</RequestId></ResponseMetadata></%sResponse>`, operation, requestID, operation)
	return b.Bytes()
}

func (queryProtocol) refuse(r *refusal, sender bool, requestID string) []byte {
	kind := "Sender"
	if !sender {
		kind = "Receiver"
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, `<ErrorResponse xmlns="%s"><Error>`, namespace)
	writeXML(&b, fields{{"Type", kind}, {"Code", r.code}, {"Message", r.message}})
	fmt.Fprintf(&b, `</Error><RequestId>%s</RequestId></ErrorResponse>`, requestID)
	return b.Bytes()
}

func writeXML(b *bytes.Buffer, value any) {
	switch v := value.(type) {
	case fields:
		for _, f := range v {
			b.WriteString("<" + f.name + ">")
			writeXML(b, f.value)
			b.WriteString("</" + f.name + ">")
		}
	case []any:
		for _, x := range v {
			b.WriteString("<member>")
			writeXML(b, x)
			b.WriteString("</member>")
		}
	case string:
		_ = xml.EscapeText(b, []byte(v)) // writing to a Buffer never fails
	case float64:
		b.WriteString(strconv.FormatFloat(v, 'g', -1, 64))
	case time.Time:
		b.WriteString(v.UTC().Format(time.RFC3339))
	default:
		panic(fmt.Sprintf("cloudwatch: %T in an answer", value))
	}
}
