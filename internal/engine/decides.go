package engine

import "context"

// Decides returns nil if this node is the leader and no other node has decided anything before the call; otherwise it returns ErrNotLeading.
// Components that run on the leader call it before an external action that a new leader may also perform, such as a webhook call.
func (e *Engine) Decides(ctx context.Context) error {
	switch {
	case e.run.Load() == nil:
		return ErrNotLeading
	case e.config.Peers == nil:
		return nil
	}
	return e.config.Peers.Verify(ctx)
}
