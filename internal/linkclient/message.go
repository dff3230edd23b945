package linkclient

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"sync/atomic"

	"github.com/google/uuid"
)

// Answer is the service's answer to a request.
type Answer struct {
	Action, RequestID string
	Status            int
	Error             string
	Raw               []byte // the whole message; in a callback valid only during the call
}

// Push is a message that the service sent on its own. Raw is valid only during the call.
type Push struct {
	Action string
	Raw    []byte
}

// StatusError is an answer with another status than 200.
type StatusError struct {
	Action  string
	Status  int
	Message string
}

func (e *StatusError) Error() string { return fmt.Sprintf("%s: %d %s", e.Action, e.Status, e.Message) }

// GameSession is the content of a CreateGameSession push.
type GameSession struct {
	GameSessionId             string
	GameSessionName           string
	MaximumPlayerSessionCount int
	IpAddress, DnsName        string
	Port                      int
	GameSessionData           string
	MatchmakerData            string
	GameProperties            map[string]string
}

// GameSession decodes a CreateGameSession push.
func (p Push) GameSession() (GameSession, error) {
	var g GameSession
	err := json.Unmarshal(p.Raw, &g)
	return g, err
}

// GameSessionID returns only the id, for a load generator that needs no more.
func (p Push) GameSessionID() string {
	if _, rest, ok := bytes.Cut(p.Raw, []byte(`"GameSessionId":"`)); ok {
		id, _, _ := bytes.Cut(rest, []byte{'"'})
		return string(id) // ARNs contain nothing to unescape
	}
	return ""
}

// Refresh is the content of a RefreshConnection push.
type Refresh struct{ RefreshConnectionEndpoint, AuthToken string }

// Refresh decodes a RefreshConnection push.
func (p Push) Refresh() (Refresh, error) {
	var r Refresh
	err := json.Unmarshal(p.Raw, &r)
	return r, err
}

// TerminationTime returns the deadline of a TerminateProcess push, in Unix milliseconds.
func (p Push) TerminationTime() (int64, error) {
	var t struct{ TerminationTime int64 }
	err := json.Unmarshal(p.Raw, &t)
	return t.TerminationTime, err
}

// readAnswer reports false for a push, of which it returns only the action. It recognizes the service's usual form of an answer
// without a JSON parser, and parses anything else as an SDK would.
func readAnswer(text []byte) (Answer, bool) {
	a := Answer{Raw: text}
	if rest, ok := bytes.CutPrefix(text, []byte(`{"Action":"`)); ok {
		action, rest, _ := bytes.Cut(rest, []byte(`","RequestId":"`))
		id, rest, found := bytes.Cut(rest, []byte(`","StatusCode":200}`))
		if found && len(rest) == 0 && bytes.IndexByte(action, '"') < 0 && bytes.IndexByte(id, '"') < 0 && bytes.IndexByte(id, '\\') < 0 {
			a.Action, a.RequestID, a.Status = string(action), string(id), 200
			return a, true
		}
	}
	var m struct {
		Action, ErrorMessage string
		RequestId            *string
		StatusCode           int
	}
	if json.Unmarshal(text, &m) != nil {
		return Answer{Action: "", Raw: text}, false
	}
	a.Action, a.Status, a.Error = m.Action, m.StatusCode, m.ErrorMessage
	if m.RequestId == nil {
		return a, false
	}
	a.RequestID = *m.RequestId
	return a, true
}

// Text quotes a string for use in the members of a request.
func Text(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic("linkclient: a string does not marshal: " + err.Error())
	}
	return string(b)
}

// idSource makes RequestIds in the form of the SDKs' UUIDs: a random prefix for each connection, and a count.
type idSource struct {
	prefix [24]byte
	count  *atomic.Uint64
}

func newIDSource() idSource {
	var s idSource
	copy(s.prefix[:], uuid.NewString())
	s.count = new(atomic.Uint64)
	return s
}

func (s idSource) next() string {
	b := make([]byte, 0, 36)
	b = append(b, s.prefix[:]...)
	n := strconv.AppendUint(make([]byte, 0, 16), s.count.Add(1), 16)
	for range 12 - len(n) {
		b = append(b, '0')
	}
	return string(append(b, n...))
}
