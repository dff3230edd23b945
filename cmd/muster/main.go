// Command muster is all of Muster in one binary: the service, the host agent and the commands for operators.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"reflect"
	"strings"
	"syscall"
	"time"

	"github.com/alecthomas/kong"
	"github.com/musterhq/muster/internal/logsink"
	"github.com/musterhq/muster/internal/settings"
)

// basics has the flag of all commands, and the commands that start something, in every build.
type basics struct {
	Config string `name:"config" placeholder:"FILE" help:"Settings file, JSON. MUSTER_* variables override it, and flags override both."`

	Serve serveCommand `cmd:"" help:"Run the service."`
	Agent agentCommand `cmd:"" help:"Run the host agent, which starts and watches game servers."`
	Demo  demoCommand  `cmd:"" help:"Start the service, play a first game session through it, and keep running."`
}

// arenaCommands has the demo's programs, in every build.
type arenaCommands struct {
	ArenaServer arenaServerCommand `cmd:"" name:"arena-server" hidden:"" passthrough:"" help:"The demo's game server."`
	ArenaClient arenaClientCommand `cmd:"" name:"arena-client" hidden:"" passthrough:"" help:"The demo's player."`
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the program at once
	err := run(ctx, os.Args[1:], os.Environ(), os.Stdout)
	signal := context.Cause(ctx) // nil: none came
	stop()
	if err != nil {
		if signal != nil {
			err = errors.New(strings.ReplaceAll(err.Error(), context.Canceled.Error(), signal.Error()))
		}
		out := logsink.New(logOutput(os.Getenv("JOURNAL_STREAM"))) // the program can end even if the reader hangs
		report(out, err)
		os.Exit(1)
	}
}

// report writes why a command failed. The cleaner is needed because errors quote others: the service, its hosts and its players.
func report(to io.Writer, err error) { fmt.Fprintln(&cleaner{to: to}, "muster:", err) }

// run executes the command in args. environ is the whole environment, because an unknown MUSTER_ variable is an error.
func run(ctx context.Context, args, environ []string, stdout io.Writer) (err error) {
	env := newEnvironment(environ)
	sources := newSources(env)
	sources.args = args
	if len(args) == 0 {
		args = []string{"--help"}
	}
	parser, err := newParser(ctx, stdout, env, sources)
	if err != nil {
		return err
	}
	defer func() {
		if r := recover(); r != nil {
			if _, ok := r.(helpShown); !ok {
				panic(r)
			}
		}
	}()
	command, err := parser.Parse(args)
	if err = errors.Join(misuse(err), sources.result()); err != nil {
		return err
	}
	if err := sources.checkGiven(command); err != nil {
		return err
	}
	sources.noteFlags(command)
	return command.Run()
}

// newParser makes the parser of the command line.
func newParser(ctx context.Context, stdout io.Writer, env environment, sources *sources) (*kong.Kong, error) {
	var cli commandLine
	defaults := settings.Defaults()
	cli.setDefaults(defaults)
	return kong.New(&cli,
		kong.Name("muster"),
		kong.Description("Muster is a game session service for your own machines that AWS GameLift clients and game servers can talk to."+onlyQuick),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
		kong.Writers(stdout, stdout),
		kong.Exit(func(code int) { panic(helpShown{}) }),
		kong.WithBeforeResolve(sources.prepare),
		kong.Resolvers(sources),
		kong.TypeMapper(reflect.TypeFor[time.Duration](), kong.MapperFunc(readDuration)),
		kong.Vars{"data": defaults.Data, "listen": defaults.Listen},
		kong.PostBuild(showDefaults),
		kong.BindTo(ctx, (*context.Context)(nil)),
		kong.BindTo(stdout, (*io.Writer)(nil)),
		kong.Bind(env, sources),
	)
}

// readDuration parses a duration. Its error shows the expected form.
func readDuration(c *kong.DecodeContext, target reflect.Value) error {
	var text string
	if err := c.Scan.PopValueInto("time", &text); err != nil {
		return err
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return fmt.Errorf("%q: want a time with its unit, such as 500ms, 10s or 1h30m", text)
	}
	target.SetInt(int64(d))
	return nil
}

// helpShown unwinds run after --help, where the parser would exit the process but run must return.
type helpShown struct{}
