package e2e

import (
	"encoding/json"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/gamelift"
	"github.com/aws/aws-sdk-go-v2/service/gamelift/types"
	"github.com/google/uuid"
	"github.com/gorilla/websocket"
)

// wrapper is the service's side of Amazon's game server wrapper 1.2.0: the calls and messages that it sends, in its order and form.
type wrapper struct {
	t    *testing.T
	url  string // of the connection; it reconnects to the same one
	conn *websocket.Conn
}

// startWrapper starts as the wrapper does with a fleet's ARN and a profile: it looks for its compute on the first page, registers it if it is missing, and fetches a token.
func (p *place) startWrapper(compute string) (w *wrapper, registered bool) {
	p.t.Helper()
	ctx, api := p.t.Context(), p.api()
	list, err := api.ListCompute(ctx, &gamelift.ListComputeInput{FleetId: &p.fleet})
	must(p.t, err)
	endpoint := ""
	for _, c := range list.ComputeList {
		if c.GameLiftServiceSdkEndpoint == nil { // the wrapper crashes there
			p.t.Fatalf("compute %s has no GameLiftServiceSdkEndpoint", *c.ComputeName)
		}
		if *c.ComputeName == compute {
			endpoint = *c.GameLiftServiceSdkEndpoint
		}
	}
	if endpoint == "" {
		out, err := api.RegisterCompute(ctx, &gamelift.RegisterComputeInput{FleetId: &p.fleet, ComputeName: &compute, IpAddress: aws.String("127.0.0.1"), Location: &p.location})
		must(p.t, err)
		endpoint, registered = *out.Compute.GameLiftServiceSdkEndpoint, true
	}
	token, err := api.GetComputeAuthToken(ctx, &gamelift.GetComputeAuthTokenInput{FleetId: &p.fleet, ComputeName: &compute})
	must(p.t, err)
	u, err := url.Parse(endpoint)
	must(p.t, err)
	u.RawQuery = url.Values{
		"Authorization": {*token.AuthToken}, "ComputeId": {compute}, "FleetId": {p.fleet}, "IdempotencyToken": {uuid.NewString()}, "pID": {uuid.NewString()}, "sdkLanguage": {"Go"}, "sdkVersion": {"5.4.0"},
	}.Encode()
	return &wrapper{t: p.t, url: u.String()}, registered
}

// connect connects, and returns the status of the answer.
func (w *wrapper) connect() int {
	w.t.Helper()
	conn, answer, err := websocket.DefaultDialer.DialContext(w.t.Context(), w.url, http.Header{"User-Agent": {"gamelift-go-sdk/1.0"}})
	if answer == nil {
		w.t.Fatal(err)
	}
	if err == nil {
		w.conn = conn
		w.t.Cleanup(func() { conn.Close() })
	}
	return answer.StatusCode
}

// send sends a request with these members besides Action and RequestId, and requires an answer without other members.
func (w *wrapper) send(action string, members map[string]any) {
	w.t.Helper()
	request := map[string]any{"Action": action, "RequestId": uuid.NewString()}
	want := map[string]any{"Action": action, "RequestId": request["RequestId"], "StatusCode": 200.0}
	for name, value := range members {
		request[name] = value
	}
	must(w.t, w.conn.WriteJSON(request))
	if got := w.receive(); !reflect.DeepEqual(got, want) {
		w.t.Fatalf("%s was answered with %v, want %v", action, got, want)
	}
}

func (w *wrapper) receive() (message map[string]any) {
	w.t.Helper()
	kind, text, err := w.conn.ReadMessage()
	must(w.t, err)
	if kind != websocket.TextMessage || json.Unmarshal(text, &message) != nil {
		w.t.Fatalf("got %q in a frame of type %d", text, kind)
	}
	return message
}

// start is the wrapper's start. It waits for a game session once it has sent a heartbeat.
func (w *wrapper) start() {
	w.t.Helper()
	w.reach()
	w.send("ActivateServerProcess", map[string]any{
		"SdkVersion": "5.4.0", "SdkLanguage": "Go", "SdkToolName": "GameServerWrapper", "SdkToolVersion": "1.2.0", "Port": 37016, "LogPaths": []string{"/srv/game/logs/run_1"},
	})
}

// reach is connect for a connection that must be accepted.
func (w *wrapper) reach() {
	w.t.Helper()
	if status := w.connect(); status != http.StatusSwitchingProtocols {
		w.t.Fatalf("the connection was refused with %d", status)
	}
}

func (w *wrapper) beat() { w.send("HeartbeatServerProcess", map[string]any{"HealthStatus": true}) }

// host receives the game session that the service pushes, and activates it.
func (w *wrapper) host(game *types.GameSession) {
	w.t.Helper()
	want := map[string]any{
		"Action": "CreateGameSession", "GameSessionId": *game.GameSessionId, "GameSessionName": "n", "GameSessionData": "d", "MaximumPlayerSessionCount": 4.0, "Port": 37016.0, "IpAddress": "127.0.0.1",
		"GameProperties": map[string]any{"k": "v"},
	}
	if got := w.receive(); !includes(got, want) || got["StatusCode"] != nil || got["RequestId"] != nil {
		w.t.Fatalf("the game session was pushed as %v, want %v without a status and a request", got, want)
	}
	w.send("ActivateGameSession", map[string]any{"GameSessionId": *game.GameSessionId})
}

// includes reports whether a message has these members, among others.
func includes(message, members map[string]any) bool {
	for name, value := range members {
		if !reflect.DeepEqual(message[name], value) {
			return false
		}
	}
	return true
}

// createForWrapper waits until the wrapper's process is free: its heartbeat is answered before the service has recorded the health.
func (p *place) createForWrapper() *types.GameSession {
	p.t.Helper()
	return p.createWhenFree(&gamelift.CreateGameSessionInput{
		Name: aws.String("n"), GameSessionData: aws.String("d"), MaximumPlayerSessionCount: aws.Int32(4),
		GameProperties: []types.GameProperty{{Key: aws.String("k"), Value: aws.String("v")}},
	})
}

// Two wrappers on one host, whose second one finds the compute of the first. One loses its connection in the middle of a game and keeps the game session; its game ends well. The game of the other crashes,
// which shows when the connection has been gone for the grace.
func TestGameServerWrapper(t *testing.T) {
	t.Parallel()
	p := startService(t, "--virtual-clock").prepare()
	w, registered := p.startWrapper("vm")
	if !registered {
		t.Error("the compute was there before")
	}
	w.start()
	// Its SDK loses a game session that arrives before its first heartbeat.
	_, err := p.api().CreateGameSession(t.Context(), &gamelift.CreateGameSessionInput{FleetId: &p.fleet, Location: &p.location, MaximumPlayerSessionCount: aws.Int32(4)})
	if !isError[*types.FleetCapacityExceededException](err) {
		t.Errorf("before the first heartbeat: %v", err)
	}
	w.beat()
	game := p.createForWrapper()
	w.host(game)
	p.untilGameSession(*game.GameSessionId, types.GameSessionStatusActive)

	must(t, w.conn.NetConn().Close()) // a cut
	w.reach()                         // by the same URL
	w.beat()
	if got := p.gameSession(*game.GameSessionId).Status; got != types.GameSessionStatusActive {
		t.Errorf("after the connection was lost and back, the game session is %s", got)
	}

	second, registered := p.startWrapper("vm")
	if registered {
		t.Error("the second wrapper on the host registered its compute again")
	}
	second.start()
	second.beat()
	crashes := p.createForWrapper()
	second.host(crashes)
	p.untilGameSession(*crashes.GameSessionId, types.GameSessionStatusActive)

	// TerminateGameSession: the wrapper kills its game and reports that at once, however much time it has.
	_, err = p.api().TerminateGameSession(t.Context(), &gamelift.TerminateGameSessionInput{GameSessionId: game.GameSessionId, TerminationMode: types.TerminationModeTriggerOnProcessTerminate})
	must(t, err)
	if got := w.receive(); got["Action"] != "TerminateProcess" || got["TerminationTime"] == nil || got["StatusCode"] != nil {
		t.Errorf("the end of the process was pushed as %v", got)
	}
	w.send("TerminateServerProcess", nil)
	must(t, w.conn.NetConn().Close()) // without a close frame
	p.untilGameSession(*game.GameSessionId, types.GameSessionStatusTerminated)

	// The game exits with a status other than 0: the connection drops without a message.
	must(t, second.conn.NetConn().Close())
	for range 3 { // its grace
		p.advance(time.Minute)
	}
	p.untilGameSession(*crashes.GameSessionId, types.GameSessionStatusTerminated)
	p.untilEvent(types.EventCodeServerProcessCrashed)

	other, _ := p.startWrapper("vm")
	other.url = strings.Replace(other.url, "Authorization=", "Authorization=x", 1)
	if status := other.connect(); status != http.StatusForbidden && status != http.StatusUnauthorized {
		t.Errorf("a wrong token was answered with %d", status)
	}
}
