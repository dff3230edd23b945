package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/gamelift"
	"github.com/aws/aws-sdk-go-v2/service/gamelift/types"
	"github.com/fxamacker/cbor/v2"

	game "github.com/musterhq/muster/examples/arena"
	"github.com/musterhq/muster/internal/waittest"
)

// awsEnvironment returns the variables with which a program with an AWS SDK finds a service, and no other settings of this machine.
func awsEnvironment(endpoint string) []string {
	return cleanEnvironment("AWS_ENDPOINT_URL_GAMELIFT="+endpoint, "AWS_REGION="+region, "AWS_ACCESS_KEY_ID=any", "AWS_SECRET_ACCESS_KEY=any",
		"AWS_EC2_METADATA_DISABLED=true", "AWS_CONFIG_FILE=/nowhere", "AWS_SHARED_CREDENTIALS_FILE=/nowhere")
}

// player starts the example client, which plays a script, and waits until it is in the game.
func player(t *testing.T, endpoint, name, script string, flags ...string) *program {
	t.Helper()
	cmd := exec.Command(arenaClientBinary, append([]string{"-name", name, "-script", script, "-timeout", patience.String()}, flags...)...)
	cmd.Env = awsEnvironment(endpoint)
	p := run(t, cmd)
	p.until("welcome " + name)
	return p
}

func (p *program) endsWell() {
	p.t.Helper()
	if code := p.exitCode(); code != 0 {
		p.t.Errorf("%v ended with status %d:\n%s", p.cmd.Args, code, p.logs)
	}
}

// onlyGame returns the only game session of the fleet.
func (p *place) onlyGame() types.GameSession {
	p.t.Helper()
	out, err := p.api().DescribeGameSessions(p.t.Context(), &gamelift.DescribeGameSessionsInput{FleetId: &p.fleet})
	must(p.t, err)
	if len(out.GameSessions) != 1 {
		p.t.Fatalf("got %d game sessions, want 1", len(out.GameSessions))
	}
	return out.GameSessions[0]
}

// seats returns the player sessions of a game session as "player STATUS", sorted.
func (s *service) seats(gameSession string) []string {
	s.t.Helper()
	out, err := s.api().DescribePlayerSessions(s.t.Context(), &gamelift.DescribePlayerSessionsInput{GameSessionId: &gameSession})
	must(s.t, err)
	var seats []string
	for _, p := range out.PlayerSessions {
		seats = append(seats, *p.PlayerId+" "+string(p.Status))
	}
	slices.Sort(seats)
	return seats
}

// Four players and two rounds with both libraries: one leaves for good, one leaves and returns, a friend is followed.
func TestArenaWithBothLibraries(t *testing.T) {
	t.Parallel()
	s := startService(t)
	p := s.prepare()
	server := p.startArena("-end-when-empty")
	p.untilFree(server.program)

	ann := player(t, s.url(), "Ann", "wait joined Dan; coin; wait round Ann; wait joined Bob; coin; wait over",
		"-fleet", p.fleet, "-location", p.location, "-level", "size=8x8,goal=1,rounds=2")
	bob := player(t, s.url(), "Bob", "wait round Ann; return; wait over", "-friend", "Ann")
	cyd := player(t, s.url(), "Cyd", "wait round Ann; leave", "-fleet", p.fleet)
	dan := player(t, s.url(), "Dan", "wait over", "-fleet", p.fleet)
	for _, x := range []*program{ann, bob, cyd, dan, server.program} {
		x.endsWell()
	}
	if line := ann.until("over"); !strings.Contains(line, "Ann has won 2 of 2 rounds") {
		t.Errorf("got %q", line)
	}
	id := *p.onlyGame().GameSessionId
	s.untilGameSession(id, "TERMINATED")
	want := []string{"Ann COMPLETED", "Bob COMPLETED", "Cyd COMPLETED", "Dan COMPLETED"}
	// A player who returns before the server noticed the disconnection is refused, and returns with another seat.
	if got := s.seats(id); len(got) <= len(want) || !slices.Equal(slices.Compact(slices.Clone(got)), want) {
		t.Errorf("player sessions: got %v, want %v and Bob's second", got, want)
	}
}

// untilFree waits until a server process can host a game session, which it can after its first health report.
func (p *place) untilFree(server *program) {
	p.t.Helper()
	process := regexp.MustCompile(`process=(\S+)`).FindStringSubmatch(server.until("ready for a game session"))[1]
	p.untilHealth(process, "HEALTHY")
}

// untilHealth waits until a server process has reported its health.
func (p *place) untilHealth(process, health string) {
	p.t.Helper()
	line := regexp.MustCompile(`(?m)^health +` + health + `$`)
	waittest.Until(p.t, "process "+process+" to be "+health, func() bool { return line.MatchString(p.explain(p.t, "process", process)) })
}

// A session ends automatically when its last player has left.
func TestSessionEndsWithItsLastPlayer(t *testing.T) {
	t.Parallel()
	s := startService(t)
	p := s.prepare()
	server := p.startArena("-end-when-empty")
	id := *p.createGameSession(4).GameSessionId
	s.untilGameSession(id, "ACTIVE")
	player(t, s.url(), "Ann", "say hello; leave", "-session", id).endsWell()
	server.endsWell()
	s.untilGameSession(id, "TERMINATED")
	if got := s.seats(id); !slices.Equal(got, []string{"Ann COMPLETED"}) {
		t.Errorf("player sessions: got %v", got)
	}
}

// The same game on a server that implements the protocol itself.
func TestArenaWithoutALibrary(t *testing.T) {
	t.Parallel()
	s := startService(t)
	p := s.prepare()
	network := startNetwork(t, s.address)
	cmd := exec.Command(bareServerBinary, "-websocketurl=ws://"+network.address, "-authtoken="+p.token, "-fleetid="+p.fleet,
		"-hostid="+p.compute, "-bind=127.0.0.1", "-heartbeat=1s")
	cmd.Env = cleanEnvironment()
	server := run(t, cmd)
	p.untilFree(server)
	ann := player(t, s.url(), "Ann", "wait joined Bob; wait said Bob; coin; wait over", "-fleet", p.fleet, "-location", p.location, "-level", "goal=1")
	bob := player(t, s.url(), "Bob", "wait said stranger; say go; wait over", "-friend", "Ann")
	network.cut(true) // players continue to play, and the server reconnects
	server.until("connection to the service lost")
	id := *p.onlyGame().GameSessionId
	cyd := player(t, s.url(), "stranger", "say hello; leave", "-session", id)
	for _, x := range []*program{cyd, ann, bob, server} {
		x.endsWell()
	}
	s.untilGameSession(id, "TERMINATED")
	if got := s.seats(id); !slices.Equal(got, []string{"Ann COMPLETED", "Bob COMPLETED", "stranger COMPLETED"}) {
		t.Errorf("player sessions: got %v", got)
	}
}

// A level that does not load ends process and session, and callers that wait for it get an error.
func TestLevelThatDoesNotLoad(t *testing.T) {
	t.Parallel()
	s := startService(t)
	p := s.prepare()
	server := p.startArena()
	p.untilFree(server.program)
	cmd := exec.Command(arenaClientBinary, "-name", "Ann", "-script", "leave", "-fleet", p.fleet, "-location", p.location, "-level", "size=huge")
	cmd.Env = awsEnvironment(s.url())
	ann := run(t, cmd)
	if code := ann.exitCode(); code != 1 || !strings.Contains(ann.logs.String(), "the status does not allow it") {
		t.Errorf("the player's program ended with status %d:\n%s", code, ann.logs)
	}
	if code := server.exitCode(); code != 1 {
		t.Errorf("the server ended with status %d", code)
	}
	id := *p.onlyGame().GameSessionId
	s.untilGameSession(id, "TERMINATED")
	if got := s.seats(id); len(got) != 0 {
		t.Errorf("player sessions: got %v, want none", got)
	}
}

// The studio's backend reserves seats, and clients connect with them.
func TestBackend(t *testing.T) {
	t.Parallel()
	s := startService(t)
	p := s.prepare()
	for range 2 {
		p.untilFree(p.startArena().program)
	}
	fleetARN := "arn:aws:gamelift:" + region + "::fleet/" + p.fleet
	_, err := s.api().CreateGameSessionQueue(t.Context(), &gamelift.CreateGameSessionQueueInput{
		Name: aws.String("europe"), TimeoutInSeconds: aws.Int32(60), Destinations: []types.GameSessionQueueDestination{{DestinationArn: &fleetARN}}})
	must(t, err)
	for _, where := range [][]string{{"-fleet", p.fleet, "-location", p.location}, {"-fleet", p.fleet, "-queue", "europe"}} {
		cmd := exec.Command(backendBinary, append([]string{"-listen", "127.0.0.1:0"}, where...)...)
		cmd.Env = awsEnvironment(s.url())
		b := run(t, cmd)
		base := "http://" + regexp.MustCompile(`address=(\S+)`).FindStringSubmatch(b.until("listening"))[1]

		var seats []backendSeat
		ask(t, "POST", base+"/games", `{"players":["Ann","Bob"],"level":{"goal":"1"}}`, http.StatusOK, &seats)
		if len(seats) != 2 {
			t.Fatalf("%v: got %d seats, want 2", where, len(seats))
		}
		var friend backendSeat
		ask(t, "POST", base+"/join", `{"player":"Cyd","friend":"Bob"}`, http.StatusOK, &friend)
		if friend.Game != seats[0].Game || friend.Player != "Cyd" {
			t.Errorf("%v: Bob's friend is sent to %+v, want %s", where, friend, seats[0].Game)
		}
		var games []struct{ ID string }
		ask(t, "GET", base+"/games", "", http.StatusOK, &games)
		if len(games) != 1 || games[0].ID != friend.Game {
			t.Errorf("%v: open games: got %v, want the one", where, games)
		}
		ask(t, "POST", base+"/join", `{"player":"Cyd","friend":"nobody"}`, http.StatusNotFound, &struct{}{})
		ask(t, "POST", base+"/join", `{"player":"Cyd"}`, http.StatusBadRequest, &struct{}{})
		ask(t, "POST", base+"/games", `players`, http.StatusBadRequest, &struct{}{})

		var players []*program
		for i, seat := range []backendSeat{seats[0], seats[1], friend} {
			script := []string{"wait joined Cyd; coin; wait over", "wait over", "wait over"}[i]
			players = append(players, player(t, "", seat.Player, script, "-address", seat.Address, "-player-session", seat.PlayerSession))
		}
		for _, x := range players {
			x.endsWell()
		}
		s.untilGameSession(seats[0].Game, "TERMINATED")
	}
}

type backendSeat struct{ Player, Address, PlayerSession, Game string }

func ask(t *testing.T, method, url, body string, status int, out any) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	must(t, err)
	answer, err := http.DefaultClient.Do(request)
	must(t, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	must(t, err)
	if answer.StatusCode != status {
		t.Fatalf("%s %s %s: got %d %s, want %d", method, url, body, answer.StatusCode, text, status)
	}
	must(t, json.NewDecoder(bytes.NewReader(text)).Decode(out))
}

// One program, two services: players see the same, and only the endpoint differs.
func TestSameClientAgainstTheCloud(t *testing.T) {
	t.Parallel()
	s := startService(t)
	p := s.prepare()
	p.startArena()
	id := *p.createGameSession(4).GameSessionId
	s.untilGameSession(id, "ACTIVE")
	cloud := startCloud(t)
	var seen []string
	for _, endpoint := range []string{s.url(), cloud.URL} {
		ann := player(t, endpoint, "Ann", "say hello; wait said Ann; leave", "-fleet", p.fleet)
		ann.endsWell()
		seen = append(seen, regexp.MustCompile(`(?m)^in arn:\S+$`).ReplaceAllString(ann.logs.String(), "in a game session"))
	}
	if seen[0] != seen[1] || !strings.Contains(seen[0], "said Ann: hello") {
		t.Errorf("against Muster:\n%s\nagainst the cloud:\n%s", seen[0], seen[1])
	}
}

// openDoor accepts every player.
type openDoor struct{}

func (openDoor) Admit(context.Context, uint64, string) error     { return nil }
func (openDoor) HandlePlayerLeave(context.Context, uint64) error { return nil }

// startCloud answers the calls of a client that searches and joins, as the cloud's endpoint does, with its own game.
func startCloud(t *testing.T) *httptest.Server {
	room := game.NewRoom(openDoor{}, slog.New(slog.DiscardHandler))
	world, err := game.Load(nil, 1)
	must(t, err)
	room.Open(world)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { l.Close() })
	go func() { _ = room.Serve(l) }()
	arn := "arn:aws:gamelift:us-east-1::gamesession/fleet-1/us-east-1/gsess-1"
	answers := map[string]map[string]any{
		"SearchGameSessions": {"GameSessions": []any{map[string]any{"GameSessionId": arn, "Status": "ACTIVE", "MaximumPlayerSessionCount": 4}}},
		"CreatePlayerSession": {"PlayerSession": map[string]any{"PlayerSessionId": "psess-1", "PlayerId": "Ann", "GameSessionId": arn,
			"Status": "RESERVED", "IpAddress": "127.0.0.1", "Port": l.Addr().(*net.TCPAddr).Port}},
	}
	cloud := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		operation := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
		w.Header().Set("Smithy-Protocol", "rpc-v2-cbor")
		w.Header().Set("Content-Type", "application/cbor")
		answer, ok := answers[operation]
		if !ok {
			w.WriteHeader(http.StatusNotFound)
			answer = map[string]any{"__type": "UnknownOperationException", "message": fmt.Sprintf("no %s", operation)}
		}
		body, err := cbor.Marshal(answer)
		if err != nil {
			t.Error(err)
		}
		_, _ = w.Write(body)
	}))
	t.Cleanup(cloud.Close)
	return cloud
}
