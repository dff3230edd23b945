package playerflow

import (
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/matchmaking"
)

// Asked wraps a command that has no actor field with the actor that issued it.
type Asked struct {
	kernel.Command
	By flow.Actor
}

func (a Asked) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	t.Cmd, t.own().by = a.Command, a.By
	return a.Command.Decide(k)
}

// Unwrap returns the command itself.
func (a Asked) Unwrap() kernel.Command { return a.Command }

// account records who changed players' keys and why, in one event for all players with the same cause.
func (t *transaction) account() {
	changed := t.own().changed
	for len(changed) > 0 {
		e := &FlowCommitted{Cause: changed[0].cause, By: t.actor()}
		n := 0
		for n < len(changed) && changed[n].cause == e.Cause {
			if p := t.Flow.Players.Get(changed[n].player); p.ID != "" { // a player who was removed meanwhile has no history
				e.Players = append(e.Players, p.ID)
			}
			n++
		}
		changed = changed[n:]
		if len(e.Players) > 0 {
			t.Emit(e)
		}
	}
}

// causeNow names the cause of a change of keys: the call or the deadline, or else the command.
func (t *transaction) causeNow() string {
	if t.Cause == "" {
		return t.CommandName()
	}
	return t.Cause
}

// actor returns the principal that issued the command.
func (t *transaction) actor() flow.Actor {
	own := t.own()
	if own.by != (flow.Actor{}) {
		return own.by
	}
	if own.caller != nil {
		return flow.Actor{Kind: flow.ByPlayer, ID: own.caller.LoginSessionID.String()}
	}
	switch cmd := t.Cmd.(type) {
	case *kernel.Tick, *kernel.Resume:
		return flow.Actor{Kind: flow.ByDeadline}
	case *matchmaking.ProposeMatches:
		return flow.Actor{Kind: flow.ByMatchmaker}
	case interface{ ServerProcess() *fleet.Key }:
		return serverProcess(cmd.ServerProcess())
	}
	return flow.Actor{Kind: flow.ByAWSClient}
}

// serverProcess returns a game server as an actor. nil: the command came over the service API.
func serverProcess(key *fleet.Key) flow.Actor {
	if key == nil {
		return flow.Actor{Kind: flow.ByAWSClient}
	}
	return flow.Actor{Kind: flow.ByGameServer, ID: key.Fleet + "/" + key.Compute + "/" + key.Process}
}
