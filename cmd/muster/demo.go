package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/musterhq/muster/examples/arena/arenaclient"
	"github.com/musterhq/muster/examples/arena/arenaserver"
	"github.com/musterhq/muster/internal/demo"
	"github.com/musterhq/muster/internal/service"
	"github.com/musterhq/muster/internal/settings"
)

type demoCommand struct {
	Listen     string `name:"listen" default:"127.0.0.1:8080" placeholder:"HOST:PORT" help:"Address of the service."`
	Data       string `name:"data" placeholder:"DIR" help:"Keep the state in this directory. Without it the demo starts empty and leaves nothing behind."`
	Cluster    bool   `name:"cluster" help:"Start a cluster of three nodes, and kill the leader mid-game."`
	Exit       bool   `name:"exit" help:"End after the last step, with status 0 if each step had the expected result."`
	GameServer string `name:"game-server" placeholder:"FILE" help:"Program of the game server. Default: the example's, which is built into this program."`
	GameClient string `name:"game-client" placeholder:"FILE" help:"Program of the game client. Default: the example's, which is built into this program."`
}

// Run starts the service with the embedded store, plays the walk-through, and keeps the service running.
func (c *demoCommand) Run(ctx context.Context, stdout io.Writer) (err error) {
	gameServer, err := program("--game-server", c.GameServer, "arena-server")
	if err != nil {
		return err
	}
	gameClient, err := program("--game-client", c.GameClient, "arena-client")
	if err != nil {
		return err
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
	if c.Cluster {
		return c.runCluster(ctx, s.Data, gameServer, gameClient, stdout)
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
		Endpoint: "http://" + x.Addr().String(), Out: stdout,
		GameServer: gameServer, GameClient: gameClient,
	}
	fmt.Fprintf(stdout, "Muster is up at %s (development mode, state in %s).\n", config.Endpoint, s.Data)
	return c.play(ctx, config, "Every step showed the expected state.", x.Served())
}

// play plays the walk-through and runs until ctx ends or the port is lost. With Exit it ends the game session instead, and prints done.
func (c *demoCommand) play(ctx context.Context, config demo.Config, done string, lost <-chan error) (err error) {
	if config.Dir, err = os.MkdirTemp("", "muster-demo-host-"); err != nil {
		return err
	}
	defer os.RemoveAll(config.Dir)
	config.Muster = func(ctx context.Context, stdout io.Writer, arguments ...string) error {
		return run(ctx, arguments, []string{"AWS_ACCESS_KEY_ID=demo", "AWS_SECRET_ACCESS_KEY=demo"}, stdout)
	}
	d, err := demo.Play(ctx, config)
	defer func() {
		if endErr := d.End(); err == nil && endErr != nil {
			err = fmt.Errorf("demo: the agent: %w", endErr)
		}
	}()
	if err != nil {
		return fmt.Errorf("demo: %w", err)
	}
	if c.Exit {
		if err := d.Finish(ctx); err != nil {
			return fmt.Errorf("demo: %w", err)
		}
		fmt.Fprintf(config.Out, "\n%s\n", done)
		return nil
	}
	d.GoOn()
	select {
	case <-ctx.Done():
		return nil
	case err := <-lost:
		return fmt.Errorf("the port has failed: %w", err)
	}
}

// program returns the command line of a game program: the file that the flag names, or this binary with the program's subcommand.
func program(flag, given, built string) ([]string, error) {
	if given != "" {
		path, err := exec.LookPath(given)
		if err == nil {
			path, err = filepath.Abs(path)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", flag, err)
		}
		return []string{path}, nil
	}
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w; %s names another one", err, flag)
	}
	return []string{self, built}, nil
}

// The game is part of this binary, so that the demo needs no other file.
type (
	arenaServerCommand struct {
		Args []string `arg:"" optional:""`
	}
	arenaClientCommand struct {
		Args []string `arg:"" optional:""`
	}
)

// Run runs arena-server.
func (c *arenaServerCommand) Run(ctx context.Context) error {
	return helpIsNoError(arenaserver.Run(ctx, c.Args, os.Stderr))
}

// Run runs arena-client.
func (c *arenaClientCommand) Run(ctx context.Context, stdout io.Writer) error {
	return helpIsNoError(arenaclient.Run(ctx, c.Args, os.Stdin, stdout, os.Stderr))
}

func helpIsNoError(err error) error {
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	return err
}
