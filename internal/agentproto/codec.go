package agentproto

import (
	"errors"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/musterhq/muster/internal/jsonbody"
)

// envelope has the members that say which message it is.
type envelope struct {
	Action     string
	RequestID  string `json:"RequestId"`
	StatusCode int
	ErrorText  string `json:"ErrorMessage"`
}

var (
	reading = json.JoinOptions(json.MatchCaseInsensitiveNames(true), jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))
	writing = jsontext.AllowInvalidUTF8(true) // what a process wrote may be anything; a wrong byte becomes U+FFFD

	// unsetIsNull writes empty texts as null, as the official agent does in its requests.
	unsetIsNull = json.WithMarshalers(json.JoinMarshalers(nullIfEmpty[string](), nullIfEmpty[Status](), nullIfEmpty[EventCode](), nullIfEmpty[TerminationReason]()))

	bounds = jsonbody.Bounds{Depth: DepthMax, Values: 64 << 10}
)

func nullIfEmpty[T ~string]() *json.Marshalers {
	return json.MarshalToFunc(func(e *jsontext.Encoder, text T) error {
		if text == "" {
			return e.WriteToken(jsontext.Null)
		}
		return errors.ErrUnsupported
	})
}

// EncodeRequest writes a request.
func EncodeRequest(id string, r Request) ([]byte, error) {
	return encode(envelope{Action: r.Action(), RequestID: id}, r, unsetIsNull)
}

// EncodeAnswer writes the answer to a request that succeeded. fields is nil when the answer has none.
func EncodeAnswer(action, id string, fields any) ([]byte, error) {
	return encode(envelope{Action: action, RequestID: id, StatusCode: 200}, fields)
}

// EncodeFailure writes the answer to a request that failed. Agents do not repeat a request that got 400 or 401; they repeat others.
func EncodeFailure(action, id string, status int, message string) ([]byte, error) {
	return encode(envelope{Action: action, RequestID: id, StatusCode: status, ErrorText: message}, nil)
}

// EncodePush writes a push.
func EncodePush(p Push) ([]byte, error) { return encode(envelope{Action: p.Action()}, p) }

// encode writes the members of the envelope that are set, and those of fields behind them.
func encode(head envelope, fields any, options ...json.Options) ([]byte, error) {
	type written struct {
		Action     string
		RequestID  string `json:"RequestId,omitzero"`
		StatusCode int    `json:",omitzero"`
		ErrorText  string `json:"ErrorMessage,omitzero"`
	}
	b, err := json.Marshal(written(head), writing)
	if err != nil || fields == nil {
		return b, err
	}
	body, err := json.Marshal(fields, append(options, writing)...)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", head.Action, err)
	}
	if len(body) > len("{}") {
		b = append(append(b[:len(b)-1], ','), body[1:]...)
	}
	if len(b) > MessageMax {
		return nil, fmt.Errorf("encode %s: %d bytes; want at most %d", head.Action, len(b), MessageMax)
	}
	return b, nil
}

// ErrUnknownAction means that the message is well-formed and its action unknown: log it, and drop it or answer with a failure.
var ErrUnknownAction = errors.New("unknown action")

// ErrGarbage means that the message is not one of the protocol, and cannot be answered.
var ErrGarbage = errors.New("no message of the agent protocol")

// DecodeRequest reads a message of an agent. After an error other than ErrGarbage, action and id are those of the message, for an
// answer with EncodeFailure.
func DecodeRequest(text []byte) (r Request, action, id string, err error) {
	head, err := readHead(text)
	if err != nil {
		return nil, "", "", err
	}
	if head.RequestID == "" || len(head.RequestID) > RequestIDBytes {
		return nil, "", "", fmt.Errorf("%w: RequestId has %d bytes; want 1 to %d", ErrGarbage, len(head.RequestID), RequestIDBytes)
	}
	r = newRequest(head.Action)
	if r == nil {
		return nil, head.Action, head.RequestID, fmt.Errorf("%w %.100q", ErrUnknownAction, head.Action)
	}
	return r, head.Action, head.RequestID, readFields(head.Action, text, r, r.check)
}

// Received is a message of the service: a push, or an answer to the request with RequestID.
type Received struct {
	Action    string
	RequestID string // of an answer
	Push      Push   // nil for an answer

	// StatusCode is that of an answer, and ErrorMessage its explanation if it is not 200.
	StatusCode   int
	ErrorMessage string

	text []byte
}

// DecodeReceived reads a message of the service. It keeps text.
func DecodeReceived(text []byte) (Received, error) {
	head, err := readHead(text)
	if err != nil {
		return Received{}, err
	}
	m := Received{Action: head.Action, RequestID: head.RequestID, StatusCode: head.StatusCode, ErrorMessage: head.ErrorText, text: text}
	if head.StatusCode != 0 || head.RequestID != "" {
		return m, nil
	}
	m.Push = newPush(head.Action)
	if m.Push == nil {
		return m, fmt.Errorf("%w %.100q", ErrUnknownAction, head.Action)
	}
	return m, readFields(head.Action, text, m.Push, m.Push.check)
}

// Answer is the content of the answer to one kind of request: *HeartbeatAnswer, *RuntimeConfiguration, *RoleCredentials, *HelloAnswer,
// *ServerToken or *LogUpload.
type Answer interface{ check() error }

// Into reads the fields of an answer with status 200.
func (m *Received) Into(fields Answer) error {
	return readFields(m.Action, m.text, fields, fields.check)
}

// readHead checks that text is one JSON object within bounds, and reads its envelope.
func readHead(text []byte) (head envelope, err error) {
	if len(text) > MessageMax {
		return head, fmt.Errorf("%w: %d bytes; want at most %d", ErrGarbage, len(text), MessageMax)
	}
	r := jsonbody.Read(text, jsonbody.Lenient...)
	start, err := r.ReadToken()
	r.Free()
	if err != nil || start.Kind() != jsontext.KindBeginObject {
		return head, fmt.Errorf("%w: want one JSON object", ErrGarbage)
	}
	if err := bounds.Check(text, jsonbody.Lenient...); err != nil {
		return head, fmt.Errorf("%w: %w", ErrGarbage, err)
	}
	if err := json.Unmarshal(text, &head, reading); err != nil {
		return head, fmt.Errorf("%w: %w", ErrGarbage, err)
	}
	return head, nil
}

// readFields reads the members of a message and checks them.
func readFields(action string, text []byte, into any, check func() error) error {
	err := json.Unmarshal(text, into, reading)
	if wrong, ok := errors.AsType[*json.SemanticError](err); ok {
		return &FieldError{
			Action: action, Field: strings.ReplaceAll(strings.TrimPrefix(string(wrong.JSONPointer), "/"), "/", "."),
			Value: fmt.Sprintf("%.60s", valueShown(wrong)), Want: wantShown(wrong),
		}
	}
	if err != nil {
		return fmt.Errorf("%s: %w", action, err)
	}
	err = check()
	if wrong, ok := errors.AsType[*FieldError](err); ok {
		wrong.Action = action
	}
	return err
}

func valueShown(e *json.SemanticError) string {
	if len(e.JSONValue) > 0 {
		return string(e.JSONValue)
	}
	return "a " + e.JSONKind.String()
}

func wantShown(e *json.SemanticError) string {
	if e.GoType == nil {
		return "another type"
	}
	switch e.GoType.Kind().String() {
	case "string":
		return "a string"
	case "int", "int64":
		return "a whole number"
	case "float64":
		return "a number"
	case "bool":
		return "true or false"
	case "slice":
		return "a list"
	}
	return "an object"
}
