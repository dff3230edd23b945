package bench

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// flow measures player flow: the event streams of many players, the events on them, reconnections after a crash, fresh logins in a queue,
// and a large match.
func (b *bench) flow(ctx context.Context) error {
	for _, scheme := range []string{"ws", "wss"} {
		if err := b.flowOver(ctx, scheme); err != nil {
			return fmt.Errorf("%s: %w", scheme, err)
		}
	}
	if err := b.flowOver(ctx, "wss", "--tls-release-buffers"); err != nil {
		return fmt.Errorf("wss, buffers released: %w", err)
	}
	return b.flowMatches(ctx)
}

// flowArguments returns the arguments for a service with player flow and without limits for the load. Development mode allows logins by name
// and provides a certificate; it has no other effect here.
func flowArguments(loginsPerSecond int) []string {
	return []string{"serve", "--dev", "--player-flow", "--player-logins-per-address", "0", "--player-logins", fmt.Sprint(loginsPerSecond)}
}

// flowOver connects the players' streams and measures. Over TLS it measures only what TLS can change, and with an option of the service
// only the memory.
func (b *bench) flowOver(ctx context.Context, scheme string, option ...string) error {
	plain := scheme == "ws"
	dir, err := b.freshDir("flow")
	if err != nil {
		return err
	}
	s, err := b.start(ctx, "the service", dir, append(flowArguments(0), option...)...)
	if err != nil {
		return err
	}
	defer func() { s.kill() }()
	host, err := b.setUpFlow(ctx, s)
	if err != nil {
		return err
	}
	defer host.close()
	a := newAudience(s.addr, !plain, b.sizes.flowPlayers)
	defer a.close()
	if err := b.flowMemory(ctx, s, a, strings.Join(append([]string{scheme}, option...), " with ")); err != nil || len(option) > 0 {
		return err
	}
	if plain {
		if err := b.flowChanges(ctx, s, a); err != nil {
			return err
		}
	}
	if err := b.flowKill(ctx, s, a); err != nil {
		return err
	}
	if s, err = b.flowReturn(ctx, s, a, scheme); err != nil || !plain {
		return err
	}
	if err := host.play(ctx, a, b.sizes.flowGames, b.sizes.flowGamePlayers); err != nil {
		return err
	}
	if err := b.flowKill(ctx, s, a); err != nil {
		return err
	}
	if s, err = b.start(ctx, "the service", dir, append(flowArguments(b.sizes.flowLogins), "--listen", s.addr)...); err != nil {
		return err
	}
	return b.flowFreshLogins(ctx, s, a)
}

// flowMemory measures the memory of each player, after all have logged in, made parties of two and opened their streams.
func (b *bench) flowMemory(ctx context.Context, s *server, a *audience, scheme string) error {
	n := len(a.players)
	before, began := s.resident(), time.Now()
	if err := a.logIn(ctx); err != nil {
		return err
	}
	there := time.Now()
	if err := a.attach(ctx); err != nil {
		return err
	}
	b.progress("  %d players: logged in, in parties of two after %s; attached over %s after %s more", n,
		there.Sub(began).Round(time.Millisecond), scheme, time.Since(there).Round(time.Millisecond))
	time.Sleep(b.sizes.flowSettle)
	if err := a.check(n); err != nil {
		return err
	}
	resident := s.resident() - before
	b.table.addFact(fmt.Sprintf("idle event stream over %s, with its player, login session, party and heartbeats: resident memory for each of %s", scheme, thousands(int64(n))),
		"24 KiB", "%.1f KiB", float64(resident)/float64(n)/1024)
	b.progress("  %.1f KiB for each stream, %d heartbeats received", float64(resident)/float64(n)/1024, a.beats.Load())
	return b.profileHeap(ctx, s, "flow-"+strings.ReplaceAll(scheme, " ", "-"))
}

// flowKill kills the service and waits until every client has noticed.
func (b *bench) flowKill(ctx context.Context, s *server, a *audience) error {
	a.hold()
	s.kill()
	return a.waitFor(ctx, 0)
}

// flowReturn restarts the service at the same address. All clients reconnect with their tokens and their positions in their events, as
// docs/spec/player-api.md#backoff specifies.
func (b *bench) flowReturn(ctx context.Context, s *server, a *audience, scheme string) (*server, error) {
	down := time.Now()
	a.release()
	s, err := b.start(ctx, "the service", s.data, append(flowArguments(0), "--listen", s.addr)...)
	if err != nil {
		return s, err
	}
	ready := time.Since(down)
	n := len(a.players)
	if err := a.waitFor(ctx, n); err != nil {
		return s, err
	}
	back := time.Since(down)
	if err := a.check(n); err != nil {
		return s, err
	}
	first := a.firstBackAfter(down)
	b.progress("  killed and started again: ready after %s, the first back after %s, all after %s", ready.Round(time.Millisecond),
		first.Round(time.Millisecond), back.Round(time.Millisecond))
	b.table.addFact(fmt.Sprintf("%s streams over %s with valid tokens, service killed and started: the last one has its hello, and none has a gap, after", thousands(int64(n)), scheme), "45 s",
		"%.1f s (ready after %.1f s, first attach durable after %.1f s)", back.Seconds(), ready.Seconds(), first.Seconds())
	return s, nil
}
