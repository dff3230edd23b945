package identity

import "context"

// Within returns a context that ends with ctx, and with the life of the access key that a request was made with; nil is no
// key. A context that the key has ended has ErrRevoked as its cause. The caller must call cancel.
func Within(ctx, life context.Context) (_ context.Context, cancel context.CancelFunc) {
	ctx, end := context.WithCancelCause(ctx)
	if life == nil {
		return ctx, func() { end(nil) }
	}
	forget := context.AfterFunc(life, func() { end(ErrRevoked) })
	return ctx, func() {
		forget()
		end(nil)
	}
}
