package serverlink

import (
	"context"
	"fmt"
	"time"

	"github.com/musterhq/muster/internal/steady"
)

const (
	// advanceMax is the most by which one call moves the connections' clock.
	advanceMax = 24 * time.Hour
	// pongPatience is how long AdvanceLinks waits for the answers to pings. They come from this machine, which may be busy,
	// or from a dead connection, never. Therefore it waits once per call, not at each ping of a dead connection.
	pongPatience = 3 * time.Second
)

// AdvanceLinks advances the connections' clock, as if no game server had sent a message on its own meanwhile, so that
// processes fall silent. It sends pings on the way, so that a connection stays open if its peer answers them, and a dead one
// is detected. It returns when the consequences are durable.
func (s *Server) AdvanceLinks(ctx context.Context, d time.Duration) error {
	if d < 0 || d > advanceMax {
		return fmt.Errorf("advance the connections' clock by %s: want 0 to %s", d, advanceMax)
	}
	for step := s.config.Periods.Ping / 2; d > 0; d -= step {
		s.passing.Lock()
		s.config.Links.ahead.Add(int64(min(d, step)))
		began := s.now()
		dropped := s.watchAll()
		s.passing.Unlock()
		if err := s.calm(ctx, began, dropped); err != nil {
			return err
		}
	}
	return nil
}

// calm waits until pings sent since `since` are answered, due work is done, and the core has recorded the dropped
// connections.
func (s *Server) calm(ctx context.Context, since time.Time, dropped []*link) error {
	patience := time.Now().Add(pongPatience)
	poll := time.NewTicker(time.Millisecond)
	defer poll.Stop()
	for {
		answered, done := s.answered(since)
		for _, l := range dropped {
			done = done && l.over.Load()
		}
		if done && (answered || time.Now().After(patience)) {
			return nil
		}
		select {
		case <-poll.C:
		case <-s.stopping.Done():
			return s.stopping.Err()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// answered reports whether all pings since `since` were answered, and whether no due work is in progress.
func (s *Server) answered(since time.Time) (answered, done bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	answered, done = true, true
	for _, p := range s.processes {
		p.mu.Lock()
		done = done && !p.choring
		for _, l := range p.links {
			if !l.mute && !l.pinged.Before(since) && l.heard.Load() < steady.Nanos(l.pinged) {
				answered = false
			}
		}
		p.mu.Unlock()
	}
	return answered, done
}
