package e2e

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
)

// post sends a request as a broken client would. All requests use one connection.
func (s *service) post(client *http.Client, path, target, contentType string, body []byte) (status int, code, text string) {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost, s.url()+path, bytes.NewReader(body))
	must(s.t, err)
	if target != "" {
		req.Header.Set("X-Amz-Target", target)
	}
	if strings.Contains(path, "/operation/") {
		req.Header.Set("smithy-protocol", "rpc-v2-cbor")
	}
	req.Header.Set("Content-Type", contentType)
	if len(body) > 16<<20 { // what is refused unread is not sent: the answer could get lost in the reset of a connection with unread data
		req.Header.Set("Expect", "100-continue")
	}
	resp, err := client.Do(req)
	must(s.t, err)
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	must(s.t, err)
	if resp.Header.Get("X-Amzn-Requestid") == "" {
		s.t.Errorf("%s %s: the answer has no request id", path, target)
	}
	if strings.Contains(path, "/operation/") {
		if resp.Header.Get("smithy-protocol") != "rpc-v2-cbor" {
			s.t.Errorf("%s: the answer has no smithy-protocol header", path)
		}
		return resp.StatusCode, string(answer), string(answer)
	}
	var fault struct {
		Type    string `json:"__type"`
		Message string
	}
	_ = json.Unmarshal(answer, &fault) // what is not JSON shows below as an empty type
	return resp.StatusCode, fault.Type, string(answer)
}

// Requests that no SDK sends get the service's typed errors, and the connection is kept.
func TestBadRequests(t *testing.T) {
	t.Parallel()
	s := startService(t)
	client := &http.Client{Transport: &http.Transport{MaxConnsPerHost: 1}}
	defer client.CloseIdleConnections()

	const amzJSON = "application/x-amz-json-1.1"
	nested := []byte(strings.Repeat(`{"a":`, 10_000) + "1" + strings.Repeat("}", 10_000)) // not larger than a body may be
	for _, c := range []struct {
		name, path, target, contentType string
		body                            []byte
		status                          int
		code                            string
	}{
		{"not JSON", "/", "GameLift.ListFleets", amzJSON, []byte("{"), 400, "SerializationException"},
		{"a list", "/", "GameLift.ListFleets", amzJSON, []byte("[]"), 400, "SerializationException"},
		{"a wrong type", "/", "GameLift.ListFleets", amzJSON, []byte(`{"Limit":"ten"}`), 400, "SerializationException"},
		{"a fraction", "/", "GameLift.ListFleets", amzJSON, []byte(`{"Limit":1.5}`), 400, "SerializationException"},
		{"deep nesting", "/", "GameLift.ListFleets", amzJSON, nested, 400, "SerializationException"},
		{"an unknown operation", "/", "GameLift.MakeCoffee", amzJSON, []byte("{}"), 400, "UnknownOperationException"},
		{"another service", "/", "DynamoDB_20120810.ListTables", amzJSON, []byte("{}"), 400, "UnknownOperationException"},
		{"no operation", "/", "", amzJSON, []byte("{}"), 400, "UnknownOperationException"},
		{"a limit below the model's", "/", "GameLift.ListFleets", amzJSON, []byte(`{"Limit":0}`), 400, "InvalidRequestException"},
		{"an unknown enum value", "/", "GameLift.TerminateGameSession", amzJSON,
			[]byte(`{"GameSessionId":"arn:aws:gamelift:us-east-1::gamesession/fleet-1/x/y","TerminationMode":"GENTLY"}`), 400, "InvalidRequestException"},
		{"not CBOR", "/service/GameLift/operation/ListFleets", "", "application/cbor", []byte{0xff}, 400, "SerializationException"},
		{"CBOR cut off", "/service/GameLift/operation/ListFleets", "", "application/cbor", []byte{0xa1, 0x65, 'L', 'i'}, 400, "SerializationException"},
		{"an unknown CBOR operation", "/service/GameLift/operation/MakeCoffee", "", "application/cbor", []byte{0xa0}, 0, "UnknownOperationException"},
	} {
		status, code, text := s.post(client, c.path, c.target, c.contentType, c.body)
		if c.status != 0 && status != c.status || status < 400 || !strings.Contains(code, c.code) {
			t.Errorf("%s: got %d %q, want %d %s", c.name, status, text, c.status, c.code)
		}
	}
	status, _, text := s.post(client, "/", "GameLift.ListFleets", amzJSON, []byte(`{"Unknown":1,"Limit":null}`))
	if status != 200 || !strings.Contains(text, `"FleetIds":[]`) {
		t.Errorf("unknown members and null: got %d %s, want an empty list", status, text)
	}
	unhurried := &http.Client{Transport: &http.Transport{ExpectContinueTimeout: patience}}
	defer unhurried.CloseIdleConnections()
	status, code, _ := s.post(unhurried, "/", "GameLift.ListFleets", amzJSON, bytes.Repeat([]byte(" "), 12<<20)) // more than a body may have, less than is read away
	if status != 413 || code != "RequestEntityTooLargeException" {
		t.Errorf("12 MiB: got %d %s, want 413 RequestEntityTooLargeException", status, code)
	}
	s.staysHealthy()
}

// A client that connects and sends nothing, and one that stops in the middle, do not delay other clients.
func TestSilentClients(t *testing.T) {
	t.Parallel()
	s := startService(t)
	for _, start := range []string{"", "P", "\x16\x03\x01", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n{"} {
		for range 20 {
			conn := dialTCP(t, s.address)
			_, err := conn.Write([]byte(start))
			must(t, err)
		}
	}
	s.prepare()
}
