package e2e

import (
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/gamelift"
	"github.com/gorilla/websocket"

	"github.com/musterhq/muster/internal/waittest"
)

// hostAgent is the connection of a host agent. It keeps all messages that it receives.
type hostAgent struct {
	t    *testing.T
	conn *websocket.Conn
	mu   sync.Mutex
	got  string
	over bool
}

// agentQuery returns the query of the official agent.
func (p *place) agentQuery() url.Values {
	return url.Values{"FleetId": {p.fleet}, "ComputeName": {p.compute}, "Authorization": {p.token}}
}

func agentAt(t *testing.T, endpoint string, query url.Values) *hostAgent {
	t.Helper()
	conn, _, err := websocket.DefaultDialer.DialContext(t.Context(), endpoint+"?"+query.Encode(), nil)
	must(t, err)
	a := &hostAgent{t: t, conn: conn}
	t.Cleanup(func() { _ = conn.Close() })
	go func() {
		for {
			_, text, err := conn.ReadMessage()
			a.mu.Lock()
			a.got += string(text) + "\n"
			a.over = err != nil
			a.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	return a
}

// golden sends a message of the official agent from the golden files.
func (a *hostAgent) golden(name string, replace ...string) {
	a.t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "internal", "agentproto", "testdata", "request", name+".json"))
	must(a.t, err)
	must(a.t, a.conn.WriteMessage(websocket.TextMessage, []byte(strings.NewReplacer(replace...).Replace(string(text)))))
}

func (a *hostAgent) until(part string) {
	a.t.Helper()
	waittest.Until(a.t, "the agent to receive "+part, func() bool {
		a.mu.Lock()
		defer a.mu.Unlock()
		return strings.Contains(a.got, part)
	})
}

func (a *hostAgent) ended() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.over
}

// The conversation of the official agent with the service: it registers, twice, connects, sends heartbeats, and reports the end of a
// server process, which ends its game session and frees its player at once.
func TestOfficialAgentConversation(t *testing.T) {
	t.Parallel()
	s := startService(t)
	p := s.prepare()
	ctx, api := t.Context(), s.api()
	var endpoint string
	for range 2 {
		out, err := api.RegisterCompute(ctx, &gamelift.RegisterComputeInput{FleetId: &p.fleet, ComputeName: &p.compute, IpAddress: aws.String("127.0.0.2"), Location: &p.location})
		must(t, err)
		endpoint = *out.Compute.GameLiftAgentEndpoint
	}
	a := agentAt(t, endpoint, p.agentQuery())
	a.golden("SendHeartbeat")
	a.until(`"StatusCode":200,"Status":"ACTIVE","UnhealthyProcesses":[],"UnregisteredProcesses":["0cf65f7e-5f0f-4d0c-8d3c-7a1a6f0c9a11"]`)
	a.golden("DescribeRuntimeConfiguration")
	a.until(`"Action":"DescribeRuntimeConfiguration","RequestId":"r","StatusCode":200,"ServerProcesses":[]`)

	process := "0cf65f7e-5f0f-4d0c-8d3c-7a1a6f0c9a11"
	server := p.dial(process, p.address)
	must(t, server.Activate(ctx, 7777))
	must(t, server.Heartbeat(ctx, true))
	a.until(`{"Action":"NotifyProcessRegistered","ProcessId":"` + process + `","LogPaths":["/nonexistent"]}`)
	game := p.createGameSession(2)
	waittest.Until(t, "the game session to be pushed", func() bool { return (<-server.pushes).action == "CreateGameSession" })
	must(t, server.ActivateGameSession(ctx, *game.GameSessionId))
	a.until(`{"Action":"NotifyGameSessionActivated","ProcessId":"` + process + `","GameSessionId":"` + *game.GameSessionId + `"}`)
	_, err := api.CreatePlayerSession(ctx, &gamelift.CreatePlayerSessionInput{GameSessionId: game.GameSessionId, PlayerId: aws.String("Ann")})
	must(t, err)

	a.golden("NotifyServerProcessTermination.native", `"ProcessId":"p"`, `"ProcessId":"`+process+`"`)
	a.until(`{"Action":"NotifyServerProcessTermination","RequestId":"r","StatusCode":200}`)
	if got := s.gameSession(*game.GameSessionId).Status; got != "TERMINATED" {
		t.Errorf("the game session is %s", got)
	}
	if got := s.seats(*game.GameSessionId); len(got) != 1 || got[0] == "Ann RESERVED" {
		t.Errorf("player sessions: %v", got)
	}
	p.untilEvent("SERVER_PROCESS_CRASHED")
	for kind, id := range map[string]string{"process": process, "game-session": *game.GameSessionId} {
		if text := s.explain(t, kind, id); !strings.Contains(text, "signal SIGSEGV") || !strings.Contains(text, "panic: nil") {
			t.Errorf("muster explain %s:\n%s", kind, text)
		}
	}
}

// The agents' door accepts only the token of the compute, and sends nothing to other clients. Its connections end with the token.
func TestAttackAgentDoor(t *testing.T) {
	t.Parallel()
	p, api, _, _ := productionPlace(t)
	for what, change := range map[string]func(url.Values){
		"no token":            func(q url.Values) { q.Del("Authorization") },
		"the word of signers": func(q url.Values) { q.Set("Authorization", "SigV4") },
		"half a token":        func(q url.Values) { q.Set("Authorization", p.token[:len(p.token)/2]) },
		"another compute":     func(q url.Values) { q.Set("ComputeName", "other") },
		"another fleet":       func(q url.Values) { q.Set("FleetId", "fleet-0") },
		"a compute of no form": func(q url.Values) {
			q.Set("ComputeName", "../"+p.compute)
		},
		"a query without end": func(q url.Values) { q.Set("X", strings.Repeat("x", 16<<10)) },
		"native, no token":    func(q url.Values) { q.Del("Authorization"); q.Set("AgentKind", "native"); q.Set("AgentProto", "1") },
	} {
		q := p.agentQuery()
		change(q)
		_, answer, err := websocket.DefaultDialer.DialContext(t.Context(), p.ws()+"/agent?"+q.Encode(), nil)
		if err == nil || answer == nil || answer.StatusCode < 400 || answer.StatusCode >= 500 {
			t.Errorf("%s: %v, %v; want a status from 400 to 499", what, answer, err)
		}
	}
	a := agentAt(t, p.ws()+"/agent", p.agentQuery())
	for _, text := range []string{"", "[]", "{}", `{"Action":7,"RequestId":{}}`, strings.Repeat("[", 1000), `{"Action":"SendHeartbeat","RequestId":"` + strings.Repeat("r", 1000) + `"}`,
		`{"Action":"NotifyServerProcessTermination","RequestId":"1","ProcessId":"` + strings.Repeat("p", 2000) + `","TerminationReason":"NORMAL_TERMINATION"}`} {
		must(t, a.conn.WriteMessage(websocket.TextMessage, []byte(text)))
	}
	a.until(`"RequestId":"1","StatusCode":400`)
	for range 20_000 { // a flood gets 429, and the connection stays
		must(t, a.conn.SetWriteDeadline(time.Now().Add(patience)))
		if a.conn.WriteMessage(websocket.TextMessage, []byte(`{"Action":"DescribeRuntimeConfiguration","RequestId":"2"}`)) != nil {
			break
		}
		a.mu.Lock()
		slowed := strings.Contains(a.got, `"StatusCode":429`)
		a.mu.Unlock()
		if slowed {
			break
		}
	}
	a.until(`"StatusCode":429`)
	_, err := api.DeregisterCompute(t.Context(), &gamelift.DeregisterComputeInput{FleetId: &p.fleet, ComputeName: &p.compute})
	must(t, err)
	a.until(`{"Action":"StartComputeTermination"}`)
	_, answer, err := websocket.DefaultDialer.DialContext(t.Context(), p.ws()+"/agent?"+p.agentQuery().Encode(), nil)
	if err == nil || answer == nil || answer.StatusCode != 403 {
		t.Errorf("the token of a compute that is gone: %v, %v; want 403", answer, err)
	}
	_, err = api.RegisterCompute(t.Context(), &gamelift.RegisterComputeInput{FleetId: &p.fleet, ComputeName: &p.compute, IpAddress: aws.String("127.0.0.1"), Location: &p.location})
	must(t, err)
	waittest.Until(t, "the connection of the registration before to end", a.ended)
}
