package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/gamelift"
	"github.com/aws/aws-sdk-go-v2/service/gamelift/types"

	"github.com/musterhq/muster/internal/porttest"
	"github.com/musterhq/muster/internal/waittest"
)

// agonesHost is a host whose agent serves the Agones SDK's interface to js/agones-server.js.
type agonesHost struct {
	*place
	dir  string
	args []string
}

func startAgonesHost(t *testing.T, s *service) *agonesHost {
	t.Helper()
	if _, err := os.Stat("js/node_modules"); err != nil {
		t.Fatal("js/node_modules is missing: run scripts/test-needs.sh")
	}
	h := &agonesHost{place: s.prepare(), dir: t.TempDir()}
	file := func(name, content string) string {
		path := filepath.Join(h.dir, name)
		must(t, os.WriteFile(path, []byte(content), 0o600))
		return path
	}
	_, port, _ := net.SplitHostPort(porttest.Free(t))
	first, err := strconv.Atoi(port)
	must(t, err)
	h.args = []string{"agent", "--server", s.url(), "--fleet", h.fleet, "--compute-name", h.compute, "--token-file", file("token", h.token), "--root", "js",
		"--state-dir", filepath.Join(h.dir, "state"), "--ports", fmt.Sprintf("%d-%d", first, first+100), "--kill-timeout", "10s", "--end-processes",
		"--runtime-config", file("runtime.json", `{"ServerProcesses":[{"LaunchPath":"agones-server.js","Parameters":"{port}","ConcurrentExecutions":1}]}`),
		"--agones", "--agones-gameserver", file("gameserver.json", `{"kind":"Fleet","spec":{"template":{"metadata":{"labels":{"mode":"duel"}},
			"spec":{"health":{"periodSeconds":1,"failureThreshold":60},"counters":{"rounds":{"count":1,"capacity":3}},"lists":{"maps":{"capacity":2,"values":["desert"]}}}}}}`)}
	return h
}

// agent starts the agent, which ends its server processes when it is stopped.
func (h *agonesHost) agent() *program {
	h.t.Helper()
	cmd := exec.Command(musterBinary, h.args...)
	cmd.Env = cleanEnvironment()
	p := run(h.t, cmd)
	h.t.Cleanup(func() {
		if p.cmd.Process.Signal(syscall.SIGTERM) == nil {
			p.exitCode()
		}
	})
	return p
}

// agonesSeen is the state that the game server has seen.
type agonesSeen struct {
	PID         int               `json:"pid"`
	Environment map[string]string `json:"environment"`
	Watched     []string          `json:"watched"`
	GameServer  struct {
		ObjectMeta struct {
			Name           string      `json:"name"`
			LabelsMap      [][2]string `json:"labelsMap"`
			AnnotationsMap [][2]string `json:"annotationsMap"`
		} `json:"objectMeta"`
		Status struct {
			State     string `json:"state"`
			Address   string `json:"address"`
			PortsList []struct {
				Name string `json:"name"`
				Port int32  `json:"port"`
			} `json:"portsList"`
			Players struct {
				Count, Capacity int64
			} `json:"players"`
		} `json:"status"`
	} `json:"gameServer"`
}

// agonesGame is the game server of a game session.
type agonesGame struct {
	t   *testing.T
	url string
}

func (h *agonesHost) game(session *types.GameSession) *agonesGame {
	return &agonesGame{h.t, fmt.Sprintf("http://127.0.0.1:%d/", *session.Port)}
}

// call makes the game server call its SDK. It returns the result and the gRPC code of a failed call.
func (g *agonesGame) call(api, name string, args ...any) (result any, code int) {
	g.t.Helper()
	request, err := json.Marshal(map[string]any{"api": api, "call": name, "args": append([]any{}, args...)})
	must(g.t, err)
	res, err := http.Post(g.url, "application/json", bytes.NewReader(request))
	must(g.t, err)
	defer res.Body.Close()
	var answer struct {
		Result any
		Error  int
	}
	must(g.t, json.NewDecoder(res.Body).Decode(&answer))
	return answer.Result, answer.Error
}

func (g *agonesGame) must(api, name string, args ...any) any {
	g.t.Helper()
	result, code := g.call(api, name, args...)
	if code != 0 {
		g.t.Fatalf("%s.%s(%v) failed with %d", api, name, args, code)
	}
	return result
}

func (g *agonesGame) seen() agonesSeen {
	g.t.Helper()
	res, err := http.Get(g.url)
	must(g.t, err)
	defer res.Body.Close()
	var answer struct{ Seen agonesSeen }
	must(g.t, json.NewDecoder(res.Body).Decode(&answer))
	return answer.Seen
}

func (g *agonesGame) until(what string, is func(agonesSeen) bool) agonesSeen {
	g.t.Helper()
	var seen agonesSeen
	waittest.Until(g.t, what, func() bool { seen = g.seen(); return is(seen) })
	return seen
}

func (g *agonesGame) untilState(state string) agonesSeen {
	g.t.Helper()
	return g.until("the game server to see the state "+state, func(s agonesSeen) bool { return s.GameServer.Status.State == state })
}

func value(pairs [][2]string, key string) string {
	for _, pair := range pairs {
		if pair[0] == key {
			return pair[1]
		}
	}
	return ""
}

// A game server with the official Agones SDK hosts game sessions: it sees itself allocated with the session's data, its players take their seats, it hosts
// another session, survives the end of its agent, and ends.
func TestAgonesServer(t *testing.T) {
	t.Parallel()
	h := startAgonesHost(t, startService(t))
	agent := h.agent()
	session := h.createGameSession(2)
	h.untilGameSession(*session.GameSessionId, types.GameSessionStatusActive)
	game := h.game(session)
	seen := game.untilState("Allocated")
	meta := seen.GameServer.ObjectMeta
	for key, want := range map[string]string{
		"muster/game-session-id": *session.GameSessionId, "muster/game-session-name": "Debug", "muster/maximum-player-session-count": "2",
	} {
		if got := value(meta.AnnotationsMap, key); got != want {
			t.Errorf("annotation %s: %q, want %q", key, got, want)
		}
	}
	if value(meta.AnnotationsMap, "agones.dev/last-allocated") == "" || value(meta.LabelsMap, "mode") != "duel" {
		t.Errorf("annotations %v, labels %v", meta.AnnotationsMap, meta.LabelsMap)
	}
	status := seen.GameServer.Status
	if len(status.PortsList) != 1 || status.PortsList[0].Name != "default" || status.PortsList[0].Port != *session.Port || status.Address != "127.0.0.1" || status.Players.Capacity != 2 {
		t.Errorf("status %+v, want the port %d", status, *session.Port)
	}
	if seen.Environment["MUSTER_PORT_AGONES/GRPC"] != "" {
		t.Errorf("environment %v", seen.Environment)
	}

	h.agonesPlayers(game, session)
	game.counts()
	h.rest(seen.Environment["AGONES_SDK_HTTP_PORT"])

	waittest.Until(t, "the label in the state of the agent", func() bool {
		text, err := os.ReadFile(filepath.Join(h.dir, "state", "agones", meta.Name+".json"))
		return err == nil && strings.Contains(string(text), `"agones.dev/sdk-rest":"yes"`)
	})
	agent.kill() // and another one takes over
	h.agent()
	waittest.Until(t, "the next agent to answer", func() bool { _, code := game.call("sdk", "setLabel", "after", "agent"); return code == 0 })
	again := game.until("the label that was set before and the one after", func(s agonesSeen) bool {
		labels := s.GameServer.ObjectMeta.LabelsMap
		return value(labels, "agones.dev/sdk-rest") == "yes" && value(labels, "agones.dev/sdk-after") == "agent"
	})
	if again.PID != seen.PID || again.GameServer.Status.State != "Allocated" {
		t.Errorf("process %d in state %s, want %d in Allocated", again.PID, again.GameServer.Status.State, seen.PID)
	}
	if got := h.gameSession(*session.GameSessionId).Status; got != types.GameSessionStatusActive {
		t.Errorf("game session is %s", got)
	}

	game.must("sdk", "ready") // the match is over
	h.untilGameSession(*session.GameSessionId, types.GameSessionStatusTerminated)
	second := h.createGameSession(2)
	h.untilGameSession(*second.GameSessionId, types.GameSessionStatusActive)
	again = game.until("the game server to see the second game session", func(s agonesSeen) bool {
		return value(s.GameServer.ObjectMeta.AnnotationsMap, "muster/game-session-id") == *second.GameSessionId
	})
	if *second.Port != *session.Port || again.PID != seen.PID || again.GameServer.Status.State != "Allocated" {
		t.Errorf("the second game session: %+v", again)
	}

	game.must("sdk", "shutdown")
	h.untilGameSession(*second.GameSessionId, types.GameSessionStatusTerminated)
	third := h.createGameSession(2)
	h.untilGameSession(*third.GameSessionId, types.GameSessionStatusActive)
	if got := h.game(third).untilState("Allocated"); got.PID == seen.PID {
		t.Errorf("process %d hosts the third game session: it should have ended", got.PID)
	}

	_, err := h.api().TerminateGameSession(t.Context(), &gamelift.TerminateGameSessionInput{GameSessionId: third.GameSessionId, TerminationMode: types.TerminationModeTriggerOnProcessTerminate})
	must(t, err)
	h.untilGameSession(*third.GameSessionId, types.GameSessionStatusTerminated)
	waittest.Until(t, "the game server to see the end", func() bool {
		logs, err := filepath.Glob(filepath.Join(h.dir, "state", "logs", "*", "output.log"))
		must(t, err)
		return slices.ContainsFunc(logs, func(path string) bool {
			text, err := os.ReadFile(path)
			return err == nil && strings.Contains(string(text), "Allocated Shutdown\n")
		})
	})
	for _, code := range h.eventsOf() {
		if strings.HasPrefix(string(code), "SERVER_PROCESS_") {
			t.Errorf("event %s: all server processes ended in good order", code)
		}
	}
}

// agonesPlayers lets players take their seats: with player tracking, by the backend's player id and by their player session, and in the list.
func (h *agonesHost) agonesPlayers(game *agonesGame, session *types.GameSession) {
	h.t.Helper()
	ann, bob := h.mustReserve(*session.GameSessionId, "Ann"), h.mustReserve(*session.GameSessionId, "Bob")
	if game.must("alpha", "playerConnect", "Ann") != true || game.must("alpha", "playerConnect", "Ann") != false {
		h.t.Error("playerConnect: want true, and false for one who is connected")
	}
	h.untilPlayer(ann, types.PlayerSessionStatusActive)
	game.must("beta", "appendListValue", "players", bob)
	h.untilPlayer(bob, types.PlayerSessionStatusActive)
	if got := game.must("alpha", "getPlayerCount"); got != 1.0 {
		h.t.Errorf("getPlayerCount: %v", got)
	}
	if game.must("alpha", "playerDisconnect", "Ann") != true {
		h.t.Error("playerDisconnect: want true")
	}
	h.untilPlayer(ann, types.PlayerSessionStatusCompleted)
	game.must("alpha", "playerConnect", "a player without a seat")
	if got := game.must("alpha", "isPlayerConnected", "a player without a seat"); got != true {
		h.t.Errorf("isPlayerConnected: %v", got)
	}
}

// counts uses the counter and the lists of the manifest.
func (g *agonesGame) counts() {
	g.t.Helper()
	g.must("beta", "incrementCounter", "rounds", 2)
	if _, code := g.call("beta", "incrementCounter", "rounds", 1); code != 11 {
		g.t.Errorf("beyond the capacity: code %d, want 11, out of range", code)
	}
	g.must("beta", "setCounterCapacity", "rounds", 9)
	g.must("beta", "setCounterCount", "rounds", 7)
	if count, capacity := g.must("beta", "getCounterCount", "rounds"), g.must("beta", "getCounterCapacity", "rounds"); count != 7.0 || capacity != 9.0 {
		g.t.Errorf("counter: %v of %v", count, capacity)
	}
	g.must("beta", "appendListValue", "maps", "forest")
	if _, code := g.call("beta", "appendListValue", "maps", "forest"); code != 6 {
		g.t.Errorf("a value twice: code %d, want 6, already exists", code)
	}
	g.must("beta", "deleteListValue", "maps", "desert")
	g.must("beta", "setListCapacity", "maps", 5)
	if values := fmt.Sprint(g.must("beta", "getListValues", "maps")); values != "[forest]" {
		g.t.Errorf("list: %s", values)
	}
	if _, code := g.call("beta", "getCounterCount", "none"); code != 5 {
		g.t.Errorf("a counter that is in no manifest: code %d, want 5, not found", code)
	}
}

// rest uses the interface as curl does.
func (h *agonesHost) rest(port string) {
	h.t.Helper()
	url := "http://127.0.0.1:" + port
	res, err := http.Get(url + "/watch/gameserver")
	must(h.t, err)
	defer res.Body.Close()
	lines := bufio.NewScanner(res.Body)
	watched := func(part string) {
		h.t.Helper()
		for lines.Scan() {
			if strings.HasPrefix(lines.Text(), `{"result":`) && strings.Contains(strings.ReplaceAll(lines.Text(), `" :`, `":`), part) {
				return
			}
		}
		h.t.Fatalf("the watch ended before %s: %v", part, lines.Err())
	}
	watched(`"Allocated"`)
	ask := func(verb, path, body string) map[string]any {
		h.t.Helper()
		request, err := http.NewRequestWithContext(h.t.Context(), verb, url+path, strings.NewReader(body))
		must(h.t, err)
		res, err := http.DefaultClient.Do(request)
		must(h.t, err)
		defer res.Body.Close()
		var answer map[string]any
		must(h.t, json.NewDecoder(res.Body).Decode(&answer))
		if res.StatusCode != 200 {
			answer["status"] = res.StatusCode
		}
		return answer
	}
	ask("PUT", "/metadata/label", `{"key":"rest","value":"yes"}`)
	watched(`"agones.dev/sdk-rest"`)
	ask("POST", "/health", "{}")
	ask("PATCH", "/v1beta1/counters/rounds", `{"count":"2"}`)
	ask("POST", "/v1beta1/lists/maps:addValue", `{"value":"swamp"}`)
	answer := ask("GET", "/gameserver", "")
	got, err := json.Marshal(answer["status"])
	must(h.t, err)
	for _, part := range []string{`"state":"Allocated"`, `"rounds":{"capacity":"9","count":"2"}`, `"maps":{"capacity":"5","values":["forest","swamp"]}`} {
		if !strings.Contains(string(got), part) {
			h.t.Errorf("GET /gameserver: %s, want %s", got, part)
		}
	}
	if answer := ask("GET", "/v1beta1/lists/none", ""); answer["status"] != 404 || answer["code"] != 5.0 {
		h.t.Errorf("a list that is not there: %v", answer)
	}
}

// A server process that reserves itself gets no game session until its time is over. A process that no longer reports its health is ended.
func TestAgonesServerReservesItself(t *testing.T) {
	t.Parallel()
	h := startAgonesHost(t, startService(t))
	h.args = slices.DeleteFunc(h.args, func(arg string) bool {
		return arg == "--agones-gameserver" || strings.HasSuffix(arg, "gameserver.json")
	}) // Agones' defaults
	h.agent()
	session := h.createGameSession(2)
	game := h.game(session)
	game.untilState("Allocated")
	game.must("sdk", "reserve", 3600)
	h.untilGameSession(*session.GameSessionId, types.GameSessionStatusTerminated)
	game.untilState("Reserved")
	_, err := h.api().CreateGameSession(t.Context(), &gamelift.CreateGameSessionInput{FleetId: &h.fleet, Location: &h.location, MaximumPlayerSessionCount: aws.Int32(2)})
	if !isError[*types.FleetCapacityExceededException](err) {
		t.Errorf("a game session while the only process is reserved: %v", err)
	}
	game.must("sdk", "reserve", 1)
	second := h.createGameSession(2)
	if *second.Port != *session.Port {
		t.Errorf("port %d, want that of the process that was reserved, %d", *second.Port, *session.Port)
	}
	h.untilGameSession(*second.GameSessionId, types.GameSessionStatusActive)
	began := time.Now()
	game.must("sdk", "beUnwell")
	h.untilEvent(types.EventCodeServerProcessTerminatedUnhealthy)
	t.Logf("ended as unhealthy after %v", time.Since(began).Round(time.Second))
	h.untilGameSession(*second.GameSessionId, types.GameSessionStatusTerminated, types.GameSessionStatusError)
}
