package state

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/playerflow"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/playerapi/objects"
	"github.com/musterhq/muster/internal/playerapi/principal"
	"github.com/musterhq/muster/internal/playerapi/problem"
)

// State is the engine as the player API uses it: commands carry the principal of the request and are counted.
type State struct {
	*engine.Engine
	Objects objects.Translator
	Log     *slog.Logger
	commits *commits

	turn     sync.Mutex // held during each change of inForce
	inForce  atomic.Pointer[flow.Config]
	apply    func(*flow.Config)
	unfollow func()
}

// PanicDoor is the name under which panics of the player API are counted.
const PanicDoor = "playerapi"

// Open begins to follow the configuration. It calls apply with each configuration that comes into force. The State must be closed before the engine.
func Open(e *engine.Engine, o objects.Translator, log *slog.Logger, apply func(*flow.Config)) *State {
	s := &State{Engine: e, Objects: o, Log: log, commits: newCommits(), apply: apply}
	s.followConfig()
	return s
}

// Close stops following the configuration.
func (s *State) Close() { s.unfollow() }

// Do executes a command, like Engine.Do.
func (s *State) Do(ctx context.Context, cmd kernel.Command) error {
	asked := cmd
	if p := principal.Of(ctx); p != nil {
		if by := p.Actor(); by != (flow.Actor{}) {
			asked = playerflow.Asked{Command: cmd, By: by}
		}
	}
	began := time.Now()
	err := s.Engine.Do(ctx, asked)
	s.commits.count(cmd, err, time.Since(began))
	return err
}

// Instant returns the present time of the core.
func (s *State) Instant() domain.Time { return domain.TimeOf(s.Now()) }

// Stand returns the phase and the keys of a player; those of an unknown player are empty.
func (s *State) Stand(ctx context.Context, player string) (stand objects.Stand, err error) {
	err = s.Read(ctx, func(v *cell.View) error {
		x, _ := v.Record(player)
		stand = objects.StandOf(x)
		return nil
	})
	return stand, err
}

// Snapshot returns everything that a player's client needs to know.
func (s *State) Snapshot(ctx context.Context, player string) (objects.FlowSnapshot, error) {
	var x playerflow.FlowSnapshot
	var ok bool
	err := s.Read(ctx, func(v *cell.View) error {
		x, ok = v.FlowOf(player, s.Instant())
		return nil
	})
	switch {
	case err != nil:
		return objects.FlowSnapshot{}, err
	case !ok:
		return objects.FlowSnapshot{}, problem.New(flow.PlayerNotFound, "player %s not found", player)
	}
	return s.Objects.Snapshot(&x, s.Instant()), nil
}

// EventsAfter returns the events of a player after a number, and the number of the latest. ok is false if the state no longer
// keeps some of them, or if the number is ahead of the latest.
func (s *State) EventsAfter(ctx context.Context, player string, after uint64) (missed []playerflow.PlayerEvent, head uint64, ok bool, err error) {
	err = s.Read(ctx, func(v *cell.View) error {
		missed, head, ok = v.EventsAfter(player, after, flow.EventsLimit)
		return nil
	})
	return missed, head, ok, err
}

// Problem returns the answer to a failed request. Errors other than refusals go to the log and never to the client. An answer to a
// player includes the player's present state.
func (s *State) Problem(ctx context.Context, err error, player string) *problem.Problem {
	p := problem.Of(err, s.Instant(), s.Log)
	if player != "" && p.Flow == nil {
		p.Flow = s.StandNow(ctx, player)
	}
	return p
}

// StandNow returns the present state of a player for the answer to a failed call; nil for an unknown player.
func (s *State) StandNow(ctx context.Context, player string) (stand *objects.Stand) {
	_ = s.Read(ctx, func(v *cell.View) error { // if this fails, the answer goes out without it
		if x, ok := v.Record(player); ok {
			stand = new(objects.StandOf(x))
		}
		return nil
	})
	return stand
}
