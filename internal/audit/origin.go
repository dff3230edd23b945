// Package audit connects doors with the audit log of the core (internal/domain/audit), which records who changed what, from where, through which
// door and why.
//
// A door that carries out an operation of a person, or of a program that administers, puts the Origin of the request into the context of all its
// commands:
//
//	reason, err := audit.Reason(r)     // of the header Muster-Reason; or a field of a form, by audit.CheckReason
//	ctx := audit.With(r.Context(), audit.Origin{
//		Principal: by.ID, Door: audit.DoorConsole, Address: by.Address, Agent: r.UserAgent(), Operation: "DrainHost", Reason: reason,
//	})
//	err = engine.Do(ctx, cmd)
//	log.Refused(ctx, err)              // counts a refusal; nil and other errors count for nothing
//
// The engine then records each such command that changes something, in the transaction of the change. A command without an origin in its context is
// not recorded. That is the rule of what the log has: a door gives an origin to operations that only administrators may call, and to those few that
// others may call and that end what runs (docs/guide/audit.md#what-is-recorded). What backends, game servers and players do all day has none.
package audit

import (
	"context"
	"net/http"
	"strings"

	"github.com/musterhq/muster/internal/domain/audit"
)

// Origin says who gives a command, from where and why.
type Origin = audit.Origin

// Names of the doors in entries.
const (
	DoorAPI      = audit.DoorAPI
	DoorOperator = audit.DoorOperator
	DoorConsole  = audit.DoorConsole
	DoorLocal    = audit.DoorLocal
	DoorPlayers  = audit.DoorPlayers
	DoorOffline  = audit.DoorOffline
	DoorBuilds   = audit.DoorBuilds
	DoorCluster  = audit.DoorCluster
	DoorSignIn   = audit.DoorSignIn
)

// Doors lists all of them, including those that only record failed sign-ins.
var Doors = []string{
	DoorAPI, DoorOperator, DoorConsole, DoorLocal, DoorOffline, DoorBuilds, DoorCluster, DoorPlayers, DoorSignIn,
	"client_certificate", "game_servers", "host_agents", "metrics", "partners", "player_operators", "scripts", "sso", "web_identity", "webhook_confirmations",
}

// ReasonHeader is the header of a request that says why it is made.
const ReasonHeader = "Muster-Reason"

// ReasonMax is the maximum length of a reason in characters.
const ReasonMax = audit.ReasonMax

type originKey struct{}

// With returns a context whose commands are recorded with this origin.
func With(ctx context.Context, by Origin) context.Context {
	return context.WithValue(ctx, originKey{}, &by)
}

// From returns the origin in a context.
func From(ctx context.Context) (by Origin, ok bool) {
	if x, _ := ctx.Value(originKey{}).(*Origin); x != nil {
		return *x, true
	}
	return Origin{}, false
}

// Without returns a context whose commands are not recorded.
func Without(ctx context.Context) context.Context {
	return context.WithValue(ctx, originKey{}, (*Origin)(nil))
}

// CheckReason refuses a reason that is not one line of at most ReasonMax characters. An empty one is none.
func CheckReason(reason string) error { return audit.CheckReason(reason) }

// Reason returns the reason in the header of a request; empty without one. The error is a *domain.Refusal.
func Reason(r *http.Request) (string, error) {
	reason := strings.TrimSpace(r.Header.Get(ReasonHeader))
	return reason, audit.CheckReason(reason)
}
