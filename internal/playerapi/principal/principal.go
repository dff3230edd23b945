package principal

import (
	"context"
	"net/http"

	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/playerapi/objects"
	"github.com/musterhq/muster/internal/playerapi/problem"
	"github.com/musterhq/muster/internal/quotas"
)

// Principal identifies the caller of a request, and how the request came; before authentication only the latter is set. The ID of a
// player's principal is empty. The ID of a game server's principal is that of its game instance.
type Principal struct {
	identity.Principal

	Host   string              // under which the client reached the service
	TLS    bool                // between the client and the service, or its proxy
	Answer http.ResponseWriter // to a call; nil for streams
	Realm  string              // that the call belongs to; empty for streams

	// Of a player.
	Player         string
	LoginSessionID flow.LoginSessionID

	Instance flow.InstanceID // of a game server: the only game instance that it may act for
}

// The realms.
const (
	PlayerRealm   = "player"
	PartnerRealm  = "partner"
	OperatorRealm = "operator"
)

// Actor returns the principal's name in the journal.
func (p *Principal) Actor() flow.Actor {
	switch {
	case p.Player != "":
		return flow.Actor{Kind: flow.ByPlayer, ID: objects.ID(p.LoginSessionID)}
	case !p.Instance.IsZero():
		return flow.Actor{Kind: flow.ByGameServer, ID: objects.ID(p.Instance)}
	case p.ID == "":
		return flow.Actor{}
	case p.Realm == OperatorRealm:
		return flow.Actor{Kind: flow.ByOperatorCall, ID: p.ID}
	}
	return flow.Actor{Kind: flow.ByPartner, ID: p.ID}
}

// InstanceFor parses the game instance of a call. A game server may omit it, and may name only its own.
func (p *Principal) InstanceFor(text string) (flow.InstanceID, error) {
	if text == "" && !p.Instance.IsZero() {
		return p.Instance, nil
	}
	instance, err := problem.ParseID[flow.InstanceID]("game_instance_id", text)
	if err == nil && !p.Instance.IsZero() && p.Instance != instance {
		err = problem.New(flow.PermissionDenied, "game_instance_id: the token is for game instance %s", objects.ID(p.Instance))
	}
	return instance, err
}

// BackendOnly refuses game servers.
func (p *Principal) BackendOnly() error {
	if !p.Instance.IsZero() {
		return problem.New(flow.PermissionDenied, "the token of a game server is for the calls of its own game only")
	}
	return nil
}

// Quota implements quotas.Caller. Records that a game server creates belong to its game and have no holder.
func (p *Principal) Quota() string {
	switch {
	case p.Player != "":
		return quotas.PlayersName
	case !p.Instance.IsZero():
		return ""
	}
	return p.Holder()
}

type principalKey struct{}

// carrying is a context with a principal, which is also the holder of what commands create.
type carrying struct {
	context.Context
	by *Principal
}

func (c *carrying) Value(key any) any {
	switch key {
	case principalKey{}, quotas.Key{}:
		return c.by
	}
	return c.Context.Value(key)
}

// With returns a context with a principal.
func With(ctx context.Context, p *Principal) context.Context {
	return &carrying{ctx, p}
}

// Of returns the principal of a request; nil if the service itself acts.
func Of(ctx context.Context) *Principal {
	p, _ := ctx.Value(principalKey{}).(*Principal)
	return p
}
