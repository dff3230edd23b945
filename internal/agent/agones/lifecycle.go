//go:build !quick

package agones

import (
	"context"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/musterhq/muster/internal/agent/agones/sdk"
)

// ready makes the process available for a game session. If it has one, ready ends that one first.
func (p *Process) ready(*sdk.Empty) (proto.Message, error) {
	return p.become(func(m *Memory) {
		switch {
		case m.State == RequestReady || m.State == Ready:
			return
		case m.Session != "":
			m.leave()
		}
		m.State = RequestReady
		if p.config.Service == nil {
			m.State = Ready
		}
	})
}

// allocate makes a process without a game session unavailable for one, because the service has no game sessions that servers create.
func (p *Process) allocate(*sdk.Empty) (proto.Message, error) {
	return p.become(func(m *Memory) {
		if m.State == Allocated {
			return
		}
		m.leave()
		m.allocated(time.Now())
	})
}

// reserve is allocate for a limited time, after which the process is ready again.
func (p *Process) reserve(in *sdk.Duration) (proto.Message, error) {
	if most := int64(366 * 24 * 3600); in.Seconds < 0 || in.Seconds > most {
		return invalid("seconds: %d; want 0 to %d", in.Seconds, most)
	}
	return p.become(func(m *Memory) {
		m.leave()
		m.State, m.ReservedUntil = Reserved, time.Time{}
		if in.Seconds > 0 {
			m.ReservedUntil = time.Now().Add(time.Duration(in.Seconds) * time.Second)
		}
	})
}

// shutdown ends the process: the agent first asks it to end, and then ends it by force. Until it has ended, it has no game session and
// gets none.
func (p *Process) shutdown(*sdk.Empty) (proto.Message, error) {
	defer p.end(p.config.End)
	return p.become(func(m *Memory) {
		m.leave()
		m.shut(time.Now())
	})
}

// terminate ends the process at the service's request. Its game session continues until the process has ended.
func (p *Process) terminate() {
	p.become(func(m *Memory) { m.shut(time.Now()) })
	p.end(p.config.End)
}

func (m *Memory) shut(now time.Time) { m.State, m.DeletedAt = Shutdown, now }

// Ending tells the game that the agent is ending the process. It does nothing for a nil Process.
func (p *Process) Ending() {
	if p == nil {
		return
	}
	p.mu.Lock()
	p.ended = true
	p.mu.Unlock()
	p.terminate()
}

// become changes the state. A final state does not change.
func (p *Process) become(f func(m *Memory)) (proto.Message, error) {
	err := p.change(func(m *Memory) error {
		if m.State.final() {
			return status.Errorf(codes.FailedPrecondition, "state: %s, which is final", m.State)
		}
		f(m)
		if m.State != Reserved {
			m.ReservedUntil = time.Time{}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return new(sdk.Empty), nil
}

func (m *Memory) allocated(now time.Time) {
	m.State = Allocated
	m.Annotations[lastAllocated] = now.UTC().Format(time.RFC3339Nano)
}

// watchTime ends reservations and judges health, until ctx ends.
func (p *Process) watchTime(ctx context.Context) {
	p.mu.Lock()
	health := p.memory.Health
	p.mu.Unlock()
	tick := time.NewTicker(health.Period)
	defer tick.Stop()
	failures := 0
	for {
		m, changed := p.look()
		var over <-chan time.Time
		if m.State == Reserved && !m.ReservedUntil.IsZero() {
			over = time.After(time.Until(m.ReservedUntil))
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
		case <-over:
			p.endReservation()
		case now := <-tick.C:
			if health.Disabled || m.State.final() || p.well(now, health) {
				failures = 0
				continue
			}
			if failures++; failures == health.Failures { // in ticks, because an agent that was itself stopped counts only one for all that time
				p.log.Warn("Agones server has not reported that it is healthy: it is ended", "periods", failures, "period", health.Period)
				p.become(func(m *Memory) { m.State = Unhealthy })
				p.end(p.config.Unhealthy)
			}
		}
	}
}

// endReservation makes a reserved process ready again, unless its state has changed meanwhile.
func (p *Process) endReservation() {
	m, _ := p.look()
	if m.State == Reserved && !m.ReservedUntil.IsZero() && !time.Now().Before(m.ReservedUntil) {
		p.ready(nil)
	}
}

// well reports whether a health ping arrived within the period. A game that never calls the SDK does not use Agones, and its health is
// judged in other ways.
func (p *Process) well(now time.Time, health Health) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.begun.IsZero() || now.Before(p.begun.Add(health.InitialDelay)) || now.Sub(p.pinged) <= health.Period || now.Sub(p.begun) <= health.Period
}
