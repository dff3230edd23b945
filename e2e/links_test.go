package e2e

import (
	"testing"

	"github.com/musterhq/muster/internal/linkclient"
)

// bareServer is a game server without an SDK: a protocol client that can do things that no SDK would.
type bareServer struct {
	*linkclient.Client
	place   *place
	options linkclient.Options
	pushes  chan barePush
}

type barePush struct {
	action, text string
	game         string // the game session that it names
}

// dial connects a process to an address; empty: the service's own.
func (p *place) dial(process, address string) *bareServer {
	p.t.Helper()
	if address == "" {
		address = p.address
	}
	b := &bareServer{place: p, pushes: make(chan barePush, 64)}
	b.options = linkclient.Options{
		URL: "ws://" + address, Process: process, Compute: p.compute, Fleet: p.fleet, Token: p.token,
		OnPush: func(_ *linkclient.Client, push linkclient.Push) {
			b.pushes <- barePush{push.Action, string(push.Raw), push.GameSessionID()}
		},
	}
	b.connect()
	return b
}

// connect opens a connection, or another one after the first was lost.
func (b *bareServer) connect() {
	b.place.t.Helper()
	client, err := linkclient.Dial(b.place.t.Context(), b.options)
	must(b.place.t, err)
	b.Client = client
	b.place.t.Cleanup(client.Drop)
}

// host brings the process to an ACTIVE game session.
func (b *bareServer) host(t *testing.T, playersMax int32) string {
	t.Helper()
	ctx := t.Context()
	must(t, b.Activate(ctx, 7777))
	must(t, b.Heartbeat(ctx, true))
	id := *b.place.createGameSession(playersMax).GameSessionId
	for push := range b.pushes {
		if push.action == "CreateGameSession" {
			break
		}
	}
	must(t, b.ActivateGameSession(ctx, id))
	return id
}
