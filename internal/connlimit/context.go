package connlimit

import "context"

type connKey struct{}

// With returns a context that contains the request's connection.
func With(ctx context.Context, c *Conn) context.Context { return context.WithValue(ctx, connKey{}, c) }

// Prove records that the connection of a request presented a credential that was accepted: a verified signature, a token, a
// login. Doors call it after each such check. It does nothing for a request without a counted connection.
func Prove(ctx context.Context) {
	if c, ok := ctx.Value(connKey{}).(*Conn); ok {
		c.Prove()
	}
}

// Use moves the connection of a request to a door, for as long as it lives or until the request gives it back. It is
// ErrFull when the door has no place.
func Use(ctx context.Context, door Door) error { return UseFor(ctx, door, "") }

// UseFor is Use for a holder, such as an access key, who may have half of a door's connections: then it is ErrShare. An empty holder has no share.
func UseFor(ctx context.Context, door Door, holder string) error {
	if c, ok := ctx.Value(connKey{}).(*Conn); ok {
		return c.use(door, holder)
	}
	return nil
}

// Leave moves the connection of a request back to HTTP.
func Leave(ctx context.Context) {
	if c, ok := ctx.Value(connKey{}).(*Conn); ok {
		_ = c.use(HTTP, "") // which always has room for one that it had before
	}
}
