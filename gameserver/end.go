package gameserver

import (
	"context"
	"errors"
	"time"
)

// live waits for End, the end of ctx or the service, and ends the process.
func (s *Server) live(ctx context.Context) {
	defer close(s.done)
	select {
	case <-s.ask:
	case <-ctx.Done():
		s.log.Info("asked to stop", "why", context.Cause(ctx))
		s.askEnd()
	}
	s.mu.Lock()
	until := s.terminateAt
	creating := s.creating
	s.mu.Unlock()
	if until.IsZero() {
		until = time.Now().Add(s.options.EndTimeout)
	}

	s.cancelSession(ErrEnded)
	s.cleanUp(until, creating)
	s.mu.Lock()
	s.over = true
	s.mu.Unlock()
	s.report()
	s.disconnect()
	for _, c := range s.callbacks {
		if c.OnDestroySessionEnd != nil {
			c.OnDestroySessionEnd()
		}
	}
}

// cleanUp waits for OnDestroySessionBegin, but not longer than until, because a session whose server never reports its end stays
// visible to players.
func (s *Server) cleanUp(until time.Time, creating <-chan struct{}) {
	ctx, cancel := context.WithDeadline(context.WithValue(context.Background(), serverKey{}, s), until)
	defer cancel()
	cleaned := make(chan error, 1)
	go func() {
		if creating != nil {
			select {
			case <-creating: // a level must have loaded before it is torn down
			case <-ctx.Done():
			}
		}
		var errs []error
		for _, c := range s.callbacks {
			if c.OnDestroySessionBegin != nil {
				errs = append(errs, c.OnDestroySessionBegin(ctx))
			}
		}
		cleaned <- errors.Join(errs...)
	}()
	select {
	case err := <-cleaned:
		s.fail(err)
	case <-ctx.Done():
		s.fail(errors.New("gameserver: OnDestroySessionBegin did not return in time; the end was reported without it"))
	}
}

// report tells the service that the process ends. It repeats a report without an answer, because the SDK sends nothing again that it wrote to
// a connection as that broke; the service accepts a repeat.
func (s *Server) report() {
	ctx, cancel := context.WithTimeout(context.Background(), reportTimeout)
	defer cancel()
	for {
		err := s.call(ctx, "ProcessEnding", s.sdk.ProcessEnding)
		if err == nil {
			s.log.Info("end reported")
			return
		}
		if !errors.Is(err, ErrUnavailable) {
			s.fail(err)
			return
		}
		select {
		case <-time.After(reportAgain):
		case <-ctx.Done():
			s.fail(err)
			return
		}
	}
}
