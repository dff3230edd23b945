package state

import (
	"context"

	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/playerflow"
	"github.com/musterhq/muster/internal/engine"
)

// Settings returns the configuration of player flow in force. Callers must not change it.
func (s *State) Settings() *flow.Config { return s.inForce.Load() }

// Reconfigure puts the configuration of the state into force. A change by an operator also calls it, so that the change is in force
// when the call is answered.
func (s *State) Reconfigure(ctx context.Context) error { return s.reconfigure(ctx, s.Read) }

func (s *State) reconfigure(ctx context.Context, read func(context.Context, func(*cell.View) error) error) error {
	s.turn.Lock()
	defer s.turn.Unlock()
	var c flow.Config
	err := read(ctx, func(v *cell.View) error { c = v.FlowConfig(); return nil })
	if err == nil {
		s.goBy(&c)
	}
	return err
}

func (s *State) goBy(c *flow.Config) {
	s.inForce.Store(c)
	s.apply(c)
}

// followConfig puts the present configuration into force, and later every change.
func (s *State) followConfig() {
	s.turn.Lock() // a change that arrives meanwhile waits until the present configuration is in force
	defer s.turn.Unlock()
	s.unfollow = s.Follow(kernel.Kinds(new(playerflow.FlowConfigChanged)), func(engine.Committed) { // also after a gap
		_ = s.reconfigure(context.Background(), s.ReadHere) // fails only when the engine has stopped
	})
	c := *s.CellConfig().PlayerFlow.Flow
	var ignored flow.Faults
	err := s.ReadHere(context.Background(), func(v *cell.View) error { // later changes are followed
		c = v.FlowConfig()
		_, ignored = v.FlowOverrides()
		return nil
	})
	if err != nil {
		s.Log.Error("cannot read the options that operators have set; using those of the start", "error", err)
	}
	for _, f := range ignored {
		s.Log.Warn("ignoring an option that an operator has set: it contradicts the settings of the start", "option", f.Path, "reason", f.Message)
	}
	s.goBy(&c)
}
