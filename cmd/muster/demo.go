package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"

	"github.com/musterhq/muster/internal/demo"
	"github.com/musterhq/muster/internal/service"
	"github.com/musterhq/muster/internal/settings"
)

type demoCommand struct {
	Listen     string `name:"listen" default:"127.0.0.1:8080" placeholder:"HOST:PORT" help:"Address of the service."`
	Data       string `name:"data" placeholder:"DIR" help:"Keep the state here. Without it the demo starts empty and leaves nothing."`
	Exit       bool   `name:"exit" help:"End after the last step: status 0 if each showed the state it should."`
	GameServer string `name:"game-server" placeholder:"FILE" help:"Program of the game server. Default: arena-server beside this program."`
	GameClient string `name:"game-client" placeholder:"FILE" help:"Program of the players. Default: arena-client beside this program."`
}

// Run starts the service with the embedded store, plays the walk-through, and stays up.
func (c *demoCommand) Run(ctx context.Context, stdout io.Writer) (err error) {
	gameServer, gameClient := beside(c.GameServer, "arena-server"), beside(c.GameClient, "arena-client")
	for _, program := range []string{gameServer, gameClient} {
		if _, err := exec.LookPath(program); err != nil {
			return fmt.Errorf("demo: the game is not there: %w; `make build` puts it beside this program, --game-server and --game-client name another one", err)
		}
	}
	s := settings.Defaults()
	s.Listen, s.Data, s.Dev, s.PlayerFlow = c.Listen, c.Data, true, true
	if s.Data == "" {
		dir, err := os.MkdirTemp("", "muster-demo-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		s.Data = dir
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	x, err := service.Start(ctx, s, log)
	if err != nil {
		return err
	}
	defer func() {
		if stopErr := x.Stop(context.WithoutCancel(ctx)); err == nil {
			err = stopErr
		}
	}()
	config := demo.Config{
		Endpoint: "http://" + x.Addr().String(), PublicURL: x.PublicURL(), Out: stdout,
		GameServer: gameServer, GameClient: gameClient,
	}
	fmt.Fprintf(stdout, "Muster is up at %s (development mode, state in %s).\n", config.Endpoint, s.Data)
	d, err := demo.Play(ctx, config)
	defer d.End()
	if err != nil {
		return fmt.Errorf("demo: %w", err)
	}
	if c.Exit {
		if err := d.Finish(ctx); err != nil {
			return fmt.Errorf("demo: %w", err)
		}
		fmt.Fprintln(stdout, "\nEvery step showed the state it should.")
		return nil
	}
	d.GoOn()
	select {
	case <-ctx.Done():
		return nil
	case err := <-x.Served():
		return fmt.Errorf("the port is lost: %w", err)
	}
}

// beside finds a program that was built together with this one.
func beside(given, name string) string {
	if given != "" {
		return given
	}
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	self, err := os.Executable()
	if err != nil {
		return name
	}
	return filepath.Join(filepath.Dir(self), name)
}
