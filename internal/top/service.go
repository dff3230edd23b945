// Package top is the overview in a terminal: what needs attention, what runs, and by keys what is behind each line.
//
// A page is loaded from the operators' API again and again, and drawn as lines, some of which lead to another page. Everything that the service answers passes
// terminal.Printable before it is drawn.
package top

import (
	"context"

	"github.com/musterhq/muster/internal/operator"
)

// Service is a running service.
type Service interface {
	Overview(ctx context.Context) (*operator.Overview, error)
	Fleet(ctx context.Context, id string) (*operator.FleetPage, error)
	GameSession(ctx context.Context, id string) (*operator.GamePage, error)
	Queue(ctx context.Context, name string) (*operator.QueuePage, error)
	Player(ctx context.Context, id string) (*operator.PlayerPage, error)
	// Explain returns an explanation as muster explain prints it, in lines that are safe for a terminal.
	Explain(ctx context.Context, kind, id string) (text string, err error)
	Find(ctx context.Context, id string) (*operator.Named, error)
}
