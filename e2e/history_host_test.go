package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/musterhq/muster/internal/linkclient"
)

// crashHost runs one game server process after another in a slot. It reconnects whenever necessary.
type crashHost struct {
	h       *history
	mu      sync.Mutex
	process string
	link    *linkclient.Client
	told    chan string
}

// connected returns a live connection.
func (c *crashHost) connected(ctx context.Context) (*linkclient.Client, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.link != nil {
		select {
		case <-c.link.Closed():
		default:
			return c.link, true
		}
	}
	for ctx.Err() == nil {
		process := c.process
		link, err := linkclient.Dial(ctx, linkclient.Options{
			URL: c.h.p.ws(), Process: process, Compute: c.h.p.compute, Fleet: c.h.p.fleet, Token: c.h.p.token,
			OnPush: func(_ *linkclient.Client, push linkclient.Push) {
				if push.Action == "CreateGameSession" {
					id := push.GameSessionID()
					c.h.mu.Lock()
					c.h.pushes[id] = append(c.h.pushes[id], process)
					c.h.mu.Unlock()
					c.told <- id
				}
			},
		})
		if err == nil {
			if c.link != nil {
				_ = link.Heartbeat(ctx, true)
			}
			c.link = link
			return link, true
		}
		sleep(ctx, 10*time.Millisecond)
	}
	return nil, false
}

// request sends a request until it has an answer, always under the same id, as SDKs do.
func (c *crashHost) request(ctx context.Context, action, members string) error {
	id := fmt.Sprintf("%016x%016x", rand.Uint64(), rand.Uint64())
	_, err := untilAnswered(ctx, func(ctx context.Context) (linkclient.Answer, error) {
		link, ok := c.connected(ctx)
		if !ok {
			return linkclient.Answer{}, ctx.Err()
		}
		within, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		return link.DoWithID(within, id, action, members)
	})
	return err
}

// serve hosts game sessions of a given length, each in its own process; zero: one game session until the end.
func (c *crashHost) serve(ctx context.Context, slot int, length time.Duration) {
	for n := 0; ctx.Err() == nil; n++ {
		c.mu.Lock()
		if c.link != nil {
			c.link.Drop()
		}
		c.process, c.link, c.told = fmt.Sprintf("process-%d-%d", slot, n), nil, make(chan string, 16)
		c.mu.Unlock()
		if c.request(ctx, "ActivateServerProcess", `"SdkVersion":"5.5.0","SdkLanguage":"Go","SdkToolName":"","SdkToolVersion":"","Port":7777,"LogPaths":null`) != nil ||
			c.request(ctx, "HeartbeatServerProcess", linkclient.HealthMembers(true)) != nil {
			continue
		}
		game := ""
		for game == "" && ctx.Err() == nil {
			select {
			case game = <-c.told:
			case <-time.After(50 * time.Millisecond):
				c.connected(ctx) // the service may have crashed while nothing was asked of it
			case <-ctx.Done():
			}
		}
		if length > 0 && rand.IntN(8) == 0 { // a placement tries again elsewhere
			_ = c.request(ctx, "TerminateServerProcess", "")
			continue
		}
		if ctx.Err() != nil || c.request(ctx, "ActivateGameSession", linkclient.GameSessionMembers(game)) != nil {
			continue
		}
		open := &openGame{game, c}
		c.h.mu.Lock()
		c.h.open = append(c.h.open, open)
		c.h.mu.Unlock()
		if length == 0 {
			<-ctx.Done()
			return
		}
		sleep(ctx, length/2+time.Duration(rand.Int64N(int64(length))))
		c.h.mu.Lock()
		c.h.open = slices.DeleteFunc(c.h.open, func(o *openGame) bool { return o == open })
		c.h.mu.Unlock()
		_ = c.request(ctx, "TerminateServerProcess", "")
	}
}
