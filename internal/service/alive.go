package service

import (
	"context"
	"fmt"

	"github.com/musterhq/muster/internal/embeddb"
	"github.com/musterhq/muster/internal/engine"
)

// Alive returns a short description of what this process does, and an error once another process should replace it. Load balancers and people go by
// Err instead, which differs in two ways. A shortage of space or descriptors is no error here, because a new process would have the same shortage,
// and this one continues by itself when it is over. A part that hangs is an error here. Alive returns only when all parts have made progress.
func (x *Service) Alive(ctx context.Context) (status string, err error) {
	if err := x.shortage(); err != nil {
		return fmt.Sprintf("refuses changes: %v", err), nil
	}
	if err := x.Err(); err != nil {
		return "", err
	}
	if err := engine.Beat(ctx, x.engine); err != nil {
		if short := x.shortage(); short != nil { // it has started meanwhile
			return fmt.Sprintf("refuses changes: %v", short), nil
		}
		return "", err
	}
	if err := x.Ready(); err != nil {
		return fmt.Sprintf("works, but clients should use another node: %v", err), nil
	}
	return "serves at " + x.publicURL, nil
}

// shortage returns the shortage that keeps the service from its work, or nil.
func (x *Service) shortage() error {
	if err := x.engine.Err(); err != nil && embeddb.IsShortage(err) {
		return err
	}
	return x.room.Short()
}
