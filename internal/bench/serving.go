package bench

import "context"

// serving starts the service on a fresh directory and lets f work with it, over a connection for what is done once.
func (b *bench) serving(ctx context.Context, name string, f func(s *server, setup *conn) error) error {
	dir, err := b.freshDir(name)
	if err != nil {
		return err
	}
	s, err := b.start(ctx, "the service", dir, "serve")
	if err != nil {
		return err
	}
	defer s.kill()
	setup, err := dial(ctx, s.addr, awsJSON, s.key)
	if err != nil {
		return err
	}
	defer setup.close()
	return f(s, setup)
}
