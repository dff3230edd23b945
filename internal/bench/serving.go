package bench

import (
	"context"
	"fmt"
	"strings"
)

// part measures some lines of a scenario's table.
type part struct {
	name string
	run  func(context.Context) error
}

// runEach runs the parts that Options.Part selects, until one fails.
func (b *bench) runEach(ctx context.Context, parts []part) error {
	for _, p := range parts {
		if !strings.Contains(p.name, b.options.Part) {
			continue
		}
		b.progress("  %s", p.name)
		if err := p.run(ctx); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
	}
	return nil
}

// served makes a scenario from a function that needs the service on a fresh directory; see serving.
func served(name string, f func(b *bench, ctx context.Context, s *server, setup *conn) error, arguments ...string) func(*bench, context.Context) error {
	return func(b *bench, ctx context.Context) error {
		return b.serving(ctx, name, func(s *server, setup *conn) error { return f(b, ctx, s, setup) }, arguments...)
	}
}

// serving starts the service on a fresh directory and calls f with it and a connection for setup calls.
func (b *bench) serving(ctx context.Context, name string, f func(s *server, setup *conn) error, arguments ...string) error {
	dir, err := b.freshDir(name)
	if err != nil {
		return err
	}
	return b.servingIn(ctx, dir, f, arguments...)
}

// servingIn is serving on a directory with an existing state.
func (b *bench) servingIn(ctx context.Context, dir string, f func(s *server, setup *conn) error, arguments ...string) error {
	s, err := b.start(ctx, "the service", dir, append([]string{"serve"}, arguments...)...)
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
