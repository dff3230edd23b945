package e2e

import (
	"context"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/gamelift"
	"github.com/aws/aws-sdk-go-v2/service/gamelift/types"
	"github.com/gorilla/websocket"

	"github.com/musterhq/muster/internal/waittest"
)

// smallWindow connects with a small receive buffer.
func smallWindow(ctx context.Context, network, address string) (net.Conn, error) {
	d := net.Dialer{Control: func(_, _ string, c syscall.RawConn) error {
		return c.Control(func(fd uintptr) { _ = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 4<<10) })
	}}
	return d.DialContext(ctx, network, address)
}

// The stream of a client that does not read is closed with 4408 and costs the service little. The client gets the missed events when it returns.
func TestClientThatDoesNotReadIsClosed(t *testing.T) {
	t.Parallel()
	p := startFlow(t)
	all := p.come("ann", "bob")
	g := p.game("OPTIONAL", all...)
	g.accept(all...)
	slow := &flowPlayer{t: t, service: p.service, name: "ann", token: all[0].token, last: all[0].last, more: make(chan struct{})}
	dialer := websocket.Dialer{NetDialContext: smallWindow}
	socket, _, err := dialer.Dial(p.ws()+"/playerflow/v1/player/stream",
		http.Header{"Authorization": {"Bearer " + slow.token}, "Sec-WebSocket-Protocol": {"playerflow.v1"}})
	must(t, err)
	slow.socket = socket
	t.Cleanup(func() { _ = socket.NetConn().Close() })

	const updatesMax = 20_000 // far more than sockets and the service keep for one client
	round := 0
	closed := func() bool { return strings.Contains(p.metrics(t), `muster_flow_streams_closed_total{code="4408"} 1`) }
	for ; round%10 != 0 || !closed(); round++ {
		if round == updatesMax {
			t.Fatalf("after %d updates the service still waits for the client", round)
		}
		news := object{"game_instance_id": g.instance, "attributes": object{"round": round, "map": strings.Repeat("x", 12<<10)}}
		waittest.Until(t, "the rate to allow an update", func() bool {
			code, _, err := p.answerOf("partner", "Game.Update", "", news)
			must(t, err)
			return code != "RATE_LIMITED"
		})
		if round%50 == 0 {
			all[1].hears("OnGameInstanceUpdated", "attributes.round", float64(round)) // a client that reads gets all events
		}
	}
	go slow.read(socket)
	if code := slow.untilClosed(); code != 4408 {
		t.Errorf("the client that did not read is closed with %d", code)
	}
	slow.frames, slow.last = nil, 0
	slow.attach()
	if now := slow.until("OnSync"); now.at("data", "game_instance", "attributes", "round") != float64(round-1) {
		t.Errorf("after it came back: round %v", now.at("data", "game_instance", "attributes", "round"))
	}
	slow.stands("IN_GAME", "ACTIVE") // losing a stream costs nothing
}

// The plain API cannot touch a player who is in player flow: it cannot end a player's search, or seat a player twice.
// With strictPlayers off, a player session outside player flow changes nothing there, but is shown.
func TestStrictPlayers(t *testing.T) {
	t.Parallel()
	p := startFlow(t)
	p.matchOf("cup", "4")
	all := p.come("ann", "bob")
	ann, bob := all[0], all[1]
	g := p.game("OPTIONAL", ann)
	g.accept(ann)
	bob.call("Matchmaking.EnterMatchmaking", object{"queue": "cup"})
	_, id := p.hosting(sdkOptions{}, 4)
	search := func(player string) error {
		_, err := p.api().StartMatchmaking(t.Context(), &gamelift.StartMatchmakingInput{
			ConfigurationName: aws.String("cup"), Players: []types.Player{{PlayerId: &player}},
		})
		return err
	}
	for _, player := range all {
		if _, err := p.reserve(id, player.name); !isError[*types.InvalidRequestException](err) || !strings.Contains(err.Error(), "strictPlayers") {
			t.Errorf("a seat beside player flow for %s: %v", player.name, err)
		}
		if err := search(player.name); !isError[*types.InvalidRequestException](err) || !strings.Contains(err.Error(), "strictPlayers") {
			t.Errorf("a search beside player flow for %s: %v", player.name, err)
		}
	}
	p.mustReserve(id, "carl") // carl is unknown there
	bob.stands("MATCHMAKING", "")

	p.flowCall(t, "operator", "Operator.SetConfig", "", http.StatusOK, object{
		"reason": "test", "config": object{"GameInstanceServiceConfig": object{"strictPlayers": false}},
	})
	before := bob.snapshot()
	seat := p.mustReserve(id, "bob")
	now := bob.stands("MATCHMAKING", "")
	if now.at("rev") != before.at("rev") || now.text("keys", "MATCHMAKING_ID") != before.text("keys", "MATCHMAKING_ID") {
		t.Errorf("a foreign seat changes the keys: before %v, after %v", before, now)
	}
	if now.count("foreign_sessions") != 1 || now.text("foreign_sessions", "player_session_id") != seat || now.text("foreign_sessions", "status") != "RESERVED" {
		t.Errorf("the foreign seat shows as %v", now.at("foreign_sessions"))
	}
	p.noViolations(t)
}
