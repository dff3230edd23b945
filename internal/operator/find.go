package operator

import (
	"context"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/lookup"
)

// FindPath is the path where GET FindPath/ID answers with a Named.
const FindPath = "find"

// Named tells which object an id refers to. Its kind is one of those of explanations, or "queue".
type Named struct {
	Kind string `json:"kind"`
	ID   string `json:"id"`
}

// find resolves an id, an ARN, or the name of a fleet, host, compute, alias or queue.
func (d *Door) find(ctx context.Context, id string) (x *Named, err error) {
	finder := lookup.Finder{Engine: d.engine, Explain: func(ctx context.Context, kind, id string) (string, error) {
		x, err := d.explains[kind](ctx, id)
		if err != nil {
			return "", err
		}
		return x.ID, nil
	}}
	err = finder.Find(ctx, lookup.Search{Text: id, Deep: true}, func(o lookup.Object) bool {
		switch _, explained := d.explains[o.Kind]; {
		case explained, o.Kind == lookup.Queue:
			x = &Named{o.Kind, o.ID}
		case o.Kind == lookup.Host && o.On != "":
			x = &Named{"compute", o.On}
		case o.Kind == lookup.PlayerSession:
			x = &Named{"game-session", o.ID}
		}
		return x == nil
	})
	if err == nil && x == nil {
		err = domain.Refuse(domain.NotFound, "nothing has the id or the name %.100q", id)
	}
	return x, err
}
