package playerapi

import (
	"context"
	"time"

	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/playerapi/objects"
)

// asking is the engine as the calls of this door use it: what they ask for says who asks, and is counted.
type asking struct {
	*engine.Engine
	numbers *numbers
}

// Do carries a command out, as Engine.Do.
func (a asking) Do(ctx context.Context, cmd cell.Command) error {
	asked := cmd
	if by := actorOf(ctx); by != (flow.Actor{}) {
		asked = cell.Asked{Command: cmd, By: by}
	}
	began := time.Now()
	err := a.Engine.Do(ctx, asked)
	a.numbers.answered(cmd, err, time.Since(began))
	return err
}

// actorOf is who made the request; nobody when the door acts by itself.
func actorOf(ctx context.Context) flow.Actor {
	x, ok := ctx.Value(whoKey{}).(*who)
	switch {
	case !ok:
		return flow.Actor{}
	case x.player != "":
		return flow.Actor{Kind: flow.ByPlayer, ID: objects.LoginSessionID(x.session)}
	case !x.instance.IsZero():
		return flow.Actor{Kind: flow.ByGameServer, ID: objects.GameInstanceID(x.instance)}
	case x.partner == "":
		return flow.Actor{}
	case x.realm == operatorRealm:
		return flow.Actor{Kind: flow.ByOperatorCall, ID: x.partner}
	}
	return flow.Actor{Kind: flow.ByPartner, ID: x.partner}
}
