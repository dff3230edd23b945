// Command arena-server is the dedicated server of the arena game: one game session, then it exits.
//
//	arena-server -authtoken=TOKEN -hostid=DesktopPC -fleetid=FLEET -websocketurl=ws://127.0.0.1:8080 -port 7777
//
// The session's properties choose the level: size ("16x8") and goal, the number of coins that win ("5").
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"hash/fnv"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"strconv"
	"syscall"

	"github.com/musterhq/muster/examples/arena"
	"github.com/musterhq/muster/gameserver"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stderr); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "arena-server:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, stderr io.Writer) error {
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
	options.Logger = slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: &level}))

	listener, err := listen(*bind, options.Port)
	if err != nil {
		return err
	}
	options.Port = listener.Addr().(*net.TCPAddr).Port
	options.Logger.Info("listening for players", "address", listener.Addr().String())
	return serve(ctx, options, listener, *endWhenEmpty)
}

// listen opens the players' port. Port 0 is any that the service accepts: kernels give out some above its limit.
func listen(address string, port int) (net.Listener, error) {
	var tooHigh []net.Listener // kept open, so that the next try gets another port
	defer func() {
		for _, l := range tooHigh {
			l.Close()
		}
	}()
	for {
		l, err := net.Listen("tcp", net.JoinHostPort(address, strconv.Itoa(port)))
		if err != nil {
			return nil, fmt.Errorf("listen for players on port %d: %w", port, err)
		}
		if port != 0 || l.Addr().(*net.TCPAddr).Port <= gameserver.PortMax {
			return l, nil
		}
		tooHigh = append(tooHigh, l)
	}
}

func serve(ctx context.Context, options gameserver.Options, listener net.Listener, endWhenEmpty bool) error {
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
	room = arena.NewRoom(srv, log)
	room.Won = func(why string) { stop(errors.New(why)) }
	if endWhenEmpty {
		room.Empty = func() { stop(errors.New("the last player has left")) }
	}
	go func() { served <- room.Serve(listener) }()
	return srv.Run(ctx)
}
