// Package demo plays a first game session through a running service, with the SDK's client over the network, an agent that runs real game servers, and
// real players. It checks each step against the service's state.
package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/gamelift"
	"github.com/aws/aws-sdk-go-v2/service/gamelift/types"
)

// Config selects the service and the programs of the game.
type Config struct {
	Endpoint   string   // of the API, such as http://127.0.0.1:8080
	Nodes      []string // endpoints of a cluster's nodes, to which API calls rotate; empty: no cluster
	GameServer []string // program of the dedicated server, and its first arguments
	GameClient []string // program of the players, and its first arguments
	Dir        string   // for the agent's files
	Out        io.Writer

	// Muster runs a command of Muster in this process. It returns once the command has ended, soon after ctx has.
	Muster func(ctx context.Context, stdout io.Writer, arguments ...string) error

	// Midway is called while a player is in the game. It returns a description of what it did, as a command, and the outcome. May be nil.
	Midway func(ctx context.Context) (command, state string, err error)
}

const (
	region   = "us-east-1"
	location = "custom-home"
	// patience is how long a step may take on a slow machine.
	patience = time.Minute
)

// Demo is a running game session. End stops the agent with its game servers.
type Demo struct {
	config Config
	api    *gamelift.Client
	step   int

	again   bool // the service has been used by an earlier demo
	fleet   string
	host    string // name
	agent   *agent
	session *types.GameSession
}

// Play runs the walk-through up to a game session with players. It fails at the first step that does not lead to the expected
// state. It returns a Demo even then, for End.
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
		d.createLocation, d.createFleet, d.joinToken, d.startAgent, d.firstServer, d.seeHost, d.createGameSession,
		d.firstPlayer, d.whereIsMyFriend, d.midway, d.secondPlayer, d.describeGameSession, d.friends,
	} {
		if err := step(ctx); err != nil {
			return d, err
		}
	}
	return d, nil
}

// show prints a step: the command that a person would type, and the outcome.
func (d *Demo) show(command, state string, args ...any) {
	d.step++
	fmt.Fprintf(d.config.Out, "\n%2d. %s\n    → %s\n", d.step, command, fmt.Sprintf(state, args...))
}

func (d *Demo) createLocation(ctx context.Context) error {
	out, err := d.api.CreateLocation(ctx, &gamelift.CreateLocationInput{LocationName: aws.String(location)})
	var exists *types.ConflictException
	switch {
	case errors.As(err, &exists):
		d.again = true
		d.show("aws gamelift create-location --location-name "+location, "it exists already")
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

func (d *Demo) createGameSession(ctx context.Context) error {
	var out *gamelift.CreateGameSessionOutput
	// The process counts as active slightly before its first heartbeat makes it eligible.
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
	d.show("aws gamelift describe-game-sessions --game-session-id ARN", "%s, %d of %d players, at %s", d.session.Status,
		aws.ToInt32(d.session.CurrentPlayerSessionCount), *d.session.MaximumPlayerSessionCount, address(d.session.IpAddress, d.session.Port))
	return nil
}

// join reserves a seat and runs a player's program with a script.
func (d *Demo) join(ctx context.Context, name, script string) (*types.PlayerSession, error) {
	out, err := d.api.CreatePlayerSession(ctx, &gamelift.CreatePlayerSessionInput{GameSessionId: d.session.GameSessionId, PlayerId: &name})
	if err != nil {
		return nil, fmt.Errorf("create-player-session: %w", err)
	}
	p := out.PlayerSession
	d.show("aws gamelift create-player-session --game-session-id ARN --player-id "+name,
		"%s is %s, at %s", *p.PlayerSessionId, p.Status, address(p.IpAddress, p.Port))
	if err := expect("player session", p.Status, types.PlayerSessionStatusReserved); err != nil {
		return nil, err
	}
	client := d.clientCommand(ctx, "-address", address(p.IpAddress, p.Port),
		"-player-session", *p.PlayerSessionId, "-name", name, "-script", script)
	seen, err := client.Output()
	if err != nil {
		return nil, fmt.Errorf("player %s: %w", name, withStderr(err))
	}
	d.show("arena-client -player-session … -name "+name, "%s", strings.ReplaceAll(strings.TrimSpace(string(seen)), "\n", "\n      "))
	return p, nil
}

// address is where players connect to.
func address(ip *string, port *int32) string {
	return net.JoinHostPort(*ip, strconv.Itoa(int(*port)))
}

func (d *Demo) clientCommand(ctx context.Context, flags ...string) *exec.Cmd {
	program := d.config.GameClient
	return exec.CommandContext(ctx, program[0], slices.Concat(program[1:], flags)...)
}

// withStderr adds the error output of a program to its error.
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
