// Package demo plays a first session through a running service: the steps of the walk-through in the README, with the
// SDK's client over the network, a real game server and real players, each checked against what the service then says.
package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/gamelift"
	"github.com/aws/aws-sdk-go-v2/service/gamelift/types"
)

// Config says which service to play with and which programs are the game.
type Config struct {
	Endpoint   string   // of the API, such as http://127.0.0.1:8080
	Nodes      []string // of a cluster: such endpoints, which API calls go to in turn. Empty: there is none
	PublicURL  string   // where game servers connect, such as ws://127.0.0.1:8080
	GameServer []string // program of the dedicated server, and its first arguments
	GameClient []string // program of the players, and its first arguments
	Out        io.Writer

	// Midway is called while a player is in the game. It returns what it did as a command, and what came of it. Nil: nothing happens.
	Midway func(ctx context.Context) (command, state string, err error)
}

const (
	region      = "us-east-1"
	location    = "custom-home"
	computeName = "DesktopPC"
	// patience is how long a step may take on a slow machine.
	patience = time.Minute
)

// Demo is a game session in play. End stops the game server.
type Demo struct {
	config Config
	api    *gamelift.Client
	step   int

	fleet   string
	token   string
	session *types.GameSession
	server  *exec.Cmd
}

// Play does the walk-through up to a game session with players in it. It fails at the first step that does not show the
// state it should. The Demo is there even then, for End.
func Play(ctx context.Context, c Config) (*Demo, error) {
	d := &Demo{config: c}
	options := gamelift.Options{
		Region: region, BaseEndpoint: aws.String(c.Endpoint),
		Credentials: credentials.NewStaticCredentialsProvider("demo", "demo", ""),
	}
	if len(c.Nodes) > 0 {
		options.HTTPClient = newRotation(c.Nodes)
	}
	d.api = gamelift.New(options)
	for _, step := range []func(context.Context) error{
		d.createLocation, d.createFleet, d.registerCompute, d.getToken, d.startServer, d.createGameSession,
		d.firstPlayer, d.whereIsMyFriend, d.midway, d.secondPlayer, d.describeGameSession, d.friends,
	} {
		if err := step(ctx); err != nil {
			return d, err
		}
	}
	return d, nil
}

// show prints a step: what a person would type, and what came back.
func (d *Demo) show(command, state string, args ...any) {
	d.step++
	fmt.Fprintf(d.config.Out, "\n%2d. %s\n    → %s\n", d.step, command, fmt.Sprintf(state, args...))
}

func (d *Demo) createLocation(ctx context.Context) error {
	out, err := d.api.CreateLocation(ctx, &gamelift.CreateLocationInput{LocationName: aws.String(location)})
	var exists *types.ConflictException
	switch {
	case errors.As(err, &exists):
		d.show("aws gamelift create-location --location-name "+location, "it is there already")
		return nil
	case err != nil:
		return fmt.Errorf("create-location: %w", err)
	}
	d.show("aws gamelift create-location --location-name "+location, "%s", *out.Location.LocationArn)
	return nil
}

func (d *Demo) createFleet(ctx context.Context) error {
	out, err := d.api.CreateFleet(ctx, &gamelift.CreateFleetInput{
		Name: aws.String("dev"), ComputeType: types.ComputeTypeAnywhere,
		Locations: []types.LocationConfiguration{{Location: aws.String(location)}},
	})
	if err != nil {
		return fmt.Errorf("create-fleet: %w", err)
	}
	d.fleet = *out.FleetAttributes.FleetId
	d.show("aws gamelift create-fleet --name dev --compute-type ANYWHERE --locations Location="+location,
		"%s is %s", d.fleet, out.FleetAttributes.Status)
	return expect("fleet", out.FleetAttributes.Status, types.FleetStatusActive)
}

func (d *Demo) registerCompute(ctx context.Context) error {
	out, err := d.api.RegisterCompute(ctx, &gamelift.RegisterComputeInput{
		FleetId: &d.fleet, ComputeName: aws.String(computeName), IpAddress: aws.String("127.0.0.1"), Location: aws.String(location),
	})
	if err != nil {
		return fmt.Errorf("register-compute: %w", err)
	}
	d.show("aws gamelift register-compute --compute-name "+computeName+" --fleet-id FLEET --ip-address 127.0.0.1 --location "+location,
		"%s is %s, game servers connect to %s", computeName, out.Compute.ComputeStatus, *out.Compute.GameLiftServiceSdkEndpoint)
	return nil
}

func (d *Demo) getToken(ctx context.Context) error {
	out, err := d.api.GetComputeAuthToken(ctx, &gamelift.GetComputeAuthTokenInput{FleetId: &d.fleet, ComputeName: aws.String(computeName)})
	if err != nil {
		return fmt.Errorf("get-compute-auth-token: %w", err)
	}
	d.token = *out.AuthToken
	d.show("aws gamelift get-compute-auth-token --fleet-id FLEET --compute-name "+computeName,
		"a token, good until %s", out.ExpirationTimestamp.Local().Format(time.TimeOnly))
	return nil
}

// startServer starts the dedicated server as a studio would, but for players of this machine only, and waits until the
// service counts it as ready.
func (d *Demo) startServer(ctx context.Context) error {
	d.server = d.serverCommand()
	if err := d.server.Start(); err != nil {
		return fmt.Errorf("start the game server: %w", err)
	}
	if err := d.untilServers(ctx, 1); err != nil {
		return err
	}
	d.show("arena-server -authtoken=… -hostid="+computeName+" -fleetid=FLEET -websocketurl="+d.config.PublicURL+" -port 0",
		"the fleet has 1 active server process")
	return nil
}

func (d *Demo) serverCommand(flags ...string) *exec.Cmd {
	program := d.config.GameServer
	cmd := exec.Command(program[0], slices.Concat(program[1:], []string{
		"-authtoken=" + d.token, "-hostid=" + computeName, "-fleetid=" + d.fleet,
		"-websocketurl=" + d.config.PublicURL, "-bind=127.0.0.1", "-port=0", "-log=error",
	}, flags)...)
	cmd.Stdout, cmd.Stderr = d.config.Out, os.Stderr
	return cmd
}

// untilServers waits until the service counts so many server processes.
func (d *Demo) untilServers(ctx context.Context, want int32) error {
	return d.until(ctx, "the game server is ready", func() (bool, error) {
		out, err := d.api.DescribeFleetUtilization(ctx, &gamelift.DescribeFleetUtilizationInput{FleetIds: []string{d.fleet}})
		if err != nil || len(out.FleetUtilization) == 0 {
			return false, err
		}
		return aws.ToInt32(out.FleetUtilization[0].ActiveServerProcessCount) == want, nil
	})
}

func (d *Demo) createGameSession(ctx context.Context) error {
	var out *gamelift.CreateGameSessionOutput
	// The process counts as active a moment before its first heartbeat makes it eligible.
	err := d.until(ctx, "a game session is created", func() (bool, error) {
		var err error
		out, err = d.api.CreateGameSession(ctx, &gamelift.CreateGameSessionInput{
			FleetId: &d.fleet, Name: aws.String("Debug"), MaximumPlayerSessionCount: aws.Int32(4), Location: aws.String(location),
		})
		var none *types.FleetCapacityExceededException
		return err == nil, ignore(err, errors.As(err, &none))
	})
	if err != nil {
		return err
	}
	d.show("aws gamelift create-game-session --fleet-id FLEET --name Debug --maximum-player-session-count 4 --location "+location,
		"%s is %s", *out.GameSession.GameSessionId, out.GameSession.Status)
	if err := expect("game session", out.GameSession.Status, types.GameSessionStatusActivating); err != nil {
		return err
	}
	d.session = out.GameSession
	return d.awaitStatus(ctx, types.GameSessionStatusActive)
}

// awaitStatus waits until the game session has a status, and shows it.
func (d *Demo) awaitStatus(ctx context.Context, want types.GameSessionStatus) error {
	err := d.until(ctx, "the game session is "+string(want), func() (bool, error) {
		out, err := d.api.DescribeGameSessions(ctx, &gamelift.DescribeGameSessionsInput{GameSessionId: d.session.GameSessionId})
		if err != nil || len(out.GameSessions) != 1 {
			return false, err
		}
		d.session = &out.GameSessions[0]
		return d.session.Status == want, nil
	})
	if err != nil {
		return err
	}
	d.show("aws gamelift describe-game-sessions --game-session-id ARN", "%s, %d of %d players, at %s:%d", d.session.Status,
		aws.ToInt32(d.session.CurrentPlayerSessionCount), *d.session.MaximumPlayerSessionCount, *d.session.IpAddress, *d.session.Port)
	return nil
}

// join reserves a seat and lets a player play a script.
func (d *Demo) join(ctx context.Context, name, script string) (*types.PlayerSession, error) {
	out, err := d.api.CreatePlayerSession(ctx, &gamelift.CreatePlayerSessionInput{GameSessionId: d.session.GameSessionId, PlayerId: &name})
	if err != nil {
		return nil, fmt.Errorf("create-player-session: %w", err)
	}
	p := out.PlayerSession
	d.show("aws gamelift create-player-session --game-session-id ARN --player-id "+name,
		"%s is %s, at %s:%d", *p.PlayerSessionId, p.Status, *p.IpAddress, *p.Port)
	if err := expect("player session", p.Status, types.PlayerSessionStatusReserved); err != nil {
		return nil, err
	}
	client := d.clientCommand(ctx, "-address", fmt.Sprintf("%s:%d", *p.IpAddress, *p.Port),
		"-player-session", *p.PlayerSessionId, "-name", name, "-script", script)
	seen, err := client.Output()
	if err != nil {
		return nil, fmt.Errorf("player %s: %w", name, withStderr(err))
	}
	d.show("arena-client -player-session … -name "+name, "%s", strings.ReplaceAll(strings.TrimSpace(string(seen)), "\n", "\n      "))
	return p, nil
}

func (d *Demo) clientCommand(ctx context.Context, flags ...string) *exec.Cmd {
	program := d.config.GameClient
	return exec.CommandContext(ctx, program[0], slices.Concat(program[1:], flags)...)
}

// withStderr adds what a program wrote before it failed.
func withStderr(err error) error {
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && len(exit.Stderr) > 0 {
		return fmt.Errorf("%w: %s", err, strings.TrimSpace(string(exit.Stderr)))
	}
	return err
}

func (d *Demo) midway(ctx context.Context) error {
	if d.config.Midway == nil {
		return nil
	}
	command, state, err := d.config.Midway(ctx)
	if err == nil {
		d.show(command, "%s", state)
	}
	return err
}

func (d *Demo) firstPlayer(ctx context.Context) error {
	p, err := d.join(ctx, "PlayerOne", "east; south; say hello; wait said; leave")
	if err != nil {
		return err
	}
	return d.awaitPlayer(ctx, *p.PlayerSessionId, types.PlayerSessionStatusCompleted)
}

// awaitPlayer waits until a player session has a status, and shows it.
func (d *Demo) awaitPlayer(ctx context.Context, id string, want types.PlayerSessionStatus) error {
	err := d.until(ctx, "the player session is "+string(want), func() (bool, error) {
		out, err := d.api.DescribePlayerSessions(ctx, &gamelift.DescribePlayerSessionsInput{PlayerSessionId: &id})
		return err == nil && len(out.PlayerSessions) == 1 && out.PlayerSessions[0].Status == want, err
	})
	if err == nil {
		d.show("aws gamelift describe-player-sessions --player-session-id psess-…", "%s", want)
	}
	return err
}
