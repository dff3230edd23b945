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
func Use(ctx context.Context, door Door) error {
	if c, ok := ctx.Value(connKey{}).(*Conn); ok && !c.use(door) {
		return ErrFull
	}
	return nil
}

// Leave moves the connection of a request back to HTTP.
func Leave(ctx context.Context) {
	if c, ok := ctx.Value(connKey{}).(*Conn); ok {
		c.use(HTTP)
	}
}
