package gamelift

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/gamelift"
	"github.com/aws/aws-sdk-go-v2/service/gamelift/types"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/gamelift/model"
	"github.com/musterhq/muster/internal/identity"
)

type testKeys map[string]identity.AccessKey

func (k testKeys) Find(id string) (identity.AccessKey, bool) {
	key, ok := k[id]
	return key, ok
}

func (k testKeys) With(id, token, _ string) (identity.AccessKey, error) {
	if key, ok := k[id]; ok && token == "" {
		return key, nil
	}
	return identity.AccessKey{}, identity.ErrUnknown
}

func keysForTest() testKeys {
	keys := testKeys{}
	for _, role := range []identity.Role{identity.Admin, identity.Backend, identity.Client, identity.ReadOnly} {
		id := "AK" + strings.ToUpper(role.String())
		keys[id] = identity.AccessKey{ID: id, Secret: "secret of " + role.String(), Account: "123456789012", Role: role}
	}
	return keys
}

// failingLog fails the test on each error: none is expected unless a test brings a log of its own.
type failingLog struct {
	slog.Handler
	t *testing.T
}

func (l failingLog) Handle(_ context.Context, r slog.Record) error {
	text := r.Message
	r.Attrs(func(a slog.Attr) bool { text += " " + a.String(); return true })
	l.t.Error("logged: " + text)
	return nil
}

func testLog(t *testing.T) *slog.Logger {
	return slog.New(failingLog{slog.NewTextHandler(io.Discard, &slog.HandlerOptions{Level: slog.LevelError}), t})
}

func newTestHandler(t *testing.T, ops ...operation) *Handler {
	h := NewHandler(&Service{}, Config{Keys: keysForTest(), Log: testLog(t)})
	replace(t, h, ops...)
	return h
}

// replace replaces operations with stand-ins.
func replace(t testing.TB, h *Handler, ops ...operation) {
	stand, err := compileOperations(model.Load(), ops)
	if err != nil {
		t.Fatal(err)
	}
	h.operations = maps.Clone(h.operations)
	maps.Copy(h.operations, stand)
}

func startServer(t testing.TB, h http.Handler) string {
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return server.URL
}

func sdkClient(url string, key identity.AccessKey) *gamelift.Client {
	return gamelift.New(gamelift.Options{
		BaseEndpoint: &url, Region: "eu-central-1", RetryMaxAttempts: 1, HTTPClient: wholeAnswers{new(http.Transport)},
		Credentials: credentials.NewStaticCredentialsProvider(key.ID, key.Secret, ""),
	})
}

// wholeAnswers reads an answer before the SDK gets it. The SDK closes its request's body as soon as the headers of the
// answer are there; net/http, when it is a moment behind with writing that body, takes this for a failure (smithy-go
// 1.28.8 gives io.EOF from WriteTo) and drops the connection under the rest of an answer of more than 4 KiB. The SDK then
// repeats the call, which tests that count attempts forbid.
type wholeAnswers struct{ *http.Transport }

func (c wholeAnswers) Do(r *http.Request) (*http.Response, error) {
	answer, err := c.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	answer.Body = io.NopCloser(bytes.NewReader(body))
	return answer, err
}

// jsonClient is a client of the other protocol: it uses the same SDK's signer, and hand-written bodies.
type jsonClient struct {
	url    string
	key    identity.AccessKey
	region string
}

type jsonAnswer struct {
	status int
	header http.Header
	body   map[string]any
	raw    string
}

func (c jsonClient) call(t testing.TB, operation, body string) jsonAnswer {
	t.Helper()
	r, err := http.NewRequest(http.MethodPost, c.url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-Amz-Target", "GameLift."+operation)
	r.Header.Set("Content-Type", "application/x-amz-json-1.1")
	sign(t, r, body, c.key, "gamelift", cmp.Or(c.region, "eu-central-1"), time.Now())
	return do(t, r)
}

func do(t testing.TB, r *http.Request) jsonAnswer {
	t.Helper()
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	answer := jsonAnswer{status: response.StatusCode, header: response.Header, raw: string(raw)}
	if len(raw) > 0 && strings.HasPrefix(response.Header.Get("Content-Type"), "application/x-amz-json") {
		if err := json.Unmarshal(raw, &answer.body); err != nil {
			t.Fatalf("%s is not JSON: %v", raw, err)
		}
	}
	return answer
}

var examplePlayerSession = types.PlayerSession{
	PlayerSessionId: aws.String("psess-1f0e9c52-5c0b-4f0a-8a52-1b8b9d9c1a01"),
	PlayerId:        aws.String("p1"),
	GameSessionId:   aws.String("arn:aws:gamelift:eu-central-1::gamesession/fleet-2b1e0c7a-6a0e-4c0e-8a57-0d9a4d1b7f10/custom-berlin-1/gsess-5e2a6c1b-90f4-4b1e-bb0e-3f6f7a0c9d21"),
	FleetId:         aws.String("fleet-2b1e0c7a-6a0e-4c0e-8a57-0d9a4d1b7f10"),
	FleetArn:        aws.String("arn:aws:gamelift:eu-central-1:000000000000:fleet/fleet-2b1e0c7a-6a0e-4c0e-8a57-0d9a4d1b7f10"),
	CreationTime:    aws.Time(time.UnixMilli(1767000002125)),
	Status:          types.PlayerSessionStatusReserved,
	IpAddress:       aws.String("192.0.2.10"),
	Port:            aws.Int32(7777),
}

func reserveExample(_ *Service, _ context.Context, in *gamelift.CreatePlayerSessionInput) (*gamelift.CreatePlayerSessionOutput, error) {
	session := examplePlayerSession
	session.PlayerId, session.PlayerData = in.PlayerId, in.PlayerData
	return &gamelift.CreatePlayerSessionOutput{PlayerSession: &session}, nil
}

func TestBothProtocolsReachTheOperation(t *testing.T) {
	h := newTestHandler(t, serve("CreatePlayerSession", play, reserveExample))
	for _, base := range []string{"", "/", "/behind/a%20proxy"} {
		url := startServer(t, h) + base
		key := keysForTest()["AKCLIENT"]
		out, err := sdkClient(url, key).CreatePlayerSession(t.Context(), &gamelift.CreatePlayerSessionInput{
			GameSessionId: examplePlayerSession.GameSessionId, PlayerId: aws.String("jürgen"), PlayerData: aws.String("{}"),
		})
		if err != nil {
			t.Fatalf("base %q: %v", base, err)
		}
		if got := out.PlayerSession; *got.PlayerId != "jürgen" || *got.PlayerData != "{}" || *got.Port != 7777 ||
			!got.CreationTime.Equal(*examplePlayerSession.CreationTime) || got.DnsName != nil {
			t.Errorf("base %q: got %+v", base, got)
		}
		got := jsonClient{url: url, key: key}.call(t, "CreatePlayerSession",
			`{"GameSessionId":"`+*examplePlayerSession.GameSessionId+`","PlayerId":"p1","PlayerData":null,"Unknown":{"x":[1]}}`)
		want := `{"PlayerSession":{"CreationTime":1767000002.125,"FleetArn":"arn:aws:gamelift:eu-central-1:000000000000:fleet/fleet-2b1e0c7a-6a0e-4c0e-8a57-0d9a4d1b7f10","FleetId":"fleet-2b1e0c7a-6a0e-4c0e-8a57-0d9a4d1b7f10","GameSessionId":"` + *examplePlayerSession.GameSessionId + `","IpAddress":"192.0.2.10","PlayerId":"p1","PlayerSessionId":"psess-1f0e9c52-5c0b-4f0a-8a52-1b8b9d9c1a01","Port":7777,"Status":"RESERVED"}}`
		if got.status != http.StatusOK || got.raw != want {
			t.Errorf("base %q: got %d %s\nwant %s", base, got.status, got.raw, want)
		}
		if len(got.header.Get("X-Amzn-Requestid")) != 36 || got.header.Get("Date") == "" {
			t.Errorf("base %q: headers %v lack a request id or a date", base, got.header)
		}
	}
}

func TestBodiesOfEmptyAnswers(t *testing.T) {
	h := newTestHandler(t,
		serve("DeleteFleet", administer, func(*Service, context.Context, *gamelift.DeleteFleetInput) (*gamelift.DeleteFleetOutput, error) {
			return &gamelift.DeleteFleetOutput{}, nil
		}),
		serve("DeleteLocation", administer, func(*Service, context.Context, *gamelift.DeleteLocationInput) (*gamelift.DeleteLocationOutput, error) {
			return &gamelift.DeleteLocationOutput{}, nil
		}),
		serve("ListFleets", look, func(*Service, context.Context, *gamelift.ListFleetsInput) (*gamelift.ListFleetsOutput, error) {
			return &gamelift.ListFleetsOutput{}, nil
		}))
	c := jsonClient{url: startServer(t, h), key: keysForTest()["AKADMIN"]}
	for _, each := range []struct{ operation, body, want string }{
		{"DeleteFleet", `{"FleetId":"fleet-1"}`, ""},
		{"DeleteLocation", `{"LocationName":"custom-1"}`, "{}"},
		{"ListFleets", "", `{"FleetIds":[]}`},
	} {
		if got := c.call(t, each.operation, each.body); got.status != 200 || got.raw != each.want {
			t.Errorf("%s: got %d %q, want %q", each.operation, got.status, got.raw, each.want)
		}
	}
	if _, err := sdkClient(c.url, c.key).DeleteFleet(t.Context(), &gamelift.DeleteFleetInput{FleetId: aws.String("fleet-1")}); err != nil {
		t.Error(err)
	}
}

func TestErrorsAreWhatClientsExpect(t *testing.T) {
	h := newTestHandler(t, serve("CreatePlayerSession", play,
		func(*Service, context.Context, *gamelift.CreatePlayerSessionInput) (*gamelift.CreatePlayerSessionOutput, error) {
			return nil, domain.Refuse(domain.Full, "game session g1: 1 of 1 seats held")
		}))
	key := keysForTest()["AKADMIN"]
	url := startServer(t, h)
	_, err := sdkClient(url, key).CreatePlayerSession(t.Context(), &gamelift.CreatePlayerSessionInput{
		GameSessionId: examplePlayerSession.GameSessionId, PlayerId: aws.String("p1"),
	})
	full, ok := errors.AsType[*types.GameSessionFullException](err)
	if !ok || full.ErrorMessage() != "game session g1: 1 of 1 seats held" {
		t.Errorf("got %v, want GameSessionFullException with the refusal's text", err)
	}
	got := jsonClient{url: url, key: key}.call(t, "CreatePlayerSession", `{"GameSessionId":"a","PlayerId":"b"}`)
	want := `{"__type":"GameSessionFullException","Message":"game session g1: 1 of 1 seats held","message":"game session g1: 1 of 1 seats held"}`
	if got.status != 400 || got.raw != want || got.header.Get("X-Amzn-Errortype") != "GameSessionFullException" {
		t.Errorf("got %d %v %s\nwant %s", got.status, got.header, got.raw, want)
	}
}

func TestConstraintsComeFirst(t *testing.T) {
	h := newTestHandler(t)
	c := jsonClient{url: startServer(t, h), key: keysForTest()["AKADMIN"]}
	got := c.call(t, "StartMatchmaking", `{"ConfigurationName":"a b","Players":[]}`)
	const want = "1 validation error detected: Value 'a b' at 'ConfigurationName' failed to satisfy constraint: "
	if message, _ := got.body["message"].(string); !strings.HasPrefix(message, want) {
		t.Errorf("got %s", got.raw)
	}
}

func TestBadRequestsGetTypedErrors(t *testing.T) {
	h := newTestHandler(t, serve("CreatePlayerSession", play, reserveExample))
	url := startServer(t, h)
	c := jsonClient{url: url, key: keysForTest()["AKADMIN"]}
	for _, each := range []struct{ name, operation, body, code, message string }{
		{"unknown operation", "CreatePlayerSessionX", `{}`, codeUnknownOperation, "'CreatePlayerSessionX' is not an operation of this service"},
		{"case matters", "createPlayerSession", `{}`, codeUnknownOperation, ""},
		{"not JSON", "CreatePlayerSession", `{"GameSessionId":`, codeSerialization, ""},
		{"not an object", "CreatePlayerSession", `[]`, codeSerialization, "the body must be a JSON object, got a list"},
		{"wrong type", "CreatePlayerSession", `{"PlayerId":7}`, codeSerialization, "member PlayerId must be a string, got a number"},
		{"wrong type inside", "CreateGameSession", `{"GameProperties":[{"Key":"a","Value":{}}]}`, codeSerialization, "member GameProperties[0].Value must be a string, got an object"},
		{"fraction", "CreateGameSession", `{"MaximumPlayerSessionCount":1.5}`, codeSerialization, "member MaximumPlayerSessionCount: must be a 32 bit integer"},
		{"too large", "CreateGameSession", `{"MaximumPlayerSessionCount":3000000000}`, codeSerialization, "member MaximumPlayerSessionCount: the number is too large for a 32 bit integer"},
		{"time as text", "DescribeFleetEvents", `{"FleetId":"fleet-1","StartTime":"today"}`, codeSerialization, "member StartTime: must be a number of seconds since 1970"},
		{"given twice", "CreatePlayerSession", `{"PlayerId":"a","PlayerId":"b"}`, codeSerialization, ""},
		{"too deep", "CreatePlayerSession", `{"x":` + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + `}`, codeSerialization, "the body is nested more than 32 deep"},
		{"missing", "CreatePlayerSession", `{"GameSessionId":"a"}`, codeInvalidRequest, "1 validation error detected: Value at 'PlayerId' failed to satisfy constraint: Member must not be null"},
		{"pattern", "CreatePlayerSession", `{"GameSessionId":"a b","PlayerId":"p"}`, codeInvalidRequest, "1 validation error detected: Value 'a b' at 'GameSessionId' failed to satisfy constraint: Member must satisfy regular expression pattern: [a-zA-Z0-9:/-]+"},
		{"sensitive", "CreatePlayerSession", `{"GameSessionId":"a","PlayerId":"` + strings.Repeat("p", 1025) + `"}`, codeInvalidRequest, "1 validation error detected: Value (1025 characters, not shown) at 'PlayerId' failed to satisfy constraint: Member must have length less than or equal to 1024"},
		{"list in list", "CreateFleet", `{"Name":"n","Tags":[{"Key":"k","Value":"v"},{"Key":"k"}]}`, codeInvalidRequest, "1 validation error detected: Value at 'Tags[1].Value' failed to satisfy constraint: Member must not be null"},
		{"empty list", "CreateFleet", `{"Name":"n","Locations":[]}`, codeInvalidRequest, "1 validation error detected: Value of length 0 at 'Locations' failed to satisfy constraint: Member must have length greater than or equal to 1"},
		{"port", "CreateFleet", `{"Name":"n","EC2InboundPermissions":[{"FromPort":0,"ToPort":1,"IpRange":"x","Protocol":"TCP"}]}`, codeInvalidRequest, "1 validation error detected: Value (not shown) at 'EC2InboundPermissions[0].FromPort' failed to satisfy constraint: Member must have value greater than or equal to 1"},
		{"map value", "StartMatchmaking", `{"ConfigurationName":"c","Players":[{"LatencyInMs":{"eu":0}}]}`, codeInvalidRequest, "1 validation error detected: Value '0' at 'Players[0].LatencyInMs{eu}' failed to satisfy constraint: Member must have value greater than or equal to 1"},
		{"too large a body", "CreatePlayerSession", `{"x":"` + strings.Repeat("x", bodyMax) + `"}`, codeEntityTooLarge, ""},
	} {
		got := c.call(t, each.operation, each.body)
		if got.body["__type"] != each.code || each.message != "" && got.body["message"] != each.message {
			t.Errorf("%s:\n got %d %s\nwant %s %s", each.name, got.status, got.raw, each.code, each.message)
		}
		if got.status != statusOf(each.code) {
			t.Errorf("%s: got status %d, want %d", each.name, got.status, statusOf(each.code))
		}
	}
}

func TestBadCBORGetsTypedErrors(t *testing.T) {
	h := newTestHandler(t)
	url := startServer(t, h)
	key := keysForTest()["AKADMIN"]
	for _, each := range []struct{ name, operation, body, code, message string }{
		{"unknown operation", "Nothing", "\xa0", codeUnknownOperation, ""},
		{"wrong type", "CreatePlayerSession", "\xa1\x68PlayerId\x07", codeSerialization, "member PlayerId, or a value in it, must be of another type than positive integer"},
		{"wrong type inside", "ClaimGameServer", "\xa1\x6cFilterOption\xa1\x70InstanceStatuses\xa0", codeSerialization, "member FilterOption, or a value in it, must be of another type than map"},
		{"too large", "ListFleets", "\xa1\x65Limit\x1a\x80\x00\x00\x00", codeSerialization, "member Limit: the number is too large for a 32 bit integer"},
		{"too small", "ListFleets", "\xa1\x65Limit\x3a\x80\x00\x00\x00", codeSerialization, "member Limit: the number is too large for a 32 bit integer"},
		{"not a map", "CreatePlayerSession", "\x80", codeSerialization, "the body must be a CBOR map, got array"},
		{"cut short", "CreatePlayerSession", "\xa1\x68Play", codeSerialization, ""},
		{"float for integer", "CreateGameSession", "\xa1\x78\x19MaximumPlayerSessionCount\xfb\x3f\xf0\x00\x00\x00\x00\x00\x00", codeSerialization, ""},
		{"bytes for text", "CreatePlayerSession", "\xa1\x68PlayerId\x41a", codeSerialization, ""},
		{"missing", "CreatePlayerSession", "", codeInvalidRequest, "1 validation error detected: Value at 'GameSessionId' failed to satisfy constraint: Member must not be null"},
	} {
		r, err := http.NewRequest(http.MethodPost, url+rpcPath+each.operation, bytes.NewReader([]byte(each.body)))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Smithy-Protocol", rpcProtocol)
		r.Header.Set("Content-Type", "application/cbor")
		sign(t, r, each.body, key, "gamelift", "eu-central-1", time.Now())
		got := do(t, r)
		var body map[string]string
		if err := cborDecode.Unmarshal([]byte(got.raw), &body); err != nil {
			t.Fatalf("%s: %v in %q", each.name, err, got.raw)
		}
		if body["__type"] != each.code || each.message != "" && body["message"] != each.message || body["message"] != body["Message"] {
			t.Errorf("%s: got %v, want %s %s", each.name, body, each.code, each.message)
		}
		if got.header.Get("Smithy-Protocol") != rpcProtocol || got.header.Get("Content-Type") != "application/cbor" {
			t.Errorf("%s: headers %v are not of the protocol", each.name, got.header)
		}
	}
}

// logLines collects a handler's log, for tests that expect log lines.
type logLines struct{ bytes.Buffer }

func TestPanicEndsOneRequestOnly(t *testing.T) {
	var lines logLines
	h := NewHandler(&Service{}, Config{Keys: keysForTest(), Log: slog.New(slog.NewTextHandler(&lines, nil))})
	replace(t, h, serve("ListFleets", look, func(*Service, context.Context, *gamelift.ListFleetsInput) (*gamelift.ListFleetsOutput, error) {
		panic("a bug")
	}))
	got := jsonClient{url: startServer(t, h), key: keysForTest()["AKADMIN"]}.call(t, "ListFleets", "{}")
	if got.status != 500 || got.body["__type"] != codeInternalService || strings.Contains(got.raw, "bug") {
		t.Errorf("got %d %s", got.status, got.raw)
	}
	if id := got.header.Get("X-Amzn-Requestid"); !strings.Contains(lines.String(), id) || !strings.Contains(lines.String(), "a bug") {
		t.Errorf("the log %q lacks the cause or the request id %s", lines.String(), id)
	}
}

func TestUndeclaredErrorBecomesInvalidRequest(t *testing.T) {
	var lines logLines
	h := NewHandler(&Service{}, Config{Keys: keysForTest(), Log: slog.New(slog.NewTextHandler(&lines, nil))})
	replace(t, h, serve("ListCompute", look, func(*Service, context.Context, *gamelift.ListComputeInput) (*gamelift.ListComputeOutput, error) {
		return nil, domain.Refuse(domain.NotFound, "fleet fleet-1")
	}))
	got := jsonClient{url: startServer(t, h), key: keysForTest()["AKADMIN"]}.call(t, "ListCompute", `{"FleetId":"fleet-1"}`)
	if got.status != 400 || got.body["__type"] != codeInvalidRequest || got.body["message"] != "fleet fleet-1" {
		t.Errorf("got %d %s", got.status, got.raw)
	}
	if !strings.Contains(lines.String(), "does not declare") {
		t.Errorf("the log %q does not tell", lines.String())
	}
}

func TestRoles(t *testing.T) {
	h := newTestHandler(t)
	url := startServer(t, h)
	allowed := map[string]string{
		"AKADMIN":    "CreateFleet RegisterCompute CreateGameSession DescribeGameSessions ListFleets GetComputeAuthToken RequestUploadCredentials",
		"AKBACKEND":  "RegisterCompute CreateGameSession DescribeGameSessions ListFleets GetComputeAuthToken",
		"AKCLIENT":   "CreateGameSession DescribeGameSessions",
		"AKREADONLY": "DescribeGameSessions ListFleets",
	}
	for id, names := range allowed {
		for name := range strings.SplitSeq(allowed["AKADMIN"], " ") {
			got := jsonClient{url: url, key: keysForTest()[id]}.call(t, name, `{"x":`)
			want := codeAccessDenied
			if strings.Contains(" "+names+" ", " "+name+" ") {
				want = codeSerialization // it got that far
			}
			if got.body["__type"] != want {
				t.Errorf("%s as %s: got %s, want %s", name, id, got.raw, want)
			}
		}
	}
}

func TestOversizedBodyKeepsTheConnection(t *testing.T) {
	h := newTestHandler(t)
	c := jsonClient{url: startServer(t, h), key: keysForTest()["AKADMIN"]}
	got := c.call(t, "ListFleets", strings.Repeat(" ", bodyMax+1))
	if got.status != http.StatusRequestEntityTooLarge || got.header.Get("Connection") == "close" {
		t.Errorf("got %d %v", got.status, got.header)
	}
}
