package operator

import (
	"context"
	"errors"
	"strings"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/engine"
)

// FindPath is where GET FindPath/ID answers with a Named.
const FindPath = "find"

// Named says which object an id names. Its kind is one of those of explanations, or "queue".
type Named struct {
	Kind string `json:"kind"`
	ID   string `json:"id"`
}

// idBytesMax is how long an id to find is at most: ARNs of game sessions are the longest.
const idBytesMax = 1024

// kindsToTry are the kinds whose ids have no form of their own, in the order in which they are tried.
var kindsToTry = []string{"alias", "ticket", "placement", "process", "compute", "party", "game-instance"}

// find says what an id, an ARN or the name of a fleet, a host, a compute or a queue names.
func (d *Door) find(ctx context.Context, id string) (*Named, error) {
	id = strings.TrimSpace(id)
	if id == "" || len(id) > idBytesMax {
		return nil, domain.Refuse(domain.Invalid, "id %.40q: want 1 to %d bytes", id, idBytesMax)
	}
	if _, game, ok := strings.Cut(id, ":gamesession/"); ok {
		return d.findAmong(ctx, game, "game-session")
	}
	if strings.HasPrefix(id, "arn:") {
		id = id[strings.LastIndexByte(id, '/')+1:]
	}
	if fleetID, _, below := strings.Cut(id, "/"); below && strings.HasPrefix(fleetID, "fleet-") {
		return d.findAmong(ctx, id, "process", "compute", "game-session")
	}
	if x, err := d.findInState(ctx, id); x != nil || err != nil {
		return x, err
	}
	x, err := d.findAmong(ctx, id, kindsToTry...)
	if _, refused := errors.AsType[*domain.Refusal](err); !refused {
		return x, err
	}
	return d.findPlayer(ctx, id)
}

// findInState looks for what the state has by id or name; nil: nothing.
func (d *Door) findInState(ctx context.Context, id string) (x *Named, err error) {
	err = d.engine.Read(ctx, func(v *cell.View) error {
		if _, ok := v.Queue(id); ok {
			x = &Named{"queue", id}
		}
		for _, h := range v.Hosts() {
			if fleetID, compute, ok := v.Serves(h.ID); ok && (h.ID == id || h.Name == id) {
				x = &Named{"compute", fleetID + "/" + compute}
			}
		}
		for _, f := range v.Fleets(0, "", overviewMost) {
			if f.Name == id {
				x = &Named{"fleet", f.ID}
			}
		}
		if _, ok := v.Fleet(id); ok {
			x = &Named{"fleet", id}
		}
		if p, err := domain.ParseID[domain.PlayerSessionID](id); err == nil {
			if session, ok := v.PlayerSession(p); ok {
				x = &Named{"game-session", string(session.GameID)}
			}
		}
		return nil
	})
	return x, err
}

// findAmong tries the kinds in turn. Its error is that of the last one.
func (d *Door) findAmong(ctx context.Context, id string, kinds ...string) (*Named, error) {
	var err error
	for _, kind := range kinds {
		var x *Explanation
		if x, err = d.explains[kind](ctx, id); err == nil {
			return &Named{kind, x.ID}, nil
		}
		if _, refused := errors.AsType[*domain.Refusal](err); !refused {
			return nil, err
		}
	}
	return nil, err
}

func (d *Door) findPlayer(ctx context.Context, id string) (*Named, error) {
	all, _, err := d.engine.PlayersNamed(ctx, id, engine.PlayerPlace{}, 1)
	if err != nil {
		return nil, err
	}
	if len(all) > 0 {
		return &Named{"player", id}, nil
	}
	x, err := d.findAmong(ctx, id, "player")
	if _, refused := errors.AsType[*domain.Refusal](err); refused {
		return nil, domain.Refuse(domain.NotFound, "nothing has the id or the name %.100q", id)
	}
	return x, err
}
