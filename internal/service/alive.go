package service

import (
	"context"
	"fmt"

	"github.com/musterhq/muster/internal/embeddb"
	"github.com/musterhq/muster/internal/engine"
)

// Alive returns what this process does, in a few words, and an error once another process should take its place. It differs from Err, by which load balancers and people go,
// in two ways: a shortage of space or descriptors is no error, because a new process would lack the same and this one continues by itself when the shortage is over; and a part that
// hangs is one. It returns only when all parts have moved.
func (x *Service) Alive(ctx context.Context) (status string, err error) {
	if err := x.shortage(); err != nil {
		return fmt.Sprintf("refuses changes: %v", err), nil
	}
	if err := x.Err(); err != nil {
		return "", err
	}
	if err := engine.Beat(ctx, x.engine); err != nil {
		if short := x.shortage(); short != nil { // it has begun meanwhile
			return fmt.Sprintf("refuses changes: %v", short), nil
		}
		return "", err
	}
	if err := x.Ready(); err != nil {
		return fmt.Sprintf("works, but clients should use another node: %v", err), nil
	}
	return "serves at " + x.publicURL, nil
}

// shortage is the shortage that keeps the service from its work, or nil.
func (x *Service) shortage() error {
	if err := x.engine.Err(); err != nil && embeddb.IsShortage(err) {
		return err
	}
	return x.room.Short()
}
