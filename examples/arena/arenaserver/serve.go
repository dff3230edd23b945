// Package arenaserver is the program arena-server: the dedicated server of the arena game.
package arenaserver

import (
	"context"
	"errors"
	"flag"
	"hash/fnv"
	"io"
	"log/slog"
	"net"

	"github.com/musterhq/muster/examples/arena"
	"github.com/musterhq/muster/gameserver"
)

// Run runs arena-server with the given arguments. It returns when the game session is over or ctx ends.
func Run(ctx context.Context, args []string, stderr io.Writer) error {
	flags := flag.NewFlagSet("arena-server", flag.ContinueOnError)
	flags.SetOutput(stderr)
	var options gameserver.Options
	options.AddFlags(flags)
	bind := flags.String("bind", "", "`address` to listen on for players (default: all)")
	endWhenEmpty := flags.Bool("end-when-empty", false, "end the session when its last player has left")
	var level slog.LevelVar
	flags.TextVar(&level, "log", &level, "`level` of the log: debug, info, warn or error")
	if err := flags.Parse(args); err != nil {
		return err
	}
	options.KeepWhenEmpty = !*endWhenEmpty
	options.Logger = slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: &level}))

	listener, err := arena.Listen(*bind, options.Port)
	if err != nil {
		return err
	}
	options.Port = listener.Addr().(*net.TCPAddr).Port
	options.Logger.Info("listening for players", "address", listener.Addr().String())
	return serve(ctx, options, listener)
}

// seats are the seats of the game session.
type seats struct {
	*gameserver.Server
	log *slog.Logger
}

func (s seats) Admit(ctx context.Context, connection uint64, playerSessionID string) error {
	player, err := s.ValidatePlayerJoin(ctx, connection, playerSessionID)
	if err == nil {
		s.log.Info("player has a seat", "player", player.PlayerID, "connection", connection)
	}
	return err
}

func serve(ctx context.Context, options gameserver.Options, listener net.Listener) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	log := options.Logger

	var room *arena.Room
	served := make(chan error, 1)
	srv := gameserver.New(options, gameserver.Callbacks{
		OnCreateSessionBegin: func(_ context.Context, s gameserver.Session) error {
			seed := fnv.New64a()
			seed.Write([]byte(s.ID)) // never fails
			world, err := arena.Load(s.Properties, seed.Sum64())
			if err != nil {
				return err
			}
			room.Open(world)
			return nil
		},
		OnDestroySessionBegin: func(closing context.Context) error {
			why := "the server is closing"
			if cause := context.Cause(ctx); cause != nil {
				why = cause.Error()
			}
			listener.Close()
			return errors.Join(<-served, room.Close(closing, why))
		},
	})
	room = arena.NewRoom(seats{srv, log}, log)
	room.Won = func(why string) { stop(errors.New(why)) }
	room.Retry = func(err error) bool { return errors.Is(err, gameserver.ErrUnavailable) }
	go func() { served <- room.Serve(listener) }()
	return srv.Run(ctx)
}
