package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/musterhq/muster/internal/linkclient"
)

// clusterHost is a game server that knows all nodes: if a connection does not work, it tries the next one.
type clusterHost struct {
	x       *chaos
	process string
	told    chan string // game sessions

	mu   sync.Mutex
	node int
	link *linkclient.Client
}

// startHost starts a game server, which stays until the end.
func (x *chaos) startHost(process string) (*clusterHost, error) {
	ctx := x.hosting
	h := &clusterHost{x: x, process: process, told: make(chan string, 16), node: rand.IntN(len(x.c.nodes))}
	err := h.request(ctx, "ActivateServerProcess", `"SdkVersion":"5.5.0","SdkLanguage":"Go","SdkToolName":"","SdkToolVersion":"","Port":7777,"LogPaths":null`)
	if err == nil {
		err = h.request(ctx, "HeartbeatServerProcess", linkclient.HealthMembers(true))
	}
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", process, err)
	}
	x.hosts.Go(func() {
		for beat := time.Now(); ctx.Err() == nil; sleep(ctx, 50*time.Millisecond) {
			link, ok := h.connected(ctx)
			if ok && time.Since(beat) > 20*time.Second {
				beat = time.Now()
				_ = link.Heartbeat(ctx, true)
			}
		}
		h.drop(nil)
	})
	return h, nil
}

// connected returns a live connection, to any node.
func (h *clusterHost) connected(ctx context.Context) (*linkclient.Client, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.link != nil {
		select {
		case <-h.link.Closed():
		default:
			return h.link, true
		}
	}
	for ; ctx.Err() == nil; h.node++ {
		node := h.x.c.nodes[h.node%len(h.x.c.nodes)]
		within, cancel := context.WithTimeout(ctx, 3*time.Second)
		link, err := linkclient.Dial(within, linkclient.Options{
			URL: "ws://" + inNamespace, Dial: node.dial,
			Process: h.process, Compute: h.x.compute, Fleet: h.x.fleet, Token: h.x.token,
			OnPush: func(_ *linkclient.Client, push linkclient.Push) {
				if push.Action == "CreateGameSession" {
					h.told <- push.GameSessionID()
				}
			},
		})
		cancel()
		if err == nil {
			if h.link != nil {
				h.x.count("connections of game servers to another node or again")
			}
			h.link = link
			return link, true
		}
		sleep(ctx, 20*time.Millisecond)
	}
	return nil, false
}

// drop gives up a connection, so that the next one is to another node.
func (h *clusterHost) drop(link *linkclient.Client) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.link != nil && (link == nil || h.link == link) {
		h.link.Drop()
		h.node++
	}
}

// requestWait is how long a game server waits for an answer before it asks elsewhere: as SDKs do.
const requestWait = 20 * time.Second

// request sends a request until it has an answer, always under the same id. Any node may have answered it before.
func (h *clusterHost) request(ctx context.Context, action, members string) error {
	id := fmt.Sprintf("%016x%016x", rand.Uint64(), rand.Uint64())
	_, err := untilAnswered(ctx, func(ctx context.Context) (linkclient.Answer, error) {
		link, ok := h.connected(ctx)
		if !ok {
			return linkclient.Answer{}, ctx.Err()
		}
		within, cancel := context.WithTimeout(ctx, requestWait)
		defer cancel()
		answer, err := link.DoWithID(within, id, action, members)
		if status, ok := err.(*linkclient.StatusError); err != nil && (!ok || status.Status >= 500 || status.Status == 429) {
			h.drop(link)
			if ok { // nothing has happened, or that is unknown: elsewhere it may be possible
				err = fmt.Errorf("no answer: %s", status.Message)
			}
		}
		return answer, err
	})
	return err
}
