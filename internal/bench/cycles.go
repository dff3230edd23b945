package bench

import (
	"context"
	"fmt"
	"strconv"

	"github.com/musterhq/muster/internal/linkclient"
)

// cycles is a load of players who join and leave: a client creates a player session over HTTP, and the game server accepts and removes
// the player over its WebSocket. The three requests are one unit.
type cycles struct {
	workers []*cycleWorker
}

type cycleWorker struct {
	conn   *conn
	number int
	hall   *hall
	next   int // game server of the next cycle
	count  int

	server            *gameServer
	members           []byte // of the game server's requests
	accepted, removed func(linkclient.Answer, error)
	done              chan error
}

const playerSessionLength = len("psess-") + 36

func newCycles(ctx context.Context, s *server, h *hall, p *protocol, connections int) (*cycles, error) {
	c := &cycles{}
	for i := range connections {
		conn, err := dial(ctx, s.addr, p, s.key)
		if err != nil {
			c.close()
			return nil, err
		}
		w := &cycleWorker{conn: conn, number: i, hall: h, next: i % len(h.servers), done: make(chan error, 1)}
		w.accepted, w.removed = w.onAccepted, w.onRemoved
		c.workers = append(c.workers, w)
	}
	return c, nil
}

func (c *cycles) close() {
	for _, w := range c.workers {
		w.conn.close()
	}
}

// unit is one cycle of one connection.
func (c *cycles) unit(worker int) error { return c.workers[worker].cycle() }

func (w *cycleWorker) cycle() error {
	w.server = w.hall.servers[w.next]
	w.next = (w.next + 1) % len(w.hall.servers)
	w.count++
	answer, err := w.conn.call("CreatePlayerSession", member{name: "GameSessionId", text: w.server.game},
		member{name: "PlayerId", text: "player-" + strconv.Itoa(w.number) + "-" + strconv.Itoa(w.count)})
	if err != nil {
		return err
	}
	player := textAfter(answer, "PlayerSessionId", "psess-", playerSessionLength)
	if player == "" {
		return fmt.Errorf("CreatePlayerSession: no PlayerSessionId in %q", answer)
	}
	w.members = append(append(w.members[:0], `"GameSessionId":"`...), w.server.game...)
	w.members = append(append(w.members, `","PlayerSessionId":"`...), player...)
	w.members = append(w.members, '"')
	w.server.client.Go("AcceptPlayerSession", string(w.members), w.accepted)
	return <-w.done
}

// onAccepted runs on the goroutine that reads the game server's connection, and must not wait.
func (w *cycleWorker) onAccepted(a linkclient.Answer, err error) {
	if err := answered(a, err); err != nil {
		w.done <- err
		return
	}
	w.server.client.Go("RemovePlayerSession", string(w.members), w.removed)
}

func (w *cycleWorker) onRemoved(a linkclient.Answer, err error) { w.done <- answered(a, err) }
