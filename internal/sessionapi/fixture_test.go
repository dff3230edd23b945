package sessionapi_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/musterhq/muster/mustertest"
)

// stage is a service with a fleet, and a script that calls it.
type stage struct {
	*testing.T
	srv   *mustertest.Server
	fleet *mustertest.Fleet
}

func newStage(t *testing.T, with ...mustertest.Option) *stage {
	t.Helper()
	t.Parallel()
	srv := mustertest.Start(t, with...)
	return &stage{t, srv, srv.NewFleet()}
}

// answer is the answer of every node to a script.
type answer struct {
	status int
	text   string
	header http.Header

	CallID          string
	State           string
	Status          any
	Result          any
	Error           *problem
	Answer          map[string]any
	Progress        map[string]any
	SessionConfigs  []map[string]any
	SessionConfig   map[string]any
	Placement       map[string]any
	NextToken       string
	Reserved        bool
	PlayerSessionID string
	PlayerID        string
	FleetID         string
	SessionID       string
	IPAddress       string
	Port            int
	OK              bool
}

type problem struct {
	Name, Message, Field, Expected string
	Value                          any
}

// call sends a body unchanged; header has names and values in turn.
func (s *stage) call(method, path, body string, header ...string) answer {
	s.Helper()
	r, err := http.NewRequestWithContext(s.Context(), method, s.srv.Endpoint()+"/session/v1/"+path, strings.NewReader(body))
	if err != nil {
		s.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	got, err := http.DefaultClient.Do(r)
	if err != nil {
		s.Fatal(err)
	}
	defer got.Body.Close()
	text, err := io.ReadAll(got.Body)
	if err != nil {
		s.Fatal(err)
	}
	a := answer{status: got.StatusCode, text: string(text), header: got.Header}
	if err := json.Unmarshal(text, &a); err != nil {
		s.Fatalf("%s %s: %d %q is no JSON: %v", method, path, got.StatusCode, text, err)
	}
	return a
}

type fields map[string]any

// node calls a node, which must succeed.
func (s *stage) node(name string, in fields, header ...string) answer {
	s.Helper()
	a := s.try(name, in, header...)
	if a.status >= 300 {
		s.Fatalf("%s %v: got %d %s", name, in, a.status, a.text)
	}
	return a
}

// try calls a node.
func (s *stage) try(name string, in fields, header ...string) answer {
	s.Helper()
	var body []byte
	var err error
	if in != nil {
		body, err = json.Marshal(in)
	}
	if err != nil {
		s.Fatal(err)
	}
	return s.call("POST", name, string(body), header...)
}

// fails calls a node, which must return an error.
func (s *stage) fails(name string, in fields, status int, problemName, field string) answer {
	s.Helper()
	a := s.try(name, in)
	if a.status != status || a.Error == nil || a.Error.Name != problemName || a.Error.Field != field || a.Error.Message == "" {
		s.Errorf("%s %v: got %d %s, want %d %s of field %q", name, in, a.status, a.text, status, problemName, field)
	}
	return a
}

// create makes an active game session on a new server.
func (s *stage) create(maxPlayer int) (sessionID string, server *mustertest.GameServer) {
	s.Helper()
	server = s.fleet.StartGameServer()
	a := s.node("CreateSession", fields{"fleetId": s.fleet.ID, "maxPlayer": maxPlayer})
	server.GameSession()
	return a.Result.(string), server
}

// event is one event of a stream.
type event struct {
	id, name string
	data     answer
	text     string
}

// listen follows a client's event stream until the test ends.
func (s *stage) listen(client, lastID string) <-chan event {
	s.Helper()
	r, err := http.NewRequestWithContext(s.Context(), "GET", s.srv.Endpoint()+"/session/v1/events", nil)
	if err != nil {
		s.Fatal(err)
	}
	r.Header.Set("X-Client-Id", client)
	r.Header.Set("Last-Event-ID", lastID)
	got, err := http.DefaultClient.Do(r)
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { got.Body.Close() })
	if got.StatusCode != 200 || got.Header.Get("Content-Type") != "text/event-stream" {
		s.Fatalf("events: got %s %s", got.Status, got.Header.Get("Content-Type"))
	}
	events := make(chan event, 1000)
	go func() {
		defer close(events)
		var e event
		lines := bufio.NewScanner(got.Body)
		lines.Buffer(nil, 1<<22)
		for lines.Scan() {
			name, value, _ := bytes.Cut(lines.Bytes(), []byte(": "))
			switch string(name) {
			case "id":
				e.id = string(value)
			case "event":
				e.name = string(value)
			case "data":
				e.text = string(value)
				_ = json.Unmarshal(value, &e.data)
			case "":
				if e.name != "" {
					events <- e
				}
				e = event{}
			}
		}
	}()
	return events
}
