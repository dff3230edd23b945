package engine

import "context"

// Decides returns nil if this node decides, and no other node has decided anything before the call; otherwise ErrNotLeading. Parts that run beside the node that
// decides ask before they do something outside that another node may do by then, such as calling a webhook.
func (e *Engine) Decides(ctx context.Context) error {
	switch {
	case e.run.Load() == nil:
		return ErrNotLeading
	case e.config.Peers == nil:
		return nil
	}
	return e.config.Peers.Verify(ctx)
}
