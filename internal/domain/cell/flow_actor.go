package cell

import (
	"fmt"
	"strings"

	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/flow"
)

// Asked is a command whose own fields do not tell who asks for it, with who that is.
type Asked struct {
	Command
	By flow.Actor
}

func (a Asked) decide(t *tx) error {
	t.cmd, t.by = a.Command, a.By
	return a.Command.decide(t)
}

// ClaimIn returns the Claim that a command is, also when it comes with who asks for it.
func ClaimIn(cmd Command) (Claim, bool) {
	if a, ok := cmd.(Asked); ok {
		cmd = a.Command
	}
	claim, ok := cmd.(Claim)
	return claim, ok
}

// account writes down who changed the keys of players, and why: once for all whom the same thing happened to.
func (t *tx) account() {
	changed := t.flow.changed
	for len(changed) > 0 {
		e := &FlowCommitted{Cause: changed[0].cause, By: t.actor()}
		n := 0
		for n < len(changed) && changed[n].cause == e.Cause {
			if p := t.c.flow.Players.Get(changed[n].player); p.ID != "" { // whoever was forgotten since has no history
				e.Players = append(e.Players, p.ID)
			}
			n++
		}
		changed = changed[n:]
		if len(e.Players) > 0 {
			t.emit(e)
		}
	}
}

// causeNow is what keys are changed by: the call, the deadline, or else the command.
func (t *tx) causeNow() string {
	if t.flow.cause == "" {
		return strings.TrimPrefix(fmt.Sprintf("%T", t.cmd), "*cell.")
	}
	return t.flow.cause
}

// actor is who asks for the command.
func (t *tx) actor() flow.Actor {
	if t.by != (flow.Actor{}) {
		return t.by
	}
	if t.flow.caller != nil {
		return flow.Actor{Kind: flow.ByPlayer, ID: "fs-" + t.flow.caller.Session.String()}
	}
	switch cmd := t.cmd.(type) {
	case *Tick, *Resume:
		return flow.Actor{Kind: flow.ByDeadline}
	case *ProposeMatches:
		return flow.Actor{Kind: flow.ByMatchmaker}
	case *ConnectProcess:
		return serverProcess(&cmd.Process)
	case *LoseLink:
		return serverProcess(&cmd.Process)
	case *ActivateProcess:
		return serverProcess(&cmd.Process)
	case *ReportHealth:
		return serverProcess(&cmd.Process)
	case *RefreshProcess:
		return serverProcess(&cmd.Process)
	case *SettleProcess:
		return serverProcess(&cmd.Process)
	case *PromptGameSession:
		return serverProcess(&cmd.Process)
	case *ActivateGameSession:
		return serverProcess(&cmd.Process)
	case *SetPlayerPolicy:
		return serverProcess(&cmd.Process)
	case *AcceptPlayer:
		return serverProcess(&cmd.Process)
	case *RemovePlayer:
		return serverProcess(&cmd.Process)
	case *EndProcess:
		return serverProcess(&cmd.Process)
	case *StartMatchBackfill:
		return serverProcess(cmd.Server)
	case *StopMatchmaking:
		return serverProcess(cmd.Server)
	}
	return flow.Actor{Kind: flow.ByAWSClient}
}

// serverProcess is a game server as an actor; nil: it was somebody else, over the API.
func serverProcess(key *fleet.Key) flow.Actor {
	if key == nil {
		return flow.Actor{Kind: flow.ByAWSClient}
	}
	return flow.Actor{Kind: flow.ByGameServer, ID: key.Fleet + "/" + key.Compute + "/" + key.Process}
}
