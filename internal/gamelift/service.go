package gamelift

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"strings"

	"github.com/google/uuid"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/identity"
)

// Service implements the API's operations. Each is a method with the signature of the SDK client's method, without the options. Called without a
// network, an operation runs with administrator rights.
type Service struct {
	engine *engine.Engine
	secret identity.CellSecret
	code   [2]byte // of the cell

	serverEndpoint string // URL for game servers
	agentEndpoint  string // URL for host agents

	// Log receives messages for which an answer has no member; nil: nothing is logged.
	Log *slog.Logger

	// Agents reports which computes have an agent; nil: none.
	Agents Agents
	// Uploads accepts the files of builds; nil: a build must refer to an operator's store.
	Uploads Uploads
	// Logs has the logs of game sessions; nil: none are kept.
	Logs Logs
}

// Agents are the agents on hosts.
type Agents interface {
	// Has reports whether an agent of the compute is connected.
	Has(fleetID, compute string) bool
}

// NewService returns the operations of a cell. publicURL is the installation's URL for game servers: http, https, ws or wss.
func NewService(e *engine.Engine, secret identity.CellSecret, publicURL string) (*Service, error) {
	u, err := url.Parse(publicURL)
	if err != nil {
		return nil, fmt.Errorf("public URL %q: %w", publicURL, err)
	}
	switch u.Scheme {
	case "http", "ws":
		u.Scheme = "ws"
	case "https", "wss":
		u.Scheme = "wss"
	default:
		return nil, fmt.Errorf("public URL %q: want the scheme http, https, ws or wss", publicURL)
	}
	base := strings.TrimRight(u.String(), "/")
	return &Service{engine: e, secret: secret, code: secret.CellCode(), serverEndpoint: base, agentEndpoint: base + "/agent"}, nil
}

// newID returns an identifier that cannot be guessed, because a player session's id is the credential for its seat.
func newID() domain.UUID { return domain.UUID(uuid.New()) }

// resourceID returns a new id for a resource: its kind, and a UUID that begins with the code of the cell. Version 8, which RFC 9562 leaves to
// applications, distinguishes it from the random ids of earlier releases. docs/scale.md explains the code.
func (s *Service) resourceID(kind string) string {
	id := uuid.New()
	copy(id[:], s.code[:])
	id[6] = id[6]&0x0f | 8<<4
	return kind + "-" + id.String()
}

// read returns what f reads of the state.
func read[T any](ctx context.Context, s *Service, f func(*cell.View) (T, error)) (x T, err error) {
	err = s.engine.Read(ctx, func(v *cell.View) (err error) {
		x, err = f(v)
		return err
	})
	return x, err
}

// find returns the record with an id, or refuses.
func find[T any](ctx context.Context, s *Service, kind, id string, get func(*cell.View, string) (T, bool)) (T, error) {
	return read(ctx, s, func(v *cell.View) (x T, err error) {
		x, ok := get(v, id)
		if !ok {
			err = domain.Refuse(domain.NotFound, "%s %s not found", kind, id)
		}
		return x, err
	})
}

// fleetByID finds a fleet or refuses.
func (s *Service) fleetByID(ctx context.Context, id string) (fleet.Fleet, error) {
	return find(ctx, s, "fleet", id, (*cell.View).Fleet)
}

func fleetNotFound(id string) error { return domain.Refuse(domain.NotFound, "fleet %s not found", id) }

// oneFleet resolves the fleet of operations that accept either a fleet or an alias, by id or ARN. It resolves an alias at the time of the request;
// its fleet may have been deleted.
func (s *Service) oneFleet(ctx context.Context, fleetID, aliasID *string) (id string, err error) {
	switch {
	case fleetID != nil && aliasID != nil:
		return "", invalid("FleetId and AliasId are both given; want exactly one of them")
	case fleetID != nil:
		return lastPart(*fleetID), nil
	case aliasID != nil:
		return s.resolveAlias(ctx, lastPart(*aliasID))
	default:
		return "", invalid("FleetId or AliasId is required")
	}
}

// undeclared replaces refusals for which an operation declares no error with the one that all operations declare.
func undeclared(err error, reasons ...domain.Reason) error {
	if r, ok := err.(*domain.Refusal); ok {
		for _, reason := range reasons {
			if r.Reason == reason {
				return domain.Refuse(domain.Invalid, "%s", r.Detail)
			}
		}
	}
	return err
}

// text returns a member that is omitted if s is empty.
func text(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// value returns the value of a member, or the zero value.
func value[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}
