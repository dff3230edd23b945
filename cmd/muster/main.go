// Command muster is the whole of Muster in one binary: the service, and what its operator does with it.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"reflect"
	"syscall"
	"time"

	"github.com/alecthomas/kong"
	"github.com/musterhq/muster/internal/settings"
)

// commandLine is what can be typed after "muster".
type commandLine struct {
	Config string `name:"config" placeholder:"FILE" help:"Settings file, JSON. MUSTER_* variables win over it, flags over both."`

	Serve       serveCommand       `cmd:"" help:"Run the service."`
	Demo        demoCommand        `cmd:"" help:"Start the service, play a first game session through it, stay up."`
	ShowConfig  configCommand      `cmd:"" name:"config" help:"Show the settings in force and where each comes from."`
	Explain     explainCommand     `cmd:"" help:"Say where a player, a party or a game is and what ends that, why a placement or a matchmaking ticket waits or failed, how a game session or a server process ended, and when."`
	Keys        keysCommand        `cmd:"" help:"Access keys: create, list, revoke. Works while the service runs."`
	Archive     archiveCommand     `cmd:"" help:"What has ended: find damage on the disk, and repair it."`
	AWSProfile  awsProfileCommand  `cmd:"" name:"aws-profile" help:"Write a profile for the AWS CLI and SDKs, with this service as its endpoint."`
	WebhookKey  webhookKeyCommand  `cmd:"" name:"webhook-key" help:"Show the key that notifications to a webhook are signed with."`
	CA          caCommand          `cmd:"" name:"ca" help:"Show the certificate authority of --dev and how to trust it."`
	Bench       benchCommand       `cmd:"" help:"Measure what Muster does on this machine, and write a table."`
	BenchBare   benchBareCommand   `cmd:"" name:"bench-bare" hidden:"" help:"Run the service without a core that bench compares with."`
	BenchAttack benchAttackCommand `cmd:"" name:"bench-attack" hidden:"" help:"Attack a service, for the scenario siege of bench."`
	Simulate    simulateCommand    `cmd:"" help:"Try a matchmaking rule set on a population: who waits how long, how good the matches are."`
	Lint        lintCommand        `cmd:"" help:"Find mistakes in matchmaking rule sets, also those that the service ignores."`
	Drain       drainCommand       `cmd:"" help:"Keep new game sessions away from a compute, and wait until it is empty."`
	Computes    computesCommand    `cmd:"" help:"Replace the auth token of a compute."`
	ArenaServer arenaServerCommand `cmd:"" name:"arena-server" hidden:"" passthrough:"" help:"The demo's game server."`
	ArenaClient arenaClientCommand `cmd:"" name:"arena-client" hidden:"" passthrough:"" help:"The demo's player."`
	Version     versionCommand     `cmd:"" help:"Show the version."`
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C does not wait for an orderly end
	err := run(ctx, os.Args[1:], os.Environ(), os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "muster:", err)
		os.Exit(1)
	}
}

// run does what args say. It gets the environment as a list, since a variable that we do not know is an error too.
func run(ctx context.Context, args, environ []string, stdout io.Writer) (err error) {
	var cli commandLine
	defaults := settings.Defaults()
	cli.Serve.Settings, cli.ShowConfig.Settings, cli.BenchBare.Settings = defaults, defaults, defaults
	env := newEnvironment(environ)
	sources := newSources(env)
	if len(args) == 0 {
		args = []string{"--help"}
	}
	parser, err := kong.New(&cli,
		kong.Name("muster"),
		kong.Description("Muster is a game session service for your own machines that AWS GameLift clients and game servers can talk to."),
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
	if err != nil {
		return err
	}
	sources.noteFlags(command)
	return command.Run()
}

// readDuration reads a time as the parser would, and says what one looks like.
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

// helpShown unwinds run after --help: the parser's only way to stop there is to exit, and run must return.
type helpShown struct{}
